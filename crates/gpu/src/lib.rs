//! `gpu`: one CUDA context, with every NVIDIA library loaded at run time.
//!
//! The build needs no CUDA, and a machine without it gets an [`Error`] that says which library was looked for, where,
//! and how to install it; nothing here panics. The bindings are the few dozen functions we call, by hand: a library
//! that is missing is then an ordinary error of ours.
//!
//! - [`libraries`]: where the driver, NVRTC, cuBLASLt and cuDNN are found;
//! - [`Context`]: a device, one stream, a caching memory pool, kernels compiled by NVRTC and cached on disk;
//! - [`convolution`]: cuDNN convolutions, deterministic engines only, the fastest of several kept per shape;
//! - [`matmul`]: cuBLASLt matrix products, deterministic;
//! - [`nccl`]: sums and copies between the GPUs of several processes;
//! - [`Feed`] and [`Readback`]: copies beside the device's work;
//! - [`Graph`]: work that is issued once and repeated as a whole.
//!
//! All work of a context is issued in order on one stream, so memory may be handed back to the pool, and used again,
//! before the work that uses it has run.

mod context;
pub mod convolution;
mod copy_stream;
mod cudnn;
mod driver;
mod error;
mod event;
mod graph;
mod host;
mod kernel;
mod kernel_cache;
pub mod libraries;
pub mod matmul;
mod memory;
pub mod nccl;
mod nvrtc;
mod profile;
mod transfer;

pub use context::{Context, DeviceProperties, devices};
pub use copy_stream::CopyStream;
pub use error::{Error, Result};
pub use event::{Event, Timer};
pub use graph::Graph;
pub use host::HostBuffer;
pub use kernel::{Argument, Kernel, Launch, Module};
pub use memory::{Buffer, MemoryUse, View};
pub use nvrtc::{Architecture, Compiler, KernelSource};
pub use profile::{ProfileEntry, Scope};
pub use transfer::{Feed, Parts, Readback};

/// What numbers are stored as on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floating point; products are never rounded to TF32.
    F32,
    /// bfloat16 storage, 32-bit accumulation.
    Bf16,
    /// IEEE half storage, 32-bit accumulation.
    F16,
}

impl Precision {
    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }
}
