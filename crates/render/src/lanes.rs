//! Sixteen floats at a time, with the widest instructions the processor has.
//!
//! Traversal is written once over [`Lanes`] and compiled for AVX-512, for AVX2 and for whatever the target has at
//! least. All three do the same operations in the same order, without fused multiply-add, so that a picture has the
//! same bits on every machine.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Rays in a packet.
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

/// How wide the processor's instructions are.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// AVX-512.
    Wide,
    /// AVX2.
    Narrow,
    /// Whatever the target has at least.
    Least,
}

/// The level of this processor.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let counts = is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi1");
        if counts
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
        {
            Level::Wide
        } else if counts && is_x86_feature_detected!("avx2") {
            Level::Narrow
        } else {
            Level::Least
        }
    })
}

/// Compiles a function of plain loops once a [`Level`], and calls the one for this processor.
macro_rules! multiversion {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        $visibility fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body($($argument: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,popcnt,bmi1")]
                fn wide($($argument: $type),*) $(-> $result)? {
                    body($($argument),*)
                }
                #[target_feature(enable = "avx2,popcnt,bmi1")]
                fn narrow($($argument: $type),*) $(-> $result)? {
                    body($($argument),*)
                }
                match $crate::lanes::level() {
                    // SAFETY: the level says that the processor has the features.
                    $crate::lanes::Level::Wide => return unsafe { wide($($argument),*) },
                    // SAFETY: as above.
                    $crate::lanes::Level::Narrow => return unsafe { narrow($($argument),*) },
                    $crate::lanes::Level::Least => {}
                }
            }
            body($($argument),*)
        }
    };
}
pub(crate) use multiversion;

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

/// Sixteen floats in registers.
pub trait Lanes: Copy {
    /// The same value in every lane.
    fn splat(value: f32) -> Self;
    /// From memory.
    fn load(from: &Floats) -> Self;
    /// To memory.
    fn store(self, to: &mut Floats);
    /// Lane by lane `self + other`.
    fn add(self, other: Self) -> Self;
    /// Lane by lane `self - other`.
    fn sub(self, other: Self) -> Self;
    /// Lane by lane `self * other`.
    fn mul(self, other: Self) -> Self;
    /// Lane by lane `self / other`.
    fn div(self, other: Self) -> Self;
    /// Lane by lane the smaller; `other` where one is not a number.
    fn min(self, other: Self) -> Self;
    /// Lane by lane the larger; `other` where one is not a number.
    fn max(self, other: Self) -> Self;
    /// Lanes where `self < other`.
    fn lt(self, other: Self) -> Mask;
    /// Lanes where `self <= other`.
    fn le(self, other: Self) -> Mask;
    /// `self` in the lanes of `mask`, `other` elsewhere; bits are kept.
    fn select(mask: Mask, this: Self, other: Self) -> Self;
}

/// Any processor.
#[derive(Clone, Copy)]
pub struct Portable(Floats);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut result = self;
        for i in 0..WIDTH {
            result.0.0[i] = f(self.0.0[i], other.0.0[i]);
        }
        result
    }

    #[inline(always)]
    fn compare(self, other: Self, f: impl Fn(f32, f32) -> bool) -> Mask {
        let mut mask = 0;
        for i in 0..WIDTH {
            mask |= Mask::from(f(self.0.0[i], other.0.0[i])) << i;
        }
        mask
    }
}

impl Lanes for Portable {
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(Floats::splat(value))
    }
    #[inline(always)]
    fn load(from: &Floats) -> Self {
        Self(*from)
    }
    #[inline(always)]
    fn store(self, to: &mut Floats) {
        *to = self.0;
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn lt(self, other: Self) -> Mask {
        self.compare(other, |a, b| a < b)
    }
    #[inline(always)]
    fn le(self, other: Self) -> Mask {
        self.compare(other, |a, b| a <= b)
    }
    #[inline(always)]
    fn select(mask: Mask, this: Self, other: Self) -> Self {
        let mut result = other;
        for i in 0..WIDTH {
            if mask >> i & 1 != 0 {
                result.0.0[i] = this.0.0[i];
            }
        }
        result
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all alike: only made behind `is_x86_feature_detected!`; loads and stores go through references to \
              64-byte aligned memory"
)]
pub mod x86 {
    //! The same with `std::arch`. Values of these types may only be made in functions that the processor has the
    //! features for; [`crate::trace`] checks at run time.
    use std::arch::x86_64::*;

    use super::{Floats, Lanes, Mask};

    /// One AVX-512 register.
    #[derive(Clone, Copy)]
    pub struct Avx512(__m512);

    impl Lanes for Avx512 {
        #[inline(always)]
        fn splat(value: f32) -> Self {
            Self(unsafe { _mm512_set1_ps(value) })
        }
        #[inline(always)]
        fn load(from: &Floats) -> Self {
            Self(unsafe { _mm512_load_ps(from.0.as_ptr()) })
        }
        #[inline(always)]
        fn store(self, to: &mut Floats) {
            unsafe { _mm512_store_ps(to.0.as_mut_ptr(), self.0) }
        }
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            Self(unsafe { _mm512_add_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            Self(unsafe { _mm512_sub_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            Self(unsafe { _mm512_mul_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn div(self, other: Self) -> Self {
            Self(unsafe { _mm512_div_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn min(self, other: Self) -> Self {
            Self(unsafe { _mm512_min_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn max(self, other: Self) -> Self {
            Self(unsafe { _mm512_max_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn lt(self, other: Self) -> Mask {
            unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0) }
        }
        #[inline(always)]
        fn le(self, other: Self) -> Mask {
            unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, other.0) }
        }
        #[inline(always)]
        fn select(mask: Mask, this: Self, other: Self) -> Self {
            Self(unsafe { _mm512_mask_blend_ps(mask, other.0, this.0) })
        }
    }

    /// Two AVX registers.
    #[derive(Clone, Copy)]
    pub struct Avx2(__m256, __m256);

    /// The lanes of eight mask bits as a vector of all-ones and zeros.
    #[inline(always)]
    unsafe fn spread(bits: Mask) -> __m256 {
        unsafe {
            let powers = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let all = _mm256_set1_epi32(i32::from(bits));
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, powers), powers))
        }
    }

    macro_rules! pairwise {
        ($name:ident, $intrinsic:ident) => {
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                unsafe { Self($intrinsic(self.0, other.0), $intrinsic(self.1, other.1)) }
            }
        };
    }

    macro_rules! compare {
        ($name:ident, $predicate:ident) => {
            #[inline(always)]
            fn $name(self, other: Self) -> Mask {
                unsafe {
                    let low = _mm256_movemask_ps(_mm256_cmp_ps::<$predicate>(self.0, other.0)) as Mask;
                    let high = _mm256_movemask_ps(_mm256_cmp_ps::<$predicate>(self.1, other.1)) as Mask;
                    low | high << 8
                }
            }
        };
    }

    impl Lanes for Avx2 {
        #[inline(always)]
        fn splat(value: f32) -> Self {
            unsafe { Self(_mm256_set1_ps(value), _mm256_set1_ps(value)) }
        }
        #[inline(always)]
        fn load(from: &Floats) -> Self {
            unsafe { Self(_mm256_load_ps(from.0.as_ptr()), _mm256_load_ps(from.0.as_ptr().add(8))) }
        }
        #[inline(always)]
        fn store(self, to: &mut Floats) {
            unsafe {
                _mm256_store_ps(to.0.as_mut_ptr(), self.0);
                _mm256_store_ps(to.0.as_mut_ptr().add(8), self.1);
            }
        }
        pairwise!(add, _mm256_add_ps);
        pairwise!(sub, _mm256_sub_ps);
        pairwise!(mul, _mm256_mul_ps);
        pairwise!(div, _mm256_div_ps);
        pairwise!(min, _mm256_min_ps);
        pairwise!(max, _mm256_max_ps);
        compare!(lt, _CMP_LT_OQ);
        compare!(le, _CMP_LE_OQ);
        #[inline(always)]
        fn select(mask: Mask, this: Self, other: Self) -> Self {
            unsafe {
                Self(
                    _mm256_blendv_ps(other.0, this.0, spread(mask & 0xff)),
                    _mm256_blendv_ps(other.1, this.1, spread(mask >> 8)),
                )
            }
        }
    }
}
