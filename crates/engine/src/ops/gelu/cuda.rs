//! GELU on the GPU, with the bias before it and that bias' gradient where there is one.

use crate::cuda::kernels::{self, Program};
use crate::cuda::sums::{Layout, Partial};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::Tensor;

/// Rows and columns: those of the bias, or all as one row of eight at a time.
fn columns(x: &Tensor, bias: Option<&Tensor>) -> usize {
    match bias {
        Some(bias) => bias.len(),
        None if x.len().is_multiple_of(2048) => 2048,
        None => x.dims().last().copied().unwrap_or(1),
    }
}

pub(super) fn forward(cuda: &CudaDevice, x: &Tensor, bias: Option<&Tensor>, y: &mut Tensor) -> Result<()> {
    let channels = columns(x, bias);
    let rows = x.len() / channels.max(1);
    let bytes = 2.0 * (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| format!("gelu {channels}"), 14.0 * x.len() as f64, bytes);
    let layout = Layout::new(cuda, rows, channels, 16);
    let arguments = [
        view(x)?.into(),
        bias.map(view).transpose()?.into(),
        view_mut(y)?.into(),
        (rows as i64).into(),
        channels.into(),
        layout.columns.into(),
    ];
    let program = Program::with_channels(kernels::GELU, x.dtype(), channels);
    cuda.launch(&program, "gelu", layout.launch(), &arguments)
}

pub(super) fn backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    x: &Tensor,
    bias: Option<&Tensor>,
    (dx, accumulate): (&mut Tensor, bool),
    dbias: Option<&mut Target>,
) -> Result<()> {
    let channels = columns(x, bias);
    let rows = x.len() / channels.max(1);
    let bytes = 3.0 * (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| format!("gelu {channels} backward"), 20.0 * x.len() as f64, bytes);
    let layout = Layout::new(cuda, rows, channels, 8);
    let partial = dbias.is_some().then(|| Partial::new(cuda, layout.blocks, 1, channels)).transpose()?;
    let arguments = [
        view(dy)?.into(),
        view(x)?.into(),
        bias.map(view).transpose()?.into(),
        view_mut(dx)?.into(),
        i32::from(accumulate).into(),
        partial.as_ref().map_or(gpu::Argument::Address(0), Partial::argument),
        (rows as i64).into(),
        channels.into(),
        layout.columns.into(),
    ];
    let program = Program::with_channels(kernels::GELU, x.dtype(), channels);
    cuda.launch(&program, "gelu_backward", layout.launch(), &arguments)?;
    match partial {
        Some(partial) => partial.finish(cuda, [dbias, None, None]),
        None => Ok(()),
    }
}
