//! Functions of single elements on the GPU.

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::Tensor;

pub(super) fn forward(cuda: &CudaDevice, name: &'static str, x: &Tensor, y: &mut Tensor) -> Result<()> {
    let bytes = 2.0 * (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| name.into(), x.len() as f64, bytes);
    let arguments = [view(x)?.into(), view_mut(y)?.into(), (x.len() as i64).into()];
    cuda.launch(&Program::new(kernels::ELEMENTWISE, x.dtype()), name, cuda.elementwise(x.len()), &arguments)
}

pub(super) fn backward(
    cuda: &CudaDevice,
    name: &'static str,
    dy: &Tensor,
    y: &Tensor,
    dx: &mut Target,
) -> Result<()> {
    let bytes = 3.0 * (y.len() * y.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| name.replace('_', " "), y.len() as f64, bytes);
    let arguments = [
        view(dy)?.into(),
        view(y)?.into(),
        view_mut(&mut dx.tensor)?.into(),
        i32::from(dx.accumulate).into(),
        (y.len() as i64).into(),
    ];
    let program = Program::new(kernels::ELEMENTWISE, y.dtype());
    cuda.launch(&program, name, cuda.elementwise(y.len()), &arguments)
}
