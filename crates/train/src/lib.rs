//! Pre-training: from a dataset to a checkpoint that can be trusted. A session on a run, the loop, the run's folder with
//! its metrics and checkpoints, the one reader and writer of weights, and what stops a run that went wrong.

mod automatic;
mod bad_samples;
mod batches;
pub mod checkpoint;
#[cfg(test)]
mod checkpoint_tests;
mod clock;
pub mod config;
pub mod data;
pub mod environment;
mod error;
pub mod estimate;
mod event;
mod guard;
pub mod import;
mod journal;
pub mod latents_file;
mod learner;
mod meaning;
mod means;
pub mod metrics;
mod network;
#[cfg(test)]
mod network_tests;
pub mod objects;
mod pairs_image;
pub mod plan;
mod run_folder;
mod saver;
mod schedule;
mod session;
pub mod summary;
mod tensorboard;
#[cfg(test)]
mod testing;
pub mod torch_file;
mod trained_on;
mod trainer;
#[cfg(test)]
mod trainer_tests;
pub mod verdict;
pub mod warnings;
pub mod weights;

pub use config::Config;
pub use error::{Error, Result};
pub use event::{Event, Outcome, Progress};
pub use learner::{Learner, Look};
pub use meaning::meaning;
pub use plan::Plan;
pub use run_folder::{OwnedRun, RunFolder};
pub use session::{Session, Start};
pub use trained_on::{Seen, TrainedOn};
