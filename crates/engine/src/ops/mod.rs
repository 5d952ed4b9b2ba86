//! The operations. Each lives in one place: `NAME.rs` has the formula, the shapes, the public function that checks them,
//! and the operation itself, a struct with its sizes that implements the trait `Operation` for the CPU and, beside it,
//! for CUDA. Where a side is long it has its own file, `NAME/cpu.rs` or `NAME/cuda.rs`. The kernels are in `NAME.cu`.
//!
//! To add one:
//! 1. write `NAME.rs` after the pattern of [`linear`](linear()): check shapes ([`Error::shape`] names the operation) and
//!    end with `Tape::apply`. It chooses the device, makes the outputs, records the operation and takes care of the
//!    gradients; nothing else asks for the device. `forward` gives back what `backward` needs and nothing else;
//!    `backward` writes every gradient it is given a target for, honouring `accumulate`. A function of single elements
//!    is a few lines, as [`sigmoid`](sigmoid()) is. What exists on CUDA alone, as a fusion of others, is run by
//!    `Tape::apply_on`, as [`linear_gelu`] is;
//! 2. declare it below, and its kernels in `cuda/kernels.rs`;
//! 3. test its gradients by finite differences with `ops/testing.rs` in the same file;
//! 4. give it a case in `agreement.rs`, which compares CUDA with the CPU.
//!
//! [`Error::shape`]: crate::Error::shape

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
mod gather_ranks;
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
pub use gather_ranks::gather_ranks;
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
pub(crate) use rows::copy_range;
pub use rows::{add_scaled, copy_rows, gather_rows};
pub use self_routing::{RoutingGeometry, routing_activations, self_routing};
pub use sharpen::sharpen;
pub use sigmoid::sigmoid;
pub use stem::stem;
pub use tokens::{drop_first_token, embed_tokens};
