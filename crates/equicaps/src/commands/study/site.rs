//! A study in its folder: what each run is trained with, which parts of it are done, and the words of the commands that do
//! the others.
//!
//! ```text
//! OUT/data/NAME        what was rendered
//!     runs/NAME        a run, with its evaluations
//!     state/           why runs failed; locks
//!     report.html      and what goes beside it
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use clap::Parser;
use dataset::Views;
use dataset::card::Card;
use engine::Device;
use train::checkpoint::Checkpoint;
use train::summary::{State, Summary};
use train::{Config, RunFolder, TrainedOn};

use super::done;
use super::file::{Data, Run, Study};
use crate::UsageError;
use crate::commands::{Command, render, train as training};
use crate::outcome::count;

/// A study and where it is made.
pub struct Site {
    /// The study's file, as messages call it.
    pub file: String,
    /// What it is.
    pub study: Study,
    /// Its folder.
    pub out: PathBuf,
    /// What `--device` gets.
    pub device: String,
    /// In what rendered data differ from what the file says, as far as it was asked.
    differences: Mutex<BTreeMap<String, Option<String>>>,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// There is nothing yet.
    Missing,
    /// Some epochs are done.
    Begun(u64),
    /// A process works on it.
    Running,
    /// It is trained; so many of its evaluations are missing.
    Trained(usize),
    /// All is done.
    Finished,
}

impl Progress {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Missing => "to do".to_owned(),
            Self::Begun(epoch) => format!("begun, {} done", count(epoch, "epoch")),
            Self::Running => "running".to_owned(),
            Self::Trained(_) => "trained, to be evaluated".to_owned(),
            Self::Finished => "finished".to_owned(),
        }
    }
}

impl Site {
    /// The study that is called `file`, made in `out` on `device`.
    pub fn new(file: impl Into<String>, study: Study, out: PathBuf, device: impl Into<String>) -> Self {
        Self { file: file.into(), study, out, device: device.into(), differences: Mutex::default() }
    }

    fn wrong(&self, line: usize, what: impl std::fmt::Display) -> anyhow::Error {
        UsageError(format!("{}, line {line}: {what}", self.file)).into()
    }

    /// What `--device` of `render`, which does not choose by itself, gets.
    pub fn rendering_device(&self) -> &str {
        match self.device.as_str() {
            "auto" if !matches!(engine::usable_gpu(), Ok(Some(_))) => "cpu",
            "auto" => "cuda",
            other => other,
        }
    }

    /// Whether the work is done by CPUs.
    pub fn is_on_cpu(&self) -> bool {
        self.rendering_device() == "cpu"
    }

    /// Where a run is.
    pub fn root(&self, run: &Run) -> PathBuf {
        self.out.join("runs").join(&run.name)
    }

    /// What the study remembers of `name`.
    pub fn state(&self, name: &str) -> PathBuf {
        self.out.join("state").join(name)
    }

    /// What `--data` and `--lists` get.
    fn data_words(&self, name: &str) -> Vec<String> {
        let lists = match self.study.data.get(name) {
            Some(Data::There { lists: Some(lists), .. }) => vec!["--lists".to_owned(), lists.clone()],
            _ => Vec::new(),
        };
        ["--data".to_owned(), self.data_path(name)].into_iter().chain(lists).collect()
    }

    /// Where the data called `name` are, or will be.
    fn data_path(&self, name: &str) -> String {
        match self.study.data.get(name) {
            Some(Data::There { path, .. }) => path.clone(),
            _ => path_word(&self.out.join("data").join(name)),
        }
    }

    /// The data of the study, by name, that an evaluation is made on besides those of its run.
    pub fn also<'a>(&self, evaluation: &'a [String]) -> Vec<&'a String> {
        let named = also_places(evaluation).map(|at| &evaluation[at]);
        named.filter(|name| self.study.data.contains_key(*name)).collect()
    }

    /// Where the data called `name` are, if the study renders them.
    pub fn rendered(&self, name: &str) -> Option<PathBuf> {
        let is_rendered = matches!(self.study.data.get(name), Some(Data::Rendered { .. }));
        is_rendered.then(|| self.out.join("data").join(name))
    }

    /// The command that renders `name`; none where somebody else did.
    pub fn render_words(&self, name: &str, device: &str) -> Option<Vec<String>> {
        let Some(Data::Rendered { options, .. }) = self.study.data.get(name) else { return None };
        let out = path_word(&self.out.join("data").join(name));
        let end = ["--device", device, "--out"].map(str::to_owned);
        let words = std::iter::once("render".to_owned()).chain(options.iter().cloned()).chain(end);
        Some(words.chain([out]).collect())
    }

    /// The command that begins a run.
    fn begin_words(&self, run: &Run) -> Vec<String> {
        let root = path_word(&self.root(run));
        let mut words = vec!["train".to_owned(), "--run".to_owned(), root];
        words.extend(run.options.iter().cloned());
        self.finish_words(run, words)
    }

    fn finish_words(&self, run: &Run, mut words: Vec<String>) -> Vec<String> {
        words.extend(self.data_words(&run.data));
        words.extend(["--device".to_owned(), self.device.clone()]);
        let set = run.set.iter().cloned().chain(self.milestones(run));
        words.extend(set.flat_map(|setting| ["--set".to_owned(), setting]));
        words
    }

    /// The setting by which the checkpoints that are to be evaluated stay, where they would not by themselves.
    fn milestones(&self, run: &Run) -> Option<String> {
        let asked = done::epochs(run);
        if asked.is_empty() {
            return None;
        }
        let alone = Run { evaluations: Vec::new(), ..run.clone() };
        let Ok(Command::Train(arguments)) = parse(&self.begin_words(&alone)) else { return None };
        let config = training::new_config(&arguments).ok()?;
        let known = &config.checkpoints.milestones;
        let missing = asked.iter().any(|epoch| *epoch != config.epochs && !known.contains(epoch));
        let all: BTreeSet<u64> = asked.iter().chain(known).copied().collect();
        missing.then(|| format!("checkpoints.milestones={:?}", Vec::from_iter(all)))
    }

    /// The command that begins or resumes a run.
    pub fn train_words(&self, run: &Run, progress: &Progress) -> Vec<String> {
        match progress {
            Progress::Missing => self.begin_words(run),
            _ => {
                let words = vec!["train".to_owned(), "--resume".to_owned(), path_word(&self.root(run))];
                self.finish_words(run, words)
            }
        }
    }

    /// The command of one evaluation.
    pub fn evaluate_words(&self, run: &Run, evaluation: &[String]) -> Vec<String> {
        let mut options = evaluation.to_vec();
        for at in also_places(evaluation).filter(|&at| self.study.data.contains_key(&evaluation[at])) {
            options[at] = self.data_path(&evaluation[at]);
        }
        let mut words = vec!["evaluate".to_owned(), path_word(&self.root(run))];
        words.extend(options);
        words.extend(self.data_words(&run.data));
        words.extend(["--device".to_owned(), self.device.clone()]);
        words
    }

    /// Checks all commands, and returns the configuration of every run, in their order.
    pub fn configurations(&self) -> anyhow::Result<Vec<Config>> {
        for (name, data) in &self.study.data {
            if let (Some(words), Data::Rendered { line, .. }) = (self.render_words(name, "cpu"), data) {
                parse(&words).map_err(|what| self.wrong(*line, what))?;
            }
        }
        self.study.runs.iter().map(|run| self.configuration(run)).collect()
    }

    fn configuration(&self, run: &Run) -> anyhow::Result<Config> {
        let wrong = |what: String| self.wrong(run.line, what);
        for evaluation in &run.evaluations {
            let Command::Evaluate(arguments) = parse(&self.evaluate_words(run, evaluation)).map_err(wrong)?
            else {
                return Err(wrong("these are no options of evaluate".to_owned()));
            };
            arguments.asked().map_err(|error| wrong(error.to_string()))?;
            let mut values = also_places(evaluation).map(|at| evaluation[at].as_str());
            let is_known = |value: &&str| {
                self.study.data.contains_key(*value)
                    || value.starts_with("procedural:")
                    || Path::new(value).exists()
            };
            if let Some(value) = values.find(|value| !is_known(value)) {
                let known: Vec<&str> = self.study.data.keys().map(String::as_str).collect();
                let text = format!(
                    "also is \"{value}\", which is neither a folder nor one of the data of this study ({})",
                    known.join(", ")
                );
                return Err(wrong(text));
            }
        }
        let Command::Train(arguments) = parse(&self.begin_words(run)).map_err(wrong)? else {
            return Err(wrong("these are no options of train".to_owned()));
        };
        let config = training::new_config(&arguments).map_err(|error| wrong(error.to_string()))?;
        // What is chosen from the views is not known yet.
        if config.epochs > 0 {
            check_epochs(run, &config).map_err(wrong)?;
        }
        Ok(config)
    }

    /// `config`, which `run` is to have, as it is where the run is there: with what the preset `own` chose for it.
    pub(super) fn made(&self, run: &Run, config: &Config) -> Config {
        let there = RunFolder::open(&self.root(run)).and_then(|folder| folder.config());
        there.map_or_else(|_| config.clone(), |there| config.clone().chosen_as(&there))
    }

    /// Removes what a kill after the last checkpoint of a trained run left, where it can be.
    pub fn tidy(&self, run: &Run) -> anyhow::Result<()> {
        let folder = RunFolder::open(&self.root(run))?;
        let config = folder.config()?;
        if folder.finished(config.epochs)?.is_some() {
            let _ = folder.tidy(&config);
        }
        Ok(())
    }

    /// How far `run`, which is to have `config`, is. An error where there is a run with other settings.
    pub fn progress(&self, run: &Run, config: &Config) -> anyhow::Result<Progress> {
        self.check_rendered(&run.data)?;
        let root = self.root(run);
        let Some(folder) = begun(&root)? else { return Ok(Progress::Missing) };
        let there = folder.config()?;
        let config = &config.clone().chosen_as(&there);
        let other = |has: String, says: String| {
            let (root, file) = (root.display(), &self.file);
            anyhow::anyhow!(
                "{root} has {has}, but {file} says {says}; move or remove the run to train it anew"
            )
        };
        let (before, now) = (there.identity_toml()?, config.identity_toml()?);
        if let Some(line) = before.lines().find(|line| !now.lines().any(|other| other == *line)) {
            let key = line.split(" = ").next().unwrap_or_default();
            let asked = now.lines().find(|line| line.split(" = ").next() == Some(key)).unwrap_or_default();
            return Err(other(line.to_owned(), asked.to_owned()));
        }
        let summary = Summary::of(&folder)?;
        let epochs = summary.position.epoch;
        if epochs > config.epochs {
            return Err(other(
                format!("been trained for {}", count(epochs, "epoch")),
                count(config.epochs, "epoch"),
            ));
        }
        let is_there = matches!(self.study.data.get(&run.data), Some(Data::There { .. }));
        if is_there && is_trained_on_others(&summary, &there, config) {
            return Err(other(format!("been trained on {}", there.data), config.data.clone()));
        }
        let missing = self.missing(run, config).len();
        // What is evaluated was trained, also where its checkpoints have been removed to save space.
        let was_trained = missing == 0 && !run.evaluations.is_empty();
        Ok(match summary.state {
            State::Running => Progress::Running,
            _ if summary.position.epoch < config.epochs && !was_trained => {
                Progress::Begun(summary.position.epoch)
            }
            _ if missing > 0 => Progress::Trained(missing),
            _ => Progress::Finished,
        })
    }

    /// Refuses data that were rendered and are others than the file describes.
    fn check_rendered(&self, name: &str) -> anyhow::Result<()> {
        let find = || -> Option<String> {
            let card = Card::read(&self.out.join("data").join(name)).ok()??;
            let words = self.render_words(name, "cpu")?;
            let Ok(Command::Render(arguments)) = parse(&words) else { return None };
            // Meshes that are no longer there cannot be compared.
            render::difference(&arguments, &card).ok()?
        };
        let mut known = self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        match known.entry(name.to_owned()).or_insert_with(find) {
            None => Ok(()),
            Some(difference) => anyhow::bail!(
                "{} was made otherwise than {} says ({difference}); move or remove it, and the runs on it, to make them anew",
                self.out.join("data").join(name).display(),
                self.file
            ),
        }
    }

    /// The configuration that `run` has or will have on `device`, where `config` is what the file says; and its views where
    /// they are there, else some of the same kind, as many as there will be.
    pub fn planned(
        &self,
        run: &Run,
        config: &Config,
        device: &Device,
    ) -> anyhow::Result<(Config, Arc<dyn Views>)> {
        let (config, views) = self
            .planned_on(self.made(run, config), &run.data, device)
            .with_context(|| format!("{}, data.{}", self.file, run.data))?;
        check_epochs(run, &config).map_err(|what| self.wrong(run.line, what))?;
        Ok((config, views))
    }

    fn planned_on(
        &self,
        config: Config,
        data: &str,
        device: &Device,
    ) -> anyhow::Result<(Config, Arc<dyn Views>)> {
        let views = match self.study.data.get(data) {
            Some(Data::Rendered { .. }) => {
                let words = self.render_words(data, "cpu").unwrap_or_default();
                match parse(&words) {
                    Ok(Command::Render(arguments)) => render::planned(&arguments, config.split)?,
                    _ => anyhow::bail!("it cannot be rendered"),
                }
            }
            Some(Data::There { path, objects: Some(objects), .. }) if !Path::new(path).exists() => {
                // Of the real ones nothing else is known.
                let views = render::like_published(*objects, config.split);
                return Ok((config.chosen_for(&*views, device)?, views));
            }
            _ => {
                let config = config.chosen(device)?;
                let views = train::data::open_views(&config, &mut |_| ())?;
                return Ok((config, views));
            }
        };
        let config = config.chosen_for(&*views, device)?;
        train::data::check(&config, &*views)?;
        Ok((config, views))
    }

    /// Whether `name` is somebody else's and is not there.
    pub fn lacks(&self, name: &str) -> Option<&str> {
        match self.study.data.get(name) {
            Some(Data::There { path, .. })
                if !path.starts_with("procedural:") && !Path::new(path).exists() =>
            {
                Some(path)
            }
            _ => None,
        }
    }
}

/// The run at `root`, if one has begun there. An error where something else is in its place.
fn begun(root: &Path) -> anyhow::Result<Option<RunFolder>> {
    if let Ok(folder) = RunFolder::open(root) {
        return Ok(Some(folder));
    }
    let Some(hindrance) = RunFolder::hindrance(root)? else { return Ok(None) };
    // It may have begun meanwhile.
    match RunFolder::open(root) {
        Ok(folder) => Ok(Some(folder)),
        Err(_) => anyhow::bail!("{hindrance}; move or remove it to train the run anew"),
    }
}

/// Refuses evaluations of epochs that a run does not have, and those that would overwrite each other.
fn check_epochs(run: &Run, config: &Config) -> Result<(), String> {
    match done::epochs(run).into_iter().find(|epoch| *epoch > config.epochs) {
        Some(epoch) => {
            Err(format!("epoch {epoch} is to be evaluated, but {} has {}", run.name, config.epochs))
        }
        None => done::check_together(run, config.epochs),
    }
}

/// Whether it is known that a run was trained on other views than those that `config` names.
fn is_trained_on_others(summary: &Summary, there: &Config, config: &Config) -> bool {
    let place = |config: &Config| Path::new(&config.data).canonicalize();
    if there.data == config.data
        || place(there).ok().is_some_and(|there| place(config).is_ok_and(|now| now == there))
    {
        return false;
    }
    let before = summary.checkpoints.last().and_then(|path| Checkpoint::read_metadata(path).ok());
    let before = before.and_then(|checkpoint| TrainedOn::of_checkpoint(&checkpoint));
    // What is no longer there, or was never kept, cannot be compared; `train --resume` compares again.
    let now = train::data::open_views(config, &mut |_| ()).ok();
    before.zip(now).is_some_and(|(before, now)| before != TrainedOn::of_views(&*now))
}

/// Where the values of `--also` stand.
fn also_places(evaluation: &[String]) -> impl Iterator<Item = usize> + '_ {
    (1..evaluation.len()).filter(|at| evaluation[at - 1] == "--also")
}

/// A path as a word of a command line: one that begins with a dash would be taken for an option.
fn path_word(path: &Path) -> String {
    let text = path.to_string_lossy().into_owned();
    if text.starts_with('-') { format!("./{text}") } else { text }
}

/// The command that `words` call, or what is wrong with them.
pub(super) fn parse(words: &[String]) -> Result<Command, String> {
    let program = std::iter::once("equicaps".to_owned());
    let parsed = crate::Arguments::try_parse_from(program.chain(words.iter().cloned()));
    parsed.map(|arguments| arguments.command).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let what = first.strip_prefix("error: ").unwrap_or(first);
        format!("equicaps {}: {what}", words.first().map_or("", String::as_str))
    })
}
