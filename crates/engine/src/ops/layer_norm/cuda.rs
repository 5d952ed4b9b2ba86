//! Layer norm on the GPU, alone or behind the sum before it: one pass forward, one backward, which also makes the sums
//! over rows that parameters need.

use gpu::{Argument, Launch};

use crate::cuda::kernels::{Kernel, KernelFile, Macro, Program};
use crate::cuda::sums::Partial;
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::ops::operation::To;
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

/// Numbers that a lane handles together, and lanes that share a row.
fn shares(width: usize) -> (usize, usize) {
    if width.is_multiple_of(4) { (4, 16) } else { (1, 32) }
}

fn program(dtype: DType, width: usize) -> Program {
    let (vector, lanes) = shares(width);
    Program::new(KernelFile::LayerNorm, dtype)
        .define(Macro::Vector, vector)
        .define(Macro::Width, width)
        .define(Macro::Lanes, lanes)
}

/// Blocks over the rows.
fn blocks(cuda: &CudaDevice, rows: usize, width: usize, per_multiprocessor: usize) -> usize {
    let at_once = 256 / shares(width).1;
    rows.div_ceil(at_once).clamp(1, cuda.multiprocessors() * per_multiprocessor)
}

/// What is added to `x` before the norm: the output of a linear layer, its bias, and where the sum goes.
pub(crate) type Added<'a> = (&'a Tensor, &'a Tensor, &'a mut Tensor);

/// Writes the norm of `x` (or of the sum) to `y`, mean and inverse deviation of every row to `statistics`.
pub(crate) fn forward(
    cuda: &CudaDevice,
    x: &Tensor,
    added: Option<Added<'_>>,
    [gamma, beta]: [&Tensor; 2],
    epsilon: f32,
    statistics: &mut Tensor,
    y: &mut Tensor,
) -> Result<()> {
    let width = gamma.len();
    let rows = x.len() / width;
    let passes = if added.is_some() { 4.0 } else { 2.0 };
    let bytes = passes * (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| format!("layer_norm {width}"), 8.0 * x.len() as f64, bytes);
    let [other, bias, sum] = match added {
        None => [Argument::Address(0); 3],
        Some((other, bias, sum)) => [view(other)?.into(), view(bias)?.into(), view_mut(sum)?.into()],
    };
    let arguments = [
        view(x)?.into(),
        other,
        bias,
        view(gamma)?.into(),
        view(beta)?.into(),
        epsilon.into(),
        sum,
        view_mut(y)?.into(),
        view_mut(statistics)?.into(),
        (rows as i64).into(),
    ];
    let launch = Launch::linear(blocks(cuda, rows, width, 8), 256);
    cuda.launch(&program(x.dtype(), width), Kernel::add_norm, launch, &arguments)
}

/// Writes dx = the norm's gradient plus `dsum`, added to what is there where it accumulates, and the gradients of gamma,
/// beta and the bias.
pub(crate) fn backward(
    cuda: &CudaDevice,
    (dy, dsum): (&Tensor, Option<&Tensor>),
    (x, statistics, gamma): (&Tensor, &Tensor, &Tensor),
    dx: &mut Target,
    targets: To<3>,
) -> Result<()> {
    let width = gamma.len();
    let rows = x.len() / width;
    let passes = 3.0 + f64::from(u8::from(dsum.is_some())) + f64::from(u8::from(dx.accumulate));
    let bytes = passes * (x.len() * x.dtype().size()) as f64;
    let _scope =
        cuda.context().scope(|| format!("layer_norm {width} backward"), 16.0 * x.len() as f64, bytes);
    let blocks = blocks(cuda, rows, width, 4);
    let partial = Partial::new(cuda, blocks, 3, width)?;
    let [to, add] = dx.arguments()?;
    let arguments = [
        view(dy)?.into(),
        dsum.map(view).transpose()?.into(),
        view(x)?.into(),
        view(statistics)?.into(),
        view(gamma)?.into(),
        to,
        add,
        partial.argument(),
        (rows as i64).into(),
    ];
    cuda.launch(&program(x.dtype(), width), Kernel::norm_backward, Launch::linear(blocks, 256), &arguments)?;
    partial.finish(cuda, targets)
}
