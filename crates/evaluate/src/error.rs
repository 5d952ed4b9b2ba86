//! The one error type of this crate.

use std::path::PathBuf;

/// What can go wrong in an evaluation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Numbers could not be computed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The GPU could not do it.
    #[error(transparent)]
    Gpu(#[from] gpu::Error),
    /// Views could not be read, or files not written.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// A run or its checkpoints cannot be used.
    #[error(transparent)]
    Train(#[from] train::Error),
    /// A file of kept features or results is not what it should be.
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
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
