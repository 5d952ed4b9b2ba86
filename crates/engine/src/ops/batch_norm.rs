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

use std::sync::Arc;

use super::operation::{Context, Cpu, Fixed, Operation, To};
use crate::collective::Collective;
use crate::error::{Error, Result};
use crate::ops::conv2d::{Padding, conv2d};
use crate::parameters::BufferId;
use crate::pool::CpuPool;
use crate::shape::Shape;
use crate::tape::{Tape, Var};
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
    match shortcut {
        Shortcut::Normalised(residual, (affine, running)) if tape.device().as_cuda().is_none() => {
            let residual = batch_norm(tape, residual, affine, running, false)?;
            normalise(tape, x, norm, Some((&residual, None)), true, Form::Both)
        }
        Shortcut::Normalised(residual, own) => {
            normalise(tape, x, norm, Some((residual, Some(own))), true, Form::Both)
        }
        Shortcut::Identity(residual) => normalise(tape, x, norm, Some((residual, None)), true, Form::Both),
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
    let border = is_map && padding == Padding::before_after(0, 1) && tape.device().as_cuda().is_some();
    let y = normalise(tape, x, norm, None, true, if border { Form::Bordered } else { Form::Both })?;
    conv2d(tape, &y, weight, stride, if border { Padding::default() } else { padding })
}

/// A batch norm as backward needs it.
pub(crate) struct Layer {
    pub x: Tensor,
    pub gamma: Tensor,
    /// Mean and 1 / sqrt(var + eps), on CUDA also y = x scale + shift.
    pub statistics: Tensor,
}

impl Layer {
    /// The layer with `rows` rows of statistics: those that the tape gives, or else what `compute` writes.
    fn new<D>(
        context: &mut Context<'_, '_, D>,
        x: &Tensor,
        [gamma, beta]: [&Tensor; 2],
        running: RunningStatistics,
        rows: usize,
        compute: impl FnOnce(&mut Context<'_, '_, D>, &mut Tensor) -> Result<()>,
    ) -> Result<Self> {
        let channels = x.dims().last().copied().unwrap_or(0);
        let tape = &mut *context.tape;
        let same = [gamma.shape(), beta.shape(), tape.buffer(running.mean)?.shape()];
        if same.iter().any(|shape| shape.dims() != [channels]) {
            let detail = format!("x {}, gamma {}, beta {}", x.shape(), gamma.shape(), beta.shape());
            return Err(Error::shape("batch_norm", detail));
        }
        if tape.is_training() && tape.whole_rows(x.len() / channels.max(1)) < 2 {
            let detail = format!("x {}: the variance of one row is undefined", x.shape());
            return Err(Error::shape("batch_norm", detail));
        }
        let statistics = match tape.given_statistics() {
            Some(given) => given,
            None => {
                let mut statistics = context.empty([rows, channels], DType::F32)?;
                compute(context, &mut statistics)?;
                context.tape.note_statistics(&statistics);
                statistics
            }
        };
        Ok(Self { x: x.clone(), gamma: gamma.clone(), statistics })
    }
}

fn normalise(
    tape: &mut Tape<'_>,
    x: &Var,
    ([gamma, beta], running): Norm<'_>,
    residual: Option<(&Var, Option<Norm<'_>>)>,
    relu: bool,
    form: Form,
) -> Result<Var> {
    if let Some((residual, _)) = residual
        && residual.spec() != x.spec()
    {
        let detail = format!("x {}, residual {}", x.shape(), residual.shape());
        return Err(Error::shape("batch_norm", detail));
    }
    let nothing = Var::absent();
    let (residual, own) = residual.unwrap_or((&nothing, None));
    let ([gamma_s, beta_s], shortcut) = match own {
        Some((affine, running)) => (affine, Some(running)),
        None => ([&nothing; 2], None),
    };
    let shape = match *x.shape().dims() {
        [batch, height, width, channels] if form == Form::Bordered => {
            Shape::new(&[batch, height + 1, width + 1, channels])
        }
        _ => x.shape(),
    };
    let dtype = x.value().dtype();
    let written = if form == Form::Leaving { dtype.of_gradient() } else { dtype };
    let op = BatchNorm { running, shortcut, relu, form, ranks: Arc::clone(tape.collective()) };
    tape.apply("batch_norm", op, [x, gamma, beta, residual, gamma_s, beta_s], (shape, written))
}

/// Its inputs are x, gamma, beta, the residual, and gamma and beta of the residual's own batch norm.
struct BatchNorm {
    running: RunningStatistics,
    /// Of the residual's own batch norm. CUDA only.
    shortcut: Option<RunningStatistics>,
    relu: bool,
    form: Form,
    /// Who shares the batch.
    ranks: Arc<dyn Collective>,
}

impl Operation<CpuPool, Fixed<6>> for BatchNorm {
    /// The layer, and y where there is a ReLU.
    type Saved = (Layer, Option<Tensor>);

    fn forward(
        &self,
        cpu: &mut Cpu,
        [x, gamma, beta, residual, ..]: [&Var; 6],
        y: &mut Tensor,
    ) -> Result<Self::Saved> {
        let (x, running, [gamma, beta]) = (x.value(), self.running, [gamma.value(), beta.value()]);
        let layer =
            Layer::new(cpu, x, [gamma, beta], running, 2, |cpu, to| cpu::statistics(cpu, x, running, to))?;
        let residual = residual.present().map(Tensor::as_slice).transpose()?;
        let (statistics, affine) = (layer.statistics.as_slice()?, [gamma.as_slice()?, beta.as_slice()?]);
        cpu::normalise(x.as_slice()?, statistics, affine, residual, self.relu, y.as_mut_slice()?);
        Ok((layer, self.relu.then(|| y.clone())))
    }

    fn backward(
        &self,
        cpu: &mut Cpu,
        (layer, y): &Self::Saved,
        mut dy: Tensor,
        [dx, dgamma, dbeta, ..]: To<6>,
    ) -> Result<()> {
        if y.is_some() {
            dy.make_unique(cpu.device)?;
        }
        cpu::backward(&*self.ranks, layer, y.as_ref(), &mut dy, [dx, dgamma, dbeta])?;
        cpu.pass(dy);
        Ok(())
    }

    /// The gradient of a residual without batch norm is g.
    fn passes(&self, input: usize) -> bool {
        input == 3 && self.shortcut.is_none()
    }
}

#[cfg(test)]
mod tests;
