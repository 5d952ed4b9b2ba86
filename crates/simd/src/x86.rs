//! The registers of AVX2 with FMA and of AVX-512, by `std::arch`.
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all alike: inlined only where the instructions are enabled, and addresses are the caller's promise"
)]

use std::arch::x86_64::*;

use crate::vector::Pair;
use crate::{Instructions, Lanes, Mask, Vector};

/// AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub struct Avx2;

impl Instructions for Avx2 {
    type Register = Eight;
    type Sixteen = Pair<Eight>;
}

/// AVX-512.
#[derive(Clone, Copy, Debug)]
pub struct Avx512;

impl Instructions for Avx512 {
    type Register = Sixteen;
    type Sixteen = Sixteen;
}

/// Eight floats.
#[derive(Clone, Copy)]
pub struct Eight(__m256);

/// Sixteen floats.
#[derive(Clone, Copy)]
pub struct Sixteen(__m512);

impl Lanes for Pair<Eight> {}
impl Lanes for Sixteen {}

/// Methods that are one instruction on two registers.
macro_rules! binary {
    ($($name:ident = $intrinsic:ident),* $(,)?) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            Self(unsafe { $intrinsic(self.0, other.0) })
        }
    )*};
}

/// The first `count` of eight lanes.
#[inline(always)]
unsafe fn first_of_eight(count: usize) -> __m256i {
    unsafe {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count.min(8) as i32), lanes)
    }
}

/// The first `count` of sixteen lanes.
#[inline(always)]
fn first_of_sixteen(count: usize) -> __mmask16 {
    if count >= 16 { u16::MAX } else { (1_u16 << count) - 1 }
}

impl Vector for Eight {
    const LANES: usize = 8;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(unsafe { _mm256_set1_ps(value) })
    }
    #[inline(always)]
    unsafe fn load_at(from: *const f32) -> Self {
        Self(unsafe { _mm256_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        Self(unsafe { _mm256_maskload_ps(from, first_of_eight(count)) })
    }
    #[inline(always)]
    unsafe fn store_at(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        unsafe { _mm256_maskstore_ps(to, first_of_eight(count), self.0) }
    }
    binary! {
        add = _mm256_add_ps, sub = _mm256_sub_ps, mul = _mm256_mul_ps, div = _mm256_div_ps,
        min = _mm256_min_ps, max = _mm256_max_ps,
    }
    #[inline(always)]
    fn add_product(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
    }
    #[inline(always)]
    fn lt(self, other: Self) -> Mask {
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0)) as Mask }
    }
    #[inline(always)]
    fn le(self, other: Self) -> Mask {
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(self.0, other.0)) as Mask }
    }
    #[inline(always)]
    fn select(mask: Mask, this: Self, other: Self) -> Self {
        unsafe {
            let powers = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let all = _mm256_set1_epi32(i32::from(mask));
            let lanes = _mm256_cmpeq_epi32(_mm256_and_si256(all, powers), powers);
            Self(_mm256_blendv_ps(other.0, this.0, _mm256_castsi256_ps(lanes)))
        }
    }
}

impl Vector for Sixteen {
    const LANES: usize = 16;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(unsafe { _mm512_set1_ps(value) })
    }
    #[inline(always)]
    unsafe fn load_at(from: *const f32) -> Self {
        Self(unsafe { _mm512_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        Self(unsafe { _mm512_maskz_loadu_ps(first_of_sixteen(count), from) })
    }
    #[inline(always)]
    unsafe fn store_at(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        unsafe { _mm512_mask_storeu_ps(to, first_of_sixteen(count), self.0) }
    }
    binary! {
        add = _mm512_add_ps, sub = _mm512_sub_ps, mul = _mm512_mul_ps, div = _mm512_div_ps,
        min = _mm512_min_ps, max = _mm512_max_ps,
    }
    #[inline(always)]
    fn add_product(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
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
