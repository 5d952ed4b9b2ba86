//! Adding a whole gradient into another, for values that are used more than once.

use rayon::prelude::*;

use crate::cpu;
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::Target;
use crate::tensor::Tensor;

/// `target += gradient`, or `target = gradient` where the target is unspecified so far. Nothing is recorded, so this is
/// no operation of the tape, and chooses the device itself.
pub fn accumulate(device: &Device, gradient: &Tensor, target: &mut Target) -> Result<()> {
    if gradient.len() != target.tensor.len() {
        let detail = format!("{} into {}", gradient.shape(), target.tensor.shape());
        return Err(Error::shape("gradient", detail));
    }
    match device {
        Device::Cpu(_) => {
            const CHUNK: usize = 1 << 14;
            let add = target.accumulate;
            let to = target.tensor.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK);
            to.zip(gradient.as_slice::<f32>()?.par_chunks(CHUNK)).for_each(|(to, from)| {
                if add { cpu::add_assign(to, from) } else { to.copy_from_slice(from) }
            });
            Ok(())
        }
        Device::Cuda(cuda) => add_on_cuda(cuda, gradient, target),
    }
}

/// `target += gradient`, or a copy where the target is unspecified.
fn add_on_cuda(cuda: &CudaDevice, gradient: &Tensor, target: &mut Target) -> Result<()> {
    let count = gradient.len();
    if !target.accumulate {
        return target.tensor.copy_from(gradient);
    }
    let _scope = cuda.context().scope(
        || "accumulate".into(),
        count as f64,
        3.0 * (count * gradient.dtype().size()) as f64,
    );
    let (to, from) = (view_mut(&mut target.tensor)?, view(gradient)?);
    let is_aligned = to.address.is_multiple_of(32) && from.address.is_multiple_of(32);
    let vectors = if is_aligned { count / 8 } else { 0 };
    let program = Program::new(KernelFile::Elementwise, gradient.dtype());
    let arguments = [to.into(), from.into(), (count as i64).into(), (vectors as i64).into()];
    cuda.launch(
        &program,
        Kernel::add_into,
        cuda.elementwise(if is_aligned { count.div_ceil(8) } else { count }),
        &arguments,
    )
}

/// The gradient of a bias: `target (+)=` column sums of `dy`, in a fixed order.
pub(crate) fn column_sum_gradient(dy: &[f32], target: &mut Target) -> Result<()> {
    let columns = target.tensor.len();
    let sums = cpu::column_sums(dy.len() / columns.max(1), columns, 1, |first, rows, sums| {
        for row in dy[first * columns..(first + rows) * columns].chunks_exact(columns) {
            cpu::add_assign(sums, row);
        }
    });
    target.write(|column| sums[column] as f32)
}
