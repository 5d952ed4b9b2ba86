//! The numerical heart: tensors, about 25 coarse differentiable operations, the tape that plays them backwards,
//! and Adam. A general framework is not needed for a handful of networks, so the engine works at the level at which
//! people think about them: a convolution, a batch norm with its residual and ReLU, a self-routing layer.
//!
//! - [`Device`] says where numbers live; model code names none.
//! - [`Tensor`] is a shape over reference-counted memory from the device's pool: in the steady state of a training
//!   step nothing is allocated.
//! - [`ParameterStore`] holds all parameters in one flat buffer, and likewise gradients and Adam's moments.
//! - [`Tape`] records what backward needs and plays it in reverse.
//! - [`ops`] has one file per operation: formula, shapes, forward and backward; `docs` of that module say how to
//!   add one.
//!
//! Results repeat bit for bit on the same device, whatever the number of threads.

#[macro_use(multiversion)]
extern crate simd;

mod adam;
pub mod agreement;
mod collective;
mod cpu;
pub mod cuda;
mod device;
mod error;
mod flat;
mod graph;
pub mod host_memory;
mod initialise;
mod muon;
mod named;
pub mod nearest;
pub mod ops;
mod parameters;
mod pool;
mod shape;
mod step_graph;
mod tape;
mod tensor;
mod transfer;

pub use adam::AdamConfig;
pub use collective::{Collective, Memory, SingleRank, Source, Sum, add_in_order, in_threads, share};
pub use device::{Device, Precision};
pub use error::{Error, Result};
pub use graph::Graph;
pub use initialise::Initialise;
pub use muon::MuonConfig;
pub use named::{DeviceName, UnknownDevice, usable_gpu};
pub use parameters::{BufferId, BufferValue, Layout, ParameterId, ParameterStore, State, StoreBuilder};
pub use pool::{CpuPool, PoolReport};
pub use shape::Shape;
pub use step_graph::StepGraph;
pub use tape::{Backward, GradientId, ProfileEntry, Tape, Target, Var};
pub use tensor::{DType, Element, Storage, Tensor};
pub use transfer::{Feed, HostMemory, Mark, Part, Readback};
