//! Layer norm: y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and (biased) variance over the last dimension
//! of every row.
//!
//! Shapes: x, y (..., d); gamma, beta (d). Backward, with xh the normalised row and g = dy gamma:
//! dx = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps), dgamma = column sums of dy xh, dbeta = column sums of dy.

pub(super) mod cuda;

use rayon::prelude::*;

use super::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::cpu::column_sums;
use crate::cuda::CudaDevice;
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
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
    tape.apply("layer_norm", LayerNorm { rows: x.shape().len() / d, d, epsilon }, [x, gamma, beta], x.spec())
}

struct LayerNorm {
    rows: usize,
    d: usize,
    epsilon: f32,
}

/// What backward needs.
struct Saved {
    x: Tensor,
    gamma: Tensor,
    /// Mean and 1 / sqrt(var + eps) of every row.
    statistics: Tensor,
}

impl Operation<CpuPool, Fixed<3>> for LayerNorm {
    type Saved = Saved;

    fn forward(&self, cpu: &mut Cpu, [x, gamma, beta]: [&Var; 3], y: &mut Tensor) -> Result<Saved> {
        let &Self { rows, d, epsilon } = self;
        let mut statistics = cpu.empty([rows, 2], DType::F32)?;
        {
            let (gamma, beta) = (gamma.value().as_slice::<f32>()?, beta.value().as_slice::<f32>()?);
            let x = x.value().as_slice::<f32>()?.par_chunks(ROWS * d);
            let statistics = statistics.as_mut_slice::<f32>()?.par_chunks_mut(ROWS * 2);
            let y = y.as_mut_slice::<f32>()?.par_chunks_mut(ROWS * d);
            y.zip(x).zip(statistics).for_each(|((y, x), s)| forward(x, gamma, beta, epsilon, s, y));
        }
        Ok(Saved { x: x.value().clone(), gamma: gamma.value().clone(), statistics })
    }

    fn backward(
        &self,
        _: &mut Cpu,
        Saved { x, gamma, statistics }: &Saved,
        dy: Tensor,
        [dx, dgamma, dbeta]: To<3>,
    ) -> Result<()> {
        let &Self { rows, d, .. } = self;
        let (x, dy, s) = (x.as_slice::<f32>()?, dy.as_slice::<f32>()?, statistics.as_slice::<f32>()?);
        if let Some(Target { tensor, accumulate, .. }) = dx {
            let gamma = gamma.as_slice::<f32>()?;
            let rows = x.par_chunks(ROWS * d).zip(dy.par_chunks(ROWS * d)).zip(s.par_chunks(ROWS * 2));
            let dx = tensor.as_mut_slice::<f32>()?.par_chunks_mut(ROWS * d);
            dx.zip(rows).for_each(|(dx, ((x, dy), s))| backward(x, dy, s, gamma, *accumulate, dx));
        }
        let sums = column_sums(rows, d, 2, |first, count, sums| {
            let range = first * d..(first + count) * d;
            add_columns(&x[range.clone()], &dy[range], &s[2 * first..2 * (first + count)], sums);
        });
        for (target, sums) in [(dbeta, &sums[..d]), (dgamma, &sums[d..])] {
            if let Some(target) = target {
                target.write(|index| sums[index] as f32)?;
            }
        }
        Ok(())
    }
}

impl Operation<CudaDevice, Fixed<3>> for LayerNorm {
    type Saved = Saved;

    fn forward(&self, cuda: &mut Cuda, [x, gamma, beta]: [&Var; 3], y: &mut Tensor) -> Result<Saved> {
        let mut statistics = cuda.empty([self.rows, 2], DType::F32)?;
        let affine = [gamma.value(), beta.value()];
        cuda::forward(cuda, x.value(), None, affine, self.epsilon, &mut statistics, y)?;
        Ok(Saved { x: x.value().clone(), gamma: gamma.value().clone(), statistics })
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        Saved { x, gamma, statistics }: &Saved,
        dy: Tensor,
        [dx, dgamma, dbeta]: To<3>,
    ) -> Result<()> {
        // Where x wants no gradient it goes nowhere.
        let mut unused = None;
        let dx = match dx {
            Some(dx) => dx,
            None => unused.insert(Target::unplaced(cuda.empty(x.shape(), dy.dtype())?)),
        };
        cuda::backward(cuda, (&dy, None), (x, statistics, gamma), dx, [dgamma, dbeta, None])
    }
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
