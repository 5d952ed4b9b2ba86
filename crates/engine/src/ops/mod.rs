//! The operations. Each lives in one place: `NAME.rs` has the formula, the shapes, the public function that checks
//! them and records the backward pass, and the CPU implementation (in `NAME/cpu.rs` where it is long); beside it are
//! the CUDA launch code in `NAME/cuda.rs` and the kernels in `NAME.cu`.
//!
//! To add one:
//! 1. write `NAME.rs` after the pattern of [`linear`](linear()): check shapes ([`Error::shape`] names the operation),
//!    match on the device for forward, end with [`Tape::record`], whose closure matches on the device for backward.
//!    The closure keeps what backward needs and nothing else. Gradients are written through [`Backward::target`] and
//!    [`Backward::put`], honouring `accumulate`. A function of single elements is a few lines, as
//!    [`sigmoid`](sigmoid()) is;
//! 2. declare it below;
//! 3. test its gradients by finite differences with `ops/testing.rs` in the same file;
//! 4. give it a case in `agreement.rs`, which compares CUDA with the CPU.
//!
//! [`Error::shape`]: crate::Error::shape
//! [`Tape::record`]: crate::Tape::record
//! [`Backward::target`]: crate::Backward::target
//! [`Backward::put`]: crate::Backward::put

mod accumulate;
mod add;
mod add_norm;
mod attention;
mod avg_pool;
mod batch_norm;
mod batched_linear;
mod concat;
mod conv2d;
mod elementwise;
mod gelu;
mod hypernetwork;
mod image_conv;
mod layer_norm;
mod linear;
mod loss;
mod max_pool;
pub(crate) mod operation;
mod pose_transform;
mod relu;
mod reshape;
mod rows;
mod self_routing;
mod sharpen;
mod sigmoid;
mod stem;
#[cfg(test)]
pub(crate) mod testing;
mod tokens;

pub use accumulate::accumulate;
pub(crate) use accumulate::column_sum_gradient;
pub use add::add;
pub use add_norm::linear_add_norm;
pub use attention::{AttentionGeometry, attention, linear_attention};
pub use avg_pool::avg_pool;
pub use batch_norm::{Norm, RunningStatistics, Shortcut, batch_norm, norm_add_relu, norm_relu_conv};
pub use batched_linear::{batched_linear, batched_linear_relu};
pub use concat::{columns, concat};
pub use conv2d::{Geometry, Padding, conv2d};
pub use gelu::{gelu, linear_gelu};
pub use hypernetwork::hypernetwork;
pub use image_conv::{Images, image_conv};
pub use layer_norm::layer_norm;
pub use linear::linear;
pub use loss::{
    activation_cross_entropy, class_cross_entropy, covariance, grouped_mse, info_nce, me_max, mse,
    variance_hinge, weighted_sum,
};
pub use max_pool::max_pool;
pub use pose_transform::pose_transform;
pub use relu::relu;
pub use reshape::reshape;
pub use rows::{add_scaled, copy_rows, gather_rows};
pub use self_routing::{RoutingGeometry, routing_activations, self_routing};
pub use sharpen::sharpen;
pub use sigmoid::sigmoid;
pub use stem::stem;
pub use tokens::{drop_first_token, embed_tokens};
