//! The CUDA side of [`Device`](crate::Device) and [`Storage`]: the device type and its buffers.
//! Operations keep their launch code beside their formula, in `ops/NAME.rs` or `ops/NAME/cuda.rs`, and their kernels in
//! `ops/NAME.cu`.

pub(crate) mod casts;
pub mod kernels;
pub(crate) mod sums;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gpu::matmul::MatmulShape;
use gpu::{Argument, Context, Launch, View};

use crate::cuda::kernels::{Kernel, Program};
use crate::device::Precision;
use crate::error::{Error, Result};
use crate::pool::PoolReport;
use crate::shape::Shape;
use crate::tensor::{DType, Storage, Tensor};

/// One GPU: its context, stream, libraries, kernels and memory pool.
#[derive(Debug)]
pub struct CudaDevice {
    context: Context,
    precision: Precision,
    /// Kernels that were launched before.
    kernels: Mutex<HashMap<(Program, Kernel), gpu::Kernel>>,
}

impl CudaDevice {
    /// Opens device `ordinal`.
    pub fn open(ordinal: usize, precision: Precision) -> Result<Self> {
        Ok(Self { context: Context::new(ordinal)?, precision, kernels: Mutex::default() })
    }

    /// `"cuda:0"`, ...
    pub fn name(&self) -> String {
        format!("cuda:{}", self.context.properties().index)
    }

    /// The precision of activations.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The device's context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What the memory pool holds.
    pub fn memory(&self) -> PoolReport {
        let usage = self.context.memory_use();
        PoolReport {
            in_use: usage.current_bytes,
            peak: usage.peak_bytes,
            reserved: usage.reserved_bytes,
            allocations: usage.driver_allocations,
        }
    }

    /// Starts a new measurement of the peak.
    pub fn reset_peak(&self) {
        self.context.reset_peak();
    }

    /// Waits for the device.
    pub fn synchronise(&self) -> Result<()> {
        Ok(self.context.synchronize()?)
    }

    /// A buffer of `bytes` from the pool, contents unspecified.
    pub fn allocate(self: &Arc<Self>, bytes: usize) -> Result<CudaBuffer> {
        Ok(CudaBuffer::owned(self.context.allocate(bytes)?))
    }

    /// The error of an operation that has no CUDA implementation.
    pub fn missing(&self, op: &'static str) -> Error {
        Error::Unsupported { op, device: self.name() }
    }

    /// Launches `kernel` of `program`. The arguments must be those that the kernel declares: everything the
    /// launch code of an operation is responsible for, and what `check ops` tries.
    pub(crate) fn launch(
        &self,
        program: &Program,
        kernel: Kernel,
        launch: Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        let key = (*program, kernel);
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = match kernels.get(&key) {
            Some(kernel) => kernel,
            None => {
                let compiled = self.context.kernel(&program.source(), kernel.name())?;
                kernels.entry(key).or_insert(compiled)
            }
        };
        // SAFETY: see above; addresses come from live tensors by `view` and `view_mut`.
        unsafe { kernel.launch(launch, arguments)? };
        Ok(())
    }

    /// `to = op(a) op(b) + beta to`, for packed matrices that must be as long as `shape` says.
    pub(crate) fn multiply(&self, shape: &MatmulShape, beta: f32, [a, b, to]: [View; 3]) -> Result<()> {
        let MatmulShape { rows, columns, inner, batch, precision, output, .. } = *shape;
        let needed = [
            rows * inner * precision.bytes(),
            inner * columns * precision.bytes(),
            rows * columns * output.bytes(),
        ];
        let given = [a, b, to].map(|view| view.bytes);
        if batch != 1 || given.iter().zip(needed).any(|(&given, needed)| given < needed) {
            let detail = format!("{rows} x {inner} times {inner} x {columns} of {given:?} bytes");
            return Err(Error::shape("matrix product", detail));
        }
        let (context, scales) = (&self.context, (1.0, beta));
        // SAFETY: views are of live memory, and as long as the shape says by the check above.
        Ok(unsafe { context.matmuls()?.multiply(context, shape, scales, a.address, b.address, to.address) }?)
    }

    /// Blocks of 256 threads that fill the device for an elementwise kernel over `count` items.
    pub fn elementwise(&self, count: usize) -> Launch {
        let most = self.multiprocessors() * 16;
        Launch::linear(count.div_ceil(256).min(most), 256)
    }

    pub(crate) fn multiprocessors(&self) -> usize {
        self.context.properties().multiprocessors as usize
    }
}

/// A range of GPU memory. Dropping one that came from the pool gives it back; a part keeps its whole alive.
#[derive(Debug)]
pub struct CudaBuffer {
    view: View,
    context: Context,
    #[expect(dead_code, reason = "held for its lifetime only")]
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    Pool(#[expect(dead_code, reason = "held for its lifetime only")] gpu::Buffer),
    Shared(#[expect(dead_code, reason = "held for its lifetime only")] Arc<gpu::Buffer>),
    Part(#[expect(dead_code, reason = "held for its lifetime only")] Arc<Storage>),
}

impl CudaBuffer {
    /// Device address.
    pub fn address(&self) -> u64 {
        self.view.address
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.view.bytes
    }

    /// The range.
    pub fn view(&self) -> View {
        self.view
    }

    /// All of a buffer.
    pub(crate) fn owned(buffer: gpu::Buffer) -> Self {
        Self { view: buffer.view(), context: buffer.context().clone(), owner: Owner::Pool(buffer) }
    }

    /// The part `view` of a buffer that others hold too.
    pub(crate) fn shared(buffer: Arc<gpu::Buffer>, view: View) -> Self {
        Self { view, context: buffer.context().clone(), owner: Owner::Shared(buffer) }
    }

    /// The `bytes` bytes at `offset` of `whole`, whose buffer this is.
    ///
    /// # Safety
    /// As for [`Storage::part`].
    pub(crate) unsafe fn part(&self, whole: Arc<Storage>, offset: usize, bytes: usize) -> Self {
        assert!(offset + bytes <= self.view.bytes, "a part must lie within its buffer");
        let view = View { address: self.view.address + offset as u64, bytes };
        Self { view, context: self.context.clone(), owner: Owner::Part(whole) }
    }

    /// Copies `source` to the start of the buffer.
    pub fn upload(&mut self, source: &[u8]) -> Result<()> {
        // SAFETY: the buffer is alive and its own.
        Ok(unsafe { self.context.write(self.view, source) }?)
    }

    /// Copies the start of the buffer to `target`.
    pub fn download(&self, target: &mut [u8]) -> Result<()> {
        // SAFETY: the buffer is alive.
        Ok(unsafe { self.context.read(self.view, target) }?)
    }

    /// Copies all of `source`, which is as long.
    pub fn copy_from(&mut self, source: &Self) -> Result<()> {
        // SAFETY: both buffers are alive.
        Ok(unsafe { self.context.copy(self.view, source.view) }?)
    }

    /// Sets all 32-bit words to `word`.
    pub fn fill_words(&mut self, word: u32) -> Result<()> {
        // SAFETY: the buffer is alive and its own.
        Ok(unsafe { self.context.fill_words(self.view, word) }?)
    }

    /// Sets all bytes to zero.
    pub fn zero(&mut self) -> Result<()> {
        // SAFETY: the buffer is alive and its own.
        Ok(unsafe { self.context.fill(self.view, 0) }?)
    }
}

impl Tensor {
    /// A tensor over GPU memory that somebody else filled, without a copy.
    pub fn from_buffer(shape: impl Into<Shape>, dtype: DType, buffer: gpu::Buffer) -> Result<Self> {
        let (shape, bytes) = (shape.into(), buffer.bytes());
        if shape.len() * dtype.size() != bytes {
            return Err(Error::shape("tensor", format!("{bytes} bytes for {shape} of {}", dtype.name())));
        }
        Ok(Self::from_storage(shape, dtype, Storage::Cuda(CudaBuffer::owned(buffer))))
    }
}

/// Where a tensor lies, for reading.
pub(crate) fn view(tensor: &Tensor) -> Result<View> {
    storage_view(tensor.storage())
}

/// Where a tensor lies, for writing; an error while it is shared.
pub(crate) fn view_mut(tensor: &mut Tensor) -> Result<View> {
    storage_view(tensor.storage_mut()?)
}

/// Where memory lies.
pub(crate) fn storage_view(storage: &Storage) -> Result<View> {
    match storage {
        Storage::Cuda(buffer) => Ok(buffer.view()),
        Storage::Cpu(_) => Err(Error::WrongDevice { what: "an operand".into(), device: "cpu".into() }),
        Storage::Nothing => Err(Error::Shared { what: "an operand".into() }),
    }
}

/// The precision of the library calls for tensors of `dtype`.
pub(crate) fn precision_of(dtype: DType) -> Result<gpu::Precision> {
    match dtype {
        DType::F32 => Ok(gpu::Precision::F32),
        DType::Bf16 => Ok(gpu::Precision::Bf16),
        DType::F16 => Ok(gpu::Precision::F16),
        other => Err(Error::Device(format!("tensors of {} have no arithmetic", other.name()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn a_tensor_takes_over_memory_that_is_filled() {
        let Ok(Device::Cuda(device)) = Device::cuda(0, Precision::Mixed) else {
            eprintln!("skipped: no CUDA device");
            return;
        };
        let filled = || device.context().upload(&[1, 2, 3, 4, 5, 6]).unwrap();
        let tensor = Tensor::from_buffer([2, 3], DType::U8, filled()).unwrap();
        assert_eq!(tensor.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
        assert!(Tensor::from_buffer([2, 3], DType::F32, filled()).is_err());
    }
}
