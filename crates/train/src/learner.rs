//! What the loop trains, as the loop sees it: steps go in, measurements come out, and the state can be stored. The
//! loop itself knows no tensors, so it can be tested with a learner of a few lines.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dataset::Allocate;

use crate::batches::{Item, PairBatch};
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
    /// How long the host was busy with the step.
    pub host: Duration,
    /// How long the device was.
    pub device: Duration,
}

/// What was taken from the checkpoint of another run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// So many tensors.
    pub count: usize,
    /// Parts of the network of which not everything was taken: `projector`, `evaluator`, ...
    pub anew: BTreeSet<String>,
}

/// A network in training.
pub trait Learner {
    /// Does one step, or sets it going: what it showed is had by [`Learner::collect`].
    fn step(&mut self, batch: &PairBatch<'_>, ask: Ask) -> Result<()>;

    /// The measurements of steps since the last call, in order: those that the device is done with, or, with `wait`,
    /// those of all steps so far.
    fn collect(&mut self, wait: bool) -> Result<Vec<Measurement>>;

    /// Scores of the online probes on pairs that are not trained on; nothing changes.
    fn probe(&mut self, batch: &PairBatch<'_>) -> Result<Tallies>;

    /// How to get memory from which batches come to the device while it works; `None` where any memory will do.
    fn memory(&self) -> Option<Arc<Allocate>> {
        None
    }

    /// Whether it makes the pictures of a batch itself, from its items.
    fn makes_pictures(&self) -> bool {
        false
    }

    /// Says which pictures a later step will want, where it makes them itself.
    fn announce(&mut self, _items: &[Item]) -> Result<()> {
        Ok(())
    }

    /// How long its steps have waited for pictures so far, where it makes them itself.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// What a person should know of how the state was taken up, once.
    fn remark(&mut self) -> Option<String> {
        None
    }

    /// Grows whenever the device chooses among ways to compute the same, by timing them.
    fn choice_count(&self) -> usize {
        0
    }

    /// These choices as text; kept with a run, so that it computes the same bits when it goes on.
    fn choices(&self) -> Option<String> {
        None
    }

    /// Takes choices that were kept.
    fn set_choices(&mut self, _choices: &str) -> Result<()> {
        Ok(())
    }

    /// Adds the whole state to a checkpoint.
    fn save(&self, checkpoint: &mut Checkpoint) -> Result<()>;

    /// Takes the whole state from a checkpoint; anything missing or misshapen is an error.
    fn load(&mut self, checkpoint: &Checkpoint) -> Result<()>;

    /// Takes the weights that a checkpoint has, by name and shape, and leaves the rest. A backbone that does not fit is
    /// an error.
    fn load_weights(&mut self, checkpoint: &Checkpoint) -> Result<Taken>;
}
