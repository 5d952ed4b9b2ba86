//! The one error type of this crate.

use std::path::PathBuf;

/// What can go wrong in an export.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Weights cannot be opened.
    #[error(transparent)]
    Evaluate(#[from] evaluate::Error),
    /// Weights cannot be read or written.
    #[error(transparent)]
    Train(#[from] train::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// Numbers could not be computed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The network is not one that can be written down.
    #[error("this network cannot be exported: {0}")]
    Network(String),
    /// A file that was written is not what it should be.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The request cannot be met.
    #[error("{0}")]
    Request(String),
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
