//! Max pooling on the GPU.

use gpu::Argument;

use super::PADDING_VALUE;
use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::ops::conv2d::Geometry;
use crate::tape::Target;
use crate::tensor::Tensor;

fn sizes(geometry: &Geometry) -> [Argument; 10] {
    let ([height, width, channels], [oh, ow, _]) = (geometry.input, geometry.output);
    [
        geometry.batch.into(),
        height.into(),
        width.into(),
        channels.into(),
        oh.into(),
        ow.into(),
        geometry.kernel[0].into(),
        geometry.stride.into(),
        geometry.padding.top.into(),
        geometry.padding.left.into(),
    ]
}

pub(super) fn forward(
    cuda: &CudaDevice,
    geometry: &Geometry,
    x: &Tensor,
    y: &mut Tensor,
    taps: &mut Tensor,
) -> Result<()> {
    let bytes = ((x.len() + y.len()) * x.dtype().size() + taps.len()) as f64;
    let _scope = cuda.context().scope(|| "max_pool".into(), x.len() as f64, bytes);
    let mut arguments = vec![view(x)?.into(), view_mut(y)?.into(), view_mut(taps)?.into()];
    arguments.extend(sizes(geometry));
    arguments.push(PADDING_VALUE.into());
    let program = Program::with_channels(kernels::POOL, x.dtype(), geometry.input[2]);
    cuda.launch(&program, "max_pool", cuda.elementwise(y.len()), &arguments)
}

pub(super) fn backward(
    cuda: &CudaDevice,
    geometry: &Geometry,
    dy: &Tensor,
    taps: &Tensor,
    dx: &mut Target,
) -> Result<()> {
    let bytes = ((dx.tensor.len() + dy.len()) * dy.dtype().size() + taps.len()) as f64;
    let _scope = cuda.context().scope(|| "max_pool backward".into(), dx.tensor.len() as f64, bytes);
    let add = i32::from(dx.accumulate);
    let mut arguments =
        vec![view(dy)?.into(), view(taps)?.into(), view_mut(&mut dx.tensor)?.into(), add.into()];
    arguments.extend(sizes(geometry));
    let program = Program::with_channels(kernels::POOL, dy.dtype(), geometry.input[2]);
    cuda.launch(&program, "max_pool_backward", cuda.elementwise(dx.tensor.len()), &arguments)
}
