//! The ends of a vision transformer: patches become tokens behind a class token, with positions added; and the class
//! token is dropped again.
//!
//! embed: y[n, 0] = cls + position[0], y[n, 1 + t] = patches[n, t] + position[1 + t].
//! Shapes: patches (n, ..., d) with T tokens, cls (1, 1, d), position (1, 1 + T, d), y (n, 1 + T, d).
//! drop_first: (n, 1 + T, d) -> (n, T, d).

use rayon::prelude::*;

use super::concat::CopyColumns;
use super::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::cuda::kernels::{Kernel, KernelFile, Program, vector};
use crate::cuda::{CudaDevice, sums, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::{accumulate, column_sum_gradient};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// Puts the class token before the patches and adds the positions.
pub fn embed_tokens(tape: &mut Tape<'_>, patches: &Var, class: &Var, position: &Var) -> Result<Var> {
    let (shape, d) = (patches.shape(), patches.shape().last().copied().unwrap_or(0));
    let batch = shape.first().copied().unwrap_or(0);
    let tokens = shape.len() / (batch * d).max(1);
    if class.shape().len() != d || position.shape().len() != (1 + tokens) * d || shape.is_empty() {
        let detail =
            format!("patches {shape}, class token {}, positions {}", class.shape(), position.shape());
        return Err(Error::shape("embed_tokens", detail));
    }
    let spec = ([batch, 1 + tokens, d].into(), patches.value().dtype());
    tape.apply("embed_tokens", Embed(Sizes { batch, tokens, d }), [patches, class, position], spec)
}

/// All tokens but the first.
pub fn drop_first_token(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    let &[batch, all, d] = x.shape().dims() else {
        return Err(Error::shape("drop_first_token", format!("x {} must be (n, tokens, d)", x.shape())));
    };
    if all < 2 || d == 0 {
        let detail = format!("x {} has nothing behind its first token", x.shape());
        return Err(Error::shape("drop_first_token", detail));
    }
    let spec = ([batch, all - 1, d].into(), x.value().dtype());
    tape.apply("drop_first_token", DropFirst(Sizes { batch, tokens: all - 1, d }), x, spec)
}

/// Samples, tokens behind the first, and the width of a token.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    tokens: usize,
    d: usize,
}

impl Sizes {
    /// Runs `kernel` over all numbers.
    fn launch(
        self,
        cuda: &CudaDevice,
        kernel: Kernel,
        arguments: &[gpu::Argument],
        dtype: DType,
    ) -> Result<()> {
        let Self { batch, tokens, d } = self;
        let count = batch * (1 + tokens) * d;
        let _scope = cuda.context().scope(|| kernel.name().into(), 0.0, 2.0 * (count * dtype.size()) as f64);
        let arguments: Vec<_> =
            arguments.iter().copied().chain([batch.into(), tokens.into(), d.into()]).collect();
        let program = Program::with_channels(KernelFile::Tokens, dtype, d);
        cuda.launch(&program, kernel, cuda.elementwise(count / vector(d)), &arguments)
    }
}

struct Embed(Sizes);

impl Operation<CpuPool, Fixed<3>> for Embed {
    type Saved = ();

    fn forward(&self, _: &mut Cpu, [patches, class, position]: [&Var; 3], y: &mut Tensor) -> Result<()> {
        let Sizes { tokens, d, .. } = self.0;
        let (class, position) = (class.value().as_slice::<f32>()?, position.value().as_slice::<f32>()?);
        let from = patches.value().as_slice::<f32>()?.par_chunks(tokens * d);
        y.as_mut_slice::<f32>()?.par_chunks_mut((1 + tokens) * d).zip(from).for_each(|(y, patches)| {
            y[..d].copy_from_slice(class);
            y[d..].copy_from_slice(patches);
            y.iter_mut().zip(position).for_each(|(y, position)| *y += position);
        });
        Ok(())
    }

    fn backward(
        &self,
        cpu: &mut Cpu,
        (): &(),
        dy: Tensor,
        [dpatches, dclass, dposition]: To<3>,
    ) -> Result<()> {
        let Sizes { batch, tokens, d } = self.0;
        let dy = dy.as_slice::<f32>()?;
        if let Some(Target { tensor, accumulate, .. }) = dpatches {
            let to = tensor.as_mut_slice::<f32>()?.par_chunks_mut(tokens * d);
            to.zip(dy.par_chunks((1 + tokens) * d)).for_each(|(to, dy)| {
                for (to, dy) in to.iter_mut().zip(&dy[d..]) {
                    *to = if *accumulate { *to + dy } else { *dy };
                }
            });
        }
        if let Some(dposition) = dposition {
            column_sum_gradient(dy, dposition)?;
        }
        if let Some(dclass) = dclass {
            let mut first = cpu.empty([batch, d], DType::F32)?;
            let rows = first.as_mut_slice::<f32>()?.chunks_exact_mut(d);
            rows.zip(dy.chunks_exact((1 + tokens) * d)).for_each(|(to, dy)| to.copy_from_slice(&dy[..d]));
            column_sum_gradient(first.as_slice()?, dclass)?;
        }
        Ok(())
    }
}

impl Operation<CudaDevice, Fixed<3>> for Embed {
    type Saved = ();

    fn forward(&self, cuda: &mut Cuda, [patches, class, position]: [&Var; 3], y: &mut Tensor) -> Result<()> {
        let [patches, class, position] =
            [view(patches.value())?, view(class.value())?, view(position.value())?];
        let arguments = [patches.into(), class.into(), position.into(), view_mut(y)?.into()];
        self.0.launch(cuda, Kernel::embed, &arguments, y.dtype())
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        (): &(),
        dy: Tensor,
        [dpatches, dclass, dposition]: To<3>,
    ) -> Result<()> {
        let (Sizes { tokens, d, .. }, device) = (self.0, cuda.device);
        if let Some(dpatches) = dpatches {
            let [to, add] = dpatches.arguments()?;
            self.0.launch(cuda, Kernel::drop_first, &[view(&dy)?.into(), to, add], dy.dtype())?;
        }
        // The sums over all samples; those of the first token are the class token's.
        let all = (1 + tokens) * d;
        let mut total = Target::unplaced(cuda.empty([1 + tokens, d], DType::F32)?);
        sums::column_sums(cuda, &dy, all, &mut total)?;
        if let Some(dclass) = dclass {
            let mut first = cuda.empty([1, d], DType::F32)?;
            cuda.copy_columns((&total.tensor, all, 0), (&mut first, d, 0), d, false)?;
            accumulate(device, &first, dclass)?;
        }
        match dposition {
            Some(dposition) => accumulate(device, &total.tensor, dposition),
            None => Ok(()),
        }
    }
}

struct DropFirst(Sizes);

impl Operation<CpuPool> for DropFirst {
    type Saved = ();

    fn forward(&self, _: &mut Cpu, x: &Var, y: &mut Tensor) -> Result<()> {
        let Sizes { tokens, d, .. } = self.0;
        let from = x.value().as_slice::<f32>()?.par_chunks((1 + tokens) * d);
        let to = y.as_mut_slice::<f32>()?.par_chunks_mut(tokens * d);
        to.zip(from).for_each(|(y, x)| y.copy_from_slice(&x[d..]));
        Ok(())
    }

    fn backward(&self, _: &mut Cpu, (): &(), dy: Tensor, dx: &mut Target) -> Result<()> {
        let Sizes { tokens, d, .. } = self.0;
        let to = dx.zeroed()?.as_mut_slice::<f32>()?.par_chunks_mut((1 + tokens) * d);
        to.zip(dy.as_slice::<f32>()?.par_chunks(tokens * d)).for_each(|(to, dy)| {
            to[d..].iter_mut().zip(dy).for_each(|(to, dy)| *to += dy);
        });
        Ok(())
    }
}

impl Operation<CudaDevice> for DropFirst {
    type Saved = ();

    fn forward(&self, cuda: &mut Cuda, x: &Var, y: &mut Tensor) -> Result<()> {
        let arguments = [view(x.value())?.into(), view_mut(y)?.into(), 0.into()];
        self.0.launch(cuda, Kernel::drop_first, &arguments, y.dtype())
    }

    fn backward(&self, cuda: &mut Cuda, (): &(), dy: Tensor, dx: &mut Target) -> Result<()> {
        let [to, add] = dx.arguments()?;
        self.0.launch(cuda, Kernel::put_behind, &[view(&dy)?.into(), to, add], dy.dtype())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        check(
            &Case::new(&[&[3, 2, 2, 5], &[1, 1, 5], &[1, 5, 5]]),
            |tape, i| embed_tokens(tape, &i[0], &i[1], &i[2]),
            |i| {
                let sample = |n: usize| {
                    let tokens =
                        i[1].iter().chain(&i[0][n * 20..(n + 1) * 20]).zip(&i[2]).map(|(t, p)| t + p);
                    tokens.collect::<Vec<f64>>()
                };
                (0..3).flat_map(sample).collect()
            },
        );
        check(
            &Case::new(&[&[2, 4, 3]]),
            |tape, i| drop_first_token(tape, &i[0]),
            |i| [&i[0][3..12], &i[0][15..24]].concat(),
        );
    }
}
