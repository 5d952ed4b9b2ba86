//! Mean-entropy maximisation: MEMAX = ln N - H(abar) = ln N + sum_j abar_j ln abar_j, with abar the mean activations
//! over the batch.
//!
//! Shapes: activations (n, N). Gradient: da_nj = (ln abar_j + 1) / n.

use super::{cuda, matrix, write};
use crate::cpu::column_sums;
use crate::device::Device;
use crate::error::Result;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

fn means(a: &[f32], rows: usize, columns: usize) -> Vec<f64> {
    let sums = column_sums(rows, columns, 1, |first, rows, sums| {
        for row in a[first * columns..(first + rows) * columns].chunks_exact(columns) {
            crate::cpu::add_assign(sums, row);
        }
    });
    sums.into_iter().map(|sum| (sum / rows as f64).max(1e-30)).collect()
}

/// ln N minus the entropy of the mean activations.
pub fn me_max(tape: &mut Tape<'_>, activations: &Var) -> Result<Var> {
    const OP: &str = "me_max";
    let (rows, columns) = matrix(OP, activations.shape())?;
    let device = tape.device();
    let (loss, moments) = match &device {
        Device::Cpu(_) => {
            let means = means(activations.value().as_slice()?, rows, columns);
            let loss = (columns as f64).ln() + means.iter().map(|mean| mean * mean.ln()).sum::<f64>();
            (Tensor::from_slice(&device, [1], &[loss as f32])?, None)
        }
        Device::Cuda(cuda) => {
            let (loss, moments) = cuda::me_max(cuda, &device, activations.value(), (rows, columns))?;
            (loss, Some(moments))
        }
    };
    let (da, a) = (activations.gradient(), activations.value().clone());
    Ok(tape.record(OP, &[da], loss, move |context, dy| {
        let Some(mut da) = context.target(da)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let scale = f64::from(dy.scalar()?) / rows as f64;
                let means = means(a.as_slice()?, rows, columns);
                let gradient: Vec<f32> =
                    means.iter().map(|mean| (scale * (mean.ln() + 1.0)) as f32).collect();
                write(&mut da, |i| gradient[i % columns])?;
            }
            Device::Cuda(cuda) => {
                if let Some(moments) = &moments {
                    cuda::me_max_backward(&cuda, &dy, (rows, columns), moments, &mut da)?;
                }
            }
        }
        context.put(da);
        Ok(())
    }))
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
