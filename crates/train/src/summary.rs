//! What can be told about a run without opening its files one by one.

use std::path::PathBuf;

use methods::verdict::PoseVerdict;

use crate::checkpoint::{self, Checkpoint, Position};
use crate::config::Config;
use crate::environment::{self, Ended, Environment};
use crate::error::Result;
use crate::metrics::{self, Kind, Record};
use crate::run_folder::RunFolder;
use crate::verdict;

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A process works on it.
    Running,
    /// All epochs are done.
    Finished,
    /// Something went wrong; what it was is in its last session.
    Failed,
    /// It can be continued.
    Stopped,
}

impl State {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Complete epochs.
    pub epoch: u64,
    /// Steps.
    pub step: u64,
}

/// A run at a glance.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The folder's own name.
    pub name: String,
    /// The folder.
    pub root: PathBuf,
    /// The configuration.
    pub config: Config,
    /// Whether it is running.
    pub state: State,
    /// The newest checkpoint's position; the beginning where there is none.
    pub position: Position,
    /// How far it is: of a running one, the last that was logged; otherwise the newest checkpoint.
    pub reached: Reached,
    /// The checkpoints, oldest first.
    pub checkpoints: Vec<PathBuf>,
    /// All lines of metrics.
    pub records: Vec<Record>,
    /// Of which some are damaged, in a sentence.
    pub damage: Option<String>,
    /// All sessions.
    pub sessions: Vec<Environment>,
}

impl Summary {
    /// Reads what is known about a run.
    pub fn of(folder: &RunFolder) -> Result<Self> {
        let config = folder.config()?;
        let checkpoints: Vec<PathBuf> =
            checkpoint::list(&folder.checkpoints_path())?.into_iter().map(|(_, path)| path).collect();
        let position = checkpoints
            .iter()
            .rev()
            .find_map(|path| Checkpoint::read_metadata(path).ok())
            .map_or_else(Position::default, |checkpoint| checkpoint.position);
        let (records, damage) = metrics::read_undamaged(&folder.metrics_path())?;
        let sessions = environment::read(&folder.environment_path()).unwrap_or_default();
        let failed = matches!(sessions.last(), Some(Environment { ended: Some(Ended::Failed(_)), .. }));
        let state = if folder.is_running() {
            State::Running
        } else if position.epoch >= config.epochs {
            State::Finished
        } else if failed {
            State::Failed
        } else {
            State::Stopped
        };
        let mut reached = Reached { epoch: position.epoch, step: position.step };
        if state == State::Running {
            let epochs = records.iter().filter(|record| record.kind == Kind::Epoch);
            reached.epoch = reached.epoch.max(epochs.map(|record| record.epoch).max().unwrap_or(0));
            reached.step = reached.step.max(records.last().map_or(0, |record| record.step));
        }
        Ok(Self {
            name: folder.name(),
            root: folder.root().to_path_buf(),
            state,
            position,
            reached,
            checkpoints,
            records,
            damage,
            sessions,
            config,
        })
    }

    /// The last value of `name` among the lines of `kind`.
    pub fn last(&self, kind: Kind, name: &str) -> Option<f64> {
        self.records.iter().rev().filter(|record| record.kind == kind).find_map(|record| record.value(name))
    }

    /// Whether the run, which has come to its end, has learnt poses; nothing where it was not to.
    pub fn pose_verdict(&self) -> Option<PoseVerdict> {
        verdict::of_run(&self.config, &self.records)
    }

    /// The names of all numbers among the lines of `kind`, sorted.
    pub fn names(&self, kind: Kind) -> Vec<String> {
        let of_kind = self.records.iter().filter(|record| record.kind == kind);
        let names: std::collections::BTreeSet<&String> =
            of_kind.flat_map(|record| record.values.keys()).collect();
        names.into_iter().cloned().collect()
    }
}
