//! Self-routing on tensor cores (bf16, 16 or 32 upper capsules): weights are arranged once a step in the order in which
//! products read them. Other sizes, and f32, go through the kernels of `self_routing.cu`.

use gpu::{Argument, Buffer, Launch};

use super::RoutingGeometry;
use super::cuda::{Gradients, Inputs, Kept, place};
use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::device::Device;
use crate::error::{Error, Result};
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
    Program::new(kernels::ROUTING_TENSOR, DType::Bf16)
        .define("CAPSULES", geometry.upper)
        .define("POSE", geometry.pose)
}

/// W1, W2 and b2 as the kernels read them.
pub(super) fn arrange(
    device: &Device,
    geometry: &RoutingGeometry,
    [w1, w2, b2]: [&Tensor; 3],
) -> Result<Tensor> {
    let Device::Cuda(cuda) = device else { return Ok(w1.clone()) };
    let mut arranged = Tensor::empty(device, [geometry.lower, weights(geometry.upper)], DType::Bf16)?;
    let bytes = (4 * w1.len() + 2 * arranged.len()) as f64;
    let _scope = cuda.context().scope(|| "self_routing weights".into(), w1.len() as f64, bytes);
    let arguments = [view(w1)?.into(), view(w2)?.into(), view(b2)?.into(), view_mut(&mut arranged)?.into()];
    cuda.launch(&program(geometry), "routing_arrange", Launch::linear(geometry.lower, 256), &arguments)?;
    Ok(arranged)
}

/// Lower capsules of a block, so that `groups` of images fill the device once.
fn per_split(cuda: &CudaDevice, lower: usize, groups: usize) -> usize {
    lower.div_ceil((cuda.multiprocessors() / groups).clamp(1, lower))
}

/// Writes the routing coefficients to `kept`, and returns partial sums (splits, n, N, P + 1) and (splits, n).
pub(super) fn forward(
    cuda: &CudaDevice,
    inputs: &Inputs<'_>,
    arranged: &Tensor,
    kept: &mut Kept,
) -> Result<(Buffer, Buffer, usize)> {
    let RoutingGeometry { batch, lower, upper, pose } = inputs.geometry;
    let groups = batch.div_ceil(16 * (128 / upper));
    let per_split = per_split(cuda, lower, groups);
    let splits = lower.div_ceil(per_split);
    let partial = cuda.context().allocate(splits * batch * upper * (pose + 1) * 4)?;
    let partial_a = cuda.context().allocate(splits * batch * 4)?;
    let arguments = [
        view(inputs.u)?.into(),
        view(inputs.a)?.into(),
        view(arranged)?.into(),
        view_mut(&mut kept.routing)?.into(),
        (&partial).into(),
        (&partial_a).into(),
        batch.into(),
        lower.into(),
        per_split.into(),
    ];
    let launch = Launch::grid([groups, splits, 1], 512).with_shared(STAGES * weights(upper) * 2);
    cuda.launch(&program(&inputs.geometry), "routing_forward", launch, &arguments)?;
    Ok((partial, partial_a, splits))
}

pub(super) fn backward(
    cuda: &CudaDevice,
    inputs: &Inputs<'_>,
    arranged: &Tensor,
    kept: &Kept,
    gradients: Gradients<'_>,
) -> Result<()> {
    let RoutingGeometry { batch, lower, upper, .. } = inputs.geometry;
    let (context, program) = (cuda.context(), program(&inputs.geometry));
    let padded = batch.next_multiple_of(CHUNK);
    let d_sums = context.allocate(padded * upper * 16 * 2)?;
    let d_sums_turned = context.allocate(padded * upper * 16 * 2)?;
    let d_weights = context.allocate(batch * upper * 4)?;
    let d_total = context.allocate(batch * 4)?;
    let d_logits = context.allocate(batch * lower * upper * 4)?;
    let arguments = [
        gradients.d_activations.map(view).transpose()?.into(),
        gradients.d_poses.map(view).transpose()?.into(),
        view(gradients.activations)?.into(),
        view(gradients.poses)?.into(),
        view(&kept.weights)?.into(),
        view(&kept.total)?.into(),
        batch.into(),
        padded.into(),
        (&d_sums).into(),
        (&d_sums_turned).into(),
        (&d_weights).into(),
        (&d_total).into(),
    ];
    let launch = Launch::linear((padded * 32).div_ceil(256), 256);
    cuda.launch(&program, "routing_backward_prepare", launch, &arguments)?;

    let [da, du, dw2, db2] = gradients.targets else {
        return Err(Error::shape("self_routing", "wrong number of gradients"));
    };
    let ((du, add_u), (da, add_a)) = (place(du.as_mut())?, place(da.as_mut())?);
    let groups = batch.div_ceil(128);
    let per_split = per_split(cuda, lower, groups);
    let arguments = [
        view(inputs.u)?.into(),
        view(inputs.a)?.into(),
        view(arranged)?.into(),
        view(&kept.routing)?.into(),
        (&d_sums).into(),
        (&d_weights).into(),
        (&d_total).into(),
        (&d_logits).into(),
        du.into(),
        add_u.into(),
        da.into(),
        add_a.into(),
        batch.into(),
        lower.into(),
        per_split.into(),
    ];
    let launch = Launch::grid([groups, lower.div_ceil(per_split), 1], 256);
    let launch = launch.with_shared(STAGES * weights(upper) * 2);
    cuda.launch(&program, "routing_backward_inputs", launch, &arguments)?;

    let ((dw1, add1), (dw2, add2), (db2, addb)) =
        (place(gradients.dw1)?, place(dw2.as_mut())?, place(db2.as_mut())?);
    if dw1.or(dw2).or(db2).is_none() {
        return Ok(());
    }
    let arguments: [Argument; 14] = [
        view(inputs.u)?.into(),
        view(inputs.a)?.into(),
        view(&kept.routing)?.into(),
        (&d_logits).into(),
        (&d_sums_turned).into(),
        dw1.into(),
        add1.into(),
        dw2.into(),
        add2.into(),
        db2.into(),
        addb.into(),
        batch.into(),
        padded.into(),
        lower.into(),
    ];
    let pairs = LOWER * (upper * (CHUNK / 2 + 1) + 1) * 4;
    let launch = Launch::linear(lower / LOWER, 512).with_shared(LOWER * CHUNK * 32 + 2 * pairs);
    cuda.launch(&program, "routing_backward_weights", launch, &arguments)
}
