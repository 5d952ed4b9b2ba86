//! Retrieval on a GPU: tables of features lie in its memory, nothing but indices and results crosses to the host and
//! back.

pub mod retrieval;

use engine::cuda::CudaDevice;
use engine::cuda::kernels::KernelFile;
use engine::{Device, Storage, Tensor};
use gpu::{Argument, Buffer, Launch, View};

use crate::error::{Error, Result};

const KERNELS: KernelFile = KernelFile::new("evaluate.cu", include_str!("kernels.cu"));

/// Launches one of the kernels. The arguments must be those that it declares, and buffers large enough: what the
/// callers in this folder see to, and `equicaps check evaluate` tries.
fn launch(cuda: &CudaDevice, name: &'static str, launch: Launch, arguments: &[Argument]) -> Result<()> {
    // SAFETY: see above.
    Ok(unsafe { cuda.launch_kernel(KERNELS, name, launch, arguments) }?)
}

/// A buffer with a copy of numbers.
fn upload<T: bytemuck::NoUninit>(cuda: &CudaDevice, values: &[T]) -> Result<Buffer> {
    Ok(cuda.context().upload(bytemuck::cast_slice(values))?)
}

/// The first `count` numbers of a buffer; waits for the device.
fn download<T: bytemuck::Pod>(cuda: &CudaDevice, buffer: &Buffer, count: usize) -> Result<Vec<T>> {
    let mut values = vec![T::zeroed(); count];
    // SAFETY: the buffer is alive; its length is checked there.
    unsafe { cuda.context().read(buffer.view(), bytemuck::cast_slice_mut(&mut values))? };
    Ok(values)
}

/// Where memory lies.
fn view(storage: &Storage) -> Result<View> {
    match storage {
        Storage::Cuda(buffer) => Ok(buffer.view()),
        _ => Err(Error::Request("a table for the GPU lies elsewhere".to_owned())),
    }
}

/// Whether `device` is a GPU, and `bytes` more fit beside what is there, with some room left for the work itself.
pub fn has_room(device: &Device, bytes: usize) -> Result<bool> {
    const WORK: usize = 2 << 30;
    let Device::Cuda(cuda) = device else { return Ok(false) };
    Ok(cuda.context().free_bytes()? >= bytes.saturating_add(WORK))
}

/// Overwrites a tensor by meaningless numbers, for measuring speed.
pub fn fill_random(cuda: &CudaDevice, tensor: &mut Tensor, seed: u32) -> Result<()> {
    let count = tensor.len();
    let to = view(tensor.storage_mut()?)?;
    let arguments = [to.into(), (count as i64).into(), (seed as i32).into()];
    launch(cuda, "fill_random", cuda.elementwise(count), &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels compile for the oldest and for the current data-centre architecture. Needs NVRTC, but no GPU; CI
    /// sets EQUICAPS_REQUIRE_NVRTC.
    #[test]
    fn all_kernels_compile() {
        let compiler = match gpu::Compiler::get() {
            Ok(compiler) => compiler,
            Err(error) if std::env::var_os("EQUICAPS_REQUIRE_NVRTC").is_none() => {
                eprintln!("skipped: no kernel was compiled, as {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let source = engine::cuda::kernels::Program::new(KERNELS, engine::DType::F32).source();
        for (major, minor) in [(8, 0), (9, 0)] {
            let image = compiler.compile(&source, gpu::Architecture { major, minor }).unwrap();
            let text = String::from_utf8_lossy(&image).into_owned();
            for name in ["prepare", "rank_targets", "take_best", "forget_best", "fill_random"] {
                assert!(text.contains(name), "{name} is not in evaluate.cu");
            }
        }
    }
}
