//! The rows of all ranks one below the other: (n, ...) becomes (whole batch, ...). Every rank goes on to compute the same
//! from them ([`Tape::replicated`]), so the gradient of a rank's own rows is there whole: backward takes them out, and
//! nothing travels. With one rank it is the value itself.

use super::accumulate;
use super::operation::{Context, Operation};
use super::rows::copy_rows;
use crate::error::Result;
use crate::shape::Shape;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

/// The rows of `x` of all ranks of the tape's collective.
pub fn gather_ranks(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    if !tape.collective().is_shared() {
        return Ok(x.clone());
    }
    let mut dims = x.shape().dims().to_vec();
    let whole = tape.whole_rows(dims.first().copied().unwrap_or(0));
    if let Some(first) = dims.first_mut() {
        *first = whole;
    }
    let op = GatherRanks { first: tape.collective().share(whole).start };
    tape.apply("gather_ranks", op, x, (Shape::new(&dims), x.value().dtype()))
}

struct GatherRanks {
    /// The first of this rank's own rows.
    first: usize,
}

impl<D: 'static> Operation<D> for GatherRanks {
    type Saved = ();

    fn forward(&self, context: &mut Context<'_, '_, D>, x: &Var, y: &mut Tensor) -> Result<()> {
        let ranks = std::sync::Arc::clone(context.tape.collective());
        ranks.gather_into(context.device, x.value(), y)
    }

    fn backward(&self, context: &mut Context<'_, '_, D>, (): &(), dy: Tensor, dx: &mut Target) -> Result<()> {
        if !dx.accumulate {
            return copy_rows(context.device, &dy, self.first, &mut dx.tensor);
        }
        let mut own = context.empty(dx.tensor.shape(), dy.dtype())?;
        copy_rows(context.device, &dy, self.first, &mut own)?;
        accumulate(context.device, &own, dx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::in_threads;
    use crate::{Device, StoreBuilder, Tensor};

    fn gather(rank: &std::sync::Arc<dyn crate::Collective>, whole: usize) {
        let mut store = StoreBuilder::new().build(&Device::cpu(), 0).unwrap();
        let device = store.device().clone();
        let all: Vec<f32> = (0..whole).map(|row| row as f32 * 0.5).collect();
        let own = rank.share(whole);
        let mut tape = Tape::training(&mut store).with_collective(rank, Some(whole));
        let x = tape.watch(Tensor::from_slice(&device, [own.len(), 1], &all[own.clone()]).unwrap());
        let y = gather_ranks(&mut tape, &x).unwrap();
        assert_eq!(y.value().to_f32().unwrap(), all);
        // Twice: as it is, and added to.
        let twice = crate::ops::add(&mut tape, &x, &x).unwrap();
        let both = gather_ranks(&mut tape, &twice).unwrap();
        let sum = crate::ops::add(&mut tape, &y, &both).unwrap();
        tape.backward_from(&sum, Tensor::from_slice(&device, [whole, 1], &all).unwrap()).unwrap();
        let wanted: Vec<f32> = all[own].iter().map(|seed| 3.0 * seed).collect();
        assert_eq!(tape.gradient(&x).unwrap().to_f32().unwrap(), wanted);
    }

    #[test]
    fn rows_are_gathered_in_order_and_own_gradients_come_back() {
        for whole in [6, 7, 8] {
            std::thread::scope(|scope| {
                for rank in in_threads(3) {
                    scope.spawn(move || gather(&rank, whole));
                }
            });
        }
    }
}
