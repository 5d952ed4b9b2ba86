//! Batch norm, fused with the sum and the ReLU that follow it in a residual network:
//!
//! ```text
//! y = relu( gamma (x - mean) / sqrt(var + eps) + beta + residual )        relu and residual are optional
//! ```
//!
//! Shapes: x, residual, y (..., channels); gamma, beta (channels). Mean and variance are per channel over everything
//! else: in training of this batch (biased), and running statistics move towards it by `MOMENTUM` (unbiased
//! variance); in evaluation the running statistics are used. The residual may be normalised on the way by a batch norm
//! of its own, so that the sum is rounded once.
//!
//! Backward, with g = dy where y > 0 (all of dy without ReLU), n rows and xh = (x - mean) / sqrt(var + eps):
//! dbeta = sum g, dgamma = sum g xh, dresidual = g, dx = gamma / sqrt(var + eps) (g - dbeta / n - xh dgamma / n).
//!
//! Where x is f16, what goes on to a convolution is written in f16 and again in bf16 (for the convolution's weight
//! gradient); what leaves the convolutional network is bf16.

mod cpu;
pub(crate) mod cuda;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::conv2d::{Padding, conv2d};
use crate::parameters::BufferId;
use crate::shape::Shape;
use crate::tape::{Backward, GradientId, Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// Added to the variance.
pub const EPSILON: f32 = 1e-5;
/// Share of the new batch in the running statistics.
pub const MOMENTUM: f32 = 0.1;

/// Where the running statistics of a batch norm are kept.
#[derive(Clone, Copy, Debug)]
pub struct RunningStatistics {
    /// Mean, by channel.
    pub mean: BufferId,
    /// Variance, by channel.
    pub variance: BufferId,
    /// Number of batches seen.
    pub batches: BufferId,
}

/// The affine part of a batch norm, gamma and beta, and its running statistics.
pub type Norm<'a> = ([&'a Var; 2], RunningStatistics);

/// What goes around the convolutions of a block.
#[derive(Clone, Copy)]
pub enum Shortcut<'a> {
    /// This itself.
    Identity(&'a Var),
    /// This, normalised.
    Normalised(&'a Var, Norm<'a>),
}

/// In which types the result is written where x is f16; else it is in the type of x.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// bf16: it leaves the convolutional network.
    Leaving,
    /// f16.
    Value,
    /// f16 and, in training, bf16.
    Both,
    /// As `Both`; maps have one more row below and column to the right, of zeros. CUDA only.
    Bordered,
}

/// Normalises `x` by channel, and applies ReLU where `relu` is set.
pub fn batch_norm(
    tape: &mut Tape<'_>,
    x: &Var,
    affine: [&Var; 2],
    running: RunningStatistics,
    relu: bool,
) -> Result<Var> {
    normalise(tape, x, (affine, running), None, relu, Form::Leaving)
}

/// As [`batch_norm`] with ReLU, for what goes on within a convolutional network.
pub(crate) fn norm_relu(tape: &mut Tape<'_>, x: &Var, norm: Norm<'_>) -> Result<Var> {
    normalise(tape, x, norm, None, true, Form::Value)
}

/// The end of a residual block: normalises `x`, adds the shortcut, applies ReLU.
pub fn norm_add_relu(tape: &mut Tape<'_>, x: &Var, norm: Norm<'_>, shortcut: Shortcut<'_>) -> Result<Var> {
    let (residual, own) = match shortcut {
        Shortcut::Identity(residual) => (residual, None),
        Shortcut::Normalised(residual, own) => (residual, Some(own)),
    };
    match (own, tape.device()) {
        (Some((affine, running)), Device::Cpu(_)) => {
            let residual = batch_norm(tape, residual, affine, running, false)?;
            normalise(tape, x, norm, Some((&residual, None)), true, Form::Both)
        }
        _ => normalise(tape, x, norm, Some((residual, own)), true, Form::Both),
    }
}

/// The batch norm and ReLU of `x`, convolved with `weight`: [`batch_norm`] and [`conv2d`](super::conv2d()). On CUDA,
/// where the convolution pads with zeros at the right and the bottom only, the batch norm writes them.
pub fn norm_relu_conv(
    tape: &mut Tape<'_>,
    x: &Var,
    norm: Norm<'_>,
    weight: &Var,
    stride: usize,
    padding: Padding,
) -> Result<Var> {
    let is_map = x.shape().dims().len() == 4;
    let border = is_map && padding == Padding::before_after(0, 1) && matches!(tape.device(), Device::Cuda(_));
    let y = normalise(tape, x, norm, None, true, if border { Form::Bordered } else { Form::Both })?;
    conv2d(tape, &y, weight, stride, if border { Padding::default() } else { padding })
}

/// The statistics of `x` as backward needs them: mean and 1 / sqrt(var + eps), on CUDA also y = x scale + shift.
fn statistics(tape: &mut Tape<'_>, x: &Tensor, ([gamma, beta], running): Norm<'_>) -> Result<Tensor> {
    let channels = x.dims().last().copied().unwrap_or(0);
    let rows = x.len() / channels.max(1);
    let same = [gamma.shape(), beta.shape(), tape.buffer(running.mean)?.shape()];
    if same.iter().any(|shape| shape.dims() != [channels]) {
        let detail = format!("x {}, gamma {}, beta {}", x.shape(), gamma.shape(), beta.shape());
        return Err(Error::shape("batch_norm", detail));
    }
    if tape.is_training() && rows * tape.collective().ranks() < 2 {
        let detail = format!("x {}: the variance of one row is undefined", x.shape());
        return Err(Error::shape("batch_norm", detail));
    }
    if let Some(given) = tape.given_statistics() {
        return Ok(given);
    }
    let device = tape.device();
    let kept_rows = if matches!(device, Device::Cuda(_)) { cuda::STATISTICS } else { 2 };
    let mut statistics = Tensor::empty(&device, [kept_rows, channels], DType::F32)?;
    match &device {
        Device::Cpu(_) if tape.is_training() => {
            let moments = cpu::moments(tape, x.as_slice()?, channels, running)?;
            cpu::update_running(tape, &moments, running)?;
            moments.write(statistics.as_mut_slice()?);
        }
        Device::Cpu(_) => {
            let to = statistics.as_mut_slice::<f32>()?;
            let (mean, inverse) = to.split_at_mut(channels);
            mean.copy_from_slice(tape.buffer(running.mean)?.as_slice()?);
            let variance = tape.buffer(running.variance)?.as_slice::<f32>()?;
            inverse.iter_mut().zip(variance).for_each(|(i, v)| *i = 1.0 / (v + EPSILON).sqrt());
        }
        Device::Cuda(cuda) => {
            let affine = (gamma.value(), beta.value());
            cuda::compute_statistics(tape, cuda, x, affine, running, &mut statistics)?;
        }
    }
    tape.note_statistics(&statistics);
    Ok(statistics)
}

/// A batch norm as backward needs it.
struct Kept {
    x: Tensor,
    gamma: Tensor,
    statistics: Tensor,
    /// Of x, gamma and beta.
    gradients: [GradientId; 3],
}

impl Kept {
    fn new(tape: &mut Tape<'_>, x: &Var, norm: Norm<'_>) -> Result<Self> {
        let [gamma, beta] = norm.0;
        Ok(Self {
            x: x.value().clone(),
            gamma: gamma.value().clone(),
            statistics: statistics(tape, x.value(), norm)?,
            gradients: [x, gamma, beta].map(Var::gradient),
        })
    }

    fn targets(&self, context: &mut Backward<'_, '_>) -> Result<[Option<Target>; 3]> {
        let [x, gamma, beta] = self.gradients;
        Ok([context.target(x)?, context.target(gamma)?, context.target(beta)?])
    }

    /// Whether the gradients of both inputs are wanted, and none of all gradients is one of the other's.
    fn is_apart_from(&self, other: &Self) -> bool {
        let shared = |id: &GradientId| id.is_wanted() && other.gradients.contains(id);
        let wanted = self.gradients[0].is_wanted() && other.gradients[0].is_wanted();
        wanted && !self.gradients.iter().any(shared)
    }

    fn layer(&self) -> cuda::Layer<'_> {
        cuda::Layer { x: &self.x, gamma: &self.gamma, statistics: &self.statistics }
    }
}

fn normalise(
    tape: &mut Tape<'_>,
    x: &Var,
    norm: Norm<'_>,
    residual: Option<(&Var, Option<Norm<'_>>)>,
    relu: bool,
    form: Form,
) -> Result<Var> {
    if let Some((residual, _)) = residual
        && (residual.shape() != x.shape() || residual.value().dtype() != x.value().dtype())
    {
        let detail = format!("x {}, residual {}", x.shape(), residual.shape());
        return Err(Error::shape("batch_norm", detail));
    }
    let device = tape.device();
    let of_residual = match residual {
        Some((residual, Some(own))) => Some(Kept::new(tape, residual, own)?),
        _ => None,
    };
    let of_x = Kept::new(tape, x, norm)?;
    let y_shape = match *x.shape().dims() {
        [batch, height, width, channels] if form == Form::Bordered => {
            Shape::new(&[batch, height + 1, width + 1, channels])
        }
        _ => x.shape(),
    };
    let dtype = x.value().dtype();
    let is_f16 = dtype == DType::F16;
    let write =
        |wanted: bool, dtype: DType| wanted.then(|| Tensor::empty(&device, y_shape, dtype)).transpose();
    let mut value = write(!is_f16 || form != Form::Leaving, dtype)?;
    let both = matches!(form, Form::Both | Form::Bordered) && tape.is_training();
    let mut rounded = write(is_f16 && (form == Form::Leaving || both), dtype.of_gradient())?;
    match (&device, &mut value) {
        (Device::Cpu(_), Some(y)) => {
            let residual = residual.map(|(residual, _)| residual.value().as_slice()).transpose()?;
            let (gamma, beta) = (of_x.gamma.as_slice()?, norm.0[1].value().as_slice()?);
            let (x, statistics) = (x.value().as_slice()?, of_x.statistics.as_slice()?);
            cpu::normalise(x, statistics, gamma, beta, residual, relu, y.as_mut_slice()?);
        }
        (Device::Cuda(cuda), _) => {
            let added = residual.map(|(residual, _)| {
                (residual.value(), of_residual.as_ref().map(|residual| &residual.statistics))
            });
            let operands = (x.value(), &of_x.statistics);
            let outputs = [value.as_mut(), rounded.as_mut()];
            cuda::forward(cuda, operands, added, relu, form == Form::Bordered, outputs)?;
        }
        (Device::Cpu(_), None) => {}
    }
    // The ReLU's mask is the same in both types; f16 is for the next operation only.
    let y = match rounded.as_ref().or(value.as_ref()) {
        Some(y) => y.clone(),
        None => return Err(Error::shape("batch_norm", "nothing was to be written")),
    };
    let mask = cuda::mask_of(relu, residual.is_some(), &y);
    let kept = (relu && matches!(device, Device::Cpu(_))).then(|| y.clone());
    let passed = match (residual, &of_residual) {
        (Some((residual, _)), None) => Some(residual.gradient()),
        _ => None,
    };
    let mut inputs = of_x.gradients.to_vec();
    inputs.extend(of_residual.iter().flat_map(|residual| residual.gradients).chain(passed));
    let twin = if value.is_some() { rounded } else { None };
    let y = tape.record("batch_norm", &inputs, value.unwrap_or(y), move |context, mut dy| {
        match context.device() {
            Device::Cpu(_) => cpu::backward(context, &of_x, kept.as_ref(), &mut dy)?,
            Device::Cuda(_) => {
                if !dy.is_unique() && matches!(mask, cuda::Mask::Output(_)) {
                    let mut own = Tensor::empty(&context.device(), dy.shape(), dy.dtype())?;
                    own.copy_from(&dy)?;
                    dy = own;
                }
                cuda_backward(
                    context,
                    (&of_x, of_residual.as_ref()),
                    (&mask, form == Form::Bordered),
                    &mut dy,
                )?;
            }
        }
        match passed {
            Some(passed) => context.add(passed, dy),
            None => Ok(()),
        }
    });
    Ok(y.with_rounded(twin))
}

/// Leaves g in `dy` where there is a residual.
fn cuda_backward(
    context: &mut Backward<'_, '_>,
    (of_x, of_residual): (&Kept, Option<&Kept>),
    (mask, border): (&cuda::Mask, bool),
    dy: &mut Tensor,
) -> Result<()> {
    let Device::Cuda(cuda) = context.device() else { return Ok(()) };
    let [mut dx, mut dgamma, mut dbeta] = of_x.targets(context)?;
    let mut targets = [&mut dx, &mut dgamma, &mut dbeta];
    let both = match (of_residual, mask) {
        (Some(of_residual), cuda::Mask::Output(y)) if of_x.is_apart_from(of_residual) => {
            Some((of_residual, y))
        }
        _ => None,
    };
    if let Some((of_residual, y)) = both {
        let [mut ds, mut dgamma_s, mut dbeta_s] = of_residual.targets(context)?;
        let targets =
            [targets.each_mut().map(|target| &mut **target), [&mut ds, &mut dgamma_s, &mut dbeta_s]];
        cuda::backward_both(&cuda, [of_x.layer(), of_residual.layer()], y, dy, targets)?;
        [ds, dgamma_s, dbeta_s].into_iter().flatten().for_each(|target| context.put(target));
    } else {
        cuda::backward(&cuda, of_x.layer(), (mask, border), dy, targets)?;
    }
    [dx, dgamma, dbeta].into_iter().flatten().for_each(|target| context.put(target));
    if let (Some(of_residual), None) = (of_residual, both) {
        let [mut dx, mut dgamma, mut dbeta] = of_residual.targets(context)?;
        let targets = [&mut dx, &mut dgamma, &mut dbeta];
        cuda::backward(&cuda, of_residual.layer(), (&cuda::Mask::None, false), dy, targets)?;
        [dx, dgamma, dbeta].into_iter().flatten().for_each(|target| context.put(target));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
