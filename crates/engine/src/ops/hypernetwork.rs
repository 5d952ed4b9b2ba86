//! The linear hypernetwork: each sample's own matrix, linear in its transformation, applied to its embedding.
//!
//! y[n, o] = sum_i ( sum_k W[o D + i, k] z[n, k] ) e[n, i]
//!
//! Shapes: e (n, D), z (n, Z) without gradient, W (D D, Z) as published, y (n, D). No matrix per sample is built:
//! with x[n, i Z + k] = e[n, i] z[n, k], and W read as (D, D Z), it is the linear layer y = x W^T.
//! Backward: dx = dy W, de[n, i] = sum_k z[n, k] dx[n, i Z + k], dW = dy^T x.

mod cuda;

use crate::cpu::matmul::{self, Matrix};
use crate::device::Device;
use crate::error::{Error, Result};
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
    let device = tape.device();
    let mut y = Tensor::empty(&device, [rows, d], embedding.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let x = expand(&device, embedding.value(), parameters, d, z)?;
            let weight = Matrix::new(weight.value().as_slice()?, d, d * z);
            matmul::nt(&device, Matrix::new(x.as_slice()?, rows, d * z), weight, y.as_mut_slice()?, false)?;
        }
        Device::Cuda(cuda) => cuda::forward(cuda, embedding.value(), parameters, weight.value(), &mut y)?,
    }
    let (de, dw) = (embedding.gradient(), weight.gradient());
    let (embedding, parameters, weight) =
        (embedding.value().clone(), parameters.clone(), weight.value().clone());
    Ok(tape.record("hypernetwork", &[de, dw], y, move |context, dy| {
        let (mut de, mut dw) = (context.target(de)?, context.target(dw)?);
        let device = context.device();
        match &device {
            Device::Cpu(_) => {
                let dy = Matrix::new(dy.as_slice()?, rows, d);
                if let Some(dw) = &mut dw {
                    let x = expand(&device, &embedding, &parameters, d, z)?;
                    let x = Matrix::new(x.as_slice()?, rows, d * z);
                    matmul::tn(dy, x, dw.tensor.as_mut_slice()?, dw.accumulate);
                }
                if let Some(de) = &mut de {
                    let mut dx = Tensor::empty(&device, [rows, d * z], DType::F32)?;
                    matmul::nn(dy, Matrix::new(weight.as_slice()?, d, d * z), dx.as_mut_slice()?, false);
                    let (dx, accumulate) = (dx.as_slice::<f32>()?, de.accumulate);
                    let parameters = parameters.as_slice::<f32>()?;
                    for (index, value) in de.tensor.as_mut_slice::<f32>()?.iter_mut().enumerate() {
                        let z_row = &parameters[index / d * z..][..z];
                        let gradient: f32 =
                            dx[index * z..][..z].iter().zip(z_row).map(|(dx, z)| dx * z).sum();
                        *value = if accumulate { *value + gradient } else { gradient };
                    }
                }
            }
            Device::Cuda(cuda) => {
                let operands = (&embedding, &parameters, &weight);
                cuda::backward(cuda, operands, &dy, de.as_mut(), dw.as_mut())?;
            }
        }
        [de, dw].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    }))
}

/// x[n, i Z + k] = e[n, i] z[n, k].
fn expand(device: &Device, embedding: &Tensor, parameters: &Tensor, d: usize, z: usize) -> Result<Tensor> {
    let mut x = Tensor::empty(device, [embedding.dims()[0], d * z], DType::F32)?;
    let (e, parameters) = (embedding.as_slice::<f32>()?, parameters.as_slice::<f32>()?);
    for (index, to) in x.as_mut_slice::<f32>()?.chunks_exact_mut(z).enumerate() {
        for (to, parameter) in to.iter_mut().zip(&parameters[index / d * z..][..z]) {
            *to = e[index] * parameter;
        }
    }
    Ok(x)
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
