//! Sixteen floats in memory, their masks, and asking for memory early.

/// Floats of a [`Floats`].
pub const WIDTH: usize = 16;

/// Sixteen aligned floats in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Floats(pub [f32; WIDTH]);

impl Floats {
    /// The same value in every lane.
    pub const fn splat(value: f32) -> Self {
        Self([value; WIDTH])
    }
}

/// One bit a lane.
pub type Mask = u16;

/// Asks for all cache lines of a value.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in 0..size_of::<T>().div_ceil(64) {
            // SAFETY: stays within the value, and prefetching never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>().add(64 * line)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
