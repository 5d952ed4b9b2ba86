//! Inner loops of the CPU: vector kernels by what the processor has, matrix products, fixed-order reductions.
//!
//! Nothing here splits a sum by the number of threads: a task owns a fixed block of outputs and computes each of
//! them in a fixed order, so results repeat bit for bit with any number of threads.

#[macro_use]
mod level;
mod elementwise;
mod kernels;
pub(crate) mod matmul;
#[allow(dead_code, unused_imports)]
mod parallel;
mod vector;

pub(crate) use elementwise::{adam, add_assign};
pub use level::{Level, level};

#[allow(unused_imports)]
pub(crate) use parallel::{SendPtr, blocks, for_each_block};
