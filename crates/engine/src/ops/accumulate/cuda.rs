//! Adding gradients on the GPU.

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::Tensor;

/// `target += gradient`, or a copy where the target is unspecified.
pub(super) fn accumulate(cuda: &CudaDevice, gradient: &Tensor, target: &mut Target) -> Result<()> {
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
    let program = Program::new(kernels::ELEMENTWISE, gradient.dtype());
    let arguments = [to.into(), from.into(), (count as i64).into(), (vectors as i64).into()];
    cuda.launch(
        &program,
        "add_into",
        cuda.elementwise(if is_aligned { count.div_ceil(8) } else { count }),
        &arguments,
    )
}
