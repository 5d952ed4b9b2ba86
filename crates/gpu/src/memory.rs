//! Device memory: a caching pool, buffers that return to it, and copies.
//!
//! The pool takes large segments from the driver and hands out pieces of them: the smallest free piece that is large
//! enough, split where much is left, joined with free neighbours when it comes back. A training step asks for the same
//! sizes in the same order every time, so from the second step on nothing is asked of the driver. All work is in one
//! stream, so a piece may be handed out again as soon as its owner drops it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use crate::driver::{DevicePointer, Driver, Handle, OUT_OF_MEMORY};
use crate::{Context, Error, Result};

/// Every piece starts at, and is, a multiple of this: enough for any vector access and for cuDNN.
const GRANULE: usize = 512;
/// Pieces up to this size live in segments of their own, so that they do not break up the large ones.
const SMALL: usize = 1 << 20;
/// Segments of small pieces.
const SMALL_SEGMENT: usize = 16 << 20;
/// Segments of large pieces are at least this large, and a multiple of it.
const LARGE_SEGMENT: usize = 64 << 20;

/// How much device memory is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MemoryUse {
    /// Bytes in buffers now.
    pub current_bytes: usize,
    /// Most bytes in buffers at any time since the last reset.
    pub peak_bytes: usize,
    /// Bytes taken from the driver.
    pub reserved_bytes: usize,
    /// How often the driver was asked for memory.
    pub driver_allocations: usize,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: usize,
    is_free: bool,
    /// First piece of its segment: never joined with the piece before it.
    starts_segment: bool,
    is_small: bool,
}

/// Bookkeeping of the device memory of one context; knows addresses only.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pieces: BTreeMap<DevicePointer, Piece>,
    /// Free pieces by (small, size, address).
    free: BTreeSet<(bool, usize, DevicePointer)>,
    usage: MemoryUse,
}

fn round_up(bytes: usize, multiple: usize) -> usize {
    bytes.div_ceil(multiple).max(1) * multiple
}

impl Pool {
    /// A free piece of at least `bytes`, if the pool has one.
    fn take(&mut self, bytes: usize) -> Option<DevicePointer> {
        let bytes = round_up(bytes, GRANULE);
        let is_small = bytes <= SMALL;
        let &(_, size, address) =
            self.free.range((is_small, bytes, 0)..).next().filter(|piece| piece.0 == is_small)?;
        self.free.remove(&(is_small, size, address));
        let piece = self.pieces.get_mut(&address)?;
        piece.is_free = false;
        piece.bytes = bytes;
        if size > bytes {
            let rest = address + bytes as u64;
            self.pieces
                .insert(rest, Piece { bytes: size - bytes, is_free: true, starts_segment: false, is_small });
            self.free.insert((is_small, size - bytes, rest));
        }
        self.usage.current_bytes += bytes;
        self.usage.peak_bytes = self.usage.peak_bytes.max(self.usage.current_bytes);
        Some(address)
    }

    /// Bytes to ask the driver for when no free piece of `bytes` is left.
    fn segment_for(bytes: usize) -> usize {
        let bytes = round_up(bytes, GRANULE);
        if bytes <= SMALL { SMALL_SEGMENT } else { round_up(bytes, LARGE_SEGMENT) }
    }

    fn add_segment(&mut self, address: DevicePointer, bytes: usize) {
        let is_small = bytes == SMALL_SEGMENT;
        self.pieces.insert(address, Piece { bytes, is_free: true, starts_segment: true, is_small });
        self.free.insert((is_small, bytes, address));
        self.usage.reserved_bytes += bytes;
        self.usage.driver_allocations += 1;
    }

    /// Takes a piece back.
    fn give_back(&mut self, address: DevicePointer) {
        let Some(mut piece) = self.pieces.remove(&address) else { return };
        self.usage.current_bytes -= piece.bytes;
        let mut start = address;
        if !piece.starts_segment
            && let Some((&before, &left)) = self.pieces.range(..address).next_back()
            && left.is_free
            && before + left.bytes as u64 == address
        {
            self.pieces.remove(&before);
            self.free.remove(&(left.is_small, left.bytes, before));
            piece = Piece { bytes: left.bytes + piece.bytes, ..left };
            start = before;
        }
        let end = start + piece.bytes as u64;
        if let Some(&right) = self.pieces.get(&end)
            && right.is_free
            && !right.starts_segment
        {
            self.pieces.remove(&end);
            self.free.remove(&(right.is_small, right.bytes, end));
            piece.bytes += right.bytes;
        }
        piece.is_free = true;
        self.pieces.insert(start, piece);
        self.free.insert((piece.is_small, piece.bytes, start));
    }

    /// Removes segments that are wholly free; returns their addresses.
    fn remove_free_segments(&mut self) -> Vec<DevicePointer> {
        let mut removed = Vec::new();
        for (&address, piece) in &self.pieces {
            let end = address + piece.bytes as u64;
            let is_whole =
                piece.starts_segment && self.pieces.get(&end).is_none_or(|next| next.starts_segment);
            if piece.is_free && is_whole {
                removed.push(address);
            }
        }
        for address in &removed {
            if let Some(piece) = self.pieces.remove(address) {
                self.free.remove(&(piece.is_small, piece.bytes, *address));
                self.usage.reserved_bytes -= piece.bytes;
            }
        }
        removed
    }

    /// Hands everything back to the driver; for the end of a context.
    pub(crate) fn release_all(&mut self, driver: &Driver) {
        for (&address, piece) in &self.pieces {
            if piece.starts_segment {
                // SAFETY: the segment came from the driver, and its context ends.
                unsafe { (driver.memory_free)(address) };
            }
        }
        *self = Self::default();
    }
}

/// A range of device memory, without keeping it alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The device address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub bytes: usize,
}

/// A piece of device memory; goes back to the pool when dropped.
#[derive(Debug)]
pub struct Buffer {
    context: Context,
    address: DevicePointer,
    bytes: usize,
    is_scratch: bool,
}

impl Buffer {
    /// The device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it lives.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The range of the whole buffer.
    pub fn view(&self) -> View {
        View { address: self.address, bytes: self.bytes }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.context.pool(self.is_scratch).give_back(self.address);
    }
}

impl View {
    /// The `bytes` bytes from `offset` on.
    pub fn part(self, offset: usize, bytes: usize) -> Result<Self> {
        self.require("a part", offset.saturating_add(bytes))?;
        Ok(Self { address: self.address + offset as u64, bytes })
    }

    fn require(&self, what: &'static str, need: usize) -> Result<()> {
        if need > self.bytes { Err(Error::BufferTooSmall { what, have: self.bytes, need }) } else { Ok(()) }
    }
}

impl Context {
    /// Copies `data` to the start of `target`. Data in a [`HostBuffer`] must stay unchanged until the stream gets
    /// there; other data has been read when this returns.
    ///
    /// # Safety
    /// `target` must be memory of this device that is alive.
    pub unsafe fn write(&self, target: View, data: &[u8]) -> Result<()> {
        if self.wants_staging(data) {
            // SAFETY: passed on to the caller.
            return unsafe { self.write_staged(target, data) };
        }
        // SAFETY: passed on to the caller.
        unsafe { self.write_on(self.stream(), target, data) }
    }

    /// As [`Self::write`], in the order of another stream.
    ///
    /// # Safety
    /// As for [`Self::write`]; nothing on other streams may use `target` meanwhile.
    pub(crate) unsafe fn write_on(&self, stream: Handle, target: View, data: &[u8]) -> Result<()> {
        target.require("a copy to the device", data.len())?;
        self.bind()?;
        let driver = self.driver();
        // SAFETY: both ranges are valid for the length.
        driver.check("cuMemcpyHtoDAsync", unsafe {
            (driver.copy_to_device)(target.address, data.as_ptr().cast(), data.len(), stream)
        })
    }

    /// Copies the start of `source` to `data`, and waits for it.
    ///
    /// # Safety
    /// `source` must be memory of this device that is alive.
    pub unsafe fn read(&self, source: View, data: &mut [u8]) -> Result<()> {
        source.require("a copy to the host", data.len())?;
        self.bind()?;
        let driver = self.driver();
        // SAFETY: both ranges are valid for the length; we wait before the borrow of `data` ends.
        driver.check("cuMemcpyDtoHAsync", unsafe {
            (driver.copy_to_host)(data.as_mut_ptr().cast(), source.address, data.len(), self.stream())
        })?;
        self.synchronize()
    }

    /// Copies all of `source` to the start of `target`.
    ///
    /// # Safety
    /// Both must be memory of this device that is alive.
    pub unsafe fn copy(&self, target: View, source: View) -> Result<()> {
        target.require("a copy on the device", source.bytes)?;
        self.bind()?;
        let driver = self.driver();
        // SAFETY: both ranges are valid for the length.
        driver.check("cuMemcpyDtoDAsync", unsafe {
            (driver.copy_on_device)(target.address, source.address, source.bytes, self.stream())
        })
    }

    /// Sets every 32-bit word to `word`.
    ///
    /// # Safety
    /// `target` must be memory of this device that is alive.
    pub unsafe fn fill_words(&self, target: View, word: u32) -> Result<()> {
        self.bind()?;
        let driver = self.driver();
        // SAFETY: the range is valid.
        driver.check("cuMemsetD32Async", unsafe {
            (driver.set_words)(target.address, word, target.bytes / 4, self.stream())
        })
    }

    /// Sets every byte to `value`.
    ///
    /// # Safety
    /// `target` must be memory of this device that is alive.
    pub unsafe fn fill(&self, target: View, value: u8) -> Result<()> {
        self.bind()?;
        let driver = self.driver();
        // SAFETY: the range is valid.
        driver.check("cuMemsetD8Async", unsafe {
            (driver.set_bytes)(target.address, value, target.bytes, self.stream())
        })
    }
}

impl Context {
    /// A buffer of `bytes` with arbitrary contents.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer> {
        let is_scratch = self.uses_scratch().load(Ordering::Relaxed);
        let buffer = |address| Buffer { context: self.clone(), address, bytes, is_scratch };
        if let Some(address) = self.pool(is_scratch).take(bytes) {
            return Ok(buffer(address));
        }
        self.bind()?;
        let driver = self.driver();
        let segment = Pool::segment_for(bytes);
        let mut address = 0;
        // SAFETY: writes one address.
        let mut status = unsafe { (driver.memory_allocate)(&mut address, segment) };
        if status == OUT_OF_MEMORY {
            // Give back what is not in use, once the device no longer works on it, and try again. Scratch memory stays:
            // graphs may use it.
            let free = self.pool(false).remove_free_segments();
            // SAFETY: the segments came from the driver and nothing uses them after the wait.
            unsafe {
                driver.check("cuStreamSynchronize", (driver.stream_synchronize)(self.stream()))?;
                for segment in free {
                    driver.check("cuMemFree", (driver.memory_free)(segment))?;
                }
                status = (driver.memory_allocate)(&mut address, segment);
            }
        }
        let held = || self.memory_use().current_bytes;
        if status == OUT_OF_MEMORY {
            let (mut free, mut total) = (0, 0);
            // SAFETY: writes two numbers.
            driver.check("cuMemGetInfo", unsafe { (driver.memory_info)(&mut free, &mut total) })?;
            return Err(Error::OutOfMemory { needed: bytes, free, total, held: held() });
        }
        driver.check("cuMemAlloc", status)?;
        let taken = {
            let mut pool = self.pool(is_scratch);
            pool.add_segment(address, segment);
            pool.take(bytes)
        };
        taken.map(buffer).ok_or_else(|| Error::OutOfMemory { needed: bytes, free: 0, total: 0, held: held() })
    }

    /// A buffer of `bytes`, all zero.
    pub fn allocate_zeroed(&self, bytes: usize) -> Result<Buffer> {
        let buffer = self.allocate(bytes)?;
        // SAFETY: the buffer is ours.
        unsafe { self.fill(buffer.view(), 0) }?;
        Ok(buffer)
    }

    /// A buffer with a copy of `data`.
    pub fn upload(&self, data: &[u8]) -> Result<Buffer> {
        let buffer = self.allocate(data.len())?;
        // SAFETY: the buffer is ours.
        unsafe { self.write(buffer.view(), data) }?;
        Ok(buffer)
    }

    /// How much memory this program's buffers use.
    pub fn memory_use(&self) -> MemoryUse {
        let (lasting, scratch) = (self.pool(false).usage, self.pool(true).usage);
        MemoryUse {
            current_bytes: lasting.current_bytes + scratch.current_bytes,
            // The two peaks may have been at different times; this is not less than the true one.
            peak_bytes: lasting.peak_bytes + scratch.peak_bytes,
            reserved_bytes: lasting.reserved_bytes + scratch.reserved_bytes,
            driver_allocations: lasting.driver_allocations + scratch.driver_allocations,
        }
    }

    /// Starts to look for a new peak.
    pub fn reset_peak(&self) {
        for is_scratch in [false, true] {
            let mut pool = self.pool(is_scratch);
            pool.usage.peak_bytes = pool.usage.current_bytes;
        }
    }

    /// Bytes free on the device now, the pool's own free pieces included.
    pub fn free_bytes(&self) -> Result<usize> {
        self.bind()?;
        let driver = self.driver();
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers.
        driver.check("cuMemGetInfo", unsafe { (driver.memory_info)(&mut free, &mut total) })?;
        let usage = self.memory_use();
        Ok(free + usage.reserved_bytes - usage.current_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool over made-up addresses.
    fn allocate(pool: &mut Pool, next_segment: &mut u64, bytes: usize) -> u64 {
        pool.take(bytes).unwrap_or_else(|| {
            let segment = Pool::segment_for(bytes);
            pool.add_segment(*next_segment, segment);
            *next_segment += segment as u64; // adjacent segments: must not be joined
            pool.take(bytes).unwrap()
        })
    }

    #[test]
    fn a_repeated_step_asks_for_nothing_new() {
        let (mut pool, mut next) = (Pool::default(), 1 << 30);
        let sizes = [3 << 20, 100, 700 << 20, 5, 64 << 20, 65 << 20, 1 << 20];
        let mut after_first = 0;
        for step in 0..4 {
            let held: Vec<u64> = sizes.iter().map(|&bytes| allocate(&mut pool, &mut next, bytes)).collect();
            for (i, a) in held.iter().enumerate() {
                for b in &held[i + 1..] {
                    assert_ne!(a, b);
                }
            }
            for address in held.iter().rev() {
                pool.give_back(*address);
            }
            assert_eq!(pool.usage.current_bytes, 0);
            if step == 0 {
                after_first = pool.usage.driver_allocations;
            }
            assert_eq!(pool.usage.driver_allocations, after_first);
        }
        let reserved = pool.usage.reserved_bytes;
        assert!(reserved < sizes.iter().sum::<usize>() + 6 * LARGE_SEGMENT);
        assert_eq!(pool.remove_free_segments().len(), after_first, "everything joins up again");
        assert_eq!(pool.usage.reserved_bytes, 0);
    }

    #[test]
    fn pieces_never_overlap() {
        let (mut pool, mut next) = (Pool::default(), 1 << 30);
        let mut held: Vec<(u64, usize)> = Vec::new();
        let mut state = 1u64;
        for _ in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = (state >> 33) as usize;
            if held.len() > 20 || (draw.is_multiple_of(3) && !held.is_empty()) {
                let (address, _) = held.swap_remove(draw % held.len());
                pool.give_back(address);
            } else {
                let bytes = 1 + draw % (8 << 20);
                held.push((allocate(&mut pool, &mut next, bytes), bytes));
            }
            let mut sorted = held.clone();
            sorted.sort_unstable();
            assert!(sorted.windows(2).all(|pair| pair[0].0 + pair[0].1 as u64 <= pair[1].0));
            let total: usize = held.iter().map(|piece| round_up(piece.1, GRANULE)).sum();
            assert_eq!(pool.usage.current_bytes, total);
        }
    }
}
