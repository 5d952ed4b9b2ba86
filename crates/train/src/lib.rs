//! Pre-training: from a dataset to a checkpoint that can be trusted. The run folder, its metrics and checkpoints, the
//! loop, online probes, and what stops a run that went wrong.

pub mod bad_samples;
pub mod batches;
pub mod checkpoint;
#[cfg(test)]
mod checkpoint_tests;
mod clock;
pub mod config;
pub mod data;
pub mod device_views;
mod eigenvalues;
pub mod environment;
pub mod error;
pub mod event;
pub mod guard;
pub mod health;
pub mod import;
mod inputs;
mod journal;
pub mod learner;
mod means;
pub mod metrics;
pub mod network;
mod network_config;
mod network_state;
#[cfg(test)]
mod network_tests;
mod pairs_picture;
pub mod probes;
mod readout;
mod repeated;
pub mod run_folder;
mod saver;
mod schedule;
pub mod settings;
pub mod suggest;
pub mod summary;
pub mod tally;
pub mod tensorboard;
#[cfg(test)]
mod testing;
pub mod trainer;
#[cfg(test)]
mod trainer_tests;

pub use config::Config;
pub use error::{Error, Result};
pub use event::{Event, Outcome, Progress};
pub use learner::Learner;
pub use run_folder::{OwnedRun, RunFolder};
pub use trainer::Trainer;
