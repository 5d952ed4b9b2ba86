//! The first layer of the published networks: 7x7 convolution of images with stride 2 (zeros: 2 before, 3 after), batch
//! norm, ReLU, 3x3 max-pool with stride 2 (one pixel after).
//!
//! Shapes: images (n, height, width, 3), W (out, 7, 7, 3), gamma and beta (out), y about (n, height / 4, width / 4,
//! out). It is the composition of `image_conv`, `batch_norm` and `max_pool`, and computed as such, except on CUDA
//! in 16 bits with 64 channels: there its tensors are the largest of the whole network, and what lies between is never
//! written (`stem.cu`). Where activations are bf16, y is f16, with which the convolutional network goes on.

mod cuda;

use super::batch_norm::norm_relu;
use super::conv2d::Geometry;
use super::image_conv::image_conv_in;
use super::{Images, Padding, RunningStatistics, max_pool};
use crate::error::Result;
use crate::tape::{Tape, Var};
use crate::tensor::DType;

/// Padding of the convolution.
const PADDING: Padding = Padding::before_after(2, 3);

/// The first layer.
pub fn stem(
    tape: &mut Tape<'_>,
    images: &Images,
    weight: &Var,
    gamma: &Var,
    beta: &Var,
    running: RunningStatistics,
) -> Result<Var> {
    let geometry = Geometry::new("stem", images.pixels.shape(), weight.shape(), 2, PADDING)?;
    let device = tape.device();
    let dtype = match device.activation_dtype() {
        DType::Bf16 => DType::F16,
        other => other,
    };
    if let Some(on) = device.as_cuda()
        && dtype == DType::F16
        && cuda::is_published(&geometry)
    {
        let (images, ranks) = (images.clone(), std::sync::Arc::clone(tape.collective()));
        let op = cuda::Stem { geometry, images, running, ranks };
        return cuda::stem(tape, on, [weight, gamma, beta], op);
    }
    let y = image_conv_in(tape, images, weight, None, (2, PADDING), dtype)?;
    let y = norm_relu(tape, &y, ([gamma, beta], running))?;
    max_pool(tape, &y, 3, 2, Padding::before_after(0, 1))
}
