//! Self-routing on tensor cores (bf16, 16 or 32 upper capsules): weights are arranged once a step in the order in which
//! products read them. Other sizes, and f32, go through the kernels of `self_routing.cu`.

use gpu::Launch;

use super::RoutingGeometry;
use super::cuda::Kernels;
use crate::cuda::kernels::{Kernel, KernelFile, Macro, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::{DType, Tensor};

/// Lower capsules of a block, and images at a time, in the weights' gradients.
const LOWER: usize = 4;
const CHUNK: usize = 128;
/// Places for the weights of a lower capsule in shared memory.
const STAGES: usize = 3;

/// Whether these kernels compute this routing.
pub(super) fn takes(geometry: &RoutingGeometry, dtype: DType, votes: bool) -> bool {
    let RoutingGeometry { lower, upper, pose, .. } = *geometry;
    votes && dtype == DType::Bf16 && matches!(upper, 16 | 32) && pose <= 16 && lower.is_multiple_of(LOWER)
}

/// bf16 numbers of a lower capsule: W1 and W2 padded to 16, and b2 in f32.
fn weights(upper: usize) -> usize {
    upper * (256 + 16 + 2)
}

fn program(geometry: &RoutingGeometry) -> Program {
    Program::new(KernelFile::RoutingTensor, DType::Bf16)
        .define(Macro::Capsules, geometry.upper)
        .define(Macro::Pose, geometry.pose)
}

/// W1, W2 and b2 as the kernels read them.
pub(super) fn arrange(
    cuda: &CudaDevice,
    device: &Device,
    geometry: &RoutingGeometry,
    [w1, w2, b2]: [&Tensor; 3],
) -> Result<Tensor> {
    let mut arranged = Tensor::empty(device, [geometry.lower, weights(geometry.upper)], DType::Bf16)?;
    let bytes = (4 * w1.len() + 2 * arranged.len()) as f64;
    let _scope = cuda.context().scope(|| "self_routing weights".into(), w1.len() as f64, bytes);
    let arguments = [view(w1)?.into(), view(w2)?.into(), view(b2)?.into(), view_mut(&mut arranged)?.into()];
    cuda.launch(
        &program(geometry),
        Kernel::routing_arrange,
        Launch::linear(geometry.lower, 256),
        &arguments,
    )?;
    Ok(arranged)
}

/// Lower capsules of a block, so that `groups` of images fill the device once.
fn per_split(cuda: &CudaDevice, lower: usize, groups: usize) -> usize {
    lower.div_ceil((cuda.multiprocessors() / groups).clamp(1, lower))
}

/// How they are launched.
pub(super) fn kernels(cuda: &CudaDevice, geometry: &RoutingGeometry, arranged: &Tensor) -> Result<Kernels> {
    let RoutingGeometry { batch, lower, upper, .. } = *geometry;
    let groups = batch.div_ceil(16 * (128 / upper));
    let shared = STAGES * weights(upper) * 2;
    let back_groups = batch.div_ceil(128);
    let per_block = per_split(cuda, lower, back_groups);
    let pairs = LOWER * (upper * (CHUNK / 2 + 1) + 1) * 4;
    Ok(Kernels {
        program: program(geometry),
        weights: vec![view(arranged)?.into()],
        groups,
        per_split: per_split(cuda, lower, groups),
        forward: (512, shared),
        padded: batch.next_multiple_of(CHUNK),
        sum_bytes: upper * 16 * 2,
        turned: true,
        per_block: Some(per_block),
        inputs: Launch::grid([back_groups, lower.div_ceil(per_block), 1], 256).with_shared(shared),
        weight_gradients: Launch::linear(lower / LOWER, 512).with_shared(LOWER * CHUNK * 32 + 2 * pairs),
    })
}
