//! What the outside hears of a run: what happens while it goes on, and how it ended.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dataset::TrainingPlan;

use crate::checkpoint::Position;
use crate::config::Config;
use crate::metrics::Record;
use crate::weights::Taken;

/// What a run reports to its caller.
#[derive(Debug)]
pub enum Event<'a> {
    /// Weights were taken from the checkpoint of another run.
    Started {
        /// The checkpoint.
        from: &'a Path,
        /// What was taken.
        taken: &'a Taken,
    },
    /// The run begins, or goes on.
    Begin {
        /// Its configuration.
        config: &'a Config,
        /// The device, in words.
        device: &'a str,
        /// Where it stands.
        from: Position,
        /// Its batches.
        plan: &'a TrainingPlan,
    },
    /// A step was issued: there is something to save.
    Step,
    /// Steps were done.
    Progress(&'a Progress),
    /// A line was written to the metrics.
    Record(&'a Record),
    /// A checkpoint was written.
    Saved(&'a PathBuf),
    /// Something is wrong but the run goes on.
    Warning(String),
}

/// How far a run is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Where the run stands.
    pub position: Position,
    /// Steps in an epoch.
    pub steps_per_epoch: u64,
    /// Epochs in all.
    pub epochs: u64,
    /// The last step's loss.
    pub loss: f64,
    /// Its terms.
    pub terms: Vec<(&'static str, f64)>,
    /// Images (two a pair) per second, lately.
    pub images_per_second: f64,
    /// Share of the time spent waiting for data, lately.
    pub waited_share: f64,
    /// Estimated time to the end.
    pub left: Duration,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs are done; the last checkpoint.
    Finished(PathBuf),
    /// All epochs had been done before; the last checkpoint.
    AlreadyFinished(PathBuf),
    /// Asked to stop: what was saved, if there was anything to save.
    Interrupted(Option<PathBuf>),
}
