//! Columns side by side, and apart again. Rows are everything before the last dimension.
//!
//! Shapes: concat: (rows, a), (rows, b), ... -> (rows, a + b + ...). columns: (rows, d) -> (rows, count), columns
//! `start..start + count`. Backward: the pieces of dy, or dy in its place.

use super::operation::{Context, Operation, Several};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::shape::Shape;
use crate::tape::{Tape, Target, Var};
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
    let spec = (Shape::new(&dims), parts[0].value().dtype());
    tape.apply("concat", Concat { widths, total }, parts.to_vec(), spec)
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
    tape.apply("columns", Select { start, count, total }, x, (Shape::new(&dims), x.value().dtype()))
}

/// Rows of `total` columns, from column `start` on.
pub(super) type Columns<T> = (T, usize, usize);

/// A device that copies columns, which is all that these operations do.
pub(super) trait CopyColumns {
    /// `width` columns of `from` to `to`, added where `add`.
    fn copy_columns(
        &self,
        from: Columns<&Tensor>,
        to: Columns<&mut Tensor>,
        width: usize,
        add: bool,
    ) -> Result<()>;
}

impl CopyColumns for CpuPool {
    fn copy_columns(
        &self,
        (from, from_total, from_start): Columns<&Tensor>,
        (to, to_total, to_start): Columns<&mut Tensor>,
        width: usize,
        add: bool,
    ) -> Result<()> {
        let from = from.as_slice::<f32>()?.chunks_exact(from_total.max(1));
        for (to, from) in to.as_mut_slice::<f32>()?.chunks_exact_mut(to_total.max(1)).zip(from) {
            let (to, from) = (&mut to[to_start..to_start + width], &from[from_start..from_start + width]);
            if add {
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            } else {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }
}

impl CopyColumns for CudaDevice {
    fn copy_columns(
        &self,
        (from, from_total, from_start): Columns<&Tensor>,
        (to, to_total, to_start): Columns<&mut Tensor>,
        width: usize,
        add: bool,
    ) -> Result<()> {
        let rows = from.len() / from_total.max(1);
        let arguments = [
            view(from)?.into(),
            from_total.into(),
            from_start.into(),
            view_mut(to)?.into(),
            to_total.into(),
            to_start.into(),
            width.into(),
            (rows as i64).into(),
            i32::from(add).into(),
        ];
        let program = Program::new(KernelFile::Elementwise, from.dtype());
        self.launch(&program, Kernel::copy_columns, self.elementwise(rows * width), &arguments)
    }
}

struct Concat {
    widths: Vec<usize>,
    total: usize,
}

impl Concat {
    /// The parts with their widths and where they start.
    fn places<T>(&self, parts: Vec<T>) -> impl Iterator<Item = (T, usize, usize)> {
        let starts = self.widths.iter().scan(0, |start, &width| {
            *start += width;
            Some((width, *start - width))
        });
        parts.into_iter().zip(starts).map(|(part, (width, start))| (part, width, start))
    }
}

impl<D: CopyColumns> Operation<D, Several> for Concat {
    type Saved = ();

    fn forward(&self, context: &mut Context<'_, '_, D>, parts: Vec<&Var>, y: &mut Tensor) -> Result<()> {
        for (part, width, start) in self.places(parts) {
            context.copy_columns((part.value(), width, 0), (y, self.total, start), width, false)?;
        }
        Ok(())
    }

    fn backward(
        &self,
        context: &mut Context<'_, '_, D>,
        (): &(),
        dy: Tensor,
        parts: Vec<Option<&mut Target>>,
    ) -> Result<()> {
        for (part, width, start) in self.places(parts) {
            if let Some(Target { tensor, accumulate, .. }) = part {
                context.copy_columns((&dy, self.total, start), (tensor, width, 0), width, *accumulate)?;
            }
        }
        Ok(())
    }
}

struct Select {
    start: usize,
    count: usize,
    total: usize,
}

impl<D: CopyColumns> Operation<D> for Select {
    type Saved = ();

    fn forward(&self, context: &mut Context<'_, '_, D>, x: &Var, y: &mut Tensor) -> Result<()> {
        let &Self { start, count, total } = self;
        context.copy_columns((x.value(), total, start), (y, count, 0), count, false)
    }

    fn backward(&self, context: &mut Context<'_, '_, D>, (): &(), dy: Tensor, dx: &mut Target) -> Result<()> {
        let &Self { start, count, total } = self;
        context.copy_columns((&dy, count, 0), (dx.zeroed()?, total, start), count, true)
    }
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
