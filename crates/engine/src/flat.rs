//! One buffer cut into aligned parts: the parts are tensors that operations read and write one by one, the whole is
//! what Adam, a checkpoint or an all-reduce goes over in one sweep.

use std::ops::Range;
use std::sync::Arc;

use crate::collective::Memory;
use crate::cuda::storage_view;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::{DType, Storage, Tensor};

/// Elements to which every part is aligned.
pub const PART_ALIGNMENT: usize = 64;

/// A flat float buffer and its parts, zero at first.
#[derive(Debug)]
pub struct FlatBuffer {
    what: &'static str,
    len: usize,
    dtype: DType,
    whole: Arc<Storage>,
    /// The parts, in order. They are disjoint and cover everything but the gaps between them.
    parts: Vec<Tensor>,
    /// Where each part starts, in elements, and where the last ends.
    offsets: Vec<usize>,
}

impl FlatBuffer {
    /// Zeros for parts of these shapes.
    pub fn zeros(what: &'static str, device: &Device, shapes: &[Shape], dtype: DType) -> Result<Self> {
        let len = offsets(shapes).last().copied().unwrap_or(0);
        let whole = Tensor::zeros(device, [len], dtype)?;
        let whole = whole.into_storage();
        let parts = shapes
            .iter()
            .zip(offsets(shapes))
            .map(|(&shape, offset)| {
                let (start, bytes) = (offset * dtype.size(), shape.len() * dtype.size());
                // SAFETY: the ranges are disjoint by construction of `offsets`; the whole is private and written
                // only through `whole_mut`, which checks that nobody holds a part.
                let storage = unsafe { Storage::part(&whole, start, bytes) };
                Tensor::from_storage(shape, dtype, storage)
            })
            .collect();
        Ok(Self { what, len, dtype, whole, parts, offsets: offsets(shapes) })
    }

    /// Where each part starts, in elements, and after the last the length of the whole.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Part `index`.
    pub fn part(&self, index: usize) -> &Tensor {
        &self.parts[index]
    }

    /// Part `index`, for writing or for taking out a clone that will be written.
    pub fn part_mut(&mut self, index: usize) -> &mut Tensor {
        &mut self.parts[index]
    }

    /// An error while anybody holds one of these parts, or one is lent out.
    fn check_free(&mut self, parts: Range<usize>) -> Result<()> {
        let is_held = |part: &mut Tensor| !part.is_unique() || matches!(part.storage(), Storage::Nothing);
        if self.parts[parts].iter_mut().any(is_held) {
            return Err(Error::Shared { what: format!("the flat buffer of {}", self.what) });
        }
        Ok(())
    }

    /// Some parts that lie side by side, for writing: an error while anybody holds one of them, or one is lent out.
    pub(crate) fn span_mut(&mut self, parts: Range<usize>) -> Result<Memory<'_>> {
        self.check_free(parts.clone())?;
        let size = self.dtype.size();
        let (start, end) = (self.offsets[parts.start] * size, self.offsets[parts.end] * size);
        match &*self.whole {
            Storage::Cpu(buffer) => {
                // SAFETY: `offsets` lie within the whole; `self` is borrowed exclusively and nobody else refers to these
                // parts. The address is the allocation's own.
                let bytes = unsafe {
                    std::slice::from_raw_parts_mut(buffer.address().add(start).as_ptr(), end - start)
                };
                Ok(Memory::Host(bytes))
            }
            device => Ok(Memory::Device(storage_view(device)?.part(start, end - start)?)),
        }
    }

    /// The whole for writing: an error while anybody holds a part, or one is lent out.
    pub fn whole_mut(&mut self) -> Result<WholeMut<'_>> {
        self.check_free(0..self.parts.len())?;
        Ok(WholeMut { buffer: self })
    }
}

/// Exclusive access to a whole [`FlatBuffer`].
#[derive(Debug)]
pub struct WholeMut<'a> {
    buffer: &'a mut FlatBuffer,
}

impl WholeMut<'_> {
    /// All elements, for a buffer on the CPU.
    pub fn as_mut_slice(&mut self) -> Result<&mut [f32]> {
        match &*self.buffer.whole {
            Storage::Cpu(buffer) if self.buffer.dtype == DType::F32 => {
                let len = self.buffer.len;
                // SAFETY: aligned to 64 bytes and at least `len` floats long; `self` borrows the flat buffer
                // exclusively and no part is referred to by anybody else. The address is the allocation's own, not one
                // of a shared slice, through which nothing may be written.
                Ok(unsafe { std::slice::from_raw_parts_mut(buffer.address().cast::<f32>().as_ptr(), len) })
            }
            _ => Err(Error::WrongDevice { what: self.buffer.what.into(), device: "another device".into() }),
        }
    }

    /// The memory of the whole; a device writes through its address.
    pub fn storage(&mut self) -> &Storage {
        &self.buffer.whole
    }
}

/// Where each part starts, in elements, and after the last the length of the whole.
fn offsets(shapes: &[Shape]) -> Vec<usize> {
    let mut offset: usize = 0;
    let mut all = Vec::with_capacity(shapes.len() + 1);
    for shape in shapes {
        all.push(offset);
        let length = shape.len().checked_next_multiple_of(PART_ALIGNMENT).unwrap_or(usize::MAX);
        offset = offset.saturating_add(length);
    }
    all.push(offset);
    all
}
