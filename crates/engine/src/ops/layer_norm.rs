//! Layer norm: y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and (biased) variance over the last dimension
//! of every row.
//!
//! Shapes: x, y (..., d); gamma, beta (d). Backward, with xh the normalised row and g = dy gamma:
//! dx = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps), dgamma = column sums of dy xh, dbeta = column sums of dy.

pub(super) mod cuda;

use rayon::prelude::*;

use crate::cpu::column_sums;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// Rows per task.
const ROWS: usize = 64;

/// Normalises every row of `x`.
pub fn layer_norm(tape: &mut Tape<'_>, x: &Var, gamma: &Var, beta: &Var, epsilon: f32) -> Result<Var> {
    let d = x.shape().last().copied().unwrap_or(0);
    if d == 0 || gamma.shape().dims() != [d] || beta.shape().dims() != [d] {
        let detail = format!("x {}, gamma {}, beta {}", x.shape(), gamma.shape(), beta.shape());
        return Err(Error::shape("layer_norm", detail));
    }
    let rows = x.shape().len() / d;
    let device = tape.device();
    let mut y = Tensor::empty(&device, x.shape(), x.value().dtype())?;
    // Mean and 1 / sqrt(var + eps) of every row.
    let mut statistics = Tensor::empty(&device, [rows, 2], DType::F32)?;
    match &device {
        Device::Cpu(_) => {
            let (gamma, beta) = (gamma.value().as_slice::<f32>()?, beta.value().as_slice::<f32>()?);
            let x = x.value().as_slice::<f32>()?.par_chunks(ROWS * d);
            let statistics = statistics.as_mut_slice::<f32>()?.par_chunks_mut(ROWS * 2);
            y.as_mut_slice::<f32>()?.par_chunks_mut(ROWS * d).zip(x).zip(statistics).for_each(
                |((y, x), s)| {
                    forward(x, gamma, beta, epsilon, s, y);
                },
            );
        }
        Device::Cuda(cuda) => {
            let affine = [gamma.value(), beta.value()];
            cuda::forward(cuda, x.value(), None, affine, epsilon, &mut statistics, &mut y)?;
        }
    }
    let ids = [x.gradient(), gamma.gradient(), beta.gradient()];
    let (x, gamma) = (x.value().clone(), gamma.value().clone());
    Ok(tape.record("layer_norm", &ids, y, move |context, dy| {
        let [mut dx, mut dgamma, mut dbeta] =
            [context.target(ids[0])?, context.target(ids[1])?, context.target(ids[2])?];
        match context.device() {
            Device::Cpu(_) => {
                let (x, dy, s) = (x.as_slice::<f32>()?, dy.as_slice::<f32>()?, statistics.as_slice::<f32>()?);
                if let Some(dx) = &mut dx {
                    let (gamma, accumulate) = (gamma.as_slice::<f32>()?, dx.accumulate);
                    let rows =
                        x.par_chunks(ROWS * d).zip(dy.par_chunks(ROWS * d)).zip(s.par_chunks(ROWS * 2));
                    dx.tensor
                        .as_mut_slice::<f32>()?
                        .par_chunks_mut(ROWS * d)
                        .zip(rows)
                        .for_each(|(dx, ((x, dy), s))| backward(x, dy, s, gamma, accumulate, dx));
                }
                let sums = column_sums(rows, d, 2, |first, count, sums| {
                    let range = first * d..(first + count) * d;
                    add_columns(&x[range.clone()], &dy[range], &s[2 * first..2 * (first + count)], sums);
                });
                for (target, sums) in [(&mut dbeta, &sums[..d]), (&mut dgamma, &sums[d..])] {
                    let Some(target) = target else { continue };
                    let accumulate = target.accumulate;
                    for (to, sum) in target.tensor.as_mut_slice::<f32>()?.iter_mut().zip(sums) {
                        *to = if accumulate { *to + *sum as f32 } else { *sum as f32 };
                    }
                }
            }
            Device::Cuda(cuda) => {
                // Where x wants no gradient it goes nowhere.
                let (mut unused, accumulate) = match &dx {
                    Some(dx) => (None, dx.accumulate),
                    None => (Some(Tensor::empty(&context.device(), x.shape(), x.dtype())?), false),
                };
                let to = dx.as_mut().map(|dx| &mut dx.tensor).or(unused.as_mut());
                let Some(to) = to else { return Ok(()) };
                let targets = [dgamma.as_mut(), dbeta.as_mut(), None];
                cuda::backward(&cuda, (&dy, None), (&x, &statistics, &gamma), (to, accumulate), targets)?;
            }
        }
        [dx, dgamma, dbeta].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    }))
}

multiversion! {
    fn forward(x: &[f32], gamma: &[f32], beta: &[f32], epsilon: f32, statistics: &mut [f32], y: &mut [f32]) {
        let d = gamma.len();
        let rows = x.chunks_exact(d).zip(y.chunks_exact_mut(d)).zip(statistics.chunks_exact_mut(2));
        for ((x, y), statistics) in rows {
            let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / d as f64;
            let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / d as f64;
            let (mean, inverse) = (mean as f32, (1.0 / (variance + f64::from(epsilon)).sqrt()) as f32);
            statistics.copy_from_slice(&[mean, inverse]);
            for c in 0..d {
                y[c] = (x[c] - mean) * inverse * gamma[c] + beta[c];
            }
        }
    }
}

multiversion! {
    fn backward(x: &[f32], dy: &[f32], statistics: &[f32], gamma: &[f32], accumulate: bool, dx: &mut [f32]) {
        let d = gamma.len();
        let rows = x.chunks_exact(d).zip(dy.chunks_exact(d)).zip(statistics.chunks_exact(2));
        for (dx, ((x, dy), statistics)) in dx.chunks_exact_mut(d).zip(rows) {
            let (mean, inverse) = (statistics[0], statistics[1]);
            let (mut sum, mut product) = (0.0_f64, 0.0_f64);
            for c in 0..d {
                let g = dy[c] * gamma[c];
                sum += f64::from(g);
                product += f64::from(g * ((x[c] - mean) * inverse));
            }
            let (sum, product) = ((sum / d as f64) as f32, (product / d as f64) as f32);
            for c in 0..d {
                let xh = (x[c] - mean) * inverse;
                let gradient = (dy[c] * gamma[c] - sum - xh * product) * inverse;
                dx[c] = if accumulate { dx[c] + gradient } else { gradient };
            }
        }
    }
}

multiversion! {
    fn add_columns(x: &[f32], dy: &[f32], statistics: &[f32], sums: &mut [f32]) {
        let d = sums.len() / 2;
        let (beta, gamma) = sums.split_at_mut(d);
        for ((x, dy), statistics) in x.chunks_exact(d).zip(dy.chunks_exact(d)).zip(statistics.chunks_exact(2)) {
            for c in 0..d {
                beta[c] += dy[c];
                gamma[c] += dy[c] * ((x[c] - statistics[0]) * statistics[1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (rows, d) in [(3, 7), (130, 5), (2, 33)] {
            check(
                &Case::new(&[&[rows, d], &[d], &[d]]),
                |tape, i| layer_norm(tape, &i[0], &i[1], &i[2], 1e-6),
                |i| {
                    let mut y = Vec::new();
                    for row in i[0].chunks(d) {
                        let mean = row.iter().sum::<f64>() / d as f64;
                        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
                        y.extend(
                            (0..d).map(|c| (row[c] - mean) / (variance + 1e-6).sqrt() * i[1][c] + i[2][c]),
                        );
                    }
                    y
                },
            );
        }
    }
}
