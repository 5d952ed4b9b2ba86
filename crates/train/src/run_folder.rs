//! A run's folder: where everything is, who may write to it, and whether it may be used for a new run.
//!
//! ```text
//! RUN/config.toml            the resolved configuration
//!     environment.json       program, device, libraries: one entry a session
//!     convolutions.json      on a GPU: which of several ways computes each convolution
//!     metrics.jsonl          one line per logged step, epoch and evaluation on held-out objects
//!     tensorboard/           event files, one a session
//!     checkpoints/epoch_00003.safetensors
//!     run.lock               held while a process works on the run
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::checkpoint::{self, Checkpoint};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::plan;
use crate::saver;
use dataset::{TrainingPlan, durable};

const CONFIG: &str = "config.toml";
const LOCK: &str = "run.lock";
const CHECKPOINTS: &str = "checkpoints";
const CHOICES: &str = "convolutions.json";
/// The checkpoint that a run begins with whose weights come from elsewhere.
const STARTING_CHECKPOINT: &str = "epoch_00000.safetensors";

/// The folder of a run, for reading.
#[derive(Clone, Debug)]
pub struct RunFolder {
    root: PathBuf,
}

/// The folder of a run, held by this process alone.
#[derive(Debug)]
pub struct OwnedRun {
    folder: RunFolder,
    /// Held, not used: the system lets go of it when this process ends, however it ends.
    _lock: File,
}

/// A folder held for a run that is about to begin.
#[derive(Debug)]
pub struct NewRun(OwnedRun);

impl RunFolder {
    /// The run at `root`, which must hold one.
    pub fn open(root: &Path) -> Result<Self> {
        if !root.exists() {
            return Err(Error::Request(format!("there is no folder {}", root.display())));
        }
        if root.is_file() {
            // A checkpoint lies in RUN/checkpoints.
            let run = root.parent().and_then(Path::parent).filter(|run| Self::open(run).is_ok());
            let hint = run.map_or_else(String::new, |run| format!(", which is {}", run.display()));
            return Err(Error::Request(format!(
                "{} is a file, expected a run's folder{hint}",
                root.display()
            )));
        }
        let folder = Self { root: root.to_path_buf() };
        if folder.config_path().is_file() {
            Ok(folder)
        } else {
            Err(Error::NoRun { path: root.to_path_buf() })
        }
    }

    /// What keeps a run from beginning at `root`: the beginning of a sentence. A folder that is absent or empty does not, nor
    /// what a run that was killed at birth left.
    pub fn hindrance(root: &Path) -> Result<Option<String>> {
        let place = root.display();
        if root.is_file() {
            return Ok(Some(format!("{place} is a file, not a folder for a run")));
        }
        if !root.exists() {
            return Ok(None);
        }
        let other = foreign(root)?;
        Ok(other.map(|name| format!("{place} holds no run but other files (such as {name})")))
    }

    /// All runs at or directly below `root`, by name.
    pub fn find(root: &Path) -> Result<Vec<Self>> {
        if let Ok(run) = Self::open(root) {
            return Ok(vec![run]);
        }
        let mut runs: Vec<Self> = fs::read_dir(root)
            .map_err(Error::read(root))?
            .flatten()
            .filter_map(|entry| Self::open(&entry.path()).ok())
            .collect();
        runs.sort_by(|a, b| a.root.cmp(&b.root));
        Ok(runs)
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder's own name.
    pub fn name(&self) -> String {
        self.root
            .file_name()
            .map_or_else(|| self.root.display().to_string(), |n| n.to_string_lossy().into_owned())
    }

    /// `config.toml`.
    pub fn config_path(&self) -> PathBuf {
        self.root.join(CONFIG)
    }

    /// `environment.json`.
    pub fn environment_path(&self) -> PathBuf {
        self.root.join("environment.json")
    }

    /// `metrics.jsonl`.
    pub fn metrics_path(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }

    /// `tensorboard/`.
    pub(crate) fn tensorboard_path(&self) -> PathBuf {
        self.root.join("tensorboard")
    }

    /// `checkpoints/`.
    pub fn checkpoints_path(&self) -> PathBuf {
        self.root.join(CHECKPOINTS)
    }

    /// `convolutions.json`: the choices of the device, where it made any.
    pub(crate) fn choices_path(&self) -> PathBuf {
        self.root.join(CHOICES)
    }

    /// The choices of the device, where it made any.
    pub fn choices(&self) -> Result<Option<String>> {
        let path = self.choices_path();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::read(&path)(error)),
        }
    }

    /// Writes down the choices of the device.
    pub(crate) fn write_choices(&self, text: &str) -> Result<()> {
        Ok(durable::write(&self.choices_path(), text.as_bytes())?)
    }

    /// The run's configuration.
    pub fn config(&self) -> Result<Config> {
        Config::read(&self.config_path())
    }

    /// Whether a process works on the run right now.
    pub(crate) fn is_running(&self) -> bool {
        File::open(self.root.join(LOCK))
            .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The newest checkpoint, whole or not.
    pub fn last_checkpoint(&self) -> Result<Option<PathBuf>> {
        Ok(checkpoint::list(&self.checkpoints_path())?.pop().map(|(_, path)| path))
    }

    /// The last checkpoint of a run that is finished, complete and not in use, whether or not its data still exist.
    pub fn finished(&self, epochs: u64) -> Result<Option<PathBuf>> {
        let Some(path) = self.last_checkpoint()? else { return Ok(None) };
        let is_last = Checkpoint::read_metadata(&path).is_ok_and(|newest| newest.position.epoch >= epochs);
        Ok((is_last && Checkpoint::read(&path).is_ok() && !self.is_running()).then_some(path))
    }

    /// Removes what a kill right after the last checkpoint left of a finished run: checkpoints that need not stay, and what was
    /// being written. Does nothing while a process works on it.
    pub fn tidy(&self, config: &Config) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let run = self.clone().acquire()?;
        saver::rotate(&run.folder.checkpoints_path(), &config.checkpoints, config.epochs)
    }

    /// Takes the run for this process, to continue it.
    pub(crate) fn acquire(self) -> Result<OwnedRun> {
        let lock = lock(&self.root)?;
        let checkpoints = self.checkpoints_path();
        // Someone may have removed them to save space.
        fs::create_dir_all(&checkpoints).map_err(Error::write(&checkpoints))?;
        durable::remove_unfinished(&self.root);
        durable::remove_unfinished(&checkpoints);
        Ok(OwnedRun { folder: self, _lock: lock })
    }
}

impl NewRun {
    /// The folder, which does not count as a run yet.
    pub fn folder(&self) -> &RunFolder {
        &self.0.folder
    }

    /// Writes down the configuration: from now on there is a run.
    pub fn begin(self, config: &Config) -> Result<OwnedRun> {
        durable::write(&self.0.folder.config_path(), config.to_toml()?.as_bytes())?;
        Ok(self.0)
    }
}

impl OwnedRun {
    /// Begins a new run at `root` with `config`.
    pub fn create(root: &Path, config: &Config) -> Result<Self> {
        Self::reserve(root)?.begin(config)
    }

    /// Takes a folder, created if needed, for a new run. What a run needs before its first step is written before it
    /// starts, so that a run that is found is complete.
    pub fn reserve(root: &Path) -> Result<NewRun> {
        if RunFolder::open(root).is_ok() {
            return Err(Error::RunExists { path: root.to_path_buf() });
        }
        if let Some(hindrance) = RunFolder::hindrance(root)? {
            return Err(Error::Request(format!("{hindrance}; choose an empty or a new folder")));
        }
        fs::create_dir_all(root).map_err(Error::write(root))?;
        let run = Self { folder: RunFolder { root: root.to_path_buf() }, _lock: lock(root)? };
        // Another process may have been faster.
        if run.folder.config_path().is_file() {
            return Err(Error::RunExists { path: root.to_path_buf() });
        }
        durable::remove_unfinished(root);
        let checkpoints = run.folder.checkpoints_path();
        for path in [run.folder.choices_path(), checkpoints.join(STARTING_CHECKPOINT)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::write(&path)(error));
                }
                _ => {}
            }
        }
        fs::create_dir_all(&checkpoints).map_err(Error::write(&checkpoints))?;
        Ok(NewRun(run))
    }

    /// Writes `config.toml` again, where settings that weights do not depend on were changed.
    pub(crate) fn write_config(&self, config: &Config, plan: &TrainingPlan) -> Result<()> {
        let text = format!("# {}\n{}", plan::epoch_in_words(plan), config.to_toml()?);
        let path = self.folder.config_path();
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        Ok(durable::write(&path, text.as_bytes())?)
    }

    /// The folder.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }
}

/// A file in `root` that is not what a run killed at birth leaves.
fn foreign(root: &Path) -> Result<Option<String>> {
    let names = |folder: &Path| -> Result<Vec<String>> {
        let entries = fs::read_dir(folder).map_err(Error::read(folder))?.flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(names.filter(|name| !name.starts_with('.')).collect())
    };
    for name in names(root)? {
        let own = match name.as_str() {
            LOCK | CHOICES => true,
            CHECKPOINTS => names(&root.join(&name))?.iter().all(|inner| inner == STARTING_CHECKPOINT),
            _ => false,
        };
        if !own {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn lock(root: &Path) -> Result<File> {
    let path = root.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(Error::write(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim();
            let holder = if holder.is_empty() { String::new() } else { format!(" ({holder})") };
            return Err(Error::Locked { path: root.to_path_buf(), holder });
        }
        // Where the file system has no locks there is nothing to go by.
        Err(TryLockError::Error(_)) => {}
    }
    let note = (|| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "process {}", std::process::id())
    })();
    note.map_err(Error::write(&path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::resolve(Config::settings("equicaps", "demo").unwrap()).unwrap()
    }

    #[test]
    fn a_run_is_made_once_and_names_the_command_that_continues_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/run");
        drop(OwnedRun::create(&path, &config()).unwrap());
        let message = OwnedRun::create(&path, &config()).unwrap_err().to_string();
        assert!(message.ends_with(&format!("equicaps train --resume {}", path.display())), "{message}");
        assert_eq!(RunFolder::open(&path).unwrap().config().unwrap(), config());
        assert_eq!(RunFolder::find(&root.path().join("a")).unwrap().len(), 1);
    }

    #[test]
    fn two_owners_are_refused_and_a_dead_one_does_not_matter() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("run");
        let owner = OwnedRun::create(&path, &config()).unwrap();
        assert!(owner.folder().is_running());
        let message = RunFolder::open(&path).unwrap().acquire().unwrap_err().to_string();
        let expected = format!("in use by another process (process {})", std::process::id());
        assert!(message.contains(&expected), "{message}");
        drop(owner);
        assert!(path.join(LOCK).exists(), "the file stays, the lock does not");
        assert!(!RunFolder::open(&path).unwrap().is_running());
        RunFolder::open(&path).unwrap().acquire().unwrap();
    }

    #[test]
    fn folders_of_others_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "").unwrap();
        let message = OwnedRun::create(root.path(), &config()).unwrap_err().to_string();
        assert!(message.contains("thesis.tex"), "{message}");
        assert!(matches!(RunFolder::open(root.path()), Err(Error::NoRun { .. })));
        // What a run that was killed at birth leaves is no hindrance.
        let path = root.path().join("killed");
        fs::create_dir(&path).unwrap();
        fs::write(path.join(LOCK), "process 1").unwrap();
        fs::write(path.join(".config.toml.tmp"), "half").unwrap();
        fs::write(path.join(CHOICES), "{}").unwrap();
        fs::create_dir(path.join(CHECKPOINTS)).unwrap();
        fs::write(path.join(CHECKPOINTS).join(STARTING_CHECKPOINT), "of another run").unwrap();
        OwnedRun::create(&path, &config()).unwrap();
        assert!(!path.join(".config.toml.tmp").exists());
        assert!(!path.join(CHOICES).exists());
        assert_eq!(fs::read_dir(path.join(CHECKPOINTS)).unwrap().count(), 0);
        // Checkpoints of a run that lost its configuration are not overwritten.
        let path = root.path().join("headless");
        fs::create_dir_all(path.join(CHECKPOINTS)).unwrap();
        fs::write(path.join(CHECKPOINTS).join("epoch_00010.safetensors"), "").unwrap();
        let message = OwnedRun::create(&path, &config()).unwrap_err().to_string();
        assert!(message.contains("other files (such as checkpoints)"), "{message}");
    }
}
