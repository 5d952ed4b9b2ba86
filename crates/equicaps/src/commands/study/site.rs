//! A study in its folder: what each run is trained with, which parts of it are done, and the words of the commands that do
//! the others.
//!
//! ```text
//! OUT/data/NAME        what was rendered
//!     runs/NAME        a run, with its evaluations
//!     state/           why runs failed; locks
//!     report.html      and what goes beside it
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use dataset::Views;
use dataset::durable;
use engine::Device;
use train::summary::{State, Summary};
use train::{Config, RunFolder};

use super::file::{Data, Run, Study};
use crate::UsageError;
use crate::commands::{Command, render, train as training};

/// Which evaluations a run has.
const EVALUATED: &str = "evaluation/study.json";

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
            Self::Begun(epoch) => format!("begun, {epoch} epochs done"),
            Self::Running => "running".to_owned(),
            Self::Trained(_) => "trained, to be evaluated".to_owned(),
            Self::Finished => "finished".to_owned(),
        }
    }
}

impl Site {
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
        match self.study.data.get(name) {
            Some(Data::There { path, lists, .. }) => {
                let lists = lists.iter().flat_map(|lists| ["--lists".to_owned(), lists.clone()]);
                ["--data".to_owned(), path.clone()].into_iter().chain(lists).collect()
            }
            _ => vec!["--data".to_owned(), path_word(&self.out.join("data").join(name))],
        }
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
        words.extend(run.set.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]));
        words
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
        let mut words = vec!["evaluate".to_owned(), path_word(&self.root(run))];
        words.extend(evaluation.iter().cloned());
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
            parse(&self.evaluate_words(run, evaluation)).map_err(wrong)?;
        }
        let Command::Train(arguments) = parse(&self.begin_words(run)).map_err(wrong)? else {
            return Err(wrong("these are no options of train".to_owned()));
        };
        training::new_config(&arguments).map_err(|error| wrong(error.to_string()))
    }

    /// `config`, which `run` is to have, as it is where the run is there: with what the preset `own` chose for it.
    fn made(&self, run: &Run, config: &Config) -> Config {
        let there = RunFolder::open(&self.root(run)).and_then(|folder| folder.config());
        there.map_or_else(|_| config.clone(), |there| config.clone().chosen_as(&there))
    }

    /// How far `run`, which is to have `config`, is. An error where there is a run with other settings.
    pub fn progress(&self, run: &Run, config: &Config) -> anyhow::Result<Progress> {
        let root = self.root(run);
        let Ok(folder) = RunFolder::open(&root) else { return Ok(Progress::Missing) };
        let there = folder.config()?;
        let config = &config.clone().chosen_as(&there);
        let (before, now) = (there.identity_toml()?, config.identity_toml()?);
        if let Some(line) = before.lines().find(|line| !now.lines().any(|other| other == *line)) {
            let key = line.split(" = ").next().unwrap_or_default();
            let asked = now.lines().find(|line| line.split(" = ").next() == Some(key)).unwrap_or_default();
            anyhow::bail!(
                "{} has {line}, but {} says {asked}; move or remove the run to train it anew",
                root.display(),
                self.file
            );
        }
        let summary = Summary::of(&folder)?;
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

    /// The evaluations of `run` that are not done.
    pub fn missing<'a>(&self, run: &'a Run, config: &Config) -> Vec<&'a Vec<String>> {
        let (done, config) = (self.evaluated(run), self.made(run, config));
        run.evaluations.iter().filter(|words| !done.contains(&evaluation_name(words, &config))).collect()
    }

    fn evaluated(&self, run: &Run) -> Vec<String> {
        let text = std::fs::read_to_string(self.root(run).join(EVALUATED)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes down that an evaluation is done, and removes the features it was made of: those of all runs of a study would
    /// fill a disk.
    pub fn note_evaluated(&self, run: &Run, config: &Config, evaluation: &[String]) -> anyhow::Result<()> {
        let mut done = self.evaluated(run);
        done.push(evaluation_name(evaluation, &self.made(run, config)));
        durable::write(&self.root(run).join(EVALUATED), serde_json::to_string(&done)?.as_bytes())?;
        let features = self.root(run).join("evaluation").join("features");
        match std::fs::remove_dir_all(&features) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(anyhow::anyhow!("cannot remove {}: {error}", features.display()))
            }
            _ => Ok(()),
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
        self.planned_on(self.made(run, config), &run.data, device)
            .with_context(|| format!("{}, data.{}", self.file, run.data))
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
                render::like_published(*objects, config.split)
            }
            _ => {
                let config = config.chosen(device)?;
                let views = train::data::open_views(&config, &mut |_| ())?;
                return Ok((config, views));
            }
        };
        Ok((config.chosen_for(&*views, device)?, views))
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

/// An evaluation as the study remembers it.
fn evaluation_name(words: &[String], config: &Config) -> String {
    format!("{} after {} epochs", words.join(" "), config.epochs)
}

/// A path as a word of a command line: one that begins with a dash would be taken for an option.
fn path_word(path: &Path) -> String {
    let text = path.to_string_lossy().into_owned();
    if text.starts_with('-') { format!("./{text}") } else { text }
}

/// The command that `words` call, or what is wrong with them.
fn parse(words: &[String]) -> Result<Command, String> {
    let program = std::iter::once("equicaps".to_owned());
    let parsed = crate::Arguments::try_parse_from(program.chain(words.iter().cloned()));
    parsed.map(|arguments| arguments.command).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let what = first.strip_prefix("error: ").unwrap_or(first);
        format!("equicaps {}: {what}", words.first().map_or("", String::as_str))
    })
}
