//! The one error type of this crate: every message is one sentence that names the file or setting concerned.

use std::path::PathBuf;

use dataset::error::FileError;
use dataset::shell_word;

/// What can go wrong with a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is unknown, of the wrong type or out of range.
    #[error("{0}")]
    Setting(String),
    /// Something is wrong with a file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder holds a run already.
    #[error("{} holds a run already; continue it with: equicaps train --resume {}", path.display(), shell_word(path))]
    RunExists {
        /// The run's folder.
        path: PathBuf,
    },
    /// The folder holds no run.
    #[error("{} holds no run: it has no config.toml; start one with: equicaps train --run {} --data DATA", path.display(), shell_word(path))]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process works on the run.
    #[error("{} is in use by another process{}; wait for it or stop it", path.display(), holder)]
    Locked {
        /// The run's folder.
        path: PathBuf,
        /// Who holds it, in brackets, where known.
        holder: String,
    },
    /// Training went wrong in a way that continuing would not mend.
    #[error("{0}")]
    Unhealthy(String),
    /// Something is wrong on one of several ranks, and all of them know.
    #[error("{0}")]
    Everywhere(String),
    /// The request makes no sense, whatever is on disk.
    #[error("{0}")]
    Request(String),
    /// From the engine.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// From the dataset.
    #[error(transparent)]
    Dataset(#[from] dataset::error::Error),
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl From<methods::SettingError> for Error {
    fn from(error: methods::SettingError) -> Self {
        Self::Setting(error.0)
    }
}

impl Error {
    /// A setting is wrong, as `error` says.
    pub fn setting(error: &dyn std::error::Error) -> Self {
        Self::Setting(error.to_string())
    }
}

dataset::file_errors!(Error);
