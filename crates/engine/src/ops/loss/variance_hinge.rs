//! Variance hinge of one view: Vh = 1/2 mean_j max(0, 1 - sqrt(var_j + 1e-4)), var_j unbiased (n - 1).
//!
//! Shapes: z (n, d). Gradient, where the hinge is active and s_j = sqrt(var_j + 1e-4):
//! dz_nj = - (z_nj - mean_j) / (2 d s_j (n - 1)).

use super::{cuda, matrix, number};
use crate::cpu::column_sums;
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view};
use crate::error::{Error, Result};
use crate::ops::operation::{Cpu, Cuda, Operation};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

/// Added to the variance.
pub const EPSILON: f64 = 1e-4;

/// The variance hinge of `z`.
pub fn variance_hinge(tape: &mut Tape<'_>, z: &Var) -> Result<Var> {
    let (rows, columns) = matrix("variance_hinge", z.shape())?;
    if rows < 2 {
        let detail = format!("{}: the variance of one row is undefined", z.shape());
        return Err(Error::shape("variance_hinge", detail));
    }
    tape.apply("variance_hinge", VarianceHinge { rows, columns }, z, number())
}

struct VarianceHinge {
    rows: usize,
    columns: usize,
}

impl Operation<CpuPool> for VarianceHinge {
    /// z.
    type Saved = Tensor;

    fn forward(&self, _: &mut Cpu, z: &Var, loss: &mut Tensor) -> Result<Tensor> {
        let (_, roots) = statistics(z.value().as_slice()?, self.rows, self.columns);
        let sum: f64 = roots.iter().map(|root| (1.0 - root).max(0.0)).sum();
        loss.write(&[(0.5 * sum / self.columns as f64) as f32])?;
        Ok(z.value().clone())
    }

    fn backward(&self, _: &mut Cpu, z: &Tensor, dy: Tensor, dz: &mut Target) -> Result<()> {
        let (&Self { rows, columns }, z) = (self, z.as_slice::<f32>()?);
        let (means, roots) = statistics(z, rows, columns);
        let scale = -f64::from(dy.scalar()?) / (2.0 * columns as f64 * (rows as f64 - 1.0));
        let factors: Vec<(f32, f32)> = means
            .iter()
            .zip(&roots)
            .map(|(&mean, &root)| (mean as f32, if root < 1.0 { (scale / root) as f32 } else { 0.0 }))
            .collect();
        dz.write(|i| (z[i] - factors[i % columns].0) * factors[i % columns].1)
    }
}

impl Operation<CudaDevice> for VarianceHinge {
    /// z, its means and roots.
    type Saved = (Tensor, cuda::Moments);

    fn forward(&self, cuda: &mut Cuda, z: &Var, loss: &mut Tensor) -> Result<Self::Saved> {
        let &Self { rows, columns } = self;
        let moments = cuda::Moments::new(cuda, z.value(), (rows, columns), Some(EPSILON))?;
        let arguments = [moments.roots.as_ref().into(), columns.into()];
        cuda::sum(cuda, Kernel::hinge_sum, 1, &arguments, (0.5 / columns as f64, 0.0), loss)?;
        Ok((z.value().clone(), moments))
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        (z, moments): &Self::Saved,
        dy: Tensor,
        dz: &mut Target,
    ) -> Result<()> {
        let [to, add] = dz.arguments()?;
        let arguments = [
            view(&dy)?.into(),
            view(z)?.into(),
            (&moments.means).into(),
            moments.roots.as_ref().into(),
            self.rows.into(),
            self.columns.into(),
            to,
            add,
        ];
        cuda::launch(cuda, Kernel::hinge_backward, cuda.elementwise(z.len()), &arguments)
    }
}

/// Mean and sqrt(var + eps) of every column.
fn statistics(z: &[f32], rows: usize, columns: usize) -> (Vec<f64>, Vec<f64>) {
    let rows_of =
        |first: usize, count: usize| z[first * columns..(first + count) * columns].chunks_exact(columns);
    let mut means = column_sums(rows, columns, 1, |first, count, sums| {
        rows_of(first, count).for_each(|row| crate::cpu::add_assign(sums, row));
    });
    means.iter_mut().for_each(|mean| *mean /= rows as f64);
    let centre: Vec<f32> = means.iter().map(|&mean| mean as f32).collect();
    let squares = column_sums(rows, columns, 1, |first, count, sums| {
        for row in rows_of(first, count) {
            for ((sum, z), centre) in sums.iter_mut().zip(row).zip(&centre) {
                *sum += (z - centre) * (z - centre);
            }
        }
    });
    let roots = squares.into_iter().map(|square| (square / (rows as f64 - 1.0) + EPSILON).sqrt()).collect();
    (means, roots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        // The last column is spread so far that its hinge is closed.
        let mut case = Case::new(&[&[9, 4]]);
        case.inputs[0].iter_mut().skip(3).step_by(4).for_each(|z| *z *= 9.0);
        check(
            &case,
            |tape, i| variance_hinge(tape, &i[0]),
            |i| {
                let hinge = |j: usize| {
                    let column: Vec<f64> = (0..9).map(|n| i[0][n * 4 + j]).collect();
                    let mean = column.iter().sum::<f64>() / 9.0;
                    let variance = column.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / 8.0;
                    (1.0 - (variance + 1e-4).sqrt()).max(0.0)
                };
                vec![0.5 * (0..4).map(hinge).sum::<f64>() / 4.0]
            },
        );
    }
}
