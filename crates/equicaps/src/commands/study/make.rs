//! Doing what is left of a study: the data of a run, its training, its evaluations; one run after the other, or several at a
//! time.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use dataset::durable;
use train::Config;

use super::file::Run;
use super::process::{self, Ended, Manner};
use super::share::Share;
use super::site::{Progress, Site};
use super::watch::Watch;
use crate::interrupt;
use crate::outcome::count;
use crate::terminal::Terminal;

/// What was done.
#[derive(Debug, Default)]
pub struct Made {
    /// Runs that failed now, and why.
    pub failed: BTreeMap<String, String>,
    /// Whether there was no time for the rest.
    pub interrupted: bool,
}

/// Between two looks at the lock of what another process works on.
const LOOK: Duration = Duration::from_millis(200);
/// Between two looks at a run that somebody trains by hand.
const LONG_LOOK: Duration = Duration::from_secs(2);

/// Why `run` failed the last time, where it did.
pub fn failure(site: &Site, run: &Run) -> Option<String> {
    std::fs::read_to_string(failure_path(site, run)).ok()
}

fn failure_path(site: &Site, run: &Run) -> std::path::PathBuf {
    site.state(&format!("{}.failed", run.name))
}

/// Does what is left of the share of this process in `runs`, `jobs` of them at a time.
pub fn all(
    site: &Site,
    runs: &[(&Run, &Config)],
    share: &Share,
    jobs: usize,
    deadline: Option<Instant>,
    terminal: &Terminal,
) -> anyhow::Result<Made> {
    durable::create_folder(&site.out.join("state"))?;
    let own: Vec<_> =
        runs.iter().enumerate().filter(|(index, _)| share.has(*index)).map(|(_, own)| *own).collect();
    let jobs = jobs.clamp(1, own.len().max(1));
    let threads = rayon::current_num_threads();
    let manner = Manner {
        // On a GPU each may use all cores: they decode and evaluate at different times.
        threads: if site.is_on_cpu() { threads.div_ceil(jobs) } else { threads },
        quiet: jobs > 1 || terminal.is_quiet(),
        speaks: jobs > 1,
        deadline,
    };
    let crew = Crew {
        site,
        own: &own,
        manner,
        watch: Watch::new(site, &own, jobs > 1, terminal),
        next: AtomicUsize::new(0),
        data: Mutex::default(),
        made: Mutex::default(),
        began: SystemTime::now(),
    };
    if jobs == 1 {
        crew.work()?;
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| crew.work())).collect();
            crew.watch.follow(|| workers.iter().all(ScopedJoinHandle::is_finished));
            let mut ends = workers.into_iter().map(ScopedJoinHandle::join);
            ends.try_for_each(|end| end.unwrap_or_else(|_| bail!("a part of the study broke off")))
        })?;
    }
    Ok(crew.made.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Those who make the runs of a study.
struct Crew<'a> {
    site: &'a Site,
    /// The runs to be made, in their order.
    own: &'a [(&'a Run, &'a Config)],
    manner: Manner,
    watch: Watch<'a>,
    /// The first run that nobody has begun.
    next: AtomicUsize,
    /// Data that were rendered, or why not.
    data: Mutex<BTreeMap<String, Result<(), String>>>,
    made: Mutex<Made>,
    began: SystemTime,
}

impl Crew<'_> {
    /// Makes one run after the other, until there is none that nobody has begun; then those that were in the hands of others,
    /// as far as these did not finish them.
    fn work(&self) -> anyhow::Result<()> {
        let mut elsewhere = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&(run, config)) = self.own.get(number) else { break };
            match self.attempt(number, run, config)? {
                Attempt::Over => {}
                Attempt::Elsewhere => {
                    self.watch.says(number, "another process works on it; waiting for that after the others");
                    elsewhere.push((number, run, config));
                }
                Attempt::Stop => return Ok(()),
            }
        }
        for (number, run, config) in elsewhere {
            while let Attempt::Elsewhere = self.attempt(number, run, config)? {
                self.wait_for(run)?;
            }
            if interrupt::flag().load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Waits a while for the process that works on `run`.
    fn wait_for(&self, run: &Run) -> anyhow::Result<()> {
        if locked(&self.lock_of(run))?.is_some() {
            // It is no study, and holds no lock of ours.
            std::thread::sleep(LONG_LOOK);
        }
        while !self.is_time_over() && locked(&self.lock_of(run))?.is_none() {
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn lock_of(&self, run: &Run) -> PathBuf {
        self.site.state(&format!("run-{}.lock", run.name))
    }

    /// Makes one run, unless another process does.
    fn attempt(&self, number: usize, run: &Run, config: &Config) -> anyhow::Result<Attempt> {
        self.watch.begin(number);
        let ended = match self.run(number, run, config).transpose() {
            None if self.is_time_over() => Ended::Interrupted,
            None => return Ok(Attempt::Elsewhere),
            Some(ended) => ended.unwrap_or_else(|error| Ended::Failed(crate::sentence(&error))),
        };
        self.watch.end(number, &ended);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match ended {
            Ended::Done => _ = std::fs::remove_file(failure_path(self.site, run)),
            Ended::Interrupted => {
                // Whoever interrupted one of several means all.
                interrupt::flag().store(true, Ordering::Relaxed);
                made.interrupted = true;
                return Ok(Attempt::Stop);
            }
            Ended::Failed(why) => _ = made.failed.insert(run.name.clone(), why),
        }
        Ok(Attempt::Over)
    }

    fn is_time_over(&self) -> bool {
        self.manner.is_over() || interrupt::flag().load(Ordering::Relaxed)
    }

    /// Does what is left of one run; none where another process works on it.
    fn run(&self, number: usize, run: &Run, config: &Config) -> anyhow::Result<Option<Ended>> {
        if matches!(self.site.progress(run, config), Ok(Progress::Finished)) {
            return Ok(Some(Ended::Done));
        }
        // Other studies in this folder, and parts of one that was killed, which may still be saving.
        let Some(held) = locked(&self.lock_of(run))? else { return Ok(None) };
        let ended = match self.site.progress(run, config) {
            Ok(Progress::Finished) => Ended::Done,
            Ok(Progress::Running) => return Ok(None),
            Ok(progress) => match self.failed_meanwhile(run) {
                // The next call tries it again.
                Some(why) => Ended::Failed(why),
                None => self
                    .rest(number, run, config, progress, &held)
                    .unwrap_or_else(|error| Ended::Failed(crate::sentence(&error))),
            },
            Err(error) => Ended::Failed(crate::sentence(&error)),
        };
        // Before others can have the lock. On a full disk it is said at the end all the same.
        if let Ended::Failed(why) = &ended {
            let _ = durable::write(&failure_path(self.site, run), why.as_bytes());
        }
        Ok(Some(ended))
    }

    /// Why another process failed with `run` since this one began.
    fn failed_meanwhile(&self, run: &Run) -> Option<String> {
        let written =
            std::fs::metadata(failure_path(self.site, run)).and_then(|file| file.modified()).ok()?;
        failure(self.site, run).filter(|_| written > self.began)
    }

    /// Does what is left of a run that is this process's, as `held` says.
    fn rest(
        &self,
        number: usize,
        run: &Run,
        config: &Config,
        mut progress: Progress,
        held: &File,
    ) -> anyhow::Result<Ended> {
        let data = self.data(number, &run.data)?;
        if data != Ended::Done {
            return Ok(data);
        }
        if matches!(progress, Progress::Missing | Progress::Begun(_)) {
            let what = if progress == Progress::Missing { "training" } else { "training goes on" };
            self.watch.says(number, what);
            let words = self.site.train_words(run, &progress);
            match self.part(number, &words, held)? {
                Ended::Done => {}
                other => return Ok(self.with_a_way_on(other, run)),
            }
            progress = self.site.progress(run, config)?;
        } else if matches!(progress, Progress::Trained(_)) {
            self.site.tidy(run)?;
        }
        for evaluation in self.site.missing(run, config) {
            for also in self.site.also(evaluation) {
                let data = self.data(number, also)?;
                if data != Ended::Done {
                    return Ok(data);
                }
            }
            self.watch.says(number, &format!("evaluation ({})", evaluation.join(" ")));
            let words = self.site.evaluate_words(run, evaluation);
            match self.part(number, &words, held)? {
                Ended::Done => self.site.note_evaluated(run, config, evaluation)?,
                other => return Ok(self.with_a_way_on(other, run)),
            }
        }
        match progress {
            Progress::Begun(epoch) => Ok(Ended::Failed(format!("ended after {}", count(epoch, "epoch")))),
            _ => Ok(Ended::Done),
        }
    }

    /// `ended`, and where files of data that the study rendered are why, how to have them again: `render` takes data as
    /// complete that once were.
    fn with_a_way_on(&self, ended: Ended, run: &Run) -> Ended {
        match (ended, self.site.rendered(&run.data)) {
            (Ended::Failed(why), Some(data)) if names_file_in(&why, &data) => Ended::Failed(format!(
                "{why} (if files in {place} are lost or damaged, remove {place}, and the same command renders it anew)",
                place = data.display()
            )),
            (ended, _) => ended,
        }
    }

    /// Does one part of the run `number`.
    fn part(&self, number: usize, words: &[String], held: &File) -> anyhow::Result<Ended> {
        process::run(words, &self.manner, held, |line| self.watch.remarks(number, line))
    }

    /// Renders the data called `name`, where they are to be rendered and nobody did.
    fn data(&self, number: usize, name: &str) -> anyhow::Result<Ended> {
        if let Some(path) = self.site.lacks(name) {
            return Ok(Ended::Failed(format!("{path}, its data, are not there")));
        }
        let Some(words) = self.site.render_words(name, self.site.rendering_device()) else {
            return Ok(Ended::Done);
        };
        let Some(turn) = self.turn(number, name)? else { return Ok(Ended::Interrupted) };
        let known = || self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known().get(name).cloned();
        let found = match before {
            Some(found) => found,
            None => {
                self.watch.says(number, &format!("rendering {name}, or finding it rendered"));
                let found = match self.part(number, &words, &turn)? {
                    Ended::Done => Ok(()),
                    Ended::Failed(why) => Err(format!("its data {name} could not be rendered: {why}")),
                    Ended::Interrupted => return Ok(Ended::Interrupted),
                };
                known().insert(name.to_owned(), found.clone());
                found
            }
        };
        Ok(found.map_or_else(Ended::Failed, |()| Ended::Done))
    }

    /// Waits until nobody else renders `name`; none where that took too long.
    fn turn(&self, number: usize, name: &str) -> anyhow::Result<Option<File>> {
        let path = self.site.state(&format!("data-{name}.lock"));
        let mut said = false;
        loop {
            if let Some(file) = locked(&path)? {
                return Ok(Some(file));
            }
            if !said {
                self.watch.says(number, &format!("waiting for {name}, which is being rendered"));
                said = true;
            }
            if self.is_time_over() {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Whether `text` names a file below `folder`.
fn names_file_in(text: &str, folder: &Path) -> bool {
    text.contains(&format!("{}/", folder.display()))
}

/// What came of a run.
enum Attempt {
    /// It is over, however it ended.
    Over,
    /// Another process works on it.
    Elsewhere,
    /// There is no time for anything more.
    Stop,
}

/// The file at `path`, empty and locked; none where another process has locked it.
fn locked(path: &Path) -> anyhow::Result<Option<File>> {
    let options = File::options().read(true).write(true).create(true).truncate(true).clone();
    let file = options.open(path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // Where the file system has no locks, two processes may do the same work.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}
