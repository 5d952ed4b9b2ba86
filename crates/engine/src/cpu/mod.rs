//! Inner loops of the CPU: vector kernels by what the processor has, matrix products, fixed-order reductions.
//!
//! Nothing here splits a sum by the number of threads: a task owns a fixed block of outputs and computes each of
//! them in a fixed order, so results repeat bit for bit with any number of threads.

mod elementwise;
pub(crate) mod kernels;
pub(crate) mod matmul;
mod parallel;
mod reduce;
mod scratch;

pub(crate) use elementwise::{adam, add_assign, exp};
pub(crate) use parallel::{SendPtr, blocks};
pub(crate) use reduce::column_sums;
pub(crate) use scratch::with_scratch;
pub use simd::{Level, level};
