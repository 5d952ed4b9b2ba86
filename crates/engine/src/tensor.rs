//! Tensors: a shape and an element type over reference-counted memory. A tensor is written once, by the operation
//! that makes it, while nobody else holds it; afterwards it is shared and read.

use std::sync::Arc;

use crate::cuda::CudaBuffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::pool::CpuBuffer;
use crate::shape::Shape;

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DType {
    /// 32-bit floating point.
    F32,
    /// bfloat16.
    Bf16,
    /// IEEE half: three bits more than bfloat16, for values of limited range. Their gradients are bfloat16.
    F16,
    /// Bytes: pixels.
    U8,
    /// 32-bit integers: labels.
    I32,
}

impl DType {
    /// Size of an element in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::Bf16 | Self::F16 => 2,
            Self::U8 => 1,
        }
    }

    /// `"f32"`, ...
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::U8 => "u8",
            Self::I32 => "i32",
        }
    }

    /// The type of gradients of values of this type: those of f16 would leave its range.
    pub(crate) fn of_gradient(self) -> Self {
        match self {
            Self::F16 => Self::Bf16,
            other => other,
        }
    }
}

/// A host type that a tensor can hold.
pub trait Element: bytemuck::Pod + Send + Sync {
    /// The tensor's element type.
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
impl Element for half::bf16 {
    const DTYPE: DType = DType::Bf16;
}
impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}
impl Element for u8 {
    const DTYPE: DType = DType::U8;
}
impl Element for i32 {
    const DTYPE: DType = DType::I32;
}

/// Memory on some device.
#[derive(Debug)]
pub enum Storage {
    /// Host memory.
    Cpu(CpuBuffer),
    /// GPU memory.
    Cuda(CudaBuffer),
    /// None: the tensor is lent out (a gradient while its operation writes it).
    Nothing,
}

impl Storage {
    fn allocate(device: &Device, bytes: usize) -> Result<Self> {
        match device {
            Device::Cpu(pool) => pool.allocate(bytes).map(Self::Cpu),
            Device::Cuda(cuda) => cuda.allocate(bytes).map(Self::Cuda),
        }
    }

    fn device_name(&self) -> &'static str {
        match self {
            Self::Cpu(_) => "cpu",
            Self::Cuda(_) => "cuda",
            Self::Nothing => "no device (lent out)",
        }
    }

    /// The `bytes` bytes at `offset` of `whole`, as a buffer of their own.
    ///
    /// # Safety
    /// The caller must see to it that parts of one whole do not overlap, and that the whole is written only while
    /// no reference into a part exists, and the other way round.
    pub(crate) unsafe fn part(whole: &Arc<Self>, offset: usize, bytes: usize) -> Self {
        match &**whole {
            // SAFETY: passed on to the caller.
            Self::Cpu(buffer) => Self::Cpu(unsafe { buffer.part(Arc::clone(whole), offset, bytes) }),
            // SAFETY: passed on to the caller.
            Self::Cuda(buffer) => Self::Cuda(unsafe { buffer.part(Arc::clone(whole), offset, bytes) }),
            Self::Nothing => Self::Nothing,
        }
    }
}

/// A tensor, contiguous and row-major. Cloning shares the memory.
#[derive(Clone, Debug)]
pub struct Tensor {
    shape: Shape,
    dtype: DType,
    storage: Arc<Storage>,
}

impl Tensor {
    /// A tensor with unspecified contents, to be written at once.
    pub fn empty(device: &Device, shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        let shape = shape.into();
        let storage = Storage::allocate(device, shape.len().saturating_mul(dtype.size()))?;
        Ok(Self { shape, dtype, storage: Arc::new(storage) })
    }

    /// A tensor of zeros.
    pub fn zeros(device: &Device, shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        let mut tensor = Self::empty(device, shape, dtype)?;
        tensor.fill_zero()?;
        Ok(tensor)
    }

    /// A float32 tensor of one element, 1, made on the device itself.
    pub(crate) fn one(device: &Device, shape: impl Into<Shape>) -> Result<Self> {
        let mut tensor = Self::empty(device, shape, DType::F32)?;
        match tensor.storage_mut()? {
            Storage::Cuda(buffer) => buffer.fill_words(1.0_f32.to_bits())?,
            _ => tensor.as_mut_slice::<f32>()?.fill(1.0),
        }
        Ok(tensor)
    }

    /// A tensor with the given elements, copied to the device.
    pub fn from_slice<T: Element>(device: &Device, shape: impl Into<Shape>, values: &[T]) -> Result<Self> {
        let shape = shape.into();
        if shape.len() != values.len() {
            return Err(Error::shape("tensor", format!("{} values for shape {shape}", values.len())));
        }
        let mut tensor = Self::empty(device, shape, T::DTYPE)?;
        tensor.write(values)?;
        Ok(tensor)
    }

    /// A tensor over `storage`, which must be as long as the shape says.
    pub(crate) fn from_storage(shape: Shape, dtype: DType, storage: Storage) -> Self {
        Self { shape, dtype, storage: Arc::new(storage) }
    }

    /// A tensor without memory, holding the place of one that is lent out.
    pub(crate) fn placeholder(shape: Shape, dtype: DType) -> Self {
        Self { shape, dtype, storage: Arc::new(Storage::Nothing) }
    }

    /// The memory alone.
    pub(crate) fn into_storage(self) -> Arc<Storage> {
        self.storage
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.is_empty()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The memory.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The memory for writing; an error while the tensor is shared.
    pub fn storage_mut(&mut self) -> Result<&mut Storage> {
        let shape = self.shape;
        Arc::get_mut(&mut self.storage)
            .ok_or_else(|| Error::Shared { what: format!("a tensor of shape {shape}") })
    }

    /// Whether nobody else holds this memory.
    pub(crate) fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.storage).is_some()
    }

    /// Copies the contents where the memory is shared, so that they can be changed.
    pub(crate) fn make_unique(&mut self, device: &Device) -> Result<()> {
        if !self.is_unique() {
            let mut own = Self::empty(device, self.shape, self.dtype)?;
            own.copy_from(self)?;
            *self = own;
        }
        Ok(())
    }

    /// The same elements under another shape.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        if shape.len() != self.len() {
            return Err(Error::shape("reshape", format!("{} to {shape}", self.shape)));
        }
        Ok(Self { shape, dtype: self.dtype, storage: Arc::clone(&self.storage) })
    }

    /// The elements, for a tensor on the CPU.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_dtype::<T>()?;
        match &*self.storage {
            Storage::Cpu(buffer) => {
                Ok(bytemuck::cast_slice(&buffer.as_bytes()[..self.len() * self.dtype.size()]))
            }
            other => Err(Error::WrongDevice {
                what: format!("a tensor of shape {}", self.shape),
                device: other.device_name().into(),
            }),
        }
    }

    /// The elements for writing, for a tensor on the CPU that nobody shares.
    pub(crate) fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_dtype::<T>()?;
        let (bytes, shape) = (self.len() * self.dtype.size(), self.shape);
        match self.storage_mut()? {
            Storage::Cpu(buffer) => Ok(bytemuck::cast_slice_mut(&mut buffer.as_mut_bytes()[..bytes])),
            other => Err(Error::WrongDevice {
                what: format!("a tensor of shape {shape}"),
                device: other.device_name().into(),
            }),
        }
    }

    /// A copy of the elements on the host, wherever the tensor is.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype::<T>()?;
        let mut values = vec![T::zeroed(); self.len()];
        match &*self.storage {
            Storage::Cpu(_) => values.copy_from_slice(self.as_slice()?),
            Storage::Cuda(buffer) => buffer.download(bytemuck::cast_slice_mut(&mut values))?,
            Storage::Nothing => {}
        }
        Ok(values)
    }

    /// A copy of the elements on the host as float32, from f32, bf16 or f16.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        match self.dtype {
            DType::Bf16 => Ok(self.to_vec::<half::bf16>()?.into_iter().map(f32::from).collect()),
            DType::F16 => Ok(self.to_vec::<half::f16>()?.into_iter().map(f32::from).collect()),
            _ => self.to_vec(),
        }
    }

    /// The value of a tensor with one element.
    pub fn scalar(&self) -> Result<f32> {
        match self.to_f32()?.as_slice() {
            [value] => Ok(*value),
            _ => Err(Error::shape(
                "scalar",
                format!("a tensor of shape {} is not a single number", self.shape),
            )),
        }
    }

    /// Overwrites all elements from the host.
    pub fn write<T: Element>(&mut self, values: &[T]) -> Result<()> {
        self.check_dtype::<T>()?;
        if values.len() != self.len() {
            return Err(Error::shape("write", format!("{} values into shape {}", values.len(), self.shape)));
        }
        match self.storage_mut()? {
            Storage::Cpu(_) => {
                self.as_mut_slice::<T>()?.copy_from_slice(values);
                Ok(())
            }
            Storage::Cuda(buffer) => buffer.upload(bytemuck::cast_slice(values)),
            Storage::Nothing => Ok(()),
        }
    }

    /// Overwrites all elements by their bytes.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.len() * self.dtype.size() {
            return Err(Error::shape("write", format!("{} bytes into shape {}", bytes.len(), self.shape)));
        }
        match self.storage_mut()? {
            Storage::Cpu(buffer) => {
                buffer.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Storage::Cuda(buffer) => buffer.upload(bytes),
            Storage::Nothing => Ok(()),
        }
    }

    /// Copies all elements of `source`, which has the same type, length and device.
    pub fn copy_from(&mut self, source: &Self) -> Result<()> {
        if self.dtype != source.dtype || self.len() != source.len() {
            let detail =
                format!("{} {} into {} {}", source.dtype.name(), source.shape, self.dtype.name(), self.shape);
            return Err(Error::shape("copy", detail));
        }
        match (self.storage_mut()?, source.storage()) {
            (Storage::Cpu(to), Storage::Cpu(from)) => {
                to.as_mut_bytes().copy_from_slice(from.as_bytes());
                Ok(())
            }
            (Storage::Cuda(to), Storage::Cuda(from)) => to.copy_from(from),
            (_, from) => Err(Error::WrongDevice {
                what: "the source of a copy".into(),
                device: from.device_name().into(),
            }),
        }
    }

    /// Sets all elements to zero.
    pub fn fill_zero(&mut self) -> Result<()> {
        match self.storage_mut()? {
            Storage::Cpu(buffer) => {
                buffer.as_mut_bytes().fill(0);
                Ok(())
            }
            Storage::Cuda(buffer) => buffer.zero(),
            Storage::Nothing => Ok(()),
        }
    }

    fn check_dtype<T: Element>(&self) -> Result<()> {
        if T::DTYPE == self.dtype {
            return Ok(());
        }
        Err(Error::DType {
            expected: T::DTYPE.name(),
            found: self.dtype.name(),
            shape: self.shape.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_tensor_cannot_be_written() {
        let mut tensor = Tensor::from_slice(&Device::cpu(), [2, 3], &[1.0_f32; 6]).unwrap();
        let view = tensor.reshape([6]).unwrap();
        assert!(tensor.as_mut_slice::<f32>().is_err());
        drop(view);
        tensor.as_mut_slice::<f32>().unwrap()[5] = 7.0;
        assert_eq!(tensor.to_vec::<f32>().unwrap()[5], 7.0);
    }

    #[test]
    fn wrong_types_and_lengths_are_refused() {
        let device = Device::cpu();
        let tensor = Tensor::zeros(&device, [2, 2], DType::F32).unwrap();
        assert!(tensor.as_slice::<u8>().is_err());
        assert!(tensor.reshape([5]).is_err());
        assert!(Tensor::from_slice(&device, [3], &[0_u8; 2]).is_err());
    }
}
