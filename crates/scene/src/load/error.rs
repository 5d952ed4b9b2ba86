//! Why a mesh could not be read.

use std::path::PathBuf;

/// A mesh that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// The file, or one it cannot do without, cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Something is wrong at one place.
    #[error("{}:{line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What was found and what was expected.
        message: String,
    },
    /// Something is wrong with the file as a whole, or with a binary one.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        message: String,
    },
}
