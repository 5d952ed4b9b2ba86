//! Poses times a transformation, normalised per capsule: X = P M / ||P M||, with the Frobenius norm of the first columns (all
//! in the published loss). Without M the poses are only normalised.
//!
//! Shapes: poses (n, capsules d^2), each capsule a row-major d x d matrix; M (n, d, d), the same for all capsules of
//! a sample, without gradient; X as the poses. Backward, with Q = P M: dQ = (dX - X' <X, dX>) / ||Q||, dP = dQ M^T, where X' is
//! X with zeros in the columns that the norm does not see.

use gpu::Launch;
use rayon::prelude::*;

use super::operation::{Cpu, Cuda, Operation};
use crate::cuda::kernels::{Kernel, KernelFile, Macro, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// Norms are not taken smaller than this; no trained network comes near it.
pub const SMALLEST_NORM: f32 = 1e-20;

/// Transforms (where `transform` is given) and normalises `poses` of `pose` (d^2) numbers per capsule, by the norm of their
/// first `columns` columns.
pub fn pose_transform(
    tape: &mut Tape<'_>,
    poses: &Var,
    pose: usize,
    columns: usize,
    transform: Option<&Tensor>,
) -> Result<Var> {
    let d = pose.isqrt();
    let &[batch, width] = poses.shape().dims() else {
        return Err(Error::shape("pose_transform", format!("poses {} must be a matrix", poses.shape())));
    };
    let fits = d * d == pose && pose > 0 && width % pose == 0 && (1..=d).contains(&columns);
    if !fits || transform.is_some_and(|m| m.dims() != [batch, d, d]) {
        let transform = transform.map(Tensor::shape);
        let detail = format!(
            "poses {} of {pose} numbers, norm of {columns} columns, transforms {transform:?}",
            poses.shape()
        );
        return Err(Error::shape("pose_transform", detail));
    }
    let transform = transform.cloned();
    let operation = PoseTransform { batch, width, pose, d, columns, transform };
    tape.apply("pose_transform", operation, poses, poses.spec())
}

struct PoseTransform {
    batch: usize,
    /// Numbers of a sample, of a capsule, and of a row of its matrix.
    width: usize,
    pose: usize,
    d: usize,
    /// Columns that the norm sees.
    columns: usize,
    transform: Option<Tensor>,
}

impl Operation<CpuPool> for PoseTransform {
    /// P and X.
    type Saved = [Tensor; 2];

    fn forward(&self, _: &mut Cpu, poses: &Var, x: &mut Tensor) -> Result<[Tensor; 2]> {
        let &Self { width, pose, d, columns, .. } = self;
        let m = self.transform.as_ref().map(Tensor::as_slice::<f32>).transpose()?;
        let from = poses.value().as_slice::<f32>()?.par_chunks(width);
        x.as_mut_slice::<f32>()?.par_chunks_mut(width).zip(from).enumerate().for_each(|(n, (x, p))| {
            let m = m.map(|m| &m[n * pose..(n + 1) * pose]);
            for (x, p) in x.chunks_exact_mut(pose).zip(p.chunks_exact(pose)) {
                times(p, m, d, x);
                let inverse = 1.0 / norm(x, d, columns);
                x.iter_mut().for_each(|x| *x *= inverse);
            }
        });
        Ok([poses.value().clone(), x.clone()])
    }

    fn backward(&self, _: &mut Cpu, [poses, x]: &[Tensor; 2], dx: Tensor, dp: &mut Target) -> Result<()> {
        let &Self { width, pose, d, columns, .. } = self;
        let m = self.transform.as_ref().map(Tensor::as_slice::<f32>).transpose()?;
        let accumulate = dp.accumulate;
        let rows = dp.tensor.as_mut_slice::<f32>()?.par_chunks_mut(width);
        let p = poses.as_slice::<f32>()?.par_chunks(width);
        let x = x.as_slice::<f32>()?.par_chunks(width);
        let dx = dx.as_slice::<f32>()?.par_chunks(width);
        rows.zip(p).zip(x).zip(dx).enumerate().for_each(|(n, (((dp, p), x), dx))| {
            let m = m.map(|m| &m[n * pose..(n + 1) * pose]);
            let mut q = vec![0.0; pose];
            let mut back = vec![0.0; pose];
            for capsule in (0..width).step_by(pose) {
                let range = capsule..capsule + pose;
                times(&p[range.clone()], m, d, &mut q);
                let inverse = 1.0 / norm(&q, d, columns);
                let (x, dx) = (&x[range.clone()], &dx[range.clone()]);
                let along: f32 = x.iter().zip(dx).map(|(x, dx)| x * dx).sum();
                for (e, ((q, x), dx)) in q.iter_mut().zip(x).zip(dx).enumerate() {
                    *q = (if e % d < columns { dx - x * along } else { *dx }) * inverse;
                }
                times_transposed(&q, m, d, &mut back);
                for (dp, back) in dp[range].iter_mut().zip(&back) {
                    *dp = if accumulate { *dp + back } else { *back };
                }
            }
        });
        Ok(())
    }
}

impl PoseTransform {
    /// Runs `kernel`, a thread per capsule: poses, transform, `more`, sizes.
    fn launch(
        &self,
        cuda: &CudaDevice,
        kernel: Kernel,
        poses: &Tensor,
        more: &[gpu::Argument],
    ) -> Result<()> {
        let (batch, capsules) = (self.batch, self.width / self.pose);
        let program = Program::new(KernelFile::PoseTransform, DType::F32).define(Macro::Side, self.d);
        let first = [view(poses)?.into(), self.transform.as_ref().map(view).transpose()?.into()];
        let arguments = [&first, more, &[batch.into(), capsules.into(), self.columns.into()]].concat();
        cuda.launch(&program, kernel, Launch::linear((batch * capsules).div_ceil(128), 128), &arguments)
    }
}

impl Operation<CudaDevice> for PoseTransform {
    /// P and X.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, poses: &Var, x: &mut Tensor) -> Result<[Tensor; 2]> {
        self.launch(cuda, Kernel::pose_transform, poses.value(), &[view_mut(x)?.into()])?;
        Ok([poses.value().clone(), x.clone()])
    }

    fn backward(&self, cuda: &mut Cuda, [poses, x]: &[Tensor; 2], dx: Tensor, dp: &mut Target) -> Result<()> {
        let [to, add] = dp.arguments()?;
        let more = [view(x)?.into(), view(&dx)?.into(), to, add];
        self.launch(cuda, Kernel::pose_transform_backward, poses, &more)
    }
}

/// The norm of the first `columns` columns of a d x d matrix.
fn norm(values: &[f32], d: usize, columns: usize) -> f32 {
    let seen = values.chunks_exact(d).flat_map(|row| &row[..columns]);
    let square: f64 = seen.map(|&v| f64::from(v) * f64::from(v)).sum();
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
        for (batch, capsules, d, columns, transformed) in [
            (3, 2, 3, 3, true),
            (2, 5, 4, 4, true),
            (4, 3, 3, 3, false),
            (3, 2, 4, 3, true),
            (3, 4, 3, 2, false),
        ] {
            let pose = d * d;
            check(
                &Case::new(&[&[batch, capsules * pose], &[batch, d, d]]).constant(1),
                |tape, i| pose_transform(tape, &i[0], pose, columns, transformed.then_some(i[1].value())),
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
                        let seen = q.iter().enumerate().filter(|(e, _)| e % d < columns);
                        let norm = seen.map(|(_, q)| q * q).sum::<f64>().sqrt();
                        x.extend(q.iter().map(|q| q / norm));
                    }
                    x
                },
            );
        }
    }
}
