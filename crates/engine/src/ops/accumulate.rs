//! Adding a whole gradient into another, for values that are used more than once.

mod cuda;

use rayon::prelude::*;

use crate::cpu;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::Target;
use crate::tensor::Tensor;

/// `target += gradient`, or `target = gradient` where the target is unspecified so far.
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
        Device::Cuda(cuda) => cuda::accumulate(cuda, gradient, target),
    }
}

/// The gradient of a bias: `target (+)=` column sums of `dy`, in a fixed order.
pub(crate) fn column_sum_gradient(dy: &[f32], target: &mut Target) -> Result<()> {
    let columns = target.tensor.len();
    let sums = cpu::column_sums(dy.len() / columns.max(1), columns, 1, |first, rows, sums| {
        for row in dy[first * columns..(first + rows) * columns].chunks_exact(columns) {
            cpu::add_assign(sums, row);
        }
    });
    let accumulate = target.accumulate;
    for (target, sum) in target.tensor.as_mut_slice::<f32>()?.iter_mut().zip(sums) {
        *target = if accumulate { *target + sum as f32 } else { sum as f32 };
    }
    Ok(())
}
