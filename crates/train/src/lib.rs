//! Pre-training: from a dataset to a checkpoint that can be trusted. The run folder, its metrics and checkpoints, the
//! loop, online probes, and what stops a run that went wrong.

pub mod checkpoint;
#[cfg(test)]
mod checkpoint_tests;
pub mod config;
mod crc32c;
mod durable;
pub mod error;
pub mod metrics;
pub mod run_folder;
pub mod settings;
pub mod suggest;
pub mod tensorboard;

pub use config::Config;
pub use error::{Error, Result};
pub use run_folder::{OwnedRun, RunFolder};
