//! Retrieval on a GPU: tables of features lie in its memory, nothing but indices and results crosses to the host and
//! back.

pub mod retrieval;

use engine::cuda::CudaDevice;
use engine::cuda::kernels::PRELUDE;
use engine::{Device, Storage, Tensor};
use gpu::{Argument, Buffer, KernelSource, Launch, View};

use crate::error::{Error, Result};

fn source() -> KernelSource {
    let defines = vec!["STORAGE=float".to_owned()];
    KernelSource { name: "evaluate.cu", prelude: PRELUDE, text: include_str!("kernels.cu"), defines }
}

/// Launches one of the kernels. The arguments must be those that it declares, and buffers large enough: what the
/// callers in this folder see to, and `equicaps check evaluate` tries.
fn launch(cuda: &CudaDevice, name: &'static str, launch: Launch, arguments: &[Argument]) -> Result<()> {
    let kernel = cuda.context().kernel(&source(), name)?;
    // SAFETY: see above.
    Ok(unsafe { kernel.launch(launch, arguments) }?)
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
pub(crate) fn has_room(device: &Device, bytes: usize) -> Result<bool> {
    const WORK: usize = 2 << 30;
    let Device::Cuda(cuda) = device else { return Ok(false) };
    Ok(cuda.context().free_bytes()? >= bytes.saturating_add(WORK))
}

/// Overwrites a tensor by meaningless numbers, for measuring speed.
pub(crate) fn fill_random(cuda: &CudaDevice, tensor: &mut Tensor, seed: u32) -> Result<()> {
    let count = tensor.len();
    let to = view(tensor.storage_mut()?)?;
    let arguments = [to.into(), (count as i64).into(), (seed as i32).into()];
    launch(cuda, "fill_random", cuda.elementwise(count), &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels compile for the oldest and for the current data-centre architecture. Needs NVRTC, but no GPU.
    #[test]
    fn all_kernels_compile() {
        let Some(compiler) = gpu::Compiler::for_tests() else { return };
        let source = source();
        for (major, minor) in [(8, 0), (9, 0)] {
            let image = compiler.compile(&source, gpu::Architecture { major, minor }).unwrap();
            let text = String::from_utf8_lossy(&image).into_owned();
            for name in ["prepare", "rank_targets", "take_best", "forget_best", "fill_random"] {
                assert!(text.contains(name), "{name} is not in evaluate.cu");
            }
        }
    }
}
