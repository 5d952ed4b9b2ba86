//! ReLU on the GPU.

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::Tensor;

pub(super) fn forward(cuda: &CudaDevice, x: &Tensor, y: &mut Tensor) -> Result<()> {
    let arguments = [view(x)?.into(), view_mut(y)?.into(), (x.len() as i64).into()];
    cuda.launch(&Program::new(kernels::ELEMENTWISE, x.dtype()), "relu", cuda.elementwise(x.len()), &arguments)
}

pub(super) fn backward(cuda: &CudaDevice, dy: &Tensor, y: &Tensor, dx: &mut Target) -> Result<()> {
    let add = i32::from(dx.accumulate);
    let to = view_mut(&mut dx.tensor)?;
    let arguments = [view(dy)?.into(), view(y)?.into(), to.into(), add.into(), (y.len() as i64).into()];
    let program = Program::new(kernels::ELEMENTWISE, y.dtype());
    cuda.launch(&program, "relu_backward", cuda.elementwise(y.len()), &arguments)
}
