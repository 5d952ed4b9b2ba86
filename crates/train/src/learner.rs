//! What the loop trains, as the loop sees it: steps go in, measurements come out, and the state can be stored. The
//! loop itself knows no tensors, so it can be tested with a learner of a few lines.

use methods::{Ask, Measurement, Tallies};

use crate::batches::PairBatch;
use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// A network in training.
pub trait Learner {
    /// Does one step, or sets it going: what it showed is had by [`Learner::collect`].
    fn step(&mut self, batch: PairBatch<'_>, ask: Ask) -> Result<()>;

    /// The measurements of steps since the last call, in order: those that the device is done with, or, with `wait`,
    /// those of all steps so far.
    fn collect(&mut self, wait: bool) -> Result<Vec<Measurement>>;

    /// Scores of the online probes on pairs that are not trained on; nothing changes.
    fn probe(&mut self, batch: PairBatch<'_>) -> Result<Tallies>;

    /// Takes over what rank 0 has. All ranks that train together call it.
    fn take_from_first(&mut self) -> Result<()> {
        Ok(())
    }

    /// Adds the whole state to a checkpoint.
    fn save(&self, checkpoint: &mut Checkpoint) -> Result<()>;

    /// Takes the whole state from a checkpoint; anything missing or misshapen is an error.
    fn load(&mut self, checkpoint: &Checkpoint) -> Result<()>;
}
