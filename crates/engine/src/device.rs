//! Where numbers live. Model code passes a [`Device`] along and never asks which one it is; only the operations do.

use std::sync::Arc;

use crate::cuda::CudaDevice;
use crate::error::{Error, Result};
use crate::pool::{CpuPool, PoolReport};
use crate::tensor::DType;

/// The element type of activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precision {
    /// float32 throughout.
    #[default]
    F32,
    /// 16-bit activations, float32 accumulation, statistics, losses and parameters: bfloat16, but values within a
    /// convolutional network are IEEE half, with gradients in bfloat16. CUDA only.
    Mixed,
}

impl Precision {
    /// Its name in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Mixed => "mixed",
        }
    }
}

/// A device and the pool of its memory. Cheap to clone; clones share the pool.
#[derive(Clone, Debug)]
pub enum Device {
    /// The host processor, float32.
    Cpu(Arc<CpuPool>),
    /// An NVIDIA GPU.
    Cuda(Arc<CudaDevice>),
}

impl Device {
    /// The host processor with a pool of its own.
    pub fn cpu() -> Self {
        Self::Cpu(CpuPool::new())
    }

    /// The CUDA device `ordinal` with activations in `precision`.
    pub fn cuda(ordinal: usize, precision: Precision) -> Result<Self> {
        CudaDevice::open(ordinal, precision).map(|device| Self::Cuda(Arc::new(device)))
    }

    /// The GPU, where it is one: for operations that only it has.
    pub(crate) fn as_cuda(&self) -> Option<&Arc<CudaDevice>> {
        match self {
            Self::Cpu(_) => None,
            Self::Cuda(cuda) => Some(cuda),
        }
    }

    /// `"cpu"`, `"cuda:0"`, ...
    pub fn name(&self) -> String {
        match self {
            Self::Cpu(_) => "cpu".to_owned(),
            Self::Cuda(cuda) => cuda.name(),
        }
    }

    /// What the device is, in words.
    pub fn description(&self) -> String {
        match self {
            Self::Cpu(_) => "cpu".to_owned(),
            Self::Cuda(cuda) => format!("{} ({})", cuda.name(), cuda.context().properties().name),
        }
    }

    /// How this device computes convolutions, where it chose among several ways by timing them: text to be stored with
    /// a run, so that it computes the same bits when it goes on.
    pub fn choices(&self) -> Option<String> {
        let Self::Cuda(cuda) = self else { return None };
        let choices = cuda.context().convolutions().ok()?.choices();
        // What the timing said is no part of the choice.
        let untimed =
            choices.into_iter().map(|choice| gpu::convolution::Choice { milliseconds: 0.0, ..choice });
        serde_json::to_string(&untimed.collect::<Vec<_>>()).ok()
    }

    /// How many choices there are, and how many stored ones could not be used here and were made anew.
    pub fn choice_counts(&self) -> (usize, usize) {
        match self {
            Self::Cpu(_) => (0, 0),
            Self::Cuda(cuda) => cuda.context().convolutions().map_or((0, 0), |all| all.counts()),
        }
    }

    /// Chooses without timing from now on, so that all ranks of a run choose alike, every time.
    pub fn set_untimed(&self) -> Result<()> {
        if let Self::Cuda(cuda) = self {
            cuda.context().convolutions()?.set_untimed();
        }
        Ok(())
    }

    /// Takes choices that were stored; those that this device cannot use are made anew.
    pub fn set_choices(&self, text: &str) -> Result<()> {
        let Self::Cuda(cuda) = self else { return Ok(()) };
        let choices: Vec<gpu::convolution::Choice> = serde_json::from_str(text)
            .map_err(|error| Error::Device(format!("stored choices of convolutions: {error}")))?;
        cuda.context().convolutions()?.set_choices(choices);
        Ok(())
    }

    /// The precision of activations.
    pub fn precision(&self) -> Precision {
        match self {
            Self::Cpu(_) => Precision::F32,
            Self::Cuda(cuda) => cuda.precision(),
        }
    }

    /// The element type of activations.
    pub(crate) fn activation_dtype(&self) -> DType {
        match self.precision() {
            Precision::F32 => DType::F32,
            Precision::Mixed => DType::Bf16,
        }
    }

    /// What the memory pool holds.
    pub fn memory(&self) -> PoolReport {
        match self {
            Self::Cpu(pool) => pool.report(),
            Self::Cuda(cuda) => cuda.memory(),
        }
    }

    /// Starts a new measurement of the peak: from now on it counts from what is in use at this moment.
    pub fn reset_peak(&self) {
        match self {
            Self::Cpu(pool) => pool.reset_peak(),
            Self::Cuda(cuda) => cuda.reset_peak(),
        }
    }

    /// Waits until everything asked of the device is done; a no-op on the CPU.
    pub fn synchronise(&self) -> Result<()> {
        match self {
            Self::Cpu(_) => Ok(()),
            Self::Cuda(cuda) => cuda.synchronise(),
        }
    }
}
