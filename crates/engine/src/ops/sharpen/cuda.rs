//! Sharpening on the GPU: a warp a row.

use gpu::Launch;

use super::SMALLEST;
use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

fn launch(rows: usize) -> Launch {
    Launch::linear(rows.div_ceil(8), 256)
}

pub(super) fn forward(
    cuda: &CudaDevice,
    a: &Tensor,
    [rows, columns]: [usize; 2],
    temperature: f32,
    y: &mut Tensor,
) -> Result<()> {
    let (from, to) = (view(a)?.into(), view_mut(y)?.into());
    let arguments = [from, rows.into(), columns.into(), temperature.into(), SMALLEST.into(), to];
    cuda.launch(&Program::new(kernels::LOSS, DType::F32), "sharpen", launch(rows), &arguments)
}

pub(super) fn backward(
    cuda: &CudaDevice,
    (dy, a, y): (&Tensor, &Tensor, &Tensor),
    [rows, columns]: [usize; 2],
    temperature: f32,
    da: &mut Target,
) -> Result<()> {
    let add = i32::from(da.accumulate);
    let arguments = [
        view(dy)?.into(),
        view(a)?.into(),
        view(y)?.into(),
        rows.into(),
        columns.into(),
        temperature.into(),
        SMALLEST.into(),
        view_mut(&mut da.tensor)?.into(),
        add.into(),
    ];
    cuda.launch(&Program::new(kernels::LOSS, DType::F32), "sharpen_backward", launch(rows), &arguments)
}
