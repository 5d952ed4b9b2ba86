//! Doing what is left of a study, one run after the other: its data, its training, its evaluations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use dataset::durable;
use train::Config;

use super::file::Run;
use super::process::{self, Ended};
use super::share::Share;
use super::site::{Progress, Site};
use crate::interrupt;
use crate::terminal::Terminal;

/// What was done.
#[derive(Debug, Default)]
pub struct Made {
    /// Runs that failed now, and why.
    pub failed: BTreeMap<String, String>,
    /// Whether there was no time for the rest.
    pub interrupted: bool,
}

/// Between two looks at data that another process renders.
const LOOK: Duration = Duration::from_millis(200);

/// Why `run` failed the last time, where it did.
pub fn failure(site: &Site, run: &Run) -> Option<String> {
    std::fs::read_to_string(failure_path(site, run)).ok()
}

fn failure_path(site: &Site, run: &Run) -> std::path::PathBuf {
    site.state(&format!("{}.failed", run.name))
}

/// Does what is left of the share of this process in `runs`.
pub fn all(
    site: &Site,
    runs: &[(&Run, &Config)],
    share: &Share,
    deadline: Option<Instant>,
    terminal: &Terminal,
) -> anyhow::Result<Made> {
    durable::create_folder(&site.out.join("state"))?;
    let mut made = Made::default();
    let mut worker = Worker { site, deadline, terminal, rendered: BTreeSet::new(), lost: BTreeMap::new() };
    let own: Vec<_> = runs.iter().enumerate().filter(|(index, _)| share.has(*index)).collect();
    for (number, &(_, &(run, config))) in own.iter().enumerate() {
        let place = format!("[{}/{}] {}", number + 1, own.len(), run.name);
        let ended =
            worker.run(&place, run, config).unwrap_or_else(|error| Ended::Failed(crate::sentence(&error)));
        match ended {
            Ended::Done => _ = std::fs::remove_file(failure_path(site, run)),
            Ended::Interrupted => {
                made.interrupted = true;
                break;
            }
            Ended::Failed(why) => {
                terminal.warn(format!("{} failed: {why}", run.name));
                durable::write(&failure_path(site, run), why.as_bytes())?;
                made.failed.insert(run.name.clone(), why);
            }
        }
    }
    Ok(made)
}

struct Worker<'a> {
    site: &'a Site,
    deadline: Option<Instant>,
    terminal: &'a Terminal,
    /// Data that are there.
    rendered: BTreeSet<String>,
    /// Data that could not be made, and why.
    lost: BTreeMap<String, String>,
}

impl Worker<'_> {
    /// Does what is left of one run.
    fn run(&mut self, place: &str, run: &Run, config: &Config) -> anyhow::Result<Ended> {
        let mut progress = self.site.progress(run, config)?;
        match &progress {
            Progress::Finished => return Ok(Ended::Done),
            Progress::Running => {
                self.terminal.note(format!("{place}: another process works on it"));
                return Ok(Ended::Done);
            }
            _ => {}
        }
        let data = self.data(place, &run.data)?;
        if data != Ended::Done {
            return Ok(data);
        }
        if matches!(progress, Progress::Missing | Progress::Begun(_)) {
            let what = if progress == Progress::Missing { "training" } else { "training goes on" };
            self.terminal.note(format!("{place}: {what}"));
            let words = self.site.train_words(run, &progress);
            match process::run(&words, self.terminal, self.deadline)? {
                Ended::Done => {}
                other => return Ok(other),
            }
            progress = self.site.progress(run, config)?;
        }
        for evaluation in self.site.missing(run, config) {
            self.terminal.note(format!("{place}: evaluation ({})", evaluation.join(" ")));
            let words = self.site.evaluate_words(run, evaluation);
            match process::run(&words, self.terminal, self.deadline)? {
                Ended::Done => self.site.note_evaluated(run, config, evaluation)?,
                other => return Ok(other),
            }
        }
        match progress {
            Progress::Begun(epoch) => Ok(Ended::Failed(format!("ended after {epoch} epochs"))),
            _ => Ok(Ended::Done),
        }
    }

    /// Renders the data called `name`, where they are to be rendered and nobody did.
    fn data(&mut self, place: &str, name: &str) -> anyhow::Result<Ended> {
        if let Some(why) = self.lost.get(name) {
            return Ok(Ended::Failed(why.clone()));
        }
        if self.rendered.contains(name) {
            return Ok(Ended::Done);
        }
        if let Some(path) = self.site.lacks(name) {
            return Ok(Ended::Failed(format!("{path}, its data, are not there")));
        }
        let device = match self.site.device.as_str() {
            "auto" if !matches!(engine::usable_gpu(), Ok(Some(_))) => "cpu",
            "auto" => "cuda",
            other => other,
        };
        let Some(words) = self.site.render_words(name, device) else { return Ok(Ended::Done) };
        let Some(_turn) = self.turn(name)? else { return Ok(Ended::Interrupted) };
        self.terminal.note(format!("{place}: rendering {name}, or finding it rendered"));
        let ended = process::run(&words, self.terminal, self.deadline)?;
        match &ended {
            Ended::Done => _ = self.rendered.insert(name.to_owned()),
            Ended::Failed(why) => {
                let why = format!("its data {name} could not be rendered: {why}");
                self.lost.insert(name.to_owned(), why.clone());
                return Ok(Ended::Failed(why));
            }
            Ended::Interrupted => {}
        }
        Ok(ended)
    }

    /// Waits until no other process renders `name`; none where that took too long.
    fn turn(&self, name: &str) -> anyhow::Result<Option<File>> {
        let path = self.site.state(&format!("{name}.lock"));
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut said = false;
        loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {}
                // Where the file system has no locks, two processes may render the same bytes.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Some(file)),
            }
            if !said {
                self.terminal.note(format!("another process renders {name}; waiting"));
                said = true;
            }
            let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_over || interrupt::flag().load(Ordering::Relaxed) {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }
}
