//! Where one rank meets the others. Batch-norm statistics on the CPU go through a [`Collective`], so that N ranks give
//! what one rank gives with the whole batch; CUDA refuses more than one rank, and losses are those of one rank's rows.
//! With a single rank it does nothing.

use std::fmt::Debug;

use crate::error::Result;
use crate::tensor::Tensor;

/// Sums over all ranks.
pub trait Collective: Debug + Send + Sync {
    /// Number of ranks.
    fn ranks(&self) -> usize;

    /// Adds up `tensor` (f32) over all ranks, in rank order; every rank gets the sum.
    fn all_reduce_sum(&self, tensor: &mut Tensor) -> Result<()>;
}

/// The collective of a single rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleRank;

impl Collective for SingleRank {
    fn ranks(&self) -> usize {
        1
    }

    fn all_reduce_sum(&self, _tensor: &mut Tensor) -> Result<()> {
        Ok(())
    }
}
