//! Self-routing on the GPU. The routing coefficients are kept (f32); votes exist in registers only. Lower capsules are
//! shared among blocks, whose sums are added in order.

use gpu::{Buffer, Launch, View};

use super::{RoutingGeometry, tensor};
use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

/// Warps of a block (forward, backward) and images of a warp, as in the kernels.
const WARPS: usize = 8;
const BACK_WARPS: usize = 4;
const IMAGES: usize = 4;
/// Lower capsules of a block in the weight gradient.
const PAIR: usize = 1;

/// The inputs.
pub(super) struct Inputs<'a> {
    pub geometry: RoutingGeometry,
    pub a: &'a Tensor,
    pub u: &'a Tensor,
    pub w1: Option<&'a Tensor>,
    pub w2: &'a Tensor,
    pub b2: &'a Tensor,
    /// The weights for tensor cores, where those take this routing.
    pub arranged: Option<&'a Tensor>,
}

/// What backward needs beside inputs and outputs.
#[derive(Debug)]
pub(super) struct Kept {
    /// (n, K, N)
    pub(super) routing: Tensor,
    /// sum_i a_i r_ij: (n, N)
    pub(super) weights: Tensor,
    /// sum_i a_i: (n)
    pub(super) total: Tensor,
}

impl Inputs<'_> {
    fn program(&self) -> Result<Program> {
        let RoutingGeometry { upper, pose, .. } = self.geometry;
        if self.shared_floats() * 2 * 4 > 220 << 10 || upper > 256 {
            let detail = format!("{upper} upper capsules with poses of {pose} are too many for the GPU");
            return Err(Error::shape("self_routing", detail));
        }
        Ok(Program::new(kernels::SELF_ROUTING, self.u.dtype())
            .define("CAPSULES", upper)
            .define("POSE", pose)
            .define("VOTES", usize::from(self.w1.is_some())))
    }

    /// Floats of one lower capsule's weights in shared memory.
    fn shared_floats(&self) -> usize {
        let RoutingGeometry { upper, pose, .. } = self.geometry;
        let row1 = if self.w1.is_some() { (pose * pose) | 1 } else { 0 };
        upper * (row1 + (pose | 1) + 1)
    }

    /// Floats of a block's poses in shared memory.
    fn staged_floats(&self) -> usize {
        WARPS * IMAGES * self.geometry.pose.next_multiple_of(4) + 4
    }

    fn operations(&self) -> f64 {
        let RoutingGeometry { batch, lower, upper, pose } = self.geometry;
        let votes = if self.w1.is_some() { pose + 1 } else { 0 };
        2.0 * (batch * lower) as f64 * (upper * pose * (votes + 1)) as f64
    }

    fn views(&self) -> Result<[Option<View>; 5]> {
        let w1 = self.w1.map(view).transpose()?;
        Ok([Some(view(self.u)?), Some(view(self.a)?), w1, Some(view(self.w2)?), Some(view(self.b2)?)])
    }
}

pub(super) fn forward(
    cuda: &CudaDevice,
    device: &Device,
    inputs: &Inputs<'_>,
    activations: &mut Tensor,
    poses: &mut Tensor,
) -> Result<Kept> {
    let RoutingGeometry { batch, lower, upper, pose } = inputs.geometry;
    let context = cuda.context();
    let program = inputs.program()?;
    let _scope = context.scope(
        || "self_routing".into(),
        inputs.operations(),
        (batch * lower) as f64 * (4 * upper + inputs.u.dtype().size() * (pose + 1)) as f64,
    );
    let mut kept = Kept {
        routing: Tensor::empty(device, [batch, lower, upper], DType::F32)?,
        weights: Tensor::empty(device, [batch, upper], DType::F32)?,
        total: Tensor::empty(device, [batch], DType::F32)?,
    };
    let (partial, partial_a, splits) = match inputs.arranged {
        Some(arranged) => tensor::forward(cuda, inputs, arranged, &mut kept)?,
        None => partial_sums(cuda, inputs, &program, &mut kept)?,
    };
    let arguments = [
        (&partial).into(),
        (&partial_a).into(),
        splits.into(),
        batch.into(),
        view_mut(activations)?.into(),
        view_mut(poses)?.into(),
        view_mut(&mut kept.weights)?.into(),
        view_mut(&mut kept.total)?.into(),
    ];
    cuda.launch(&program, "routing_finish", Launch::linear((batch * upper).div_ceil(256), 256), &arguments)?;
    Ok(kept)
}

/// Writes the routing coefficients to `kept`, and returns partial sums (splits, n, N, P + 1) and (splits, n).
fn partial_sums(
    cuda: &CudaDevice,
    inputs: &Inputs<'_>,
    program: &Program,
    kept: &mut Kept,
) -> Result<(Buffer, Buffer, usize)> {
    let RoutingGeometry { batch, lower, upper, pose } = inputs.geometry;
    let context = cuda.context();
    let groups = batch.div_ceil(WARPS * IMAGES);
    let per_split = lower.div_ceil((cuda.multiprocessors() * 4).div_ceil(groups).min(lower).max(1));
    let splits = lower.div_ceil(per_split);
    let partial = context.allocate(splits * batch * upper * (pose + 1) * 4)?;
    let partial_a = context.allocate(splits * batch * 4)?;
    let mut arguments = inputs.views()?.map(gpu::Argument::from).to_vec();
    arguments.extend([
        gpu::Argument::from(view_mut(&mut kept.routing)?),
        (&partial).into(),
        (&partial_a).into(),
        batch.into(),
        lower.into(),
        per_split.into(),
    ]);
    let shared = (2 * inputs.shared_floats() + inputs.staged_floats()) * 4;
    let launch = Launch::grid([groups, splits, 1], WARPS * 32).with_shared(shared);
    cuda.launch(program, "routing_forward", launch, &arguments)?;
    Ok((partial, partial_a, splits))
}

/// Gradients of the outputs, and where those of the inputs go.
pub(super) struct Gradients<'a> {
    pub activations: &'a Tensor,
    pub poses: &'a Tensor,
    pub d_activations: Option<&'a Tensor>,
    pub d_poses: Option<&'a Tensor>,
    /// Of a, u, W2, b2.
    pub targets: &'a mut [Option<Target>],
    pub dw1: Option<&'a mut Target>,
}

/// The place of a gradient and whether to add to it; nothing where it is not wanted.
pub(super) fn place(target: Option<&mut Target>) -> Result<(Option<View>, i32)> {
    match target {
        None => Ok((None, 0)),
        Some(target) => Ok((Some(view_mut(&mut target.tensor)?), i32::from(target.accumulate))),
    }
}

pub(super) fn backward(
    cuda: &CudaDevice,
    inputs: &Inputs<'_>,
    kept: &Kept,
    gradients: Gradients<'_>,
) -> Result<()> {
    let RoutingGeometry { batch, lower, upper, pose } = inputs.geometry;
    let context = cuda.context();
    let program = inputs.program()?;
    let bytes = (batch * lower) as f64 * (16 * upper + 3 * inputs.u.dtype().size() * (pose + 1)) as f64;
    let _scope = context.scope(|| "self_routing backward".into(), 2.0 * inputs.operations(), bytes);
    if let Some(arranged) = inputs.arranged {
        return tensor::backward(cuda, inputs, arranged, kept, gradients);
    }
    let d_sums = context.allocate(batch * upper * pose * 4)?;
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
        (&d_sums).into(),
        (&d_weights).into(),
        (&d_total).into(),
    ];
    let launch = Launch::linear((batch * 32).div_ceil(256), 256);
    cuda.launch(&program, "routing_backward_prepare", launch, &arguments)?;

    let [da, du, dw2, db2] = gradients.targets else {
        return Err(Error::shape("self_routing", "wrong number of gradients"));
    };
    let ((du, add_u), (da, add_a)) = (place(du.as_mut())?, place(da.as_mut())?);
    let mut arguments = inputs.views()?.map(gpu::Argument::from).to_vec();
    arguments.extend([
        gpu::Argument::from(view(&kept.routing)?),
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
    ]);
    let shared = (inputs.shared_floats() + inputs.staged_floats()) * 4;
    // Few lower capsules: images are shared among blocks as well.
    let blocks_y =
        (cuda.multiprocessors() * 2).div_ceil(lower).min(batch.div_ceil(BACK_WARPS * IMAGES)).max(1);
    let launch = Launch::grid([lower, blocks_y, 1], BACK_WARPS * 32).with_shared(shared);
    cuda.launch(&program, "routing_backward_inputs", launch, &arguments)?;

    let ((dw1, add1), (dw2, add2), (db2, addb)) =
        (place(gradients.dw1)?, place(dw2.as_mut())?, place(db2.as_mut())?);
    if dw1.or(dw2).or(db2).is_none() {
        return Ok(());
    }
    let arguments = [
        view(inputs.u)?.into(),
        view(inputs.a)?.into(),
        view(&kept.routing)?.into(),
        (&d_logits).into(),
        (&d_sums).into(),
        dw1.into(),
        add1.into(),
        dw2.into(),
        add2.into(),
        db2.into(),
        addb.into(),
        batch.into(),
        lower.into(),
    ];
    let threads = (upper * pose).next_multiple_of(32).min(512);
    let launch = Launch::grid([lower.div_ceil(PAIR), (upper * pose).div_ceil(threads), 1], threads);
    cuda.launch(&program, "routing_backward_weights", launch, &arguments)
}
