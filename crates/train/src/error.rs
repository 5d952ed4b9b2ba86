//! The one error type of this crate: every message is one sentence that names the file or setting concerned.

use std::path::{Path, PathBuf};

/// What can go wrong with a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is unknown, of the wrong type or out of range.
    #[error("{0}")]
    Setting(String),
    /// A file or folder could not be read.
    #[error("cannot read {}: {}", path.display(), plain(source))]
    Read {
        /// What was read.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file or folder could not be written.
    #[error("cannot write {}: {}", path.display(), plain(source))]
    Write {
        /// What was written.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file was read but does not hold what it should.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong, and what was expected.
        message: String,
    },
    /// The folder holds a run already.
    #[error("{path} holds a run already; continue it with: equicaps train --resume {path}", path = path.display())]
    RunExists {
        /// The run's folder.
        path: PathBuf,
    },
    /// The folder holds no run.
    #[error("{} holds no run: it has no config.toml; start one with: equicaps train --run {} --data DATA", path.display(), path.display())]
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

impl Error {
    /// For `map_err` on reads of `path`.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Read { path: path.to_path_buf(), source }
    }

    /// For `map_err` on writes of `path`.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Write { path: path.to_path_buf(), source }
    }

    /// `path` holds something else than expected.
    pub fn content(path: &Path, message: impl Into<String>) -> Self {
        Self::Content { path: path.to_path_buf(), message: message.into() }
    }
}

/// The system's words without the error number.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        std::io::ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        _ => {
            let text = error.to_string();
            let end = text.rfind(" (os error ").unwrap_or(text.len());
            let mut characters = text[..end].chars();
            characters
                .next()
                .map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
        }
    }
}
