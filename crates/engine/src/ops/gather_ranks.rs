//! The rows of all ranks one below the other: (n, ...) becomes (ranks n, ...). Every rank goes on to compute the same
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
    let (rank, ranks) = (tape.collective().rank(), tape.collective().ranks());
    if ranks == 1 {
        return Ok(x.clone());
    }
    let mut dims = x.shape().dims().to_vec();
    let rows = dims.first().copied().unwrap_or(1);
    if let Some(first) = dims.first_mut() {
        *first *= ranks;
    }
    let op = GatherRanks { first: rank * rows };
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
        ranks.gather_into(x.value(), y)
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

    #[test]
    fn rows_are_gathered_in_order_and_own_gradients_come_back() {
        std::thread::scope(|scope| {
            for rank in in_threads(3) {
                scope.spawn(move || {
                    let mut store = StoreBuilder::new().build(&Device::cpu(), 0).unwrap();
                    let device = store.device().clone();
                    let own = rank.rank() as f32;
                    let mut tape = Tape::training(&mut store).with_collective(&rank);
                    let x = tape.watch(Tensor::from_slice(&device, [2, 1], &[own, own + 0.5]).unwrap());
                    let y = gather_ranks(&mut tape, &x).unwrap();
                    assert_eq!(y.value().to_f32().unwrap(), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
                    let seed = Tensor::from_slice(&device, [6, 1], &[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
                    // Twice: as it is, and added to.
                    let twice = crate::ops::add(&mut tape, &x, &x).unwrap();
                    let both = gather_ranks(&mut tape, &twice).unwrap();
                    let sum = crate::ops::add(&mut tape, &y, &both).unwrap();
                    tape.backward_from(&sum, seed.unwrap()).unwrap();
                    let gradient = tape.gradient(&x).unwrap().to_f32().unwrap();
                    assert_eq!(gradient, [6.0 * own, 6.0 * own + 3.0]);
                });
            }
        });
    }
}
