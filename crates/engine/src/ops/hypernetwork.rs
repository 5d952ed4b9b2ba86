//! The linear hypernetwork: each sample's own matrix, linear in its transformation, applied to its embedding.
//!
//! y[n, o] = sum_i ( sum_k W[o D + i, k] z[n, k] ) e[n, i]
//!
//! Shapes: e (n, D), z (n, Z) without gradient, W (D D, Z) as published, y (n, D). No matrix per sample is built:
//! with x[n, i Z + k] = e[n, i] z[n, k], and W read as (D, D Z), it is the linear layer y = x W^T.
//! Backward: dx = dy W, de[n, i] = sum_k z[n, k] dx[n, i Z + k], dW = dy^T x.

use gpu::Precision;
use gpu::matmul::MatmulShape;

use super::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::cpu::matmul::{self, Matrix};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// Applies to each embedding the matrix that `weight` makes of its transformation.
pub fn hypernetwork(tape: &mut Tape<'_>, embedding: &Var, parameters: &Tensor, weight: &Var) -> Result<Var> {
    let fail = || {
        let detail = format!(
            "embedding {}, transformations {}, weight {}",
            embedding.shape(),
            parameters.shape(),
            weight.shape()
        );
        Error::shape("hypernetwork", detail)
    };
    let (&[rows, d], &[z_rows, z]) = (embedding.shape().dims(), parameters.dims()) else {
        return Err(fail());
    };
    if rows != z_rows || weight.shape().dims() != [d * d, z] || d == 0 || z == 0 {
        return Err(fail());
    }
    let spec = ([rows, d].into(), embedding.value().dtype());
    let parameters = parameters.clone();
    tape.apply("hypernetwork", Hypernetwork { rows, d, z, parameters }, [embedding, weight], spec)
}

struct Hypernetwork {
    rows: usize,
    d: usize,
    z: usize,
    parameters: Tensor,
}

impl Operation<CpuPool, Fixed<2>> for Hypernetwork {
    /// e and W.
    type Saved = [Tensor; 2];

    fn forward(&self, cpu: &mut Cpu, [e, weight]: [&Var; 2], y: &mut Tensor) -> Result<[Tensor; 2]> {
        let &Self { rows, d, z, .. } = self;
        let x = self.expand(cpu, e.value())?;
        let w = Matrix::new(weight.value().as_slice()?, d, d * z);
        matmul::nt(cpu.device, Matrix::new(x.as_slice()?, rows, d * z), w, y.as_mut_slice()?, false)?;
        Ok([e.value().clone(), weight.value().clone()])
    }

    fn backward(&self, cpu: &mut Cpu, [e, weight]: &[Tensor; 2], dy: Tensor, [de, dw]: To<2>) -> Result<()> {
        let &Self { rows, d, z, .. } = self;
        let dy = Matrix::new(dy.as_slice()?, rows, d);
        if let Some(dw) = dw {
            let x = self.expand(cpu, e)?;
            let x = Matrix::new(x.as_slice()?, rows, d * z);
            matmul::tn(dy, x, dw.tensor.as_mut_slice()?, dw.accumulate);
        }
        let Some(de) = de else { return Ok(()) };
        let mut dx = cpu.empty([rows, d * z], DType::F32)?;
        matmul::nn(dy, Matrix::new(weight.as_slice()?, d, d * z), dx.as_mut_slice()?, false);
        let (dx, parameters) = (dx.as_slice::<f32>()?, self.parameters.as_slice::<f32>()?);
        de.write(|index| {
            let z_row = &parameters[index / d * z..][..z];
            dx[index * z..][..z].iter().zip(z_row).map(|(dx, z)| dx * z).sum()
        })
    }
}

impl Hypernetwork {
    /// x[n, i Z + k] = e[n, i] z[n, k].
    fn expand(&self, cpu: &Cpu, e: &Tensor) -> Result<Tensor> {
        let &Self { rows, d, z, .. } = self;
        let mut x = cpu.empty([rows, d * z], DType::F32)?;
        let (e, parameters) = (e.as_slice::<f32>()?, self.parameters.as_slice::<f32>()?);
        for (index, to) in x.as_mut_slice::<f32>()?.chunks_exact_mut(z).enumerate() {
            for (to, parameter) in to.iter_mut().zip(&parameters[index / d * z..][..z]) {
                *to = e[index] * parameter;
            }
        }
        Ok(x)
    }

    /// As [`Self::expand`], on the GPU.
    fn expand_on_cuda(&self, cuda: &CudaDevice, e: &Tensor) -> Result<gpu::Buffer> {
        if e.dtype() != DType::F32 {
            return Err(Error::shape(
                "hypernetwork",
                format!("embeddings of {} on the GPU", e.dtype().name()),
            ));
        }
        let &Self { rows, d, z, .. } = self;
        let count = rows * d * z;
        let x = cuda.context().allocate(count * 4)?;
        let (e, parameters) = (view(e)?.into(), view(&self.parameters)?.into());
        let arguments = [e, parameters, (count as i64).into(), d.into(), z.into(), (&x).into()];
        cuda.launch(&program(), Kernel::expand, cuda.elementwise(count), &arguments)?;
        Ok(x)
    }
}

fn program() -> Program {
    Program::new(KernelFile::Loss, DType::F32)
}

/// The expanded embedding times the weights, in f32.
impl Operation<CudaDevice, Fixed<2>> for Hypernetwork {
    /// e and W.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, [e, weight]: [&Var; 2], y: &mut Tensor) -> Result<[Tensor; 2]> {
        let &Self { rows, d, z, .. } = self;
        let x = self.expand_on_cuda(cuda, e.value())?;
        let shape = MatmulShape::new(rows, d, d * z, Precision::F32, Precision::F32).transposed(false, true);
        cuda.multiply(&shape, 0.0, [x.view(), view(weight.value())?, view_mut(y)?])?;
        Ok([e.value().clone(), weight.value().clone()])
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        [e, weight]: &[Tensor; 2],
        dy: Tensor,
        [de, dw]: To<2>,
    ) -> Result<()> {
        let &Self { rows, d, z, .. } = self;
        if let Some(dw) = dw {
            let x = self.expand_on_cuda(cuda, e)?;
            let shape =
                MatmulShape::new(d, d * z, rows, Precision::F32, Precision::F32).transposed(true, false);
            cuda.multiply(&shape, dw.beta(), [view(&dy)?, x.view(), view_mut(&mut dw.tensor)?])?;
        }
        let Some(de) = de else { return Ok(()) };
        let dx = cuda.context().allocate(e.len() * z * 4)?;
        let shape = MatmulShape::new(rows, d * z, d, Precision::F32, Precision::F32);
        cuda.multiply(&shape, 0.0, [view(&dy)?, view(weight)?, dx.view()])?;
        let [to, add] = de.arguments()?;
        let parameters = view(&self.parameters)?.into();
        let arguments = [(&dx).into(), parameters, (e.len() as i64).into(), d.into(), z.into(), to, add];
        cuda.launch(&program(), Kernel::contract, cuda.elementwise(e.len()), &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (rows, d, z) in [(3, 5, 4), (17, 9, 7), (1, 1, 1)] {
            check(
                &Case::new(&[&[rows, d], &[rows, z], &[d * d, z]]).constant(1),
                |tape, i| hypernetwork(tape, &i[0], i[1].value(), &i[2]),
                |i| {
                    let mut y = Vec::new();
                    for (n, o) in (0..rows).flat_map(|n| (0..d).map(move |o| (n, o))) {
                        let entry = |c: usize| -> f64 {
                            (0..z).map(|k| i[2][(o * d + c) * z + k] * i[1][n * z + k]).sum()
                        };
                        y.push((0..d).map(|c| entry(c) * i[0][n * d + c]).sum());
                    }
                    y
                },
            );
        }
    }
}
