//! The one error type of this crate: every message is one sentence that names the file or setting concerned. What can
//! go wrong with a file is [`FileError`], which crates further down share.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::printable::printable_path;

/// What can go wrong with a file. The system's reason is part of the sentence, not a source of its own to be told again.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file or folder could not be read.
    #[error("cannot read {}: {}", printable_path(path), plain(reason))]
    Read {
        /// What was read.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// A file or folder could not be written.
    #[error("cannot write {}: {}", printable_path(path), plain(reason))]
    Write {
        /// What was written.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// A file was read but does not hold what it should.
    #[error("{}: {message}", printable_path(path))]
    Content {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong, and what was expected.
        message: String,
    },
}

impl FileError {
    /// For `map_err` on reads of `path`, for any error that files may be the cause of.
    pub fn read<E: From<Self>>(path: &Path) -> impl FnOnce(std::io::Error) -> E + '_ {
        move |reason| Self::Read { path: path.to_path_buf(), reason }.into()
    }

    /// For `map_err` on writes of `path`.
    pub fn write<E: From<Self>>(path: &Path) -> impl FnOnce(std::io::Error) -> E + '_ {
        move |reason| Self::Write { path: path.to_path_buf(), reason }.into()
    }

    /// `path` holds something else than expected.
    pub fn content(path: &Path, message: impl Into<String>) -> Self {
        Self::Content { path: path.to_path_buf(), message: message.into() }
    }

    /// What is wrong, for somebody who names the file in another way.
    pub(crate) fn without_path(&self) -> String {
        match self {
            Self::Read { reason, .. } => format!("cannot be read: {}", plain(reason)),
            Self::Write { reason, .. } => format!("cannot be written: {}", plain(reason)),
            Self::Content { message, .. } => message.clone(),
        }
    }
}

/// What can go wrong with a dataset.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// With one of its files.
    #[error(transparent)]
    File(#[from] FileError),
    /// A folder holds a dataset made with other settings than those asked for.
    #[error("{} was begun with other settings: {difference}; use another --out, or the same settings", path.display())]
    OtherSettings {
        /// The dataset's folder.
        path: PathBuf,
        /// The setting that differs, with both values.
        difference: String,
    },
    /// The GPU that was to render them failed.
    #[error("views could not be rendered: {0}")]
    Gpu(#[from] gpu::Error),
    /// The request makes no sense, whatever is on disk.
    #[error("{0}")]
    Request(String),
    /// The work was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Gives an error type that is made from a [`FileError`] its constructors.
#[macro_export]
macro_rules! file_errors {
    ($error:ty) => {
        impl $error {
            /// For `map_err` on reads of `path`.
            pub fn read(path: &::std::path::Path) -> impl FnOnce(::std::io::Error) -> Self + '_ {
                $crate::error::FileError::read(path)
            }

            /// For `map_err` on writes of `path`.
            pub fn write(path: &::std::path::Path) -> impl FnOnce(::std::io::Error) -> Self + '_ {
                $crate::error::FileError::write(path)
            }

            /// `path` holds something else than expected.
            pub fn content(path: &::std::path::Path, message: impl Into<String>) -> Self {
                $crate::error::FileError::content(path, message).into()
            }
        }
    };
}

file_errors!(Error);

impl Error {
    /// What came up while the files below `root` were listed.
    pub(crate) fn walk(root: &Path, error: walkdir::Error) -> Self {
        let path = error.path().unwrap_or(root).to_path_buf();
        match error.into_io_error() {
            Some(reason) => Self::read(&path)(reason),
            None => Self::content(&path, "is a link to a folder above it"),
        }
    }
}

/// The system's words without the error number, which helps nobody.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
        _ => {
            let text = error.to_string();
            let end = text.rfind(" (os error ").unwrap_or(text.len());
            let mut letters = text[..end].chars();
            letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_file_and_leave_out_error_numbers() {
        let path = Path::new("/no/such/file");
        let error = std::fs::read(path).map_err(Error::read(path)).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /no/such/file: no such file or directory");
        let full: Error = Error::write(path)(std::io::Error::from(ErrorKind::StorageFull));
        assert_eq!(full.to_string(), "cannot write /no/such/file: the disk is full");
        let cut: Error = Error::read(path)(std::io::Error::from(ErrorKind::UnexpectedEof));
        assert_eq!(cut.to_string(), "cannot read /no/such/file: it ends too early");
    }
}
