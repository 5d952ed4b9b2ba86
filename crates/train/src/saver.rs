//! Writes checkpoints while training goes on: the state is copied first, the file is written by a thread. One at a
//! time; code that needs a checkpoint on disk waits for it.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use crate::checkpoint::{self, Checkpoint};
use crate::config::Checkpoints;
use crate::error::{Error, Result};

/// Writes checkpoints to one folder and removes those that need not stay.
#[derive(Debug)]
pub struct Saver {
    folder: PathBuf,
    settings: Checkpoints,
    /// The epoch whose checkpoint always stays.
    last_epoch: u64,
    writing: Option<JoinHandle<Result<PathBuf>>>,
}

impl Saver {
    /// Nothing is being written yet.
    pub fn new(folder: PathBuf, settings: Checkpoints, last_epoch: u64) -> Self {
        Self { folder, settings, last_epoch, writing: None }
    }

    /// Begins to write `checkpoint`, after waiting for the one before it; gives that one's path.
    pub fn save(&mut self, checkpoint: Checkpoint) -> Result<Option<PathBuf>> {
        let before = self.wait()?;
        let (folder, settings, last) = (self.folder.clone(), self.settings.clone(), self.last_epoch);
        let write = move || {
            let path = checkpoint.write(&folder)?;
            rotate(&folder, &settings, last)?;
            Ok(path)
        };
        let thread = std::thread::Builder::new().name("saver".to_owned()).spawn(write);
        self.writing = Some(thread.map_err(Error::write(&self.folder))?);
        Ok(before)
    }

    /// Waits until nothing is being written; gives the path of what was.
    pub fn wait(&mut self) -> Result<Option<PathBuf>> {
        let Some(writing) = self.writing.take() else { return Ok(None) };
        match writing.join() {
            Ok(result) => result.map(Some),
            Err(_) => Err(Error::Request("the thread that writes checkpoints failed".to_owned())),
        }
    }
}

/// Removes the checkpoints in `folder` that need not stay; that of `last_epoch` always does.
pub(crate) fn rotate(folder: &Path, settings: &Checkpoints, last_epoch: u64) -> Result<()> {
    checkpoint::rotate(folder, settings.keep, |epoch| {
        epoch == last_epoch || settings.milestones.contains(&epoch)
    })
}

impl Drop for Saver {
    fn drop(&mut self) {
        // A checkpoint that was started is finished, for whatever reason the run ended.
        let _ = self.wait();
    }
}
