//! One session on a run: it starts a new run or resumes an old one, and trains until the end or until it is stopped.
//! Every command that trains uses it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::batches::training_plan;
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::data::Data;
use crate::error::{Error, Result};
use crate::event::{Event, Outcome};
use crate::network::NetworkLearner;
use crate::plan;
use crate::run_folder::{OwnedRun, RunFolder};
use crate::trainer;
use crate::warnings::warnings;

/// What a new run begins with besides its configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// A checkpoint, or a run, from whose weights it starts, with a new optimiser.
    pub init_from: Option<&'a Path>,
    /// A run as which it computes convolutions on a GPU, for the same bits.
    pub choices_of: Option<&'a Path>,
}

/// A run that is held by this process, with its data and its network.
pub struct Session {
    /// None for all but the first of several ranks.
    run: Option<OwnedRun>,
    config: Config,
    data: Data,
    learner: NetworkLearner,
}

impl Session {
    /// Begins a new run in the folder `root`. What it does not compute itself is there before it counts as one, so that
    /// a run that is killed before its first checkpoint still begins with it.
    pub fn begin(
        root: &Path,
        config: Config,
        data: Data,
        start: Start<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Self> {
        plan::check(&config, &data)?;
        let config = with_split(config, &data);
        let mut learner = new_learner(&config, &data)?;
        let choices = start.choices_of.map(|other| RunFolder::open(other)?.choices()).transpose()?;
        if let (Some(None), Some(other)) = (&choices, start.choices_of) {
            tell(Event::Warning(format!(
                "{} was not trained on a GPU: it has no choices of convolution algorithms",
                other.display()
            )));
        }
        let mut first = None;
        if let Some(path) = start.init_from {
            let path = &checkpoint_of(path)?;
            let taken = learner
                .load_weights(&Checkpoint::read(path)?)
                .map_err(|error| Error::Request(format!("--init-from {}: {error}", path.display())))?;
            tell(Event::Started { from: path, taken: &taken });
            first = Some(trainer::starting_checkpoint(&config, &*data.views, &learner)?);
        }
        warnings(&config, &*data.views).into_iter().for_each(|text| tell(Event::Warning(text)));
        let new = OwnedRun::reserve(root)?;
        if let Some(choices) = choices.flatten() {
            new.folder().write_choices(&choices)?;
        }
        if let Some(first) = first {
            first.write(&new.folder().checkpoints_path())?;
        }
        Ok(Self { run: Some(new.begin(&config)?), config, data, learner })
    }

    /// Resumes the run in the folder `root`, with `config` in place of its own.
    pub fn resume(root: &Path, config: Config, data: Data) -> Result<Self> {
        let config = with_split(config, &data);
        let learner = new_learner(&config, &data)?;
        Ok(Self { run: Some(RunFolder::open(root)?.acquire()?), config, data, learner })
    }

    /// Joins a run that the first of several ranks begins or resumes with the same `config`. Writes nothing.
    pub fn join(config: Config, data: Data) -> Result<Self> {
        let config = with_split(config, &data);
        let learner = new_learner(&config, &data)?;
        Ok(Self { run: None, config, data, learner })
    }

    /// Resumes the run in the folder `root`, or starts it where there is none. A run of other settings is refused.
    pub fn begin_or_resume(root: &Path, config: Config, data: Data) -> Result<Self> {
        match RunFolder::open(root) {
            Ok(folder) if folder.config()?.identity()? != config.identity()? => {
                let text =
                    format!("{} holds a run with other settings; choose another folder", root.display());
                Err(Error::Request(text))
            }
            Ok(_) => Self::resume(root, config, data),
            Err(_) => Self::begin(root, config, data, Start::default(), &mut |_| ()),
        }
    }

    /// The run's folder; none on all but the first of several ranks.
    pub fn folder(&self) -> Option<&RunFolder> {
        self.run.as_ref().map(OwnedRun::folder)
    }

    /// Images in a step, in the mean over an epoch.
    pub fn images_per_step(&self) -> Result<f64> {
        Ok(training_plan(&self.config, &*self.data.views)?.images_per_step())
    }

    /// Trains until the end, or until `stop` says so; it is asked before every step.
    pub fn train(mut self, tell: &mut dyn FnMut(Event<'_>), stop: &dyn Fn() -> bool) -> Result<Outcome> {
        trainer::train(self.run.as_ref(), &self.config, self.data, &mut self.learner, tell, stop)
    }
}

fn new_learner(config: &Config, data: &Data) -> Result<NetworkLearner> {
    NetworkLearner::with_ranks(config, &*data.views, &data.device, Arc::clone(&data.ranks))
}

/// The configuration with the split that the data have, so that a run's `config.toml` never says `auto`.
fn with_split(config: Config, data: &Data) -> Config {
    Config { split: data.views.split_by().into(), ..config }
}

/// The checkpoint that `path` is, or the newest of the run that it is.
fn checkpoint_of(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let none = || Error::Request(format!("{} has no checkpoint yet", path.display()));
    RunFolder::open(path)?.last_checkpoint()?.ok_or_else(none)
}
