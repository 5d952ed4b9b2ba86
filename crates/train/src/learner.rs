//! What the loop trains, as the loop sees it: steps go in, measurements come out, and the state can be stored. The
//! loop itself knows no tensors, so it can be tested with a learner of a few lines.

use methods::{Ask, Measurement, Representations, Tallies};

use crate::batches::PairBatch;
use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// What was seen of pairs that are not trained on.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Scores of the online probes.
    pub tallies: Tallies,
    /// Representations of all views, where they were asked for.
    pub representations: Representations,
}

impl Look {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: Self) {
        self.tallies.merge(&other.tallies);
        self.representations.merge(other.representations);
    }
}

/// A network in training.
pub trait Learner {
    /// Does one step, or sets it going: what it showed is had by [`Learner::collect`].
    fn step(&mut self, batch: PairBatch<'_>, ask: Ask) -> Result<()>;

    /// The measurements of steps since the last call, in order: those that the device is done with, or, with `wait`,
    /// those of all steps so far.
    fn collect(&mut self, wait: bool) -> Result<Vec<Measurement>>;

    /// A look at pairs that are not trained on; nothing changes. Representations are given where they are asked for.
    fn look(&mut self, batch: PairBatch<'_>, representations: bool) -> Result<Look>;

    /// Adds the whole state to a checkpoint.
    fn save(&self, checkpoint: &mut Checkpoint) -> Result<()>;

    /// Takes the whole state from a checkpoint; anything missing or misshapen is an error.
    fn load(&mut self, checkpoint: &Checkpoint) -> Result<()>;
}
