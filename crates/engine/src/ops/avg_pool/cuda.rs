//! Global average pooling on the GPU.

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::Tensor;

pub(super) fn forward(cuda: &CudaDevice, x: &Tensor, pixels: usize, y: &mut Tensor) -> Result<()> {
    let (batch, channels) = (y.dims()[0], y.dims()[1]);
    let bytes = (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| "avg_pool".into(), x.len() as f64, bytes);
    let arguments = [view(x)?.into(), view_mut(y)?.into(), batch.into(), pixels.into(), channels.into()];
    let program = Program::with_channels(kernels::POOL, x.dtype(), channels);
    cuda.launch(&program, "mean_pool", cuda.elementwise(y.len()), &arguments)
}

pub(super) fn backward(cuda: &CudaDevice, dy: &Tensor, pixels: usize, dx: &mut Target) -> Result<()> {
    let (batch, channels) = (dy.dims()[0], dy.dims()[1]);
    let bytes = (dx.tensor.len() * dx.tensor.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| "avg_pool backward".into(), dx.tensor.len() as f64, bytes);
    let add = i32::from(dx.accumulate);
    let program = Program::with_channels(kernels::POOL, dx.tensor.dtype(), channels);
    let launch = cuda.elementwise(dx.tensor.len());
    let to = view_mut(&mut dx.tensor)?;
    let arguments = [view(dy)?.into(), to.into(), add.into(), batch.into(), pixels.into(), channels.into()];
    cuda.launch(&program, "mean_pool_backward", launch, &arguments)
}
