//! The objectives, one file each, readable beside the paper's formula.
//!
//! A [`Network`] is a backbone and a method over one parameter store. Each training step takes a [`PairBatch`] (two
//! views of every object and the motion between them), passes the views one after the other, so that batch-norm
//! statistics are per view, and adds up the method's named [`Term`]s.
//!
//! ```no_run
//! # fn main() -> Result<(), engine::Error> {
//! use engine::{AdamConfig, Device};
//! use methods::{MethodConfig, MethodName, Network};
//!
//! let config = MethodConfig { image_size: 64, batch: 16, ..MethodConfig::published(MethodName::EquiCaps) };
//! let mut network = Network::build(&config, &Device::cpu(), 1)?;
//! # let batch: methods::PairBatch = unreachable!();
//! let report = network.step(&batch, &AdamConfig::default())?;
//! println!("{}", report.loss);
//! # Ok(()) }
//! ```

pub mod agreement;
mod batch;
mod capsie;
mod config;
mod equicaps;
mod equimod;
#[cfg(test)]
mod loss_tests;
mod memory;
mod network;
pub mod parity;
mod regularise;
mod sen;
mod sie;
mod simclr;
mod simclr_augself;
mod supervised;
mod terms;
mod vicreg;
#[cfg(test)]
mod vit_tests;

pub use batch::{PairBatch, PairTargets, TargetValues};
pub use config::{
    LossConfig, MethodConfig, MethodName, PredictorName, Regularise, Task, Transform, UnknownName,
};
pub use memory::largest_batch;
pub use network::{Loss, Model, Network, StepReport};
pub use supervised::supervised_head;
pub use terms::{Embedding, Method, Outputs, Term, Views};
