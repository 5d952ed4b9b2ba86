//! The CUDA side of [`Device`](crate::Device) and [`Storage`](crate::Storage): the device type and its buffers.
//! Operations keep their launch code beside their formula, in `ops/NAME/cuda.rs`, and their kernels in `ops/NAME.cu`.

use std::sync::Arc;

use crate::device::Precision;
use crate::error::{Error, Result};
use crate::pool::PoolReport;
use crate::tensor::Storage;

/// One GPU: its context, streams, libraries, kernels and memory pool.
#[derive(Debug)]
pub struct CudaDevice {
    ordinal: usize,
    precision: Precision,
}

impl CudaDevice {
    /// Opens device `ordinal`.
    pub fn open(ordinal: usize, _precision: Precision) -> Result<Self> {
        Err(Error::Device(format!("cuda:{ordinal}: this build of the engine has no CUDA operations yet")))
    }

    /// `"cuda:0"`, ...
    pub fn name(&self) -> String {
        format!("cuda:{}", self.ordinal)
    }

    /// The precision of activations.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// What the memory pool holds.
    pub fn memory(&self) -> PoolReport {
        PoolReport::default()
    }

    /// Starts a new measurement of the peak.
    pub fn reset_peak(&self) {}

    /// Waits for the device.
    pub fn synchronise(&self) -> Result<()> {
        Ok(())
    }

    /// A buffer of `bytes` from the pool, contents unspecified.
    pub fn allocate(self: &Arc<Self>, _bytes: usize) -> Result<CudaBuffer> {
        Err(self.missing("allocation"))
    }

    /// The error of an operation that has no CUDA implementation.
    pub fn missing(&self, op: &'static str) -> Error {
        Error::Unsupported { op, device: self.name() }
    }
}

/// A range of GPU memory. Dropping one that came from the pool gives it back; a part keeps its whole alive.
#[derive(Debug)]
pub struct CudaBuffer {
    address: u64,
    bytes: usize,
    /// The buffer this is a part of, kept alive by it.
    #[expect(dead_code, reason = "held for its lifetime only")]
    whole: Option<Arc<Storage>>,
}

impl CudaBuffer {
    /// Device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The `bytes` bytes at `offset` of `whole`, whose buffer this is.
    ///
    /// # Safety
    /// As for [`Storage::part`].
    pub(crate) unsafe fn part(&self, whole: Arc<Storage>, offset: usize, bytes: usize) -> Self {
        Self { address: self.address + offset as u64, bytes, whole: Some(whole) }
    }

    /// Copies `source` to the start of the buffer.
    pub fn upload(&mut self, _source: &[u8]) -> Result<()> {
        Err(Error::Device("upload: no CUDA".into()))
    }

    /// Copies the start of the buffer to `target`.
    pub fn download(&self, _target: &mut [u8]) -> Result<()> {
        Err(Error::Device("download: no CUDA".into()))
    }

    /// Copies all of `source`, which is as long.
    pub fn copy_from(&mut self, _source: &Self) -> Result<()> {
        Err(Error::Device("copy: no CUDA".into()))
    }

    /// Sets all bytes to zero.
    pub fn zero(&mut self) -> Result<()> {
        Err(Error::Device("zero: no CUDA".into()))
    }
}
