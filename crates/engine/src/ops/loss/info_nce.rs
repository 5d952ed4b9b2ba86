//! InfoNCE over both views: F = the 2n rows of [u; v], each normalised; s_ab = F_a . F_b / tau;
//! NCE = mean over all rows a of ( ln sum_{b != a} exp s_ab - s_a,pos ), pos = the other view of the same sample.
//!
//! Shapes: u, v (n, d). Backward, with p_ab = softmax over b != a of s_ab and G = (p - [b = pos]) / 2n:
//! dF = (G + G^T) F / tau, and through the norm df = (dF - F <F, dF>) / ||f||.

use super::{cuda, matrix};
use crate::cpu::matmul::{self, Matrix};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// Norms are not taken smaller than this.
pub const SMALLEST_NORM: f32 = 1e-12;

/// The contrastive loss of matching rows of `u` and `v` at temperature `tau`.
pub fn info_nce(tape: &mut Tape<'_>, u: &Var, v: &Var, tau: f32) -> Result<Var> {
    let (n, d) = matrix("info_nce", u.shape())?;
    if u.shape() != v.shape() {
        return Err(Error::shape("info_nce", format!("u {} and v {}", u.shape(), v.shape())));
    }
    let device = tape.device();
    let mut rows = Tensor::empty(&device, [2 * n, d], DType::F32)?;
    let mut norms = Tensor::empty(&device, [2 * n], DType::F32)?;
    // First s, then G.
    let mut similarity = Tensor::empty(&device, [2 * n, 2 * n], DType::F32)?;
    let loss = match &device {
        Device::Cpu(_) => {
            let f = rows.as_mut_slice::<f32>()?;
            f[..n * d].copy_from_slice(u.value().as_slice()?);
            f[n * d..].copy_from_slice(v.value().as_slice()?);
            for (row, norm) in f.chunks_exact_mut(d).zip(norms.as_mut_slice::<f32>()?) {
                let square: f64 = row.iter().map(|&f| f64::from(f) * f64::from(f)).sum();
                *norm = (square.sqrt() as f32).max(SMALLEST_NORM);
                row.iter_mut().for_each(|f| *f /= *norm);
            }
            let f = Matrix::new(rows.as_slice()?, 2 * n, d);
            let s = similarity.as_mut_slice::<f32>()?;
            matmul::nt(&device, f, f, s, false)?;
            let mut sum = 0.0;
            for (a, row) in s.chunks_exact_mut(2 * n).enumerate() {
                sum += softmax_row(row, a, (a + n) % (2 * n), tau);
            }
            Tensor::from_slice(&device, [1], &[(sum / (2 * n) as f64) as f32])?
        }
        Device::Cuda(cuda) => {
            let (pair, settings) = ((u.value(), v.value()), (tau, SMALLEST_NORM));
            cuda::info_nce(cuda, &device, pair, settings, &mut rows, &mut norms, &mut similarity)?
        }
    };
    let ids = [u.gradient(), v.gradient()];
    Ok(tape.record("info_nce", &ids, loss, move |context, dy| {
        let [mut du, mut dv] = [context.target(ids[0])?, context.target(ids[1])?];
        let device = context.device();
        match &device {
            Device::Cpu(_) => {
                let g = similarity.as_slice::<f32>()?;
                let size = 2 * n;
                let mut symmetric = Tensor::empty(&device, [size, size], DType::F32)?;
                let scale = dy.scalar()? / (tau * size as f32);
                for (a, row) in symmetric.as_mut_slice::<f32>()?.chunks_exact_mut(size).enumerate() {
                    row.iter_mut()
                        .enumerate()
                        .for_each(|(b, to)| *to = scale * (g[a * size + b] + g[b * size + a]));
                }
                let f = rows.as_slice::<f32>()?;
                let mut gradient = Tensor::empty(&device, [size, d], DType::F32)?;
                let df = gradient.as_mut_slice::<f32>()?;
                matmul::nn(
                    Matrix::new(symmetric.as_slice()?, size, size),
                    Matrix::new(f, size, d),
                    df,
                    false,
                );
                for ((df, f), norm) in
                    df.chunks_exact_mut(d).zip(f.chunks_exact(d)).zip(norms.as_slice::<f32>()?)
                {
                    let along: f32 = df.iter().zip(f).map(|(df, f)| df * f).sum();
                    df.iter_mut().zip(f).for_each(|(df, f)| *df = (*df - f * along) / norm);
                }
                for (target, df) in [(&mut du, &df[..n * d]), (&mut dv, &df[n * d..])] {
                    if let Some(target) = target {
                        add(target, df)?;
                    }
                }
            }
            Device::Cuda(cuda) => {
                let kept = (&rows, &norms, &similarity);
                cuda::info_nce_backward(cuda, &dy, kept, tau, [du.as_mut(), dv.as_mut()])?;
            }
        }
        [du, dv].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    }))
}

/// Turns the products of row `a` into p - [b = pos], and gives the row's loss.
fn softmax_row(row: &mut [f32], a: usize, positive: usize, tau: f32) -> f64 {
    let others = |index: usize| index != a;
    row.iter_mut().for_each(|s| *s /= tau);
    let largest =
        row.iter().enumerate().filter(|(b, _)| others(*b)).fold(f32::NEG_INFINITY, |m, (_, s)| m.max(*s));
    let sum: f64 =
        row.iter().enumerate().filter(|(b, _)| others(*b)).map(|(_, s)| f64::from(s - largest).exp()).sum();
    let loss = sum.ln() + f64::from(largest) - f64::from(row[positive]);
    for (b, s) in row.iter_mut().enumerate() {
        *s = if others(b) { (f64::from(*s - largest).exp() / sum) as f32 } else { 0.0 };
    }
    row[positive] -= 1.0;
    loss
}

fn add(target: &mut Target, gradient: &[f32]) -> Result<()> {
    super::write(target, |index| gradient[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    fn reference(u: &[f64], v: &[f64], n: usize, d: usize, tau: f64) -> f64 {
        let all: Vec<Vec<f64>> = u
            .chunks(d)
            .chain(v.chunks(d))
            .map(|row| {
                let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                row.iter().map(|x| x / norm).collect()
            })
            .collect();
        let s = |a: usize, b: usize| all[a].iter().zip(&all[b]).map(|(x, y)| x * y).sum::<f64>() / tau;
        let row = |a: usize| {
            let sum: f64 = (0..2 * n).filter(|&b| b != a).map(|b| s(a, b).exp()).sum();
            sum.ln() - s(a, (a + n) % (2 * n))
        };
        (0..2 * n).map(row).sum::<f64>() / (2 * n) as f64
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (n, d, tau) in [(5, 7, 0.5), (3, 4, 0.1), (2, 33, 1.0)] {
            check(
                &Case::new(&[&[n, d], &[n, d]]),
                |tape, i| info_nce(tape, &i[0], &i[1], tau),
                |i| vec![reference(&i[0], &i[1], n, d, f64::from(tau))],
            );
        }
    }

    #[test]
    fn agrees_with_the_published_code() {
        let mut case = Case::new(&[&[3, 4], &[3, 4]]);
        case.inputs[0] = (0..12).map(|i| (1.0 + f64::from(i)).sin() as f32).collect();
        case.inputs[1] = (0..12).map(|i| (2.0 + f64::from(i)).cos() as f32).collect();
        for (tau, wanted) in [(1.0, 2.496_967), (0.1, 16.773_912)] {
            let loss = case.run(|tape, i| info_nce(tape, &i[0], &i[1], tau)).unwrap()[0];
            assert!((loss - wanted).abs() < 2e-6 * wanted.max(1.0), "{loss} {wanted}");
        }
    }
}
