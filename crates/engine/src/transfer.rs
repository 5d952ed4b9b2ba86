//! Data on their way to and from the device: [`Feed`] uploads a batch beside the step before it, [`Readback`] reads
//! results once the device has come to them. On the CPU both are plain copies.

use std::time::{Duration, Instant};

use crate::cuda::{self, CudaBuffer};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::{DType, Element, Storage, Tensor};

/// One tensor to be uploaded.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    shape: Shape,
    dtype: DType,
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    /// `values` in `shape`.
    pub fn new<T: Element>(shape: impl Into<Shape>, values: &'a [T]) -> Result<Self> {
        let shape = shape.into();
        if shape.len() != values.len() {
            return Err(Error::shape("upload", format!("{} values for shape {shape}", values.len())));
        }
        Ok(Self { shape, dtype: T::DTYPE, bytes: bytemuck::cast_slice(values) })
    }
}

/// Uploads batches.
#[derive(Debug)]
pub struct Feed {
    device: Device,
    feed: Option<gpu::Feed>,
}

impl Feed {
    /// A feed of `device`.
    pub fn new(device: &Device) -> Result<Self> {
        let feed = match device {
            Device::Cpu(_) => None,
            Device::Cuda(cuda) => Some(gpu::Feed::new(cuda.context())?),
        };
        Ok(Self { device: device.clone(), feed })
    }

    /// The parts as tensors on the device. What lies in [`HostMemory`] must stay as it is until [`Feed::finish`].
    pub fn upload(&mut self, parts: &[Part<'_>]) -> Result<Vec<Tensor>> {
        let Some(feed) = &mut self.feed else {
            let copy = |part: &Part<'_>| {
                let mut tensor = Tensor::empty(&self.device, part.shape, part.dtype)?;
                tensor.write_bytes(part.bytes)?;
                Ok(tensor)
            };
            return parts.iter().map(copy).collect();
        };
        let bytes: Vec<&[u8]> = parts.iter().map(|part| part.bytes).collect();
        let (buffer, views) = feed.upload(&bytes)?;
        let tensor = |(part, view): (&Part<'_>, gpu::View)| {
            let storage = Storage::Cuda(CudaBuffer::shared(buffer.clone(), view));
            Tensor::from_storage(part.shape, part.dtype, storage)
        };
        Ok(parts.iter().zip(views).map(tensor).collect())
    }

    /// Says that all work on the last upload has been issued, and waits until its data have been read.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.feed {
            Some(feed) => Ok(feed.finish()?),
            None => Ok(()),
        }
    }
}

/// Host memory from which uploads run beside the device's work.
#[derive(Debug)]
pub enum HostMemory {
    /// Ordinary memory.
    Plain(Vec<u8>),
    /// Page-locked memory.
    Locked(gpu::HostBuffer),
}

impl AsRef<[u8]> for HostMemory {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Locked(bytes) => bytes,
        }
    }
}

impl AsMut<[u8]> for HostMemory {
    fn as_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Locked(bytes) => bytes,
        }
    }
}

/// Results on their way to the host.
#[derive(Debug)]
pub struct Readback {
    types: Vec<DType>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Host(Vec<Vec<f32>>),
    Device(gpu::Readback),
}

impl Readback {
    /// Whether all of it has arrived.
    pub fn is_ready(&self) -> Result<bool> {
        match &self.source {
            Source::Host(_) => Ok(true),
            Source::Device(readback) => Ok(readback.is_ready()?),
        }
    }

    /// The elements of tensor `index` as float32; waits for them.
    pub fn floats(&self, index: usize) -> Result<Vec<f32>> {
        match &self.source {
            Source::Host(values) => Ok(values.get(index).cloned().unwrap_or_default()),
            Source::Device(readback) => {
                let bytes = readback.bytes(index)?;
                Ok(match self.types.get(index) {
                    Some(DType::Bf16) => {
                        let values = bytes.as_chunks::<2>().0.iter();
                        values.map(|&pair| f32::from(half::bf16::from_le_bytes(pair))).collect()
                    }
                    _ => bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four)).collect(),
                })
            }
        }
    }
}

/// A moment in the work of a device.
#[derive(Debug)]
pub enum Mark {
    /// The processor's: now.
    Host(Instant),
    /// A GPU's: when it gets there.
    Device(gpu::Event),
}

impl Mark {
    /// How long the device took from `earlier` to here; waits for it.
    pub fn since(&self, earlier: &Self) -> Result<Duration> {
        match (self, earlier) {
            (Self::Host(end), Self::Host(start)) => Ok(end.duration_since(*start)),
            (Self::Device(end), Self::Device(start)) => {
                Ok(Duration::from_secs_f64(end.milliseconds_since(start)?.max(0.0) / 1e3))
            }
            _ => Err(Error::Device("two moments of different devices have no distance".to_owned())),
        }
    }
}

impl Device {
    /// The moment at which the work issued so far is done.
    pub fn mark(&self) -> Result<Mark> {
        match self {
            Self::Cpu(_) => Ok(Mark::Host(Instant::now())),
            Self::Cuda(device) => {
                let event = gpu::Event::new(device.context())?;
                event.record()?;
                Ok(Mark::Device(event))
            }
        }
    }

    /// Begins to copy `tensors` (f32 or bf16) to the host, as they are after the work issued so far.
    pub fn read_later(&self, tensors: &[&Tensor]) -> Result<Readback> {
        let types = tensors.iter().map(|tensor| tensor.dtype()).collect();
        let source = match self {
            Self::Cpu(_) => {
                Source::Host(tensors.iter().map(|tensor| tensor.to_f32()).collect::<Result<Vec<_>>>()?)
            }
            Self::Cuda(device) => {
                let views = tensors.iter().map(|tensor| cuda::view(tensor)).collect::<Result<Vec<_>>>()?;
                // SAFETY: the tensors are alive, and memory given back is written again only by later work.
                Source::Device(unsafe { device.context().begin_read(&views) }?)
            }
        };
        Ok(Readback { types, source })
    }

    /// Host memory of `bytes`, for data that are to be uploaded.
    pub fn host_memory(&self, bytes: usize) -> Result<HostMemory> {
        match self {
            Self::Cpu(_) => Ok(HostMemory::Plain(vec![0; bytes])),
            Self::Cuda(device) => Ok(HostMemory::Locked(device.context().allocate_host(bytes)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_arrive_and_results_come_back() {
        let device = Device::cpu();
        let mut feed = Feed::new(&device).unwrap();
        let parts =
            [Part::new([2, 2], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap(), Part::new([3], &[7_u8; 3]).unwrap()];
        let tensors = feed.upload(&parts).unwrap();
        feed.finish().unwrap();
        assert_eq!(tensors[0].dims(), [2, 2]);
        assert_eq!(tensors[1].to_vec::<u8>().unwrap(), [7; 3]);
        let readback = device.read_later(&[&tensors[0]]).unwrap();
        assert!(readback.is_ready().unwrap());
        assert_eq!(readback.floats(0).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert!(Part::new([3], &[1.0_f32]).is_err());
        let mut memory = device.host_memory(5).unwrap();
        memory.as_mut().fill(3);
        assert_eq!(memory.as_ref(), [3; 5]);
    }
}
