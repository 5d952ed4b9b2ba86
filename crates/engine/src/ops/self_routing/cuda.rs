//! Self-routing on the GPU. The routing coefficients are kept (f32); votes exist in registers only. Lower capsules are
//! shared among blocks, whose sums are added in order.

use gpu::{Argument, Launch};

use super::{RoutingGeometry, SelfRouting, Values, tensor};
use crate::cuda::kernels::{Kernel, KernelFile, Macro, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::operation::{Cuda, Fixed, Operation, To};
use crate::tape::{Target, Var};
use crate::tensor::{DType, Tensor};

/// Warps of a block (forward, backward) and images of a warp, as in the kernels.
const WARPS: usize = 8;
const BACK_WARPS: usize = 4;
const IMAGES: usize = 4;
/// Lower capsules of a block in the weight gradient.
const PAIR: usize = 1;

/// What is routed.
struct Inputs<'a> {
    geometry: RoutingGeometry,
    a: &'a Tensor,
    u: &'a Tensor,
    w1: Option<&'a Tensor>,
    w2: &'a Tensor,
    b2: &'a Tensor,
    /// The weights for tensor cores, where those take this routing.
    arranged: Option<&'a Tensor>,
}

/// What backward needs.
pub(super) struct Kept {
    values: Values,
    arranged: Option<Tensor>,
    sums: Sums,
}

/// What forward adds up.
struct Sums {
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
        Ok(Program::new(KernelFile::SelfRouting, self.u.dtype())
            .define(Macro::Capsules, upper)
            .define(Macro::Pose, pose)
            .define(Macro::Votes, usize::from(self.w1.is_some())))
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

impl Operation<CudaDevice, Fixed<5>, Fixed<2>> for SelfRouting {
    type Saved = Kept;

    fn forward(
        &self,
        cuda: &mut Cuda,
        all @ [a, u, w2, b2, w1]: [&Var; 5],
        [activations, poses]: [&mut Tensor; 2],
    ) -> Result<Kept> {
        let (geometry, [a, u, w2, b2]) = (self.0, [a, u, w2, b2].map(Var::value));
        let w1 = w1.present();
        let RoutingGeometry { batch, lower, upper, .. } = geometry;
        let arranged = match w1.filter(|_| tensor::takes(&geometry, u.dtype(), true)) {
            Some(w1) => {
                let on = cuda.on();
                let arrange = |device: &_, _: &_| tensor::arrange(on, device, &geometry, [w1, w2, b2]);
                Some(cuda.tape.prepared(w1, "routing", arrange)?)
            }
            None => None,
        };
        let mut sums = Sums {
            routing: cuda.empty([batch, lower, upper], DType::F32)?,
            weights: cuda.empty([batch, upper], DType::F32)?,
            total: cuda.empty([batch], DType::F32)?,
        };
        let inputs = Inputs { geometry, a, u, w1, w2, b2, arranged: arranged.as_ref() };
        forward(cuda, &inputs, [activations, poses], &mut sums)?;
        Ok(Kept { values: Values::new(all, activations, poses), arranged, sums })
    }

    fn backward(&self, cuda: &mut Cuda, kept: &Kept, dy: [Option<Tensor>; 2], targets: To<5>) -> Result<()> {
        backward(cuda, self.0, kept, dy, targets)
    }
}

fn forward(
    cuda: &CudaDevice,
    inputs: &Inputs<'_>,
    [activations, poses]: [&mut Tensor; 2],
    sums: &mut Sums,
) -> Result<()> {
    let RoutingGeometry { batch, lower, upper, pose } = inputs.geometry;
    let context = cuda.context();
    let kernels = inputs.kernels(cuda)?;
    let _scope = context.scope(
        || "self_routing".into(),
        inputs.operations(),
        (batch * lower) as f64 * (4 * upper + inputs.u.dtype().size() * (pose + 1)) as f64,
    );
    // Sums of blocks: (splits, n, N, P + 1) and (splits, n).
    let splits = lower.div_ceil(kernels.per_split);
    let partial = context.allocate(splits * batch * upper * (pose + 1) * 4)?;
    let partial_a = context.allocate(splits * batch * 4)?;
    let mut arguments = inputs.values()?;
    arguments.extend(&kernels.weights);
    arguments.extend([
        Argument::from(view_mut(&mut sums.routing)?),
        (&partial).into(),
        (&partial_a).into(),
        batch.into(),
        lower.into(),
        kernels.per_split.into(),
    ]);
    let (threads, shared) = kernels.forward;
    let launch = Launch::grid([kernels.groups, splits, 1], threads).with_shared(shared);
    cuda.launch(&kernels.program, Kernel::routing_forward, launch, &arguments)?;
    let arguments = [
        (&partial).into(),
        (&partial_a).into(),
        splits.into(),
        batch.into(),
        view_mut(activations)?.into(),
        view_mut(poses)?.into(),
        view_mut(&mut sums.weights)?.into(),
        view_mut(&mut sums.total)?.into(),
    ];
    let launch = Launch::linear((batch * upper).div_ceil(256), 256);
    cuda.launch(&inputs.program()?, Kernel::routing_finish, launch, &arguments)
}

fn backward(
    cuda: &CudaDevice,
    geometry: RoutingGeometry,
    Kept { values, arranged, sums }: &Kept,
    [d_activations, d_poses]: [Option<Tensor>; 2],
    [da, du, dw2, db2, dw1]: To<5>,
) -> Result<()> {
    let RoutingGeometry { batch, lower, upper, pose } = geometry;
    let Values { a, u, w2, b2, w1, activations, poses } = values;
    let inputs = Inputs { geometry, a, u, w1: w1.as_ref(), w2, b2, arranged: arranged.as_ref() };
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
        d_activations.as_ref().map(view).transpose()?.into(),
        d_poses.as_ref().map(view).transpose()?.into(),
        view(activations)?.into(),
        view(poses)?.into(),
        view(&sums.weights)?.into(),
        view(&sums.total)?.into(),
        batch.into(),
        (&d_sums).into(),
        (&d_weights).into(),
        (&d_total).into(),
    ];
    arguments.extend(turned.iter().flat_map(|turned| [padded, turned.into()]));
    let launch = Launch::linear((kernels.padded * 32).div_ceil(256), 256);
    cuda.launch(&kernels.program, Kernel::routing_backward_prepare, launch, &arguments)?;

    let mut arguments = inputs.values()?;
    arguments.extend(&kernels.weights);
    arguments.extend([
        Argument::from(view(&sums.routing)?),
        (&d_sums).into(),
        (&d_weights).into(),
        (&d_total).into(),
        (&d_logits).into(),
    ]);
    arguments.extend(Target::arguments_of(du)?);
    arguments.extend(Target::arguments_of(da)?);
    arguments.extend([Argument::from(batch), lower.into()]);
    arguments.extend(kernels.per_block.map(Argument::from));
    cuda.launch(&kernels.program, Kernel::routing_backward_inputs, kernels.inputs, &arguments)?;

    if dw1.is_none() && dw2.is_none() && db2.is_none() {
        return Ok(());
    }
    let mut arguments = inputs.values()?;
    arguments.extend([
        Argument::from(view(&sums.routing)?),
        (&d_logits).into(),
        turned.as_ref().unwrap_or(&d_sums).into(),
    ]);
    for target in [dw1, dw2, db2] {
        arguments.extend(Target::arguments_of(target)?);
    }
    arguments.extend([Argument::from(batch), lower.into()]);
    arguments.extend(turned.is_some().then_some(padded));
    cuda.launch(&kernels.program, Kernel::routing_backward_weights, kernels.weight_gradients, &arguments)
}
