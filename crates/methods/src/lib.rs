//! The objectives, one file each, readable beside the paper's formula, and the training step that they share.
//!
//! A [`Network`] is a backbone and a [`Method`] over one parameter store; [`MethodConfig`] says which. Each [`Step`]
//! takes a [`PairBatch`] (two views of every object and the motion between them), passes the views one after the other,
//! so that batch-norm statistics are per view, and adds up the method's named [`Term`]s.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use engine::{AdamConfig, Device};
//! use methods::{MethodConfig, MethodName, Step, StepOptions};
//!
//! let config = MethodConfig { image_size: 64, batch: 16, ..MethodConfig::published(MethodName::EQUICAPS)? };
//! let mut step = Step::new(&config, &Device::cpu(), 1, StepOptions::default())?;
//! # let batch: methods::PairBatch = unreachable!();
//! let measurement = step.step(&batch, &AdamConfig::default())?.read()?;
//! println!("{}", measurement.loss);
//! # Ok(()) }
//! ```

pub mod agreement;
mod batch;
mod capsie;
mod config;
mod eigenvalues;
mod equicaps;
mod equimod;
pub mod floor;
mod health;
mod knn;
#[cfg(test)]
mod loss_tests;
mod measurement;
mod memory;
mod method;
mod names;
mod network;
pub mod parity;
pub mod presets;
mod probes;
mod projection;
pub mod rank_parity;
mod registry;
mod regularise;
mod sen;
mod settings;
mod sie;
mod simclr;
mod simclr_augself;
mod sizes;
mod step;
mod suggest;
mod supervised;
mod tally;
pub mod verdict;
mod vicreg;
#[cfg(test)]
mod vit_tests;

pub use batch::{MEAN, PairBatch, PairImages, PairTargets, STD, TargetValues};
pub use config::{
    BackboneName, LossConfig, MethodConfig, NetworkConfig, PoseNorm, PredictorName, Regularise, Task,
    Transform,
};
pub use health::Health;
pub use knn::Representations;
pub use measurement::{Ask, Measurement, Reading, StepOutput};
pub use memory::largest_batch;
pub use method::{Embedding, Method, Motion, Part, PartName, Place, Projector, Source, Term};
pub use names::UnknownName;
pub use network::{Loss, Model, Network};
pub use probes::{Answers, Probes, ProbesConfig, Questions};
pub use registry::{HasTensor, MethodName, Registration, register};
pub use settings::{SettingError, Settings};
pub use sizes::{LARGEST_BATCH, LARGEST_IMAGE};
pub use step::{Step, StepOptions};
pub use suggest::nearest;
pub use tally::{Tallies, Tally};
