//! The first layer on the GPU in f16, with gradients in bf16. Kept for backward: the convolution's output, the pool's choices, and the
//! chosen values; everything else is computed again.

use std::sync::Arc;

use gpu::Launch;

use crate::collective::Collective;
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::batch_norm::{Layer, cuda as norm};
use crate::ops::conv2d::Geometry;
use crate::ops::image_conv::cuda::{pixel_arguments, sizes};
use crate::ops::operation::{Cuda, Fixed, Operation, To};
use crate::ops::{Images, Padding, RunningStatistics};
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// Its inputs are the weight, gamma and beta.
pub(super) struct Stem {
    pub geometry: Geometry,
    pub images: Images,
    pub running: RunningStatistics,
    /// Who shares the batch.
    pub ranks: Arc<dyn Collective>,
}

/// What backward needs.
pub(super) struct Saved {
    /// The batch norm of the convolution's output.
    layer: Layer,
    choice: Tensor,
    /// The convolution's outputs that were chosen.
    peaks: Tensor,
}

const CHANNELS: usize = 64;
/// Shared memory of the weight gradient: image rows, gradients, three rows of factors; as in the kernel.
const SHARED_BYTES: usize = 13 * (133 * 4 + 12) * 2 + 4 * 64 * 72 * 2 + 3 * CHANNELS * 4;

fn program() -> Program {
    Program::new(KernelFile::Stem, DType::F16)
}

/// Whether the kernels of `stem.cu` compute this convolution.
pub(super) fn is_published(geometry: &Geometry) -> bool {
    geometry.kernel == [7, 7]
        && geometry.stride == 2
        && geometry.padding == Padding::before_after(2, 3)
        && geometry.output[2] == 64
}

/// The convolution.
fn convolve(
    cuda: &CudaDevice,
    geometry: &Geometry,
    images: &Images,
    weight: &Tensor,
    y: &mut Tensor,
) -> Result<()> {
    let bytes = (images.pixels.len() * images.pixels.dtype().size() + y.len() * 2) as f64;
    let operations = 2.0 * 147.0 * y.len() as f64;
    let _scope = cuda.context().scope(|| "stem convolution".into(), operations, bytes);
    let mut arguments = pixel_arguments(images)?;
    arguments.extend([gpu::Argument::from(view(weight)?), view_mut(y)?.into()]);
    arguments.extend(sizes(geometry));
    let launch = Launch::linear(cuda.multiprocessors() * 2, 256);
    cuda.launch(&program(), Kernel::stem_forward, launch, &arguments)
}

/// The whole layer.
pub(super) fn stem(tape: &mut Tape<'_>, on: &Arc<CudaDevice>, inputs: [&Var; 3], op: Stem) -> Result<Var> {
    if let Some(parameter) = inputs[1..].iter().find(|parameter| parameter.shape().dims() != [CHANNELS]) {
        let detail = format!("gamma or beta {} for {CHANNELS} channels", parameter.shape());
        return Err(Error::shape("stem", detail));
    }
    let [oh, ow, _] = op.geometry.output;
    let pooled = [op.geometry.batch, oh.saturating_sub(2) / 2 + 1, ow.saturating_sub(2) / 2 + 1, CHANNELS];
    tape.apply_on("stem", on.clone(), op, inputs, (pooled.into(), DType::F16))
}

impl Operation<CudaDevice, Fixed<3>> for Stem {
    type Saved = Saved;

    fn forward(&self, cuda: &mut Cuda, inputs: [&Var; 3], y: &mut Tensor) -> Result<Saved> {
        let [weight, gamma, beta] = inputs.map(Var::value);
        let mut x = cuda.empty(self.geometry.output_shape(), DType::F16)?;
        convolve(cuda, &self.geometry, &self.images, weight, &mut x)?;
        let mut statistics = cuda.empty([norm::STATISTICS, CHANNELS], DType::F32)?;
        let on = cuda.on();
        norm::compute_statistics(cuda.tape, on, &x, [gamma, beta], self.running, &mut statistics)?;
        let (training, pooled) = (cuda.tape.is_training(), y.shape());
        let mut rounded = training.then(|| cuda.empty(pooled, DType::Bf16)).transpose()?;
        let mut choice = cuda.empty(pooled, DType::U8)?;
        let mut peaks = cuda.empty(pooled, DType::F16)?;
        {
            let [oh, ow, _] = self.geometry.output;
            let bytes = (2 * x.len() + 7 * y.len()) as f64;
            let name = || "stem normalise and pool".into();
            let _scope = cuda.context().scope(name, 4.0 * x.len() as f64, bytes);
            let [_, _, scale, shift] = norm::rows_of(view(&statistics)?, CHANNELS)?;
            let arguments = [
                view(&x)?.into(),
                scale.into(),
                shift.into(),
                view_mut(y)?.into(),
                rounded.as_mut().map(view_mut).transpose()?.into(),
                view_mut(&mut choice)?.into(),
                view_mut(&mut peaks)?.into(),
                self.geometry.batch.into(),
                oh.into(),
                ow.into(),
                pooled[1].into(),
                pooled[2].into(),
            ];
            cuda.launch(&program(), Kernel::stem_pool, cuda.elementwise(y.len() / 8), &arguments)?;
        }
        cuda.set_twin(rounded);
        Ok(Saved { layer: Layer { x, gamma: gamma.clone(), statistics }, choice, peaks })
    }

    fn backward(&self, cuda: &mut Cuda, saved: &Saved, dy: Tensor, targets: To<3>) -> Result<()> {
        let on = norm::On { cuda: cuda.on(), ranks: &*self.ranks, rows: cuda.tape.rows_of_all() };
        backward(on, self, saved, &dy, targets)
    }
}

fn backward(
    on: norm::On<'_>,
    Stem { geometry, images, .. }: &Stem,
    Saved { layer, choice, peaks }: &Saved,
    dy: &Tensor,
    [dw, dgamma, dbeta]: To<3>,
) -> Result<()> {
    let cuda = on.cuda;
    let gpu = cuda.context();
    let ([oh, ow, _], batch) = (geometry.output, geometry.batch);
    let (ph, pw) = (dy.dims()[1], dy.dims()[2]);
    let blocks = cuda.multiprocessors() * 4;
    let partial = gpu.allocate(blocks * 2 * CHANNELS * 4)?;
    let coefficients = {
        let _scope = gpu.scope(|| "stem backward sums".into(), 5.0 * dy.len() as f64, 5.0 * dy.len() as f64);
        let [mean, ..] = norm::rows_of(view(&layer.statistics)?, CHANNELS)?;
        let arguments = [
            view(dy)?.into(),
            view(choice)?.into(),
            view(peaks)?.into(),
            mean.into(),
            (&partial).into(),
            ((batch * ph * pw) as i64).into(),
        ];
        cuda.launch(&program(), Kernel::stem_backward_sums, Launch::linear(blocks, 256), &arguments)?;
        norm::finish_backward(on, (&partial, blocks), batch * oh * ow, layer, dgamma, dbeta)?
    };
    let Some(dw) = dw else { return Ok(()) };
    let pixels = &images.pixels;
    let bytes = (2 * layer.x.len() + 3 * dy.len() + pixels.len() * pixels.dtype().size()) as f64;
    let _scope = gpu.scope(|| "stem weight gradient".into(), 2.0 * 147.0 * layer.x.len() as f64, bytes);
    let [ca, cb, cc] = norm::coefficients_of(&coefficients, CHANNELS)?;
    let blocks = cuda.multiprocessors() * 2;
    let shares = gpu.allocate(blocks * CHANNELS * 7 * 32 * 4)?;
    let mut arguments = pixel_arguments(images)?;
    arguments.extend([
        gpu::Argument::from(view(dy)?),
        view(choice)?.into(),
        view(&layer.x)?.into(),
        ca.into(),
        cb.into(),
        cc.into(),
        (&shares).into(),
    ]);
    arguments.extend(sizes(geometry));
    arguments.extend([gpu::Argument::from(ph), pw.into()]);
    let launch = Launch::linear(blocks, 256).with_shared(SHARED_BYTES);
    cuda.launch(&program(), Kernel::stem_weight_gradient, launch, &arguments)?;
    let count = dw.tensor.len();
    let [to, add] = dw.arguments()?;
    let arguments = [(&shares).into(), blocks.into(), to, add];
    let launch = Launch::linear(count.div_ceil(256), 256);
    cuda.launch(&program(), Kernel::stem_finish_weight_gradient, launch, &arguments)
}
