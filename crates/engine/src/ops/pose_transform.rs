//! Poses times a transformation, normalised per capsule: X = P M / ||P M||, with the Frobenius norm. Without M the
//! poses are only normalised.
//!
//! Shapes: poses (n, capsules d^2), each capsule a row-major d x d matrix; M (n, d, d), the same for all capsules of
//! a sample, without gradient; X as the poses. Backward, with Q = P M: dQ = (dX - X <X, dX>) / ||Q||, dP = dQ M^T.

mod cuda;

use rayon::prelude::*;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

/// Norms are not taken smaller than this; no trained network comes near it.
pub const SMALLEST_NORM: f32 = 1e-20;

/// Transforms (where `transform` is given) and normalises `poses` of `pose` (d^2) numbers per capsule.
pub fn pose_transform(
    tape: &mut Tape<'_>,
    poses: &Var,
    pose: usize,
    transform: Option<&Tensor>,
) -> Result<Var> {
    let d = pose.isqrt();
    let &[batch, width] = poses.shape().dims() else {
        return Err(Error::shape("pose_transform", format!("poses {} must be a matrix", poses.shape())));
    };
    let fits = d * d == pose && pose > 0 && width % pose == 0;
    if !fits || transform.is_some_and(|m| m.dims() != [batch, d, d]) {
        let transform = transform.map(Tensor::shape);
        let detail = format!("poses {} of {pose} numbers, transforms {transform:?}", poses.shape());
        return Err(Error::shape("pose_transform", detail));
    }
    let device = tape.device();
    let mut x = Tensor::empty(&device, poses.shape(), poses.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let m = transform.map(Tensor::as_slice::<f32>).transpose()?;
            let from = poses.value().as_slice::<f32>()?.par_chunks(width);
            x.as_mut_slice::<f32>()?.par_chunks_mut(width).zip(from).enumerate().for_each(|(n, (x, p))| {
                let m = m.map(|m| &m[n * pose..(n + 1) * pose]);
                for (x, p) in x.chunks_exact_mut(pose).zip(p.chunks_exact(pose)) {
                    times(p, m, d, x);
                    let inverse = 1.0 / norm(x);
                    x.iter_mut().for_each(|x| *x *= inverse);
                }
            });
        }
        Device::Cuda(cuda) => cuda::forward(cuda, poses.value(), pose, transform, &mut x)?,
    }
    let dp = poses.gradient();
    let (poses, transform, kept) = (poses.value().clone(), transform.cloned(), x.clone());
    Ok(tape.record("pose_transform", &[dp], x, move |context, dx| {
        let Some(mut target) = context.target(dp)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let m = transform.as_ref().map(Tensor::as_slice::<f32>).transpose()?;
                let accumulate = target.accumulate;
                let rows = target.tensor.as_mut_slice::<f32>()?.par_chunks_mut(width);
                let p = poses.as_slice::<f32>()?.par_chunks(width);
                let x = kept.as_slice::<f32>()?.par_chunks(width);
                let dx = dx.as_slice::<f32>()?.par_chunks(width);
                rows.zip(p).zip(x).zip(dx).enumerate().for_each(|(n, (((dp, p), x), dx))| {
                    let m = m.map(|m| &m[n * pose..(n + 1) * pose]);
                    let mut q = vec![0.0; pose];
                    let mut back = vec![0.0; pose];
                    for capsule in (0..width).step_by(pose) {
                        let range = capsule..capsule + pose;
                        times(&p[range.clone()], m, d, &mut q);
                        let inverse = 1.0 / norm(&q);
                        let (x, dx) = (&x[range.clone()], &dx[range.clone()]);
                        let along: f32 = x.iter().zip(dx).map(|(x, dx)| x * dx).sum();
                        for ((q, x), dx) in q.iter_mut().zip(x).zip(dx) {
                            *q = (dx - x * along) * inverse;
                        }
                        times_transposed(&q, m, d, &mut back);
                        for (dp, back) in dp[range].iter_mut().zip(&back) {
                            *dp = if accumulate { *dp + back } else { *back };
                        }
                    }
                });
            }
            Device::Cuda(cuda) => {
                cuda::backward(&cuda, (&poses, pose), transform.as_ref(), &kept, &dx, &mut target)?;
            }
        }
        context.put(target);
        Ok(())
    }))
}

fn norm(values: &[f32]) -> f32 {
    let square: f64 = values.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
    (square.sqrt() as f32).max(SMALLEST_NORM)
}

/// `q = p m`, for d x d matrices.
fn times(p: &[f32], m: Option<&[f32]>, d: usize, q: &mut [f32]) {
    let Some(m) = m else { return q.copy_from_slice(p) };
    for r in 0..d {
        for c in 0..d {
            q[r * d + c] = (0..d).map(|k| p[r * d + k] * m[k * d + c]).sum();
        }
    }
}

/// `q = p m^T`, for d x d matrices.
fn times_transposed(p: &[f32], m: Option<&[f32]>, d: usize, q: &mut [f32]) {
    let Some(m) = m else { return q.copy_from_slice(p) };
    for r in 0..d {
        for c in 0..d {
            q[r * d + c] = (0..d).map(|k| p[r * d + k] * m[c * d + k]).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        for (batch, capsules, d, transformed) in [(3, 2, 3, true), (2, 5, 4, true), (4, 3, 3, false)] {
            let pose = d * d;
            check(
                &Case::new(&[&[batch, capsules * pose], &[batch, d, d]]).constant(1),
                |tape, i| pose_transform(tape, &i[0], pose, transformed.then_some(i[1].value())),
                |i| {
                    let mut x = Vec::new();
                    for (capsule, p) in i[0].chunks(pose).enumerate() {
                        let m = &i[1][capsule / capsules * pose..][..pose];
                        let q: Vec<f64> = (0..pose)
                            .map(|e| match transformed {
                                true => (0..d).map(|k| p[e / d * d + k] * m[k * d + e % d]).sum(),
                                false => p[e],
                            })
                            .collect();
                        let norm = q.iter().map(|q| q * q).sum::<f64>().sqrt();
                        x.extend(q.iter().map(|q| q / norm));
                    }
                    x
                },
            );
        }
    }
}
