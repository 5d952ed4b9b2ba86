//! The first layer on the GPU in f16, with gradients in bf16. Kept for backward: the convolution's output, the pool's choices, and the
//! chosen values; everything else is computed again.

use gpu::Launch;

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::batch_norm::cuda as norm;
use crate::ops::conv2d::Geometry;
use crate::ops::image_conv::cuda::{pixel_arguments, sizes};
use crate::ops::{Images, Padding, RunningStatistics};
use crate::tape::{Backward, Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// What backward needs.
struct Kept {
    geometry: Geometry,
    images: Images,
    gamma: Tensor,
    /// The convolution's output.
    x: Tensor,
    statistics: Tensor,
    choice: Tensor,
    /// The values of `x` that were chosen.
    peaks: Tensor,
}

const CHANNELS: usize = 64;
/// Shared memory of the weight gradient: image rows, gradients, three rows of factors; as in the kernel.
const SHARED_BYTES: usize = 13 * (133 * 4 + 12) * 2 + 4 * 64 * 72 * 2 + 3 * CHANNELS * 4;

fn program() -> Program {
    Program::new(kernels::STEM, DType::F16)
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
    cuda.launch(&program(), "stem_forward", launch, &arguments)
}

pub(super) fn stem(
    tape: &mut Tape<'_>,
    cuda: &CudaDevice,
    geometry: &Geometry,
    images: &Images,
    [weight, gamma, beta]: [&Var; 3],
    running: RunningStatistics,
) -> Result<Var> {
    for parameter in [gamma, beta] {
        if parameter.shape().dims() != [CHANNELS] {
            return Err(Error::shape(
                "stem",
                format!("gamma or beta {} for {CHANNELS} channels", parameter.shape()),
            ));
        }
    }
    let device = tape.device();
    let mut x = Tensor::empty(&device, geometry.output_shape(), DType::F16)?;
    convolve(cuda, geometry, images, weight.value(), &mut x)?;
    let mut statistics = Tensor::empty(&device, [norm::STATISTICS, CHANNELS], DType::F32)?;
    let affine = (gamma.value(), beta.value());
    norm::compute_statistics(tape, cuda, &x, affine, running, &mut statistics)?;

    let [oh, ow, _] = geometry.output;
    let pooled = [geometry.batch, oh.saturating_sub(2) / 2 + 1, ow.saturating_sub(2) / 2 + 1, CHANNELS];
    let mut y = Tensor::empty(&device, pooled, DType::F16)?;
    let mut rounded = tape.is_training().then(|| Tensor::empty(&device, pooled, DType::Bf16)).transpose()?;
    let mut choice = Tensor::empty(&device, pooled, DType::U8)?;
    let mut peaks = Tensor::empty(&device, pooled, DType::F16)?;
    {
        let bytes = (2 * x.len() + 7 * y.len()) as f64;
        let _scope = cuda.context().scope(|| "stem normalise and pool".into(), 4.0 * x.len() as f64, bytes);
        let [_, _, scale, shift] = norm::rows_of(view(&statistics)?, CHANNELS)?;
        let arguments = [
            view(&x)?.into(),
            scale.into(),
            shift.into(),
            view_mut(&mut y)?.into(),
            rounded.as_mut().map(view_mut).transpose()?.into(),
            view_mut(&mut choice)?.into(),
            view_mut(&mut peaks)?.into(),
            geometry.batch.into(),
            oh.into(),
            ow.into(),
            pooled[1].into(),
            pooled[2].into(),
        ];
        cuda.launch(&program(), "stem_pool", cuda.elementwise(y.len() / 8), &arguments)?;
    }
    let ids = [weight.gradient(), gamma.gradient(), beta.gradient()];
    let kept = Kept {
        geometry: *geometry,
        images: images.clone(),
        gamma: gamma.value().clone(),
        x,
        statistics,
        choice,
        peaks,
    };
    let y = tape.record("stem", &ids, y, move |context, dy| {
        let [mut dw, mut dgamma, mut dbeta] =
            [context.target(ids[0])?, context.target(ids[1])?, context.target(ids[2])?];
        backward(context, &kept, &dy, [&mut dw, &mut dgamma, &mut dbeta])?;
        [dw, dgamma, dbeta].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    });
    Ok(y.with_rounded(rounded))
}

fn backward(
    context: &Backward<'_, '_>,
    kept: &Kept,
    dy: &Tensor,
    [dw, dgamma, dbeta]: [&mut Option<Target>; 3],
) -> Result<()> {
    let crate::device::Device::Cuda(cuda) = context.device() else { return Ok(()) };
    let gpu = cuda.context();
    let ([oh, ow, _], batch) = (kept.geometry.output, kept.geometry.batch);
    let (ph, pw) = (dy.dims()[1], dy.dims()[2]);
    let blocks = cuda.multiprocessors() * 4;
    let partial = gpu.allocate(blocks * 2 * CHANNELS * 4)?;
    let coefficients = {
        let _scope = gpu.scope(|| "stem backward sums".into(), 5.0 * dy.len() as f64, 5.0 * dy.len() as f64);
        let [mean, ..] = norm::rows_of(view(&kept.statistics)?, CHANNELS)?;
        let arguments = [
            view(dy)?.into(),
            view(&kept.choice)?.into(),
            view(&kept.peaks)?.into(),
            mean.into(),
            (&partial).into(),
            ((batch * ph * pw) as i64).into(),
        ];
        cuda.launch(&program(), "stem_backward_sums", Launch::linear(blocks, 256), &arguments)?;
        let layer = norm::Layer { x: &kept.x, gamma: &kept.gamma, statistics: &kept.statistics };
        norm::finish_backward(&cuda, (&partial, blocks), batch * oh * ow, layer, dgamma, dbeta)?
    };
    let Some(dw) = dw else { return Ok(()) };
    let pixels = &kept.images.pixels;
    let bytes = (2 * kept.x.len() + 3 * dy.len() + pixels.len() * pixels.dtype().size()) as f64;
    let _scope = gpu.scope(|| "stem weight gradient".into(), 2.0 * 147.0 * kept.x.len() as f64, bytes);
    let [ca, cb, cc] = norm::coefficients_of(&coefficients, CHANNELS)?;
    let blocks = cuda.multiprocessors() * 2;
    let shares = gpu.allocate(blocks * CHANNELS * 7 * 32 * 4)?;
    let mut arguments = pixel_arguments(&kept.images)?;
    arguments.extend([
        gpu::Argument::from(view(dy)?),
        view(&kept.choice)?.into(),
        view(&kept.x)?.into(),
        ca.into(),
        cb.into(),
        cc.into(),
        (&shares).into(),
    ]);
    arguments.extend(sizes(&kept.geometry));
    arguments.extend([gpu::Argument::from(ph), pw.into()]);
    let launch = Launch::linear(blocks, 256).with_shared(SHARED_BYTES);
    cuda.launch(&program(), "stem_weight_gradient", launch, &arguments)?;
    let add = i32::from(dw.accumulate);
    let count = dw.tensor.len();
    let arguments = [(&shares).into(), blocks.into(), view_mut(&mut dw.tensor)?.into(), add.into()];
    let launch = Launch::linear(count.div_ceil(256), 256);
    cuda.launch(&program(), "stem_finish_weight_gradient", launch, &arguments)
}
