//! Tokens on the GPU.

use crate::cuda::kernels::{self, Program, vector};
use crate::cuda::{CudaDevice, sums, view, view_mut};
use crate::device::Device;
use crate::error::Result;
use crate::ops::accumulate;
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

/// Runs `kernel` over rows of `d` numbers, of `tokens` tokens (or one more) for each of `batch` samples.
fn run(
    cuda: &CudaDevice,
    kernel: &'static str,
    arguments: &[gpu::Argument],
    dtype: DType,
    [batch, tokens, d]: [usize; 3],
) -> Result<()> {
    let count = batch * (1 + tokens) * d;
    let _scope = cuda.context().scope(|| kernel.into(), 0.0, 2.0 * (count * dtype.size()) as f64);
    let arguments: Vec<_> =
        arguments.iter().copied().chain([batch.into(), tokens.into(), d.into()]).collect();
    let program = Program::with_channels(kernels::TOKENS, dtype, d);
    cuda.launch(&program, kernel, cuda.elementwise(count / vector(d)), &arguments)
}

pub(super) fn embed(
    cuda: &CudaDevice,
    patches: &Tensor,
    class: &Tensor,
    position: &Tensor,
    y: &mut Tensor,
) -> Result<()> {
    let &[batch, all, d] = y.dims() else { return Ok(()) };
    let arguments = [view(patches)?.into(), view(class)?.into(), view(position)?.into(), view_mut(y)?.into()];
    run(cuda, "embed", &arguments, patches.dtype(), [batch, all - 1, d])
}

pub(super) fn embed_backward(
    cuda: &CudaDevice,
    device: &Device,
    dy: &Tensor,
    dpatches: Option<&mut Target>,
    dclass: Option<&mut Target>,
    dposition: Option<&mut Target>,
) -> Result<()> {
    let &[_, all, d] = dy.dims() else { return Ok(()) };
    if let Some(dpatches) = dpatches {
        drop_first(cuda, dy, &mut dpatches.tensor, dpatches.accumulate)?;
    }
    // The sums over all samples; those of the first token are the class token's.
    let mut total = Target::unplaced(Tensor::empty(device, [all, d], DType::F32)?);
    sums::column_sums(cuda, dy, all * d, &mut total)?;
    if let Some(dclass) = dclass {
        let mut first = Tensor::empty(device, [1, d], DType::F32)?;
        let arguments = [
            view(&total.tensor)?.into(),
            (all * d).into(),
            0.into(),
            view_mut(&mut first)?.into(),
            d.into(),
            0.into(),
            d.into(),
            1_i64.into(),
            0.into(),
        ];
        let program = Program::new(kernels::ELEMENTWISE, DType::F32);
        cuda.launch(&program, "copy_columns", cuda.elementwise(d), &arguments)?;
        accumulate(device, &first, dclass)?;
    }
    match dposition {
        Some(dposition) => accumulate(device, &total.tensor, dposition),
        None => Ok(()),
    }
}

/// `to (+)= from` without each first token.
pub(super) fn drop_first(cuda: &CudaDevice, from: &Tensor, to: &mut Tensor, add: bool) -> Result<()> {
    let &[batch, all, d] = from.dims() else { return Ok(()) };
    let arguments = [view(from)?.into(), view_mut(to)?.into(), i32::from(add).into()];
    run(cuda, "drop_first", &arguments, from.dtype(), [batch, all - 1, d])
}

/// `to (+)= from` behind a first token of zeros.
pub(super) fn put_behind(cuda: &CudaDevice, from: &Tensor, to: &mut Target) -> Result<()> {
    let &[batch, tokens, d] = from.dims() else { return Ok(()) };
    let add = i32::from(to.accumulate);
    let arguments = [view(from)?.into(), view_mut(&mut to.tensor)?.into(), add.into()];
    run(cuda, "put_behind", &arguments, from.dtype(), [batch, tokens, d])
}
