//! The operations. Each lives in one place: `NAME.rs` has the formula, the shapes, the public function that checks
//! them and records the backward pass, and the CPU implementation (in `NAME/cpu.rs` where it is long); beside it are
//! the CUDA launch code in `NAME/cuda.rs` and the kernels in `NAME.cu`.
//!
//! To add one:
//! 1. write `NAME.rs` after the pattern of [`sigmoid`] (elementwise) or [`linear`] (with parameters): check shapes
//!    ([`Error::shape`] names the operation), match on the device for forward, end with [`Tape::record`], whose
//!    closure matches on the device for backward. The closure keeps what backward needs and nothing else.
//!    Gradients are written through [`Backward::target`] and [`Backward::put`], honouring `accumulate`;
//! 2. declare it below;
//! 3. test its gradients by finite differences with [`crate::ops::testing`] in the same file.
//!
//! [`Error::shape`]: crate::Error::shape
//! [`Tape::record`]: crate::Tape::record
//! [`Backward::target`]: crate::Backward::target
//! [`Backward::put`]: crate::Backward::put

mod accumulate;
mod linear;
mod sigmoid;
#[cfg(test)]
pub(crate) mod testing;

pub use accumulate::accumulate;
pub use linear::linear;
pub use sigmoid::sigmoid;
