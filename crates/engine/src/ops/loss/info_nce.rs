//! InfoNCE over both views: F = the 2n rows of [u; v], each normalised; s_ab = F_a . F_b / tau;
//! NCE = mean over all rows a of ( ln sum_{b != a} exp s_ab - s_a,pos ), pos = the other view of the same sample. Where
//! samples are in groups, other samples of a row's group are left out of its sum.
//!
//! Shapes: u, v (n, d), groups (n). Backward, with p_ab = softmax over the sum's b of s_ab and G = (p - [b = pos]) / 2n:
//! dF = (G + G^T) F / tau, and through the norm df = (dF - F <F, dF>) / ||f||.

use gpu::matmul::MatmulShape;
use gpu::{Launch, Precision};

use super::{cuda, matrix, number};
use crate::cpu::matmul::{self, Matrix};
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::operation::{Context, Cpu, Cuda, Fixed, Operation, To};
use crate::pool::CpuPool;
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// Norms are not taken smaller than this.
pub const SMALLEST_NORM: f32 = 1e-12;

/// The contrastive loss of matching rows of `u` and `v` at temperature `tau`. Samples with the same number in `groups`
/// are no negatives of each other; without groups all are.
pub fn info_nce(tape: &mut Tape<'_>, u: &Var, v: &Var, groups: Option<&Tensor>, tau: f32) -> Result<Var> {
    let (n, d) = matrix("info_nce", u.shape())?;
    if u.shape() != v.shape() {
        return Err(Error::shape("info_nce", format!("u {} and v {}", u.shape(), v.shape())));
    }
    if let Some(groups) = groups.filter(|groups| groups.dims() != [n] || groups.dtype() != DType::I32) {
        let detail = format!("u {} and {} groups {}", u.shape(), groups.dtype().name(), groups.shape());
        return Err(Error::shape("info_nce", detail));
    }
    tape.apply("info_nce", InfoNce { n, d, tau, groups: groups.cloned() }, [u, v], number())
}

struct InfoNce {
    n: usize,
    d: usize,
    tau: f32,
    groups: Option<Tensor>,
}

/// What backward needs.
struct Saved {
    /// F.
    rows: Tensor,
    /// Of the rows, before they were normalised.
    norms: Tensor,
    /// First s, then G.
    similarity: Tensor,
}

impl InfoNce {
    fn room<D>(&self, context: &Context<'_, '_, D>) -> Result<Saved> {
        let size = 2 * self.n;
        Ok(Saved {
            rows: context.empty([size, self.d], DType::F32)?,
            norms: context.empty([size], DType::F32)?,
            similarity: context.empty([size, size], DType::F32)?,
        })
    }
}

impl Operation<CpuPool, Fixed<2>> for InfoNce {
    type Saved = Saved;

    fn forward(&self, cpu: &mut Cpu, [u, v]: [&Var; 2], loss: &mut Tensor) -> Result<Saved> {
        let &Self { n, d, tau, ref groups } = self;
        let mut saved = self.room(cpu)?;
        let f = saved.rows.as_mut_slice::<f32>()?;
        f[..n * d].copy_from_slice(u.value().as_slice()?);
        f[n * d..].copy_from_slice(v.value().as_slice()?);
        for (row, norm) in f.chunks_exact_mut(d).zip(saved.norms.as_mut_slice::<f32>()?) {
            let square: f64 = row.iter().map(|&f| f64::from(f) * f64::from(f)).sum();
            *norm = (square.sqrt() as f32).max(SMALLEST_NORM);
            row.iter_mut().for_each(|f| *f /= *norm);
        }
        let f = Matrix::new(saved.rows.as_slice()?, 2 * n, d);
        let s = saved.similarity.as_mut_slice::<f32>()?;
        matmul::nt(cpu.device, f, f, s, false)?;
        let mut sum = 0.0;
        let groups = groups.as_ref().map(Tensor::as_slice::<i32>).transpose()?;
        for (a, row) in s.chunks_exact_mut(2 * n).enumerate() {
            let other_group = |b: usize| groups.is_none_or(|groups| groups[a % n] != groups[b % n]);
            let counts = |b: usize| b != a && (b % n == a % n || other_group(b));
            sum += softmax_row(row, counts, (a + n) % (2 * n), tau);
        }
        loss.write(&[(sum / (2 * n) as f64) as f32])?;
        Ok(saved)
    }

    fn backward(
        &self,
        cpu: &mut Cpu,
        Saved { rows, norms, similarity }: &Saved,
        dy: Tensor,
        [du, dv]: To<2>,
    ) -> Result<()> {
        let &Self { n, d, tau, .. } = self;
        let (size, g, f) = (2 * n, similarity.as_slice::<f32>()?, rows.as_slice::<f32>()?);
        let mut symmetric = cpu.empty([size, size], DType::F32)?;
        let scale = dy.scalar()? / (tau * size as f32);
        for (a, row) in symmetric.as_mut_slice::<f32>()?.chunks_exact_mut(size).enumerate() {
            row.iter_mut().enumerate().for_each(|(b, to)| *to = scale * (g[a * size + b] + g[b * size + a]));
        }
        let mut gradient = cpu.empty([size, d], DType::F32)?;
        let df = gradient.as_mut_slice::<f32>()?;
        matmul::nn(Matrix::new(symmetric.as_slice()?, size, size), Matrix::new(f, size, d), df, false);
        for ((df, f), norm) in df.chunks_exact_mut(d).zip(f.chunks_exact(d)).zip(norms.as_slice::<f32>()?) {
            let along: f32 = df.iter().zip(f).map(|(df, f)| df * f).sum();
            df.iter_mut().zip(f).for_each(|(df, f)| *df = (*df - f * along) / norm);
        }
        for (target, df) in [(du, &df[..n * d]), (dv, &df[n * d..])] {
            if let Some(target) = target {
                target.write(|index| df[index])?;
            }
        }
        Ok(())
    }
}

impl Operation<CudaDevice, Fixed<2>> for InfoNce {
    type Saved = Saved;

    fn forward(&self, cuda: &mut Cuda, [u, v]: [&Var; 2], loss: &mut Tensor) -> Result<Saved> {
        let &Self { n, d, tau, ref groups } = self;
        let mut saved = self.room(cuda)?;
        let (f, norms) = (view_mut(&mut saved.rows)?, view_mut(&mut saved.norms)?);
        let (u, v) = (view(u.value())?.into(), view(v.value())?.into());
        let arguments = [u, v, n.into(), d.into(), SMALLEST_NORM.into(), f.into(), norms.into()];
        cuda::launch(cuda, Kernel::normalise_rows, Launch::linear(2 * n, 256), &arguments)?;
        let shape = MatmulShape::new(2 * n, 2 * n, d, Precision::F32, Precision::F32).transposed(false, true);
        let s = view_mut(&mut saved.similarity)?;
        cuda.multiply(&shape, 0.0, [f, f, s])?;
        let groups = groups.as_ref().map(view).transpose()?;
        let arguments = [s.into(), groups.into(), n.into(), tau.into()];
        cuda::sum(cuda, Kernel::contrast_rows, 2 * n, &arguments, (0.5 / n as f64, 0.0), loss)?;
        Ok(saved)
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        Saved { rows, norms, similarity }: &Saved,
        dy: Tensor,
        targets: To<2>,
    ) -> Result<()> {
        let &Self { n, d, tau, .. } = self;
        let (size, context) = (2 * n, cuda.context());
        let symmetric = context.allocate(size * size * 4)?;
        let arguments =
            [view(&dy)?.into(), view(similarity)?.into(), size.into(), tau.into(), (&symmetric).into()];
        cuda::launch(cuda, Kernel::symmetric, cuda.elementwise(size * size), &arguments)?;
        let df = context.allocate(size * d * 4)?;
        let shape = MatmulShape::new(size, d, size, Precision::F32, Precision::F32);
        let f = view(rows)?;
        cuda.multiply(&shape, 0.0, [symmetric.view(), f, df.view()])?;
        for (index, target) in targets.into_iter().enumerate() {
            let Some(target) = target else { continue };
            let [to, add] = target.arguments()?;
            let arguments =
                [(&df).into(), f.into(), view(norms)?.into(), (index * n).into(), d.into(), to, add];
            cuda::launch(cuda, Kernel::through_norm, Launch::linear(n, 256), &arguments)?;
        }
        Ok(())
    }
}

/// Turns the products of a row into p - [b = pos], p over the places that count, and gives the row's loss.
fn softmax_row(row: &mut [f32], counts: impl Fn(usize) -> bool, positive: usize, tau: f32) -> f64 {
    row.iter_mut().for_each(|s| *s /= tau);
    let largest =
        row.iter().enumerate().filter(|(b, _)| counts(*b)).fold(f32::NEG_INFINITY, |m, (_, s)| m.max(*s));
    let sum: f64 =
        row.iter().enumerate().filter(|(b, _)| counts(*b)).map(|(_, s)| f64::from(s - largest).exp()).sum();
    let loss = sum.ln() + f64::from(largest) - f64::from(row[positive]);
    for (b, s) in row.iter_mut().enumerate() {
        *s = if counts(b) { (f64::from(*s - largest).exp() / sum) as f32 } else { 0.0 };
    }
    row[positive] -= 1.0;
    loss
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    fn reference(u: &[f64], v: &[f64], groups: &[i32], d: usize, tau: f64) -> f64 {
        let n = groups.len();
        let all: Vec<Vec<f64>> = u
            .chunks(d)
            .chain(v.chunks(d))
            .map(|row| {
                let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                row.iter().map(|x| x / norm).collect()
            })
            .collect();
        let s = |a: usize, b: usize| all[a].iter().zip(&all[b]).map(|(x, y)| x * y).sum::<f64>() / tau;
        let counts = |a: usize, b: usize| a != b && (a % n == b % n || groups[a % n] != groups[b % n]);
        let row = |a: usize| {
            let sum: f64 = (0..2 * n).filter(|&b| counts(a, b)).map(|b| s(a, b).exp()).sum();
            sum.ln() - s(a, (a + n) % (2 * n))
        };
        (0..2 * n).map(row).sum::<f64>() / (2 * n) as f64
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (n, d, tau) in [(5, 7, 0.5), (3, 4, 0.1), (2, 33, 1.0)] {
            let groups: Vec<i32> = (0..n as i32).collect();
            check(
                &Case::new(&[&[n, d], &[n, d]]),
                |tape, i| info_nce(tape, &i[0], &i[1], None, tau),
                |i| vec![reference(&i[0], &i[1], &groups, d, f64::from(tau))],
            );
        }
    }

    #[test]
    fn samples_of_one_group_are_no_negatives_of_each_other() {
        let groups = [4, 9, 4, 0, 9, 4];
        check(
            &Case::new(&[&[6, 5], &[6, 5]]),
            |tape, i| {
                let groups = Tensor::from_slice(&tape.device(), [6], &groups)?;
                info_nce(tape, &i[0], &i[1], Some(&groups), 0.3)
            },
            |i| vec![reference(&i[0], &i[1], &groups, 5, 0.3_f32.into())],
        );
    }

    #[test]
    fn agrees_with_the_published_code() {
        let mut case = Case::new(&[&[3, 4], &[3, 4]]);
        case.inputs[0] = (0..12).map(|i| (1.0 + f64::from(i)).sin() as f32).collect();
        case.inputs[1] = (0..12).map(|i| (2.0 + f64::from(i)).cos() as f32).collect();
        for (tau, wanted) in [(1.0, 2.496_967), (0.1, 16.773_912)] {
            let loss = case.run(|tape, i| info_nce(tape, &i[0], &i[1], None, tau)).unwrap()[0];
            assert!((loss - wanted).abs() < 2e-6 * wanted.max(1.0), "{loss} {wanted}");
        }
    }
}
