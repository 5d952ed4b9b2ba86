//! The one error type of this crate.

/// What can go wrong before there is a page.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A network or its features.
    #[error(transparent)]
    Evaluate(#[from] evaluate::Error),
    /// A run.
    #[error(transparent)]
    Train(#[from] train::Error),
    /// Views.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// Numbers could not be computed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The address cannot be had.
    #[error("the address {address} cannot be used: {error}")]
    Address {
        /// Which one.
        address: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The request cannot be met.
    #[error("{0}")]
    Request(String),
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
