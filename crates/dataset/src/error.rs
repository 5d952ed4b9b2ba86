//! The one error type of this crate: every message is one sentence that names the file or setting concerned.

use std::path::{Path, PathBuf};

/// What can go wrong with a dataset.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
    /// A folder holds a dataset made with other settings than those asked for.
    #[error("{} was begun with other settings: {difference}; use another --out, or the same settings", path.display())]
    OtherSettings {
        /// The dataset's folder.
        path: PathBuf,
        /// The setting that differs, with both values.
        difference: String,
    },
    /// The request makes no sense, whatever is on disk.
    #[error("{0}")]
    Request(String),
    /// The work was asked to stop.
    #[error("interrupted")]
    Interrupted,
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

/// The system's words without the error number, which helps nobody.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => lower_first(&text[..end]),
        None => text,
    }
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => String::new(),
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
    }
}
