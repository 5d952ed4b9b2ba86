//! The ends of a vision transformer: patches become tokens behind a class token, with positions added; and the class
//! token is dropped again.
//!
//! embed: y[n, 0] = cls + position[0], y[n, 1 + t] = patches[n, t] + position[1 + t].
//! Shapes: patches (n, ..., d) with T tokens, cls (1, 1, d), position (1, 1 + T, d), y (n, 1 + T, d).
//! drop_first: (n, 1 + T, d) -> (n, T, d).

mod cuda;

use rayon::prelude::*;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::column_sum_gradient;
use crate::tape::{Tape, Var};
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
    let device = tape.device();
    let mut y = Tensor::empty(&device, [batch, 1 + tokens, d], patches.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let (class, position) = (class.value().as_slice::<f32>()?, position.value().as_slice::<f32>()?);
            let from = patches.value().as_slice::<f32>()?.par_chunks(tokens * d);
            y.as_mut_slice::<f32>()?.par_chunks_mut((1 + tokens) * d).zip(from).for_each(|(y, patches)| {
                y[..d].copy_from_slice(class);
                y[d..].copy_from_slice(patches);
                y.iter_mut().zip(position).for_each(|(y, position)| *y += position);
            });
        }
        Device::Cuda(cuda) => {
            cuda::embed(cuda, patches.value(), class.value(), position.value(), &mut y)?;
        }
    }
    let ids = [patches.gradient(), class.gradient(), position.gradient()];
    Ok(tape.record("embed_tokens", &ids, y, move |context, dy| {
        let [mut dpatches, mut dclass, mut dposition] =
            [context.target(ids[0])?, context.target(ids[1])?, context.target(ids[2])?];
        let device = context.device();
        match &device {
            Device::Cpu(_) => {
                let dy = dy.as_slice::<f32>()?;
                if let Some(target) = &mut dpatches {
                    let accumulate = target.accumulate;
                    let to = target.tensor.as_mut_slice::<f32>()?.par_chunks_mut(tokens * d);
                    to.zip(dy.par_chunks((1 + tokens) * d)).for_each(|(to, dy)| {
                        for (to, dy) in to.iter_mut().zip(&dy[d..]) {
                            *to = if accumulate { *to + dy } else { *dy };
                        }
                    });
                }
                if let Some(target) = &mut dposition {
                    column_sum_gradient(dy, target)?;
                }
                if let Some(target) = &mut dclass {
                    let mut first = Tensor::empty(&device, [batch, d], DType::F32)?;
                    let rows = first.as_mut_slice::<f32>()?.chunks_exact_mut(d);
                    rows.zip(dy.chunks_exact((1 + tokens) * d))
                        .for_each(|(to, dy)| to.copy_from_slice(&dy[..d]));
                    column_sum_gradient(first.as_slice()?, target)?;
                }
            }
            Device::Cuda(cuda) => {
                let [dpatches, dclass, dposition] = [dpatches.as_mut(), dclass.as_mut(), dposition.as_mut()];
                cuda::embed_backward(cuda, &device, &dy, dpatches, dclass, dposition)?;
            }
        }
        [dpatches, dclass, dposition].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    }))
}

/// All tokens but the first.
pub fn drop_first_token(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    let &[batch, all, d] = x.shape().dims() else {
        return Err(Error::shape("drop_first_token", format!("x {} must be (n, tokens, d)", x.shape())));
    };
    if all < 2 || d == 0 {
        return Err(Error::shape(
            "drop_first_token",
            format!("x {} has nothing behind its first token", x.shape()),
        ));
    }
    let device = tape.device();
    let mut y = Tensor::empty(&device, [batch, all - 1, d], x.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let to = y.as_mut_slice::<f32>()?.par_chunks_mut((all - 1) * d);
            to.zip(x.value().as_slice::<f32>()?.par_chunks(all * d))
                .for_each(|(y, x)| y.copy_from_slice(&x[d..]));
        }
        Device::Cuda(cuda) => cuda::drop_first(cuda, x.value(), &mut y, false)?,
    }
    let dx = x.gradient();
    Ok(tape.record("drop_first_token", &[dx], y, move |context, dy| {
        let Some(mut target) = context.target(dx)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                if !target.accumulate {
                    target.tensor.fill_zero()?;
                }
                let to = target.tensor.as_mut_slice::<f32>()?.par_chunks_mut(all * d);
                to.zip(dy.as_slice::<f32>()?.par_chunks((all - 1) * d)).for_each(|(to, dy)| {
                    to[d..].iter_mut().zip(dy).for_each(|(to, dy)| *to += dy);
                });
            }
            Device::Cuda(cuda) => cuda::put_behind(&cuda, &dy, &mut target)?,
        }
        context.put(target);
        Ok(())
    }))
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
