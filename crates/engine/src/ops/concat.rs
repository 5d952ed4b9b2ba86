//! Columns side by side, and apart again. Rows are everything before the last dimension.
//!
//! Shapes: concat: (rows, a), (rows, b), ... -> (rows, a + b + ...). columns: (rows, d) -> (rows, count), columns
//! `start..start + count`. Backward: the pieces of dy, or dy in its place.

mod cuda;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

fn last(shape: Shape) -> usize {
    shape.last().copied().unwrap_or(0)
}

/// `parts` side by side along the last dimension.
pub fn concat(tape: &mut Tape<'_>, parts: &[&Var]) -> Result<Var> {
    let shapes: Vec<Shape> = parts.iter().map(|part| part.shape()).collect();
    let leading = |shape: &Shape| shape.dims().split_last().map(|(_, leading)| leading.to_vec());
    let same = |pair: &[Shape]| leading(&pair[0]) == leading(&pair[1]);
    let Some(mut dims) = shapes.first().and_then(leading).filter(|_| shapes.windows(2).all(same)) else {
        return Err(Error::shape("concat", format!("{shapes:?} cannot lie side by side")));
    };
    let widths: Vec<usize> = shapes.iter().map(|&shape| last(shape)).collect();
    let total: usize = widths.iter().sum();
    dims.push(total);
    let device = tape.device();
    let mut y = Tensor::empty(&device, dims.as_slice(), parts[0].value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let to = y.as_mut_slice::<f32>()?;
            let mut start = 0;
            for (part, &width) in parts.iter().zip(&widths) {
                let from = part.value().as_slice::<f32>()?.chunks_exact(width.max(1));
                to.chunks_exact_mut(total)
                    .zip(from)
                    .for_each(|(to, from)| to[start..start + width].copy_from_slice(from));
                start += width;
            }
        }
        Device::Cuda(cuda) => {
            let mut start = 0;
            for (part, &width) in parts.iter().zip(&widths) {
                cuda::copy_columns(cuda, (part.value(), width, 0), (&mut y, total, start), width, false)?;
                start += width;
            }
        }
    }
    let inputs: Vec<_> = parts.iter().map(|part| part.gradient()).collect();
    Ok(tape.record("concat", &inputs.clone(), y, move |context, dy| {
        let mut start = 0;
        for (&input, &width) in inputs.iter().zip(&widths) {
            if let Some(mut target) = context.target(input)? {
                match context.device() {
                    Device::Cpu(_) => {
                        let accumulate = target.accumulate;
                        let to = target.tensor.as_mut_slice::<f32>()?.chunks_exact_mut(width.max(1));
                        for (to, from) in to.zip(dy.as_slice::<f32>()?.chunks_exact(total)) {
                            for (to, from) in to.iter_mut().zip(&from[start..start + width]) {
                                *to = if accumulate { *to + from } else { *from };
                            }
                        }
                    }
                    Device::Cuda(cuda) => {
                        let add = target.accumulate;
                        cuda::copy_columns(
                            &cuda,
                            (&dy, total, start),
                            (&mut target.tensor, width, 0),
                            width,
                            add,
                        )?;
                    }
                }
                context.put(target);
            }
            start += width;
        }
        Ok(())
    }))
}

/// Columns `start..start + count` of `x`.
pub fn columns(tape: &mut Tape<'_>, x: &Var, start: usize, count: usize) -> Result<Var> {
    let total = last(x.shape());
    if start + count > total {
        let detail = format!("{start}..{} of x {}", start + count, x.shape());
        return Err(Error::shape("columns", detail));
    }
    let mut dims = x.shape().dims().to_vec();
    dims.pop();
    dims.push(count);
    let device = tape.device();
    let mut y = Tensor::empty(&device, dims.as_slice(), x.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let to = y.as_mut_slice::<f32>()?.chunks_exact_mut(count.max(1));
            let from = x.value().as_slice::<f32>()?.chunks_exact(total);
            to.zip(from).for_each(|(to, from)| to.copy_from_slice(&from[start..start + count]));
        }
        Device::Cuda(cuda) => {
            cuda::copy_columns(cuda, (x.value(), total, start), (&mut y, count, 0), count, false)?
        }
    }
    let dx = x.gradient();
    Ok(tape.record("columns", &[dx], y, move |context, dy| {
        let Some(mut target) = context.target(dx)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                if !target.accumulate {
                    target.tensor.fill_zero()?;
                }
                let to = target.tensor.as_mut_slice::<f32>()?.chunks_exact_mut(total);
                for (to, from) in to.zip(dy.as_slice::<f32>()?.chunks_exact(count.max(1))) {
                    to[start..start + count].iter_mut().zip(from).for_each(|(to, from)| *to += from);
                }
            }
            Device::Cuda(cuda) => {
                if !target.accumulate {
                    target.tensor.fill_zero()?;
                }
                cuda::copy_columns(&cuda, (&dy, count, 0), (&mut target.tensor, total, start), count, true)?;
            }
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
            &Case::new(&[&[3, 2], &[3, 5], &[3, 1]]),
            |tape, i| concat(tape, &[&i[0], &i[1], &i[2], &i[0]]),
            |i| {
                let row = |r: usize| {
                    [
                        &i[0][r * 2..r * 2 + 2],
                        &i[1][r * 5..r * 5 + 5],
                        &i[2][r..r + 1],
                        &i[0][r * 2..r * 2 + 2],
                    ]
                    .concat()
                };
                (0..3).flat_map(row).collect()
            },
        );
        check(
            &Case::new(&[&[4, 7]]),
            |tape, i| {
                let (left, right) = (columns(tape, &i[0], 0, 3)?, columns(tape, &i[0], 2, 5)?);
                concat(tape, &[&left, &right])
            },
            |i| {
                (0..4).flat_map(|r| [&i[0][r * 7..r * 7 + 3], &i[0][r * 7 + 2..r * 7 + 7]].concat()).collect()
            },
        );
    }
}
