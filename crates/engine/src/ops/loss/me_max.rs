//! Mean-entropy maximisation: MEMAX = ln N - H(abar) = ln N + sum_j abar_j ln abar_j, with abar the mean activations
//! over the batch.
//!
//! Shapes: activations (n, N). Gradient: da_nj = (ln abar_j + 1) / n.

use super::{cuda, matrix, number};
use crate::cpu::column_sums;
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view};
use crate::error::Result;
use crate::ops::operation::{Cpu, Cuda, Operation};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

/// ln N minus the entropy of the mean activations.
pub fn me_max(tape: &mut Tape<'_>, activations: &Var) -> Result<Var> {
    let (rows, columns) = matrix("me_max", activations.shape())?;
    tape.apply("me_max", MeMax { rows, columns }, activations, number())
}

struct MeMax {
    rows: usize,
    columns: usize,
}

impl MeMax {
    fn means(&self, a: &Tensor) -> Result<Vec<f64>> {
        let &Self { rows, columns } = self;
        let a = a.as_slice::<f32>()?;
        let sums = column_sums(rows, columns, 1, |first, rows, sums| {
            for row in a[first * columns..(first + rows) * columns].chunks_exact(columns) {
                crate::cpu::add_assign(sums, row);
            }
        });
        Ok(sums.into_iter().map(|sum| (sum / rows as f64).max(1e-30)).collect())
    }
}

impl Operation<CpuPool> for MeMax {
    /// The activations.
    type Saved = Tensor;

    fn forward(&self, _: &mut Cpu, a: &Var, loss: &mut Tensor) -> Result<Tensor> {
        let means = self.means(a.value())?;
        let sum = (self.columns as f64).ln() + means.iter().map(|mean| mean * mean.ln()).sum::<f64>();
        loss.write(&[sum as f32])?;
        Ok(a.value().clone())
    }

    fn backward(&self, _: &mut Cpu, a: &Tensor, dy: Tensor, da: &mut Target) -> Result<()> {
        let scale = f64::from(dy.scalar()?) / self.rows as f64;
        let means = self.means(a)?;
        let gradient: Vec<f32> = means.iter().map(|mean| (scale * (mean.ln() + 1.0)) as f32).collect();
        da.write(|i| gradient[i % self.columns])
    }
}

impl Operation<CudaDevice> for MeMax {
    /// The means.
    type Saved = cuda::Moments;

    fn forward(&self, cuda: &mut Cuda, a: &Var, loss: &mut Tensor) -> Result<cuda::Moments> {
        let &Self { rows, columns } = self;
        let moments = cuda::Moments::new(cuda, a.value(), (rows, columns), None)?;
        let arguments = [(&moments.means).into(), columns.into()];
        cuda::sum(cuda, Kernel::entropy_sum, 1, &arguments, (1.0, (columns as f64).ln()), loss)?;
        Ok(moments)
    }

    fn backward(&self, cuda: &mut Cuda, moments: &cuda::Moments, dy: Tensor, da: &mut Target) -> Result<()> {
        let &Self { rows, columns } = self;
        let [to, add] = da.arguments()?;
        let arguments = [view(&dy)?.into(), (&moments.means).into(), rows.into(), columns.into(), to, add];
        cuda::launch(cuda, Kernel::me_max_backward, cuda.elementwise(rows * columns), &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        check(
            &Case::with(&[&[7, 3]], |_, random| random.range(0.05, 1.0)),
            |tape, i| me_max(tape, &i[0]),
            |i| {
                let mean = |j: usize| (0..7).map(|n| i[0][n * 3 + j]).sum::<f64>() / 7.0;
                vec![3.0_f64.ln() + (0..3).map(|j| mean(j) * mean(j).ln()).sum::<f64>()]
            },
        );
    }
}
