//! Covariance term of one view: C = 1/d sum_{i != j} Cov_ij^2, Cov = Zc^T Zc / divisor, Zc = Z minus column means.
//!
//! Shapes: z (n, d). The divisor is the configured batch size minus one, a constant even for a smaller last batch.
//! Gradient: dZ = 4 / (d divisor) Zc offdiag(Cov); the centring adds nothing, as the columns of Zc sum to zero.

use super::{cuda, matrix};
use crate::cpu::matmul::{self, Matrix};
use crate::cpu::{add_assign, column_sums};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::accumulate;
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// The covariance term of `z`.
pub fn covariance(tape: &mut Tape<'_>, z: &Var, divisor: usize) -> Result<Var> {
    const OP: &str = "covariance";
    let (rows, columns) = matrix(OP, z.shape())?;
    if divisor == 0 {
        return Err(Error::shape(OP, format!("{}: the divisor (batch size - 1) is zero", z.shape())));
    }
    let device = tape.device();
    let mut centred = Tensor::empty(&device, [rows, columns], DType::F32)?;
    // Cov without its diagonal.
    let mut cov = Tensor::empty(&device, [columns, columns], DType::F32)?;
    let loss = match &device {
        Device::Cpu(_) => {
            let z = z.value().as_slice::<f32>()?;
            let sums = column_sums(rows, columns, 1, |first, rows, sums| {
                for row in z[first * columns..(first + rows) * columns].chunks_exact(columns) {
                    add_assign(sums, row);
                }
            });
            let means: Vec<f32> = sums.iter().map(|sum| (sum / rows as f64) as f32).collect();
            for (to, from) in
                centred.as_mut_slice::<f32>()?.chunks_exact_mut(columns).zip(z.chunks_exact(columns))
            {
                for ((to, from), mean) in to.iter_mut().zip(from).zip(&means) {
                    *to = from - mean;
                }
            }
            let centred = Matrix::new(centred.as_slice()?, rows, columns);
            let cov = cov.as_mut_slice::<f32>()?;
            matmul::tn(centred, centred, cov, false);
            let mut sum = 0.0_f64;
            for (i, row) in cov.chunks_exact_mut(columns).enumerate() {
                row[i] = 0.0;
                for value in row {
                    *value /= divisor as f32;
                    sum += f64::from(*value) * f64::from(*value);
                }
            }
            Tensor::from_slice(&device, [1], &[(sum / columns as f64) as f32])?
        }
        Device::Cuda(cuda) => cuda::covariance(cuda, &device, z.value(), divisor, &mut centred, &mut cov)?,
    };
    let dz = z.gradient();
    Ok(tape.record(OP, &[dz], loss, move |context, dy| {
        let Some(mut dz) = context.target(dz)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let scale = 4.0 * dy.scalar()? / (columns as f32 * divisor as f32);
                let mut product = Tensor::empty(&context.device(), [rows, columns], DType::F32)?;
                let values = product.as_mut_slice::<f32>()?;
                let (centred, cov) = (centred.as_slice()?, cov.as_slice()?);
                matmul::nn(
                    Matrix::new(centred, rows, columns),
                    Matrix::new(cov, columns, columns),
                    values,
                    false,
                );
                values.iter_mut().for_each(|value| *value *= scale);
                accumulate(&context.device(), &product, &mut dz)?;
            }
            Device::Cuda(cuda) => cuda::covariance_backward(&cuda, &dy, &centred, &cov, divisor, &mut dz)?,
        }
        context.put(dz);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        for (n, d) in [(7, 5), (3, 33), (2, 1)] {
            check(
                &Case::new(&[&[n, d]]),
                |tape, i| covariance(tape, &i[0], 9),
                |i| {
                    let mean = |j: usize| (0..n).map(|r| i[0][r * d + j]).sum::<f64>() / n as f64;
                    let means: Vec<f64> = (0..d).map(mean).collect();
                    let mut sum = 0.0;
                    for (a, b) in (0..d).flat_map(|a| (0..d).map(move |b| (a, b))).filter(|(a, b)| a != b) {
                        let cov: f64 =
                            (0..n).map(|r| (i[0][r * d + a] - means[a]) * (i[0][r * d + b] - means[b])).sum();
                        sum += (cov / 9.0).powi(2);
                    }
                    vec![sum / d as f64]
                },
            );
        }
    }
}
