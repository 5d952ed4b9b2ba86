//! Vector instructions for the renderer and the engine: which ones this processor has ([`level`]), functions compiled
//! once for each of them ([`multiversion!`]), and registers of floats to write them with ([`Vector`], [`Lanes`]).
//!
//! ```
//! simd::multiversion! {
//!     /// Plain loops that the compiler vectorises.
//!     fn double(values: &mut [f32]) {
//!         for value in values {
//!             *value *= 2.0;
//!         }
//!     }
//! }
//! simd::multiversion! {
//!     /// `S` is the level's [`simd::Instructions`].
//!     fn smaller<S>(a: &simd::Floats, b: &simd::Floats) -> simd::Mask {
//!         less::<S::Sixteen>(a, b)
//!     }
//! }
//! #[inline(always)]
//! fn less<L: simd::Lanes>(a: &simd::Floats, b: &simd::Floats) -> simd::Mask {
//!     L::load(a).lt(L::load(b))
//! }
//! let mut values = [1.0, 2.0];
//! double(&mut values);
//! assert_eq!(values, [2.0, 4.0]);
//! assert_eq!(smaller(&simd::Floats::splat(1.0), &simd::Floats::splat(2.0)), 0xffff);
//! ```
//!
//! All levels do the same operations in the same order and round alike, except [`Vector::add_product`], which is fused
//! where the processor can: what does without it has the same bits on every machine.

mod level;
mod memory;
mod portable;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use level::{Level, available, level};
pub use memory::{Floats, Mask, WIDTH, prefetch};
#[doc(hidden)]
pub use portable::Portable;
pub use vector::{Instructions, Lanes, Vector};
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
pub use x86::{Avx2, Avx512};

#[cfg(test)]
mod tests;
