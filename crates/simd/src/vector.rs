//! A register of floats, whatever the level: written once, compiled for each.

use crate::{Floats, Mask, WIDTH};

/// The registers of a level. Only [`multiversion!`](crate::multiversion) names the implementations, where the
/// processor is known to have the instructions; that is what makes the safe methods of [`Vector`] sound.
pub trait Instructions {
    /// One register.
    type Register: Vector;
    /// As many registers as make sixteen floats.
    type Sixteen: Lanes;
}

/// A register of at most sixteen floats, or several taken together.
pub trait Vector: Copy {
    /// Number of floats.
    const LANES: usize;

    /// The same value in every lane.
    fn splat(value: f32) -> Self;
    /// Loads `LANES` floats.
    ///
    /// # Safety
    /// They must be readable; any alignment will do.
    unsafe fn load_at(from: *const f32) -> Self;
    /// Loads the first `count` floats, zeros behind; touches no memory beyond them.
    ///
    /// # Safety
    /// They must be readable.
    unsafe fn load_first(from: *const f32, count: usize) -> Self;
    /// Stores `LANES` floats.
    ///
    /// # Safety
    /// They must be writable; any alignment will do.
    unsafe fn store_at(self, to: *mut f32);
    /// Stores the first `count` floats.
    ///
    /// # Safety
    /// They must be writable.
    unsafe fn store_first(self, to: *mut f32, count: usize);
    /// Lane by lane `self + other`.
    fn add(self, other: Self) -> Self;
    /// Lane by lane `self - other`.
    fn sub(self, other: Self) -> Self;
    /// Lane by lane `self * other`.
    fn mul(self, other: Self) -> Self;
    /// Lane by lane `self / other`.
    fn div(self, other: Self) -> Self;
    /// Lane by lane the smaller; `other` where one is NaN.
    fn min(self, other: Self) -> Self;
    /// Lane by lane the larger; `other` where one is NaN.
    fn max(self, other: Self) -> Self;
    /// Lane by lane `self + a * b`, rounded once where the processor can.
    fn add_product(self, a: Self, b: Self) -> Self;
    /// Lanes where `self < other`.
    fn lt(self, other: Self) -> Mask;
    /// Lanes where `self <= other`.
    fn le(self, other: Self) -> Mask;
    /// `this` in the lanes of `mask`, `other` elsewhere; bits are kept.
    fn select(mask: Mask, this: Self, other: Self) -> Self;
}

/// Sixteen floats in registers.
pub trait Lanes: Vector {
    /// From memory.
    #[inline(always)]
    fn load(from: &Floats) -> Self {
        const { assert!(Self::LANES == WIDTH) }
        // SAFETY: sixteen floats are there.
        unsafe { Self::load_at(from.0.as_ptr()) }
    }

    /// To memory.
    #[inline(always)]
    fn store(self, to: &mut Floats) {
        const { assert!(Self::LANES == WIDTH) }
        // SAFETY: as above.
        unsafe { self.store_at(to.0.as_mut_ptr()) }
    }
}

/// Two vectors as one.
#[derive(Clone, Copy)]
pub struct Pair<V>(V, V);

macro_rules! pairwise {
    ($($name:ident),*) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            Self(self.0.$name(other.0), self.1.$name(other.1))
        }
    )*};
}

impl<V: Vector> Vector for Pair<V> {
    const LANES: usize = 2 * V::LANES;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(V::splat(value), V::splat(value))
    }
    #[inline(always)]
    unsafe fn load_at(from: *const f32) -> Self {
        // SAFETY: promised by the caller, here and below.
        unsafe { Self(V::load_at(from), V::load_at(from.add(V::LANES))) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        let second = count.saturating_sub(V::LANES);
        // SAFETY: as above.
        unsafe { Self(V::load_first(from, count), V::load_first(from.wrapping_add(V::LANES), second)) }
    }
    #[inline(always)]
    unsafe fn store_at(self, to: *mut f32) {
        // SAFETY: as above.
        unsafe {
            self.0.store_at(to);
            self.1.store_at(to.add(V::LANES));
        }
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        // SAFETY: as above.
        unsafe {
            self.0.store_first(to, count);
            self.1.store_first(to.wrapping_add(V::LANES), count.saturating_sub(V::LANES));
        }
    }
    pairwise!(add, sub, mul, div, min, max);
    #[inline(always)]
    fn add_product(self, a: Self, b: Self) -> Self {
        Self(self.0.add_product(a.0, b.0), self.1.add_product(a.1, b.1))
    }
    #[inline(always)]
    fn lt(self, other: Self) -> Mask {
        self.0.lt(other.0) | self.1.lt(other.1) << V::LANES
    }
    #[inline(always)]
    fn le(self, other: Self) -> Mask {
        self.0.le(other.0) | self.1.le(other.1) << V::LANES
    }
    #[inline(always)]
    fn select(mask: Mask, this: Self, other: Self) -> Self {
        Self(V::select(mask, this.0, other.0), V::select(mask >> V::LANES, this.1, other.1))
    }
}
