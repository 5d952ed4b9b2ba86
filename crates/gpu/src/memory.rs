//! Device memory: buffers from a caching pool, to which they return, and copies.
//!
//! A training step asks for the same sizes in the same order every time, so from the second step on nothing is asked of
//! the driver. All work is in one stream, so a piece may be handed out again as soon as its owner drops it.
//!
//! With `EQUICAPS_SEPARATE_BUFFERS=1` every buffer is an allocation of the driver's, which is slow, but lets a memory
//! checker see where it ends and whether it was written before it is read.

mod pool;

use std::sync::OnceLock;

use crate::driver::{DevicePointer, Handle, OUT_OF_MEMORY};
use crate::graph::uses_scratch;
use crate::{Context, Error, Result};

pub use pool::MemoryUse;
pub(crate) use pool::Pool;

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
    /// Not a piece of the pool.
    is_separate: bool,
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
        if !self.is_separate {
            self.context.pool(self.is_scratch).give_back(self.address);
        } else if self.context.synchronize().is_ok() {
            // SAFETY: the allocation is ours, and the work that used it is done.
            unsafe { (self.context.driver().memory_free)(self.address) };
        }
    }
}

/// Whether buffers are allocations of their own.
fn are_separate() -> bool {
    static ARE: OnceLock<bool> = OnceLock::new();
    *ARE.get_or_init(|| std::env::var_os("EQUICAPS_SEPARATE_BUFFERS").is_some_and(|value| value == "1"))
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
    /// Copies `data` to the start of `target`. Data in a [`HostBuffer`](crate::HostBuffer) must stay unchanged until the
    /// stream gets there; other data has been read when this returns.
    ///
    /// # Safety
    /// `target` must be memory of this device that is alive; and see above.
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
        let is_scratch = uses_scratch();
        let is_separate = are_separate();
        let buffer = |address| Buffer { context: self.clone(), address, bytes, is_scratch, is_separate };
        if is_separate {
            self.bind()?;
            let mut address = 0;
            // SAFETY: writes one address.
            let status = unsafe { (self.driver().memory_allocate)(&mut address, bytes.max(1)) };
            self.driver().check("cuMemAlloc", status)?;
            return Ok(buffer(address));
        }
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
