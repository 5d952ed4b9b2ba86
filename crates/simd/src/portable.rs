//! Four floats in plain Rust: a register of every architecture.

use crate::vector::Pair;
use crate::{Instructions, Lanes, Mask, Vector};

/// What every processor has.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Instructions for Portable {
    type Register = Four;
    type Sixteen = Pair<Pair<Four>>;
}

/// Four floats.
#[derive(Clone, Copy)]
pub struct Four([f32; 4]);

impl Lanes for Pair<Pair<Four>> {}

impl Four {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut result = self;
        for lane in 0..4 {
            result.0[lane] = f(self.0[lane], other.0[lane]);
        }
        result
    }

    #[inline(always)]
    fn compare(self, other: Self, f: impl Fn(f32, f32) -> bool) -> Mask {
        let mut mask = 0;
        for lane in 0..4 {
            mask |= Mask::from(f(self.0[lane], other.0[lane])) << lane;
        }
        mask
    }
}

impl Vector for Four {
    const LANES: usize = 4;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; 4])
    }
    #[inline(always)]
    unsafe fn load_at(from: *const f32) -> Self {
        // SAFETY: promised by the caller, here and below.
        Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: as above.
        Self(std::array::from_fn(|lane| if lane < count { unsafe { *from.add(lane) } } else { 0.0 }))
    }
    #[inline(always)]
    unsafe fn store_at(self, to: *mut f32) {
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
    fn add_product(self, a: Self, b: Self) -> Self {
        self.add(a.mul(b))
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
        for lane in 0..4 {
            if mask >> lane & 1 != 0 {
                result.0[lane] = this.0[lane];
            }
        }
        result
    }
}
