//! The errors of several heads on the GPU.

use gpu::Launch;

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

pub(super) fn forward(
    cuda: &CudaDevice,
    y: &Tensor,
    targets: &Tensor,
    sizes: &Tensor,
    losses: &mut Tensor,
) -> Result<()> {
    let [rows, heads, columns] = [y.dims()[0], y.dims()[1], y.dims()[2]];
    let arguments = [
        view(y)?.into(),
        view(targets)?.into(),
        view(sizes)?.into(),
        rows.into(),
        heads.into(),
        columns.into(),
        view_mut(losses)?.into(),
    ];
    let program = Program::new(kernels::HEADS, DType::F32);
    cuda.launch(&program, "grouped_mse", Launch::linear(heads, 256), &arguments)
}

pub(super) fn backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    [y, targets, sizes]: [&Tensor; 3],
    du: &mut Target,
) -> Result<()> {
    let [rows, heads, columns] = [y.dims()[0], y.dims()[1], y.dims()[2]];
    let arguments = [
        view(dy)?.into(),
        view(y)?.into(),
        view(targets)?.into(),
        view(sizes)?.into(),
        (y.len() as i64).into(),
        rows.into(),
        heads.into(),
        columns.into(),
        view_mut(&mut du.tensor)?.into(),
        i32::from(du.accumulate).into(),
    ];
    let program = Program::new(kernels::HEADS, DType::F32);
    cuda.launch(&program, "grouped_mse_backward", cuda.elementwise(y.len()), &arguments)
}
