//! Linear: y = x W^T + b for rows x.
//!
//! Shapes: x (rows, in), W (out, in) as published, b (out), y (rows, out).
//! Backward: dx = dy W, dW = dy^T x, db = column sums of dy.

pub(crate) mod cuda;

use crate::cpu::matmul::{self, Matrix};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// `x` times the transpose of `weight`, plus `bias`.
pub fn linear(tape: &mut Tape<'_>, x: &Var, weight: &Var, bias: Option<&Var>) -> Result<Var> {
    let (&[rows, width], &[out, weight_width]) = (x.shape().dims(), weight.shape().dims()) else {
        return Err(Error::shape(
            "linear",
            format!("x {} and weight {} must be matrices", x.shape(), weight.shape()),
        ));
    };
    if width != weight_width {
        let detail = format!("x {} does not fit weight {} (out, in)", x.shape(), weight.shape());
        return Err(Error::shape("linear", detail));
    }
    if let Some(bias) = bias.filter(|bias| bias.shape().dims() != [out]) {
        return Err(Error::shape("linear", format!("bias {} does not fit {out} outputs", bias.shape())));
    }
    let device = tape.device();
    let mut y = Tensor::empty(&device, [rows, out], x.value().dtype())?;
    // The weight in the type of x: both views and both passes of a step share it.
    let cast = match x.value().dtype() {
        DType::Bf16 => tape.prepared(weight.value(), "activation type", crate::cuda::casts::cast_weight)?,
        _ => weight.value().clone(),
    };
    match &device {
        Device::Cpu(_) => {
            let to = y.as_mut_slice::<f32>()?;
            if let Some(bias) = bias {
                let bias = bias.value().as_slice::<f32>()?;
                to.chunks_exact_mut(out).for_each(|row| row.copy_from_slice(bias));
            }
            let x = Matrix::new(x.value().as_slice()?, rows, width);
            matmul::nt(&device, x, Matrix::new(weight.value().as_slice()?, out, width), to, bias.is_some())?;
        }
        Device::Cuda(cuda) => cuda::forward(cuda, x.value(), &cast, bias.map(Var::value), &mut y)?,
    }
    let (dx, dw, db) = (x.gradient(), weight.gradient(), bias.map(Var::gradient));
    let (x, weight) = (x.value().clone(), cast);
    let inputs = [Some(dx), Some(dw), db].map(|input| input.unwrap_or(dw));
    Ok(tape.record("linear", &inputs, y, move |context, dy| {
        let mut dx = context.target(dx)?;
        let mut dw = context.target(dw)?;
        let mut db = db.map(|db| context.target(db)).transpose()?.flatten();
        match context.device() {
            Device::Cpu(_) => {
                let dy = Matrix::new(dy.as_slice()?, rows, out);
                if let Some(Target { tensor, accumulate, .. }) = &mut dx {
                    let weight = Matrix::new(weight.as_slice()?, out, width);
                    matmul::nn(dy, weight, tensor.as_mut_slice()?, *accumulate);
                }
                if let Some(Target { tensor, accumulate, .. }) = &mut dw {
                    let x = Matrix::new(x.as_slice()?, rows, width);
                    matmul::tn(dy, x, tensor.as_mut_slice()?, *accumulate);
                }
                if let Some(db) = &mut db {
                    super::column_sum_gradient(dy.values, db)?;
                }
            }
            Device::Cuda(cuda) => cuda::backward(&cuda, &x, &weight, &dy, [&mut dx, &mut dw, &mut db])?,
        }
        [dx, dw, db].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        for [rows, width, out] in [[1, 1, 1], [3, 5, 7], [17, 33, 35]] {
            let case = Case::new(&[&[rows, width], &[out, width], &[out]]);
            check(
                &case,
                |tape, inputs| linear(tape, &inputs[0], &inputs[1], Some(&inputs[2])),
                |inputs| {
                    let mut y = Vec::new();
                    for r in 0..rows {
                        for o in 0..out {
                            let product =
                                (0..width).map(|i| inputs[0][r * width + i] * inputs[1][o * width + i]);
                            y.push(product.sum::<f64>() + inputs[2][o]);
                        }
                    }
                    y
                },
            );
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let case = Case::new(&[&[2, 3], &[4, 5]]);
        let error = case.run(|tape, inputs| linear(tape, &inputs[0], &inputs[1], None)).unwrap_err();
        assert_eq!(error.to_string(), "linear: x [2, 3] does not fit weight [4, 5] (out, in)");
    }
}
