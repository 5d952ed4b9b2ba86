//! Covariance term of one view: C = 1/d sum_{i != j} Cov_ij^2, Cov = Zc^T Zc / divisor, Zc = Z minus column means.
//!
//! Shapes: z (n, d). The divisor is the configured batch size minus one, a constant even for a smaller last batch.
//! Gradient: dZ = 4 / (d divisor) Zc offdiag(Cov); the centring adds nothing, as the columns of Zc sum to zero.

use gpu::Precision;
use gpu::matmul::MatmulShape;

use super::{cuda, matrix, number};
use crate::cpu::matmul::{self, Matrix};
use crate::cpu::{add_assign, column_sums};
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::accumulate;
use crate::ops::operation::{Cpu, Cuda, Operation};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// The covariance term of `z`.
pub fn covariance(tape: &mut Tape<'_>, z: &Var, divisor: usize) -> Result<Var> {
    let (rows, columns) = matrix("covariance", z.shape())?;
    if divisor == 0 {
        let detail = format!("{}: the divisor (batch size - 1) is zero", z.shape());
        return Err(Error::shape("covariance", detail));
    }
    tape.apply("covariance", Covariance { rows, columns, divisor }, z, number())
}

struct Covariance {
    rows: usize,
    columns: usize,
    divisor: usize,
}

impl Operation<CpuPool> for Covariance {
    /// Zc, and Cov without its diagonal.
    type Saved = [Tensor; 2];

    fn forward(&self, cpu: &mut Cpu, z: &Var, loss: &mut Tensor) -> Result<[Tensor; 2]> {
        let &Self { rows, columns, divisor } = self;
        let mut centred = cpu.empty([rows, columns], DType::F32)?;
        let mut cov = cpu.empty([columns, columns], DType::F32)?;
        let z = z.value().as_slice::<f32>()?;
        let sums = column_sums(rows, columns, 1, |first, rows, sums| {
            for row in z[first * columns..(first + rows) * columns].chunks_exact(columns) {
                add_assign(sums, row);
            }
        });
        let means: Vec<f32> = sums.iter().map(|sum| (sum / rows as f64) as f32).collect();
        let to = centred.as_mut_slice::<f32>()?.chunks_exact_mut(columns);
        for (to, from) in to.zip(z.chunks_exact(columns)) {
            for ((to, from), mean) in to.iter_mut().zip(from).zip(&means) {
                *to = from - mean;
            }
        }
        let matrix = Matrix::new(centred.as_slice()?, rows, columns);
        let values = cov.as_mut_slice::<f32>()?;
        matmul::tn(matrix, matrix, values, false);
        let mut sum = 0.0_f64;
        for (i, row) in values.chunks_exact_mut(columns).enumerate() {
            row[i] = 0.0;
            for value in row {
                *value /= divisor as f32;
                sum += f64::from(*value) * f64::from(*value);
            }
        }
        loss.write(&[(sum / columns as f64) as f32])?;
        Ok([centred, cov])
    }

    fn backward(
        &self,
        cpu: &mut Cpu,
        [centred, cov]: &[Tensor; 2],
        dy: Tensor,
        dz: &mut Target,
    ) -> Result<()> {
        let &Self { rows, columns, divisor } = self;
        let scale = 4.0 * dy.scalar()? / (columns as f32 * divisor as f32);
        let mut product = cpu.empty([rows, columns], DType::F32)?;
        let values = product.as_mut_slice::<f32>()?;
        let centred = Matrix::new(centred.as_slice()?, rows, columns);
        matmul::nn(centred, Matrix::new(cov.as_slice()?, columns, columns), values, false);
        values.iter_mut().for_each(|value| *value *= scale);
        accumulate(cpu.device, &product, dz)
    }
}

impl Operation<CudaDevice> for Covariance {
    /// Zc, and Cov without its diagonal.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, z: &Var, loss: &mut Tensor) -> Result<[Tensor; 2]> {
        let (&Self { rows, columns, divisor }, z) = (self, z.value());
        let mut centred = cuda.empty([rows, columns], DType::F32)?;
        let mut cov = cuda.empty([columns, columns], DType::F32)?;
        let moments = cuda::Moments::new(cuda, z, (rows, columns), None)?;
        let (means, count) = ((&moments.means).into(), (z.len() as i64).into());
        let arguments = [view(z)?.into(), means, count, columns.into(), view_mut(&mut centred)?.into()];
        cuda::launch(cuda, Kernel::centre, cuda.elementwise(z.len()), &arguments)?;
        let shape =
            MatmulShape::new(columns, columns, rows, Precision::F32, Precision::F32).transposed(true, false);
        let (from, to) = (view(&centred)?, view_mut(&mut cov)?);
        cuda.multiply(&shape, 0.0, [from, from, to])?;
        let arguments = [to.into(), columns.into(), (divisor as f32).into()];
        let blocks = cuda::blocks(cuda, columns * columns);
        cuda::sum(cuda, Kernel::off_diagonal, blocks, &arguments, (1.0 / columns as f64, 0.0), loss)?;
        Ok([centred, cov])
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        [centred, cov]: &[Tensor; 2],
        dy: Tensor,
        dz: &mut Target,
    ) -> Result<()> {
        let &Self { rows, columns, divisor } = self;
        let count = centred.len();
        let product = cuda.context().allocate(count * 4)?;
        let shape = MatmulShape::new(rows, columns, columns, Precision::F32, Precision::F32);
        cuda.multiply(&shape, 0.0, [view(centred)?, view(cov)?, product.view()])?;
        let factor = (4.0 / (columns as f64 * divisor as f64)) as f32;
        let [to, add] = dz.arguments()?;
        let arguments = [view(&dy)?.into(), factor.into(), (&product).into(), (count as i64).into(), to, add];
        cuda::launch(cuda, Kernel::scale_into, cuda.elementwise(count), &arguments)
    }
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
