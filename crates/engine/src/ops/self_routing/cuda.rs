//! Self-routing on the GPU. The routing coefficients are kept (f32); votes exist in registers only. Lower capsules are
//! shared among blocks, whose sums are added in order.

use gpu::{Argument, Launch, View};

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
    routing: Tensor,
    /// sum_i a_i r_ij: (n, N)
    weights: Tensor,
    /// sum_i a_i: (n)
    total: Tensor,
}

/// How the kernels of one file are launched: those of `self_routing.cu` take anything, those of `routing_tensor.cu` what
/// [`tensor::takes`] says. Their arguments are the same but for the weights, and what only one has comes last.
pub(super) struct Kernels {
    pub program: Program,
    pub weights: Vec<Argument>,
    /// Groups of images, and lower capsules of a block, in the forward pass.
    pub groups: usize,
    pub per_split: usize,
    /// Threads of a block and bytes of shared memory in the forward pass.
    pub forward: (usize, usize),
    /// Images that backward has room for, and bytes of a gradient's sums for one.
    pub padded: usize,
    pub sum_bytes: usize,
    /// Whether backward needs those sums a second time, by upper capsules.
    pub turned: bool,
    /// Lower capsules of a block in the inputs' gradients, where blocks have several.
    pub per_block: Option<usize>,
    pub inputs: Launch,
    pub weight_gradients: Launch,
}

impl Inputs<'_> {
    fn kernels(&self, cuda: &CudaDevice) -> Result<Kernels> {
        if let Some(arranged) = self.arranged {
            return tensor::kernels(cuda, &self.geometry, arranged);
        }
        let RoutingGeometry { batch, lower, upper, pose } = self.geometry;
        let groups = batch.div_ceil(WARPS * IMAGES);
        let (weights, staged) = (self.shared_floats(), self.staged_floats());
        // Few lower capsules: images are shared among blocks as well.
        let blocks_y =
            (cuda.multiprocessors() * 2).div_ceil(lower).min(batch.div_ceil(BACK_WARPS * IMAGES)).max(1);
        let threads = (upper * pose).next_multiple_of(32).min(512);
        Ok(Kernels {
            program: self.program()?,
            weights: vec![
                self.w1.map(view).transpose()?.into(),
                view(self.w2)?.into(),
                view(self.b2)?.into(),
            ],
            groups,
            per_split: lower.div_ceil((cuda.multiprocessors() * 4).div_ceil(groups).min(lower).max(1)),
            forward: (WARPS * 32, (2 * weights + staged) * 4),
            padded: batch,
            sum_bytes: upper * pose * 4,
            turned: false,
            per_block: None,
            inputs: Launch::grid([lower, blocks_y, 1], BACK_WARPS * 32).with_shared((weights + staged) * 4),
            weight_gradients: Launch::grid(
                [lower.div_ceil(PAIR), (upper * pose).div_ceil(threads), 1],
                threads,
            ),
        })
    }

    /// The kernels of `self_routing.cu`.
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

    /// Poses and activations.
    fn values(&self) -> Result<Vec<Argument>> {
        Ok(vec![view(self.u)?.into(), view(self.a)?.into()])
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
    let kernels = inputs.kernels(cuda)?;
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
    // Sums of blocks: (splits, n, N, P + 1) and (splits, n).
    let splits = lower.div_ceil(kernels.per_split);
    let partial = context.allocate(splits * batch * upper * (pose + 1) * 4)?;
    let partial_a = context.allocate(splits * batch * 4)?;
    let mut arguments = inputs.values()?;
    arguments.extend(&kernels.weights);
    arguments.extend([
        Argument::from(view_mut(&mut kept.routing)?),
        (&partial).into(),
        (&partial_a).into(),
        batch.into(),
        lower.into(),
        kernels.per_split.into(),
    ]);
    let (threads, shared) = kernels.forward;
    let launch = Launch::grid([kernels.groups, splits, 1], threads).with_shared(shared);
    cuda.launch(&kernels.program, "routing_forward", launch, &arguments)?;
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
    let launch = Launch::linear((batch * upper).div_ceil(256), 256);
    cuda.launch(&inputs.program()?, "routing_finish", launch, &arguments)?;
    Ok(kept)
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
fn place(target: Option<&mut Target>) -> Result<(Option<View>, i32)> {
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
    let kernels = inputs.kernels(cuda)?;
    let bytes = (batch * lower) as f64 * (16 * upper + 3 * inputs.u.dtype().size() * (pose + 1)) as f64;
    let _scope = context.scope(|| "self_routing backward".into(), 2.0 * inputs.operations(), bytes);
    let padded = Argument::from(kernels.padded);
    let d_sums = context.allocate(kernels.padded * kernels.sum_bytes)?;
    let turned = kernels.turned.then(|| context.allocate(kernels.padded * kernels.sum_bytes)).transpose()?;
    let d_weights = context.allocate(batch * upper * 4)?;
    let d_total = context.allocate(batch * 4)?;
    let d_logits = context.allocate(batch * lower * upper * 4)?;
    let mut arguments = vec![
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
    arguments.extend(turned.iter().flat_map(|turned| [padded, turned.into()]));
    let launch = Launch::linear((kernels.padded * 32).div_ceil(256), 256);
    cuda.launch(&kernels.program, "routing_backward_prepare", launch, &arguments)?;

    let [da, du, dw2, db2] = gradients.targets else {
        return Err(Error::shape("self_routing", "wrong number of gradients"));
    };
    let ((du, add_u), (da, add_a)) = (place(du.as_mut())?, place(da.as_mut())?);
    let mut arguments = inputs.values()?;
    arguments.extend(&kernels.weights);
    arguments.extend([
        Argument::from(view(&kept.routing)?),
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
    arguments.extend(kernels.per_block.map(Argument::from));
    cuda.launch(&kernels.program, "routing_backward_inputs", kernels.inputs, &arguments)?;

    let ((dw1, add1), (dw2, add2), (db2, addb)) =
        (place(gradients.dw1)?, place(dw2.as_mut())?, place(db2.as_mut())?);
    if dw1.or(dw2).or(db2).is_none() {
        return Ok(());
    }
    let mut arguments = inputs.values()?;
    arguments.extend([
        Argument::from(view(&kept.routing)?),
        (&d_logits).into(),
        turned.as_ref().unwrap_or(&d_sums).into(),
        dw1.into(),
        add1.into(),
        dw2.into(),
        add2.into(),
        db2.into(),
        addb.into(),
        batch.into(),
        lower.into(),
    ]);
    arguments.extend(turned.is_some().then_some(padded));
    cuda.launch(&kernels.program, "routing_backward_weights", kernels.weight_gradients, &arguments)
}
