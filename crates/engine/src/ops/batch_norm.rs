//! Batch norm, fused with the residual sum and the ReLU that follow it in a residual network:
//!
//! ```text
//! y = relu( gamma (x - mean) / sqrt(var + eps) + beta + residual )        relu and residual are optional
//! ```
//!
//! Shapes: x, residual, y (..., channels); gamma, beta (channels). Mean and variance are per channel over everything
//! else: in training of this batch (biased), and running statistics move towards it by `MOMENTUM` (unbiased
//! variance); in evaluation the running statistics are used.
//!
//! Backward, with g = dy where y > 0 (all of dy without ReLU), n rows and xh = (x - mean) / sqrt(var + eps):
//! dbeta = sum g, dgamma = sum g xh, dresidual = g, dx = gamma / sqrt(var + eps) (g - dbeta / n - xh dgamma / n).

mod cpu;
pub(crate) mod cuda;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::conv2d::{Padding, conv2d};
use crate::parameters::BufferId;
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

/// Normalises `x` by channel, adds `residual`, and applies ReLU where `relu` is set.
pub fn batch_norm(
    tape: &mut Tape<'_>,
    x: &Var,
    gamma: &Var,
    beta: &Var,
    running: RunningStatistics,
    residual: Option<&Var>,
    relu: bool,
) -> Result<Var> {
    normalise(tape, x, [gamma, beta], running, residual, relu, false)
}

/// The batch norm and ReLU of `x`, convolved with `weight`: [`batch_norm`] and [`conv2d`](super::conv2d()). On CUDA,
/// where the convolution pads with zeros at the right and the bottom only, the batch norm writes them.
pub fn norm_relu_conv(
    tape: &mut Tape<'_>,
    x: &Var,
    [gamma, beta]: [&Var; 2],
    running: RunningStatistics,
    weight: &Var,
    stride: usize,
    padding: Padding,
) -> Result<Var> {
    let is_map = x.shape().dims().len() == 4;
    let border = is_map && padding == Padding::before_after(0, 1) && matches!(tape.device(), Device::Cuda(_));
    let y = normalise(tape, x, [gamma, beta], running, None, true, border)?;
    conv2d(tape, &y, weight, stride, if border { Padding::default() } else { padding })
}

/// With `border` (CUDA only), y (n, h, w, channels) has one more row below and column to the right, of zeros.
fn normalise(
    tape: &mut Tape<'_>,
    x: &Var,
    [gamma, beta]: [&Var; 2],
    running: RunningStatistics,
    residual: Option<&Var>,
    relu: bool,
    border: bool,
) -> Result<Var> {
    let channels = x.shape().last().copied().unwrap_or(0);
    let rows = x.shape().len() / channels.max(1);
    let same = [gamma.shape(), beta.shape(), tape.buffer(running.mean)?.shape()];
    if same.iter().any(|shape| shape.dims() != [channels]) || residual.is_some_and(|r| r.shape() != x.shape())
    {
        let detail = format!(
            "x {}, gamma {}, beta {}, residual {:?}",
            x.shape(),
            gamma.shape(),
            beta.shape(),
            residual.map(Var::shape)
        );
        return Err(Error::shape("batch_norm", detail));
    }
    if tape.is_training() && rows * tape.collective().ranks() < 2 {
        return Err(Error::shape(
            "batch_norm",
            format!("x {}: the variance of one row is undefined", x.shape()),
        ));
    }
    let device = tape.device();
    let y_shape = match *x.shape().dims() {
        [batch, height, width, channels] if border => Shape::new(&[batch, height + 1, width + 1, channels]),
        _ => x.shape(),
    };
    let mut y = Tensor::empty(&device, y_shape, x.value().dtype())?;
    // Mean and 1 / sqrt(var + eps), kept for backward.
    let kept_rows = if matches!(device, Device::Cuda(_)) { cuda::STATISTICS } else { 2 };
    let given = tape.given_statistics();
    let is_given = given.is_some();
    let mut statistics = match given {
        Some(given) => given,
        None => Tensor::empty(&device, [kept_rows, channels], DType::F32)?,
    };
    match &device {
        Device::Cpu(_) => {
            let values = x.value().as_slice::<f32>()?;
            if is_given {
                // Computed before.
            } else if tape.is_training() {
                let moments = cpu::moments(tape, values, channels, running)?;
                cpu::update_running(tape, &moments, running)?;
                moments.write(statistics.as_mut_slice()?);
            } else {
                let to = statistics.as_mut_slice::<f32>()?;
                let (mean, inverse) = to.split_at_mut(channels);
                mean.copy_from_slice(tape.buffer(running.mean)?.as_slice()?);
                let variance = tape.buffer(running.variance)?.as_slice::<f32>()?;
                inverse.iter_mut().zip(variance).for_each(|(i, v)| *i = 1.0 / (v + EPSILON).sqrt());
            }
            let residual = residual.map(|residual| residual.value().as_slice()).transpose()?;
            let (gamma, beta) = (gamma.value().as_slice()?, beta.value().as_slice()?);
            cpu::normalise(values, statistics.as_slice()?, gamma, beta, residual, relu, y.as_mut_slice()?);
        }
        Device::Cuda(cuda) => {
            let (x, gamma, beta) = (x.value(), gamma.value(), beta.value());
            let residual = residual.map(Var::value);
            cuda::forward(
                tape,
                cuda,
                x,
                [gamma, beta],
                running,
                residual,
                (relu, border, is_given),
                &mut statistics,
                &mut y,
            )?;
        }
    }
    tape.note_statistics(&statistics);
    let (dx, dgamma, dbeta) = (x.gradient(), gamma.gradient(), beta.gradient());
    let dresidual = residual.map_or(dx, Var::gradient);
    let has_residual = residual.is_some();
    let mask = cuda::mask_of(relu, residual, &y);
    let (x, gamma) = (x.value().clone(), gamma.value().clone());
    let kept = (relu && matches!(device, Device::Cpu(_))).then(|| y.clone());
    Ok(tape.record("batch_norm", &[dx, dgamma, dbeta, dresidual], y, move |context, mut dy| {
        let mut dx = context.target(dx)?;
        let mut dgamma = context.target(dgamma)?;
        let mut dbeta = context.target(dbeta)?;
        match context.device() {
            Device::Cpu(_) => {
                // From here on dy is g.
                if !dy.is_unique() && kept.is_some() {
                    let mut own = Tensor::empty(&context.device(), dy.shape(), DType::F32)?;
                    own.copy_from(&dy)?;
                    dy = own;
                }
                let (x, statistics) = (x.as_slice()?, statistics.as_slice()?);
                let sums = cpu::gradient_sums(x, statistics, kept.as_ref(), &mut dy, context.collective())?;
                for (target, sum) in [(&mut dbeta, sums.beta()), (&mut dgamma, sums.gamma())] {
                    let Some(target) = target else { continue };
                    for (target_value, sum) in target.tensor.as_mut_slice::<f32>()?.iter_mut().zip(sum) {
                        *target_value =
                            if target.accumulate { *target_value + *sum as f32 } else { *sum as f32 };
                    }
                }
                if let Some(dx) = &mut dx {
                    cpu::input_gradient(x, statistics, gamma.as_slice()?, &sums, dy.as_slice()?, dx)?;
                }
            }
            Device::Cuda(cuda) => {
                if !dy.is_unique() && matches!(mask, cuda::Mask::Output(_)) {
                    let mut own = Tensor::empty(&context.device(), dy.shape(), dy.dtype())?;
                    own.copy_from(&dy)?;
                    dy = own;
                }
                let targets = [&mut dx, &mut dgamma, &mut dbeta];
                cuda::backward(&cuda, &x, &gamma, &statistics, (&mask, border), &mut dy, targets)?;
            }
        }
        [dx, dgamma, dbeta].into_iter().flatten().for_each(|target| context.put(target));
        if has_residual {
            context.add(dresidual, dy)?;
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    fn reference(inputs: &[Vec<f64>], channels: usize, residual: bool, relu: bool) -> Vec<f64> {
        let x = &inputs[0];
        let rows = x.len() / channels;
        let mut y = vec![0.0; x.len()];
        for c in 0..channels {
            let column: Vec<f64> = (0..rows).map(|r| x[r * channels + c]).collect();
            let mean = column.iter().sum::<f64>() / rows as f64;
            let variance = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / rows as f64;
            for r in 0..rows {
                let i = r * channels + c;
                y[i] = inputs[1][c] * (x[i] - mean) / (variance + 1e-5).sqrt() + inputs[2][c];
                y[i] += if residual { inputs[3][i] } else { 0.0 };
                y[i] = if relu { y[i].max(0.0) } else { y[i] };
            }
        }
        y
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (dims, residual, relu) in [
            ([3, 5, 7, 9], false, false),
            ([2, 3, 3, 33], false, true),
            ([9, 7, 5, 8], true, true),
            ([1, 2, 1, 1], true, false),
        ] {
            let channels = dims[3];
            let case = Case::new(&[&dims, &[channels], &[channels], &dims]).with_channels(channels);
            let case = if residual { case } else { case.constant(3) };
            check(
                &case,
                |tape, inputs| {
                    let running = crate::ops::testing::running(tape);
                    let residual = residual.then_some(&inputs[3]);
                    batch_norm(tape, &inputs[0], &inputs[1], &inputs[2], running, residual, relu)
                },
                |inputs| reference(inputs, channels, residual, relu),
            );
        }
    }
}
