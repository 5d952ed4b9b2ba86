//! A step that is issued once and then repeated as a whole; see [`gpu::Graph`]. On the CPU there is nothing to gain.

use crate::cuda;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Work on a device that can be repeated.
#[derive(Debug)]
pub struct Graph(gpu::Graph);

impl Graph {
    /// Issues the work once more.
    pub fn launch(&self) -> Result<()> {
        Ok(self.0.launch()?)
    }
}

impl Device {
    /// Whether work can be captured here.
    pub fn has_graphs(&self) -> bool {
        matches!(self, Self::Cuda(_))
    }

    /// Does `work` with scratch memory: nothing that it leaves may be used after the work that is issued next, except by
    /// copies that are issued before.
    pub fn scratch<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            Self::Cpu(_) => work(),
            Self::Cuda(device) => device.context().scratch(work),
        }
    }

    /// Notes down what `work` issues, instead of doing it, with scratch memory. Inputs and parameters must stay where
    /// they are.
    pub fn capture<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Graph)> {
        match self {
            Self::Cpu(_) => Err(Error::Device("the CPU has no graphs".to_owned())),
            Self::Cuda(device) => {
                let (value, graph) = device.context().capture(work)?;
                Ok((value, Graph(graph)))
            }
        }
    }

    /// Overwrites `target`, which may be shared, by `source`: the input of a graph by that of its next repetition.
    ///
    /// # Safety
    /// Whoever shares `target` must expect it.
    pub unsafe fn refill(&self, target: &Tensor, source: &Tensor) -> Result<()> {
        if target.dtype() != source.dtype() || target.shape() != source.shape() {
            return Err(Error::shape("refill", format!("{} by {}", target.shape(), source.shape())));
        }
        match self {
            Self::Cpu(_) => Err(Error::Device("the CPU has no graphs".to_owned())),
            Self::Cuda(device) => {
                let (target, source) = (cuda::view(target)?, cuda::view(source)?);
                // SAFETY: both are alive; the caller vouches for the rest.
                Ok(unsafe { device.context().copy(target, source) }?)
            }
        }
    }
}
