//! A vector register, by level. The methods are only ever inlined into functions compiled for the level.

/// A register of floats.
pub(crate) trait Vector: Copy {
    /// Number of floats.
    const LANES: usize;

    /// All zero.
    unsafe fn zero() -> Self;
    /// All equal to `*from`.
    unsafe fn broadcast(from: *const f32) -> Self;
    /// Loads `LANES` floats.
    unsafe fn load(from: *const f32) -> Self;
    /// Loads the first `count` floats, zeros behind; touches no memory beyond them.
    unsafe fn load_first(from: *const f32, count: usize) -> Self;
    /// Stores `LANES` floats.
    unsafe fn store(self, to: *mut f32);
    /// Stores the first `count` floats.
    unsafe fn store_first(self, to: *mut f32, count: usize);
    /// `self + a * b`.
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;
}

/// Four floats in plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; 4]);

impl Vector for Portable {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; 4])
    }
    #[inline(always)]
    unsafe fn broadcast(from: *const f32) -> Self {
        // SAFETY: promised by the caller, here and below.
        Self([unsafe { *from }; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: as above.
        Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: as above.
        Self(std::array::from_fn(|lane| if lane < count { unsafe { *from.add(lane) } } else { 0.0 }))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as above.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        for (lane, value) in self.0.into_iter().enumerate().take(count) {
            // SAFETY: as above.
            unsafe { *to.add(lane) = value }
        }
    }
    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] + a.0[lane] * b.0[lane]))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all alike: inlined only where the instructions are enabled, and addresses are the caller's promise"
)]
mod x86 {
    use std::arch::x86_64::*;

    use super::Vector;

    /// Eight floats.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(__m256);

    #[inline(always)]
    unsafe fn mask(count: usize) -> __m256i {
        // SAFETY: inlined only where AVX2 is enabled.
        unsafe {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count.min(8) as i32), lanes)
        }
    }

    impl Vector for Avx2 {
        const LANES: usize = 8;

        #[inline(always)]
        unsafe fn zero() -> Self {
            Self(unsafe { _mm256_setzero_ps() })
        }
        #[inline(always)]
        unsafe fn broadcast(from: *const f32) -> Self {
            Self(unsafe { _mm256_broadcast_ss(&*from) })
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { _mm256_loadu_ps(from) })
        }
        #[inline(always)]
        unsafe fn load_first(from: *const f32, count: usize) -> Self {
            Self(unsafe { _mm256_maskload_ps(from, mask(count)) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm256_storeu_ps(to, self.0) }
        }
        #[inline(always)]
        unsafe fn store_first(self, to: *mut f32, count: usize) {
            unsafe { _mm256_maskstore_ps(to, mask(count), self.0) }
        }
        #[inline(always)]
        unsafe fn add_product(self, a: Self, b: Self) -> Self {
            Self(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            Self(unsafe { _mm256_add_ps(self.0, other.0) })
        }
    }

    /// Sixteen floats.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(__m512);

    #[inline(always)]
    fn mask16(count: usize) -> __mmask16 {
        if count >= 16 { u16::MAX } else { (1_u16 << count) - 1 }
    }

    impl Vector for Avx512 {
        const LANES: usize = 16;

        #[inline(always)]
        unsafe fn zero() -> Self {
            Self(unsafe { _mm512_setzero_ps() })
        }
        #[inline(always)]
        unsafe fn broadcast(from: *const f32) -> Self {
            Self(unsafe { _mm512_set1_ps(*from) })
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { _mm512_loadu_ps(from) })
        }
        #[inline(always)]
        unsafe fn load_first(from: *const f32, count: usize) -> Self {
            Self(unsafe { _mm512_maskz_loadu_ps(mask16(count), from) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm512_storeu_ps(to, self.0) }
        }
        #[inline(always)]
        unsafe fn store_first(self, to: *mut f32, count: usize) {
            unsafe { _mm512_mask_storeu_ps(to, mask16(count), self.0) }
        }
        #[inline(always)]
        unsafe fn add_product(self, a: Self, b: Self) -> Self {
            Self(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            Self(unsafe { _mm512_add_ps(self.0, other.0) })
        }
    }
}
