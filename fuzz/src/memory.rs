//! Counts what is allocated, its peak, and stops a parser that takes far too much.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// More than this is a blow-up; the input is kept and its process ends.
pub const LIMIT: usize = 1 << 30;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static IS_BEYOND: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_WATCHMAN: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator, counted.
pub struct Counting;

impl Counting {
    fn add(&self, bytes: usize) {
        let now = CURRENT.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PEAK.fetch_max(now, Ordering::Relaxed);
        if now > LIMIT && !IS_WATCHMAN.try_with(Cell::get).unwrap_or(true) {
            IS_BEYOND.store(true, Ordering::Relaxed);
            // The watchman keeps the input and ends the process; until then nothing more is taken.
            loop {
                std::thread::park();
            }
        }
    }
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.add(size);
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Lets this thread allocate whatever others did.
pub fn be_watchman() {
    IS_WATCHMAN.set(true);
}

/// Whether a parser took more than [`LIMIT`].
pub fn is_beyond() -> bool {
    IS_BEYOND.load(Ordering::Relaxed)
}

/// Begins to look for a peak; what is allocated now.
pub fn begin() -> usize {
    let before = CURRENT.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    before
}

/// The most that was allocated since, more than `before`.
pub fn peak_since(before: usize) -> usize {
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
}
