//! Batch norm on the CPU: sums per channel in fixed chunks of rows, then one pass that writes.

use rayon::prelude::*;

use super::{EPSILON, Layer, MOMENTUM, RunningStatistics};
use crate::collective::{Collective, Memory, Sum};
use crate::cpu::{SendPtr, column_sums};
use crate::error::Result;
use crate::ops::operation::{Cpu, To};
use crate::tape::{Tape, Target};
use crate::tensor::Tensor;

/// Rows per task of the passes that write.
const ROWS: usize = 64;

/// Writes mean and 1 / sqrt(var + eps): of the batch in training, which also moves the running ones, else the running
/// ones.
pub(super) fn statistics(
    cpu: &mut Cpu,
    x: &Tensor,
    running: RunningStatistics,
    statistics: &mut Tensor,
) -> Result<()> {
    let channels = statistics.dims()[1];
    let to = statistics.as_mut_slice::<f32>()?;
    if cpu.tape.is_training() {
        let moments = moments(cpu.tape, x.as_slice()?, channels, running)?;
        update_running(cpu.tape, &moments, running)?;
        moments.write(to);
        return Ok(());
    }
    let (mean, inverse) = to.split_at_mut(channels);
    mean.copy_from_slice(cpu.tape.buffer(running.mean)?.as_slice()?);
    let variance = cpu.tape.buffer(running.variance)?.as_slice::<f32>()?;
    inverse.iter_mut().zip(variance).for_each(|(i, v)| *i = 1.0 / (v + EPSILON).sqrt());
    Ok(())
}

/// Mean and (biased) variance of a batch, by channel.
struct Moments {
    mean: Vec<f64>,
    variance: Vec<f64>,
    rows: f64,
}

impl Moments {
    /// Writes the mean and 1 / sqrt(variance + eps).
    fn write(&self, statistics: &mut [f32]) {
        let (mean, inverse) = statistics.split_at_mut(self.mean.len());
        for ((to, inverse), (mean, variance)) in
            mean.iter_mut().zip(inverse).zip(self.mean.iter().zip(&self.variance))
        {
            *to = *mean as f32;
            *inverse = (1.0 / (variance + f64::from(EPSILON)).sqrt()) as f32;
        }
    }
}

/// The moments of the batch, over all ranks. Sums are taken around the running mean, which all ranks share: a mean
/// far from zero then costs no precision.
fn moments(tape: &Tape<'_>, x: &[f32], channels: usize, running: RunningStatistics) -> Result<Moments> {
    let pivot = tape.buffer(running.mean)?.as_slice::<f32>()?;
    let rows = x.len() / channels;
    let mut sums = column_sums(rows, channels, 2, |first, rows, sums| {
        add_moments(&x[first * channels..(first + rows) * channels], pivot, sums);
    });
    sums.push(rows as f64);
    all_reduce(&**tape.collective(), &mut sums)?;
    let rows = sums[2 * channels];
    let (first, second) = sums[..2 * channels].split_at(channels);
    let offset = |c: usize| first[c] / rows;
    Ok(Moments {
        mean: (0..channels).map(|c| f64::from(pivot[c]) + offset(c)).collect(),
        variance: (0..channels).map(|c| (second[c] / rows - offset(c) * offset(c)).max(0.0)).collect(),
        rows,
    })
}

multiversion! {
    fn add_moments(x: &[f32], pivot: &[f32], sums: &mut [f32]) {
        let (first, second) = sums.split_at_mut(pivot.len());
        for row in x.chunks_exact(pivot.len()) {
            for (((x, pivot), first), second) in row.iter().zip(pivot).zip(&mut *first).zip(&mut *second) {
                let centred = x - pivot;
                *first += centred;
                *second += centred * centred;
            }
        }
    }
}

/// Adds up `sums` over all ranks.
fn all_reduce(ranks: &dyn Collective, sums: &mut [f64]) -> Result<()> {
    if ranks.is_shared() {
        ranks.all_reduce_sum(Sum::F64, Memory::Host(bytemuck::cast_slice_mut(sums)))?;
    }
    Ok(())
}

/// Moves the running statistics towards the batch's.
fn update_running(tape: &mut Tape<'_>, moments: &Moments, running: RunningStatistics) -> Result<()> {
    let momentum = f64::from(MOMENTUM);
    let unbiased = moments.rows / (moments.rows - 1.0);
    for (id, batch, factor) in
        [(running.mean, &moments.mean, 1.0), (running.variance, &moments.variance, unbiased)]
    {
        for (old, new) in tape.buffer_mut(id)?.as_mut_slice::<f32>()?.iter_mut().zip(batch) {
            *old = ((1.0 - momentum) * f64::from(*old) + momentum * factor * new) as f32;
        }
    }
    tape.increment(running.batches);
    Ok(())
}

pub(super) fn normalise(
    x: &[f32],
    statistics: &[f32],
    [gamma, beta]: [&[f32]; 2],
    residual: Option<&[f32]>,
    relu: bool,
    y: &mut [f32],
) {
    let channels = gamma.len();
    let (mean, inverse) = statistics.split_at(channels);
    let scale: Vec<f32> = gamma.iter().zip(inverse).map(|(gamma, inverse)| gamma * inverse).collect();
    let columns = Columns { mean, scale: &scale, beta };
    y.par_chunks_mut(ROWS * channels).enumerate().for_each(|(chunk, y)| {
        let range = chunk * ROWS * channels..chunk * ROWS * channels + y.len();
        let residual = residual.map(|residual| &residual[range.clone()]);
        let floor = if relu { 0.0 } else { f32::NEG_INFINITY };
        match residual {
            Some(residual) => write_residual(&x[range], residual, columns, floor, y),
            None => write_plain(&x[range], columns, floor, y),
        }
    });
}

/// What every channel is normalised by: y = (x - mean) scale + beta. (Folding mean and beta into one number would
/// save an operation and cost accuracy where they are large.)
#[derive(Clone, Copy)]
struct Columns<'a> {
    mean: &'a [f32],
    scale: &'a [f32],
    beta: &'a [f32],
}

multiversion! {
    fn write_plain(x: &[f32], columns: Columns<'_>, floor: f32, y: &mut [f32]) {
        let channels = columns.scale.len();
        let (mean, scale, beta) = (&columns.mean[..channels], columns.scale, &columns.beta[..channels]);
        for (y, x) in y.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
            for c in 0..channels {
                let value = (x[c] - mean[c]) * scale[c] + beta[c];
                y[c] = if value > floor { value } else { floor };
            }
        }
    }
}

multiversion! {
    fn write_residual(x: &[f32], residual: &[f32], columns: Columns<'_>, floor: f32, y: &mut [f32]) {
        let channels = columns.scale.len();
        let (mean, scale, beta) = (&columns.mean[..channels], columns.scale, &columns.beta[..channels]);
        let rows = y.chunks_exact_mut(channels).zip(x.chunks_exact(channels)).zip(residual.chunks_exact(channels));
        for ((y, x), residual) in rows {
            for c in 0..channels {
                let value = (x[c] - mean[c]) * scale[c] + beta[c] + residual[c];
                y[c] = if value > floor { value } else { floor };
            }
        }
    }
}

/// Column sums of g and of g xh, and the number of rows.
pub(super) struct GradientSums {
    sums: Vec<f64>,
    channels: usize,
}

impl GradientSums {
    fn beta(&self) -> &[f64] {
        &self.sums[..self.channels]
    }

    fn gamma(&self) -> &[f64] {
        &self.sums[self.channels..2 * self.channels]
    }

    fn rows(&self) -> f64 {
        self.sums[2 * self.channels]
    }
}

/// Sums what the gradients need; `dy` becomes g where there is a ReLU (`y` given).
fn gradient_sums(x: &[f32], statistics: &[f32], y: Option<&Tensor>, dy: &mut Tensor) -> Result<GradientSums> {
    let channels = statistics.len() / 2;
    let rows = x.len() / channels;
    let y = y.map(|y| y.as_slice::<f32>()).transpose()?;
    let mut sums = if let Some(y) = y {
        let g = SendPtr::new(dy.as_mut_slice::<f32>()?);
        column_sums(rows, channels, 2, |first, rows, sums| {
            let range = first * channels..(first + rows) * channels;
            // SAFETY: chunks of rows are disjoint.
            let g = unsafe { g.slice(range.start, range.len()) };
            mask(g, &y[range.clone()]);
            add_gradients(&x[range], g, statistics, sums);
        })
    } else {
        let g = dy.as_slice::<f32>()?;
        column_sums(rows, channels, 2, |first, rows, sums| {
            let range = first * channels..(first + rows) * channels;
            add_gradients(&x[range.clone()], &g[range], statistics, sums);
        })
    };
    sums.push(rows as f64);
    Ok(GradientSums { sums, channels })
}

multiversion! {
    fn mask(dy: &mut [f32], y: &[f32]) {
        for (dy, y) in dy.iter_mut().zip(y) {
            *dy = if *y > 0.0 { *dy } else { 0.0 };
        }
    }
}

multiversion! {
    fn add_gradients(x: &[f32], g: &[f32], statistics: &[f32], sums: &mut [f32]) {
        let channels = statistics.len() / 2;
        let (mean, inverse) = statistics.split_at(channels);
        let (beta, gamma) = sums.split_at_mut(channels);
        for (x, g) in x.chunks_exact(channels).zip(g.chunks_exact(channels)) {
            for c in 0..channels {
                beta[c] += g[c];
                gamma[c] += g[c] * ((x[c] - mean[c]) * inverse[c]);
            }
        }
    }
}

/// `dx (+)= gamma / std (g - mean(g) - xh mean(g xh))`.
fn input_gradient(
    x: &[f32],
    statistics: &[f32],
    gamma: &[f32],
    sums: &GradientSums,
    g: &[f32],
    dx: &mut Target,
) -> Result<()> {
    let channels = gamma.len();
    let (mean, inverse) = statistics.split_at(channels);
    // dx = g scale + (x - mean) slope + offset
    let rows = sums.rows();
    let mut coefficients = vec![0.0_f32; 4 * channels];
    for c in 0..channels {
        let scale = f64::from(gamma[c]) * f64::from(inverse[c]);
        coefficients[c] = scale as f32;
        coefficients[channels + c] = mean[c];
        coefficients[2 * channels + c] = (-scale * f64::from(inverse[c]) * sums.gamma()[c] / rows) as f32;
        coefficients[3 * channels + c] = (-scale * sums.beta()[c] / rows) as f32;
    }
    let accumulate = dx.accumulate;
    dx.tensor.as_mut_slice::<f32>()?.par_chunks_mut(ROWS * channels).enumerate().for_each(|(chunk, dx)| {
        let range = chunk * ROWS * channels..chunk * ROWS * channels + dx.len();
        write_gradient(&x[range.clone()], &g[range], &coefficients, accumulate, dx);
    });
    Ok(())
}

multiversion! {
    fn write_gradient(x: &[f32], g: &[f32], coefficients: &[f32], accumulate: bool, dx: &mut [f32]) {
        let channels = coefficients.len() / 4;
        let (scale, rest) = coefficients.split_at(channels);
        let (mean, rest) = rest.split_at(channels);
        let (slope, offset) = rest.split_at(channels);
        let rows = dx.chunks_exact_mut(channels).zip(x.chunks_exact(channels)).zip(g.chunks_exact(channels));
        for ((dx, x), g) in rows {
            if accumulate {
                for c in 0..channels {
                    dx[c] += g[c] * scale[c] + (x[c] - mean[c]) * slope[c] + offset[c];
                }
            } else {
                for c in 0..channels {
                    dx[c] = g[c] * scale[c] + (x[c] - mean[c]) * slope[c] + offset[c];
                }
            }
        }
    }
}

/// Leaves g in `dy`; `y` is the output of a ReLU.
pub(super) fn backward(
    ranks: &dyn Collective,
    layer: &Layer,
    y: Option<&Tensor>,
    dy: &mut Tensor,
    [dx, dgamma, dbeta]: To<3>,
) -> Result<()> {
    let (x, statistics) = (layer.x.as_slice()?, layer.statistics.as_slice()?);
    let mut sums = gradient_sums(x, statistics, y, dy)?;
    for (target, sums) in [(dbeta, sums.beta()), (dgamma, sums.gamma())] {
        if let Some(target) = target {
            target.write(|channel| sums[channel] as f32)?;
        }
    }
    // Gradients of parameters are added up over the ranks later; that of x needs the sums of the whole batch.
    all_reduce(ranks, &mut sums.sums)?;
    match dx {
        Some(dx) => input_gradient(x, statistics, layer.gamma.as_slice()?, &sums, dy.as_slice()?, dx),
        None => Ok(()),
    }
}
