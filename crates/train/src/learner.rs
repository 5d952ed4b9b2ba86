//! What the loop trains, as the loop sees it: steps go in, measurements come out, and the state can be stored. The
//! loop itself knows no tensors, so it can be tested with a learner of a few lines.

use crate::batches::PairBatch;
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::health::Health;
use crate::tally::Tallies;

/// What is wanted of a step besides the step itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Scores of the online probes on this batch.
    pub probes: bool,
    /// The health of the representation.
    pub health: bool,
}

/// What a step showed.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// The method's loss, without the probes' losses.
    pub loss: f64,
    /// Its terms by name, unweighted.
    pub terms: Vec<(String, f64)>,
    /// Where asked for: scores of the online probes.
    pub probes: Tallies,
    /// Where asked for: the health of the representation.
    pub health: Option<Health>,
}

/// A network in training.
pub trait Learner {
    /// Does one step, or sets it going: what it showed is had by [`Learner::collect`].
    fn step(&mut self, batch: &PairBatch<'_>, ask: Ask) -> Result<()>;

    /// Waits for all steps so far and gives their measurements since the last call, in order.
    fn collect(&mut self) -> Result<Vec<Measurement>>;

    /// Scores of the online probes on pairs that are not trained on; nothing changes.
    fn probe(&mut self, batch: &PairBatch<'_>) -> Result<Tallies>;

    /// Adds the whole state to a checkpoint.
    fn save(&self, checkpoint: &mut Checkpoint) -> Result<()>;

    /// Takes the whole state from a checkpoint; anything missing or misshapen is an error.
    fn load(&mut self, checkpoint: &Checkpoint) -> Result<()>;

    /// Takes the weights that a checkpoint has, by name and shape, and leaves the rest; says how many tensors that
    /// were.
    fn load_weights(&mut self, checkpoint: &Checkpoint) -> Result<usize>;
}
