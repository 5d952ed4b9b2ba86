//! A caching pool of host memory. A training step asks for the same sizes in the same order every time, so free
//! buffers are kept by size class and handed out again: after the first step nothing is allocated, and no page is
//! touched for the first time.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::host_memory;
use crate::tensor::Storage;

/// Alignment of every buffer in bytes: a cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Requests of so many bytes are compared with what the machine has free.
const LARGE: usize = 1 << 26;

/// What a pool holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolReport {
    /// In use now.
    pub in_use: usize,
    /// Most that was ever in use (since the peak was last reset).
    pub peak: usize,
    /// Held from the system, in use or not.
    pub reserved: usize,
    /// How often the system was asked for memory.
    pub allocations: usize,
}

/// The pool. See the module's first lines.
#[derive(Debug, Default)]
pub struct CpuPool {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: HashMap<usize, Vec<Block>>,
    report: PoolReport,
}

#[derive(Debug)]
struct Block(NonNull<u8>);

// SAFETY: a block is plain memory that nobody refers to while it lies in the pool.
unsafe impl Send for Block {}

impl CpuPool {
    /// An empty pool.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// A buffer of at least `bytes` bytes. Its contents are unspecified (but initialised).
    pub fn allocate(self: &Arc<Self>, bytes: usize) -> Result<CpuBuffer> {
        let capacity = size_class(bytes);
        let mut state = self.lock();
        let block = match state.free.get_mut(&capacity).and_then(Vec::pop) {
            Some(block) => block,
            None => {
                let out_of_memory = Error::OutOfMemory {
                    device: "cpu".into(),
                    needed: capacity,
                    in_use: state.report.in_use,
                };
                let Ok(layout) = Layout::from_size_align(capacity, ALIGNMENT) else {
                    return Err(out_of_memory);
                };
                // The system promises more memory than it has, and ends the process that then uses it.
                if capacity >= LARGE && host_memory::available().is_some_and(|free| free < capacity as u64) {
                    return Err(out_of_memory);
                }
                // SAFETY: the size is not zero (`size_class` is at least one alignment).
                let Some(address) = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }) else {
                    return Err(out_of_memory);
                };
                state.report.reserved += capacity;
                state.report.allocations += 1;
                Block(address)
            }
        };
        state.report.in_use += capacity;
        state.report.peak = state.report.peak.max(state.report.in_use);
        Ok(CpuBuffer { address: block.0, bytes, origin: Origin::Pool(Arc::clone(self), capacity) })
    }

    /// What the pool holds.
    pub fn report(&self) -> PoolReport {
        self.lock().report
    }

    /// Starts a new measurement of the peak.
    pub fn reset_peak(&self) {
        let mut state = self.lock();
        state.report.peak = state.report.in_use;
    }

    /// Gives all free buffers back to the system.
    pub fn trim(&self) {
        let mut state = self.lock();
        for (capacity, blocks) in std::mem::take(&mut state.free) {
            for block in blocks {
                state.report.reserved -= capacity;
                release(block.0, capacity);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CpuPool {
    fn drop(&mut self) {
        self.trim();
    }
}

fn release(address: NonNull<u8>, capacity: usize) {
    if let Ok(layout) = Layout::from_size_align(capacity, ALIGNMENT) {
        // SAFETY: allocated with this very layout in `allocate`, and nobody refers to it any more.
        unsafe { std::alloc::dealloc(address.as_ptr(), layout) }
    }
}

/// Rounds up to one of eight steps per power of two (at most 12.5 % more), so that nearly equal requests share.
fn size_class(bytes: usize) -> usize {
    let bytes = bytes.max(ALIGNMENT);
    let step = (bytes.checked_next_power_of_two().unwrap_or(1 << (usize::BITS - 1)) / 16).max(ALIGNMENT);
    bytes.checked_next_multiple_of(step).unwrap_or(usize::MAX)
}

/// A range of host memory. Dropping one that came from the pool gives it back; a part keeps its whole alive.
#[derive(Debug)]
pub struct CpuBuffer {
    address: NonNull<u8>,
    bytes: usize,
    origin: Origin,
}

#[derive(Debug)]
enum Origin {
    /// From this pool, with this capacity.
    Pool(Arc<CpuPool>, usize),
    /// A part of another buffer.
    Part(#[expect(dead_code, reason = "held for its lifetime only")] Arc<Storage>),
}

// SAFETY: the buffer owns its range exclusively (parts are disjoint, see `Storage::part`).
unsafe impl Send for CpuBuffer {}
// SAFETY: shared references give shared access only.
unsafe impl Sync for CpuBuffer {}

impl CpuBuffer {
    /// Where it lies.
    pub(crate) fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the range is allocated, initialised and owned by `self`.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.bytes) }
    }

    /// The bytes, for writing.
    pub(crate) fn as_mut_bytes(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.bytes) }
    }

    /// The `bytes` bytes at `offset` of `whole`, whose buffer this is.
    ///
    /// # Safety
    /// As for [`Storage::part`].
    pub(crate) unsafe fn part(&self, whole: Arc<Storage>, offset: usize, bytes: usize) -> Self {
        assert!(offset + bytes <= self.bytes, "a part must lie within its buffer");
        // SAFETY: within the allocation by the check above.
        let address = unsafe { self.address.add(offset) };
        Self { address, bytes, origin: Origin::Part(whole) }
    }
}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        if let Origin::Pool(pool, capacity) = &self.origin {
            let mut state = pool.lock();
            state.report.in_use -= capacity;
            state.free.entry(*capacity).or_default().push(Block(self.address));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_waste_at_most_an_eighth_and_are_aligned() {
        for bytes in [1, 63, 64, 65, 1000, 4097, 123_456, 1 << 20, (1 << 20) + 1] {
            let class = size_class(bytes);
            assert!(class >= bytes && class.is_multiple_of(ALIGNMENT));
            assert!(class <= (bytes + bytes / 8).max(bytes + ALIGNMENT), "{bytes} -> {class}");
            assert_eq!(size_class(class), class);
        }
    }

    #[test]
    fn buffers_are_reused_and_counted() {
        let pool = CpuPool::new();
        let first = pool.allocate(1000).unwrap();
        let address = first.as_bytes().as_ptr();
        assert_eq!(address as usize % ALIGNMENT, 0);
        drop(first);
        let again = pool.allocate(990).unwrap();
        assert_eq!(again.as_bytes().as_ptr(), address);
        let report = pool.report();
        assert_eq!((report.allocations, report.in_use, report.peak), (1, 1024, 1024));
        drop(again);
        pool.trim();
        assert_eq!(pool.report().reserved, 0);
    }
}
