//! Columns on the GPU.

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tensor::Tensor;

/// `width` columns of `from` (rows of `from_total`, from column `from_start` on) to the same of `to`, added where `add`.
pub(super) fn copy_columns(
    cuda: &CudaDevice,
    (from, from_total, from_start): (&Tensor, usize, usize),
    (to, to_total, to_start): (&mut Tensor, usize, usize),
    width: usize,
    add: bool,
) -> Result<()> {
    let rows = from.len() / from_total.max(1);
    let arguments = [
        view(from)?.into(),
        from_total.into(),
        from_start.into(),
        view_mut(to)?.into(),
        to_total.into(),
        to_start.into(),
        width.into(),
        (rows as i64).into(),
        i32::from(add).into(),
    ];
    let program = Program::new(kernels::ELEMENTWISE, from.dtype());
    cuda.launch(&program, "copy_columns", cuda.elementwise(rows * width), &arguments)
}
