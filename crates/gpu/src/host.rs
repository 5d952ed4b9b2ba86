//! Page-locked host memory: copies from and to it run beside the device's work. Taking it from the driver is slow, so
//! pieces are kept and handed out again.
//!
//! A copy from ordinary memory makes the host wait for the device, unless it is small; larger ones therefore go through
//! a page-locked piece.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_void;

use crate::driver::{Driver, Handle, NOT_READY};
use crate::{Context, Result, View};

/// Pieces of at most this size have a power of two as size; larger ones a multiple of it.
const LARGE: usize = 1 << 20;

/// The page-locked memory of a context.
#[derive(Debug, Default)]
pub(crate) struct HostPool {
    free: HashMap<usize, Vec<Piece>>,
    /// All pieces by address, with their sizes.
    pieces: BTreeMap<usize, usize>,
    /// Pieces that are being copied from.
    staged: VecDeque<Staged>,
}

/// A piece that the device copies from until it reaches the event.
#[derive(Debug)]
struct Staged {
    piece: Piece,
    capacity: usize,
    done: Handle,
}

// SAFETY: an event handle may be used from any thread.
unsafe impl Send for Staged {}

/// Copies of at most this size do not make the host wait.
const SMALL_COPY: usize = 64 << 10;
/// Copies of more than this size are not worth a second copy on the host.
const LARGE_COPY: usize = 64 << 20;
/// Copies that may be under way.
const MOST_STAGED: usize = 64;
/// CU_EVENT_DISABLE_TIMING
const UNTIMED: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct Piece(*mut u8);

// SAFETY: plain memory that nobody refers to while it lies in the pool.
unsafe impl Send for Piece {}

fn capacity_for(bytes: usize) -> usize {
    if bytes <= LARGE { bytes.next_power_of_two().max(4096) } else { bytes.next_multiple_of(LARGE) }
}

impl HostPool {
    fn contains(&self, address: usize, bytes: usize) -> bool {
        let before = self.pieces.range(..=address).next_back();
        before.is_some_and(|(start, length)| address + bytes <= start + length)
    }

    /// Hands everything back to the driver; for the end of a context.
    pub(crate) fn release_all(&mut self, driver: &Driver) {
        for staged in self.staged.drain(..) {
            // SAFETY: the stream's work is done; both are ours and not used again.
            unsafe {
                (driver.event_destroy)(staged.done);
                (driver.host_free)(staged.piece.0.cast());
            }
        }
        for piece in self.free.values().flatten() {
            // SAFETY: the piece came from the driver and nothing uses it any more.
            unsafe { (driver.host_free)(piece.0.cast()) };
        }
        *self = Self::default();
    }
}

/// Page-locked host memory; goes back to the pool when dropped, after a wait for copies that may be under way.
#[derive(Debug)]
pub struct HostBuffer {
    context: Context,
    pointer: *mut u8,
    bytes: usize,
    /// No copy is under way.
    is_settled: bool,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for HostBuffer {}
// SAFETY: shared access is read-only.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// Says that no copy is under way, nor will be.
    pub(crate) fn settle(&mut self) {
        self.is_settled = true;
    }
}

impl std::ops::Deref for HostBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the pointer is valid for `bytes`, which were initialised when the driver gave them.
        unsafe { std::slice::from_raw_parts(self.pointer, self.bytes) }
    }
}

impl std::ops::DerefMut for HostBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and we are its only user.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if !self.is_settled {
            let _ = self.context.synchronize();
        }
        let piece = Piece(self.pointer);
        self.context.host_pool().free.entry(capacity_for(self.bytes)).or_default().push(piece);
    }
}

impl Context {
    /// Page-locked host memory of `bytes` with arbitrary contents.
    pub fn allocate_host(&self, bytes: usize) -> Result<HostBuffer> {
        let capacity = capacity_for(bytes);
        let mut pool = self.host_pool();
        if let Some(Piece(pointer)) = pool.free.get_mut(&capacity).and_then(Vec::pop) {
            return Ok(HostBuffer { context: self.clone(), pointer, bytes, is_settled: false });
        }
        self.bind()?;
        let driver = self.driver();
        let mut pointer: *mut c_void = std::ptr::null_mut();
        // SAFETY: writes one pointer, to at least `capacity` bytes.
        driver.check("cuMemHostAlloc", unsafe { (driver.host_allocate)(&mut pointer, capacity, 0) })?;
        // SAFETY: as above.
        unsafe { std::ptr::write_bytes(pointer.cast::<u8>(), 0, capacity) };
        pool.pieces.insert(pointer as usize, capacity);
        Ok(HostBuffer { context: self.clone(), pointer: pointer.cast(), bytes, is_settled: false })
    }

    /// Whether a copy of `data` should go through a page-locked piece.
    pub(crate) fn wants_staging(&self, data: &[u8]) -> bool {
        (SMALL_COPY + 1..=LARGE_COPY).contains(&data.len()) && !self.is_host_memory(data)
    }

    /// Copies `data` to `target` by way of a page-locked piece, in the order of the context's stream.
    ///
    /// # Safety
    /// `target` must be memory of this device that is alive.
    pub(crate) unsafe fn write_staged(&self, target: View, data: &[u8]) -> Result<()> {
        self.bind()?;
        let driver = self.driver();
        let mut reusable = None;
        {
            let mut pool = self.host_pool();
            while let Some(staged) = pool.staged.front() {
                let must_wait = pool.staged.len() >= MOST_STAGED;
                // SAFETY: the event is alive.
                let status = unsafe {
                    if must_wait {
                        (driver.event_synchronize)(staged.done)
                    } else {
                        (driver.event_query)(staged.done)
                    }
                };
                if status == NOT_READY {
                    break;
                }
                driver.check("cuEventQuery", status)?;
                if let Some(Staged { piece, capacity, done }) = pool.staged.pop_front() {
                    pool.free.entry(capacity).or_default().push(piece);
                    if let Some(spare) = reusable.replace(done) {
                        // SAFETY: ours and not used again.
                        unsafe { (driver.event_destroy)(spare) };
                    }
                }
            }
        }
        let mut piece = self.allocate_host(data.len())?;
        piece.copy_from_slice(data);
        // SAFETY: the piece is kept until the device has reached the event.
        unsafe { self.write_on(self.stream(), target, &piece)? };
        let mut done = reusable.unwrap_or(std::ptr::null_mut());
        // SAFETY: writes one handle; the stream is alive.
        unsafe {
            if done.is_null() {
                driver.check("cuEventCreate", (driver.event_create)(&mut done, UNTIMED))?;
            }
            driver.check("cuEventRecord", (driver.event_record)(done, self.stream()))?;
        }
        let staged = Staged { piece: Piece(piece.pointer), capacity: capacity_for(piece.bytes), done };
        // It comes back to the pool by way of the queue, not by being dropped.
        std::mem::forget(piece);
        self.host_pool().staged.push_back(staged);
        Ok(())
    }

    /// Whether `data` lies in page-locked memory of this context.
    pub(crate) fn is_host_memory(&self, data: &[u8]) -> bool {
        self.host_pool().contains(data.as_ptr() as usize, data.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_inside_pieces_only() {
        let mut pool = HostPool::default();
        pool.pieces.extend([(1000, 100), (2000, 50)]);
        assert!(pool.contains(1000, 100) && pool.contains(1099, 1) && pool.contains(2010, 40));
        assert!(!pool.contains(999, 1) && !pool.contains(1099, 2) && !pool.contains(2051, 1));
    }

    #[test]
    fn sizes_fall_into_few_classes() {
        assert_eq!(capacity_for(1), 4096);
        assert_eq!(capacity_for(5000), 8192);
        assert_eq!(capacity_for(LARGE + 1), 2 * LARGE);
    }
}
