//! Where a session begins: at the run's newest whole checkpoint, which the first of several ranks reads for all.

use std::path::PathBuf;
use std::sync::Arc;

use dataset::{TrainingPlan, Views};
use engine::Collective;
use serde::{Deserialize, Serialize};

use super::GUARD_RANK;
use super::belonging::check_belongs;
use crate::checkpoint::{self, Position};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::guard::RankWatch;
use crate::learner::Learner;
use crate::means::Means;
use crate::run_folder::OwnedRun;

/// What all ranks know when a session begins, besides the weights.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Start {
    pub position: Position,
    pub strikes: u64,
    pub rank: RankWatch,
    /// The choices of the device that the run has made.
    pub choices: Option<String>,
    /// The last checkpoint of a run that is complete.
    pub finished: Option<PathBuf>,
}

impl Start {
    /// Reads the newest checkpoint of `run`, if it has one, into `learner`.
    pub fn of(
        run: &OwnedRun,
        config: &Config,
        plan: &TrainingPlan,
        views: &Arc<dyn Views>,
        learner: &mut dyn Learner,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(Self, Means)> {
        let folder = run.folder();
        let mut start = Self { choices: folder.choices()?, ..Self::default() };
        let mut means = Means::default();
        let newest = checkpoint::newest(&folder.checkpoints_path(), |text| tell(Event::Warning(text)))?;
        if let Some((path, checkpoint)) = newest {
            check_belongs(&path, &checkpoint, config, views)?;
            if checkpoint.position.epoch >= config.epochs {
                return Ok((Self { finished: Some(path), ..start }, means));
            }
            learner.load(&checkpoint)?;
            start.position = checkpoint.position;
            means = Means::load(&checkpoint)
                .ok_or_else(|| Error::content(&path, "the checkpoint lacks the means of its epoch"))?;
            let strikes = checkpoint.metadata.get("guard_strikes").and_then(|text| text.parse().ok());
            start.strikes = strikes.unwrap_or(0);
            let known = checkpoint.metadata.get(GUARD_RANK).and_then(|text| serde_json::from_str(text).ok());
            start.rank = known.unwrap_or_default();
        } else if std::fs::metadata(folder.metrics_path()).is_ok_and(|file| file.len() > 0) {
            let path = folder.checkpoints_path();
            let text =
                format!("{} holds no checkpoint: the run begins again at its first step", path.display());
            tell(Event::Warning(text));
        }
        run.write_config(config, plan)?;
        Ok((start, means))
    }
}

/// What the first rank began with, on all ranks. Only it keeps means.
pub(super) fn shared(
    ranks: &dyn Collective,
    begun: Option<Result<(Start, Means)>>,
) -> Result<(Start, Means)> {
    if !ranks.is_shared() {
        return begun.unwrap_or_else(|| Err(Error::Request("there is no run to train".to_owned())));
    }
    let told = match &begun {
        Some(Ok((start, _))) => serde_json::to_vec(&Ok::<_, String>(start)),
        Some(Err(error)) => serde_json::to_vec(&Err::<Start, _>(error.to_string())),
        None => Ok(Vec::new()),
    };
    let told = told.map_err(|error| Error::Everywhere(error.to_string()))?;
    let all = ranks.exchange(&told)?;
    let read = serde_json::from_slice::<std::result::Result<Start, String>>(&all[0]);
    let start = read.map_err(|error| Error::Everywhere(format!("rank 0 does other work: {error}")))?;
    let start = start.map_err(Error::Everywhere)?;
    let means = begun.and_then(Result::ok).map(|(_, means)| means).unwrap_or_default();
    Ok((start, means))
}
