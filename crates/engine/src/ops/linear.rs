//! Linear: y = x W^T + b for rows x.
//!
//! Shapes: x (rows, in), W (out, in) as published, b (out), y (rows, out).
//! Backward: dx = dy W, dW = dy^T x, db = column sums of dy.

use gpu::matmul::MatmulShape;

use super::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::cpu::matmul::{self, Matrix};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, casts, precision_of, sums, view, view_mut};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// `x` times the transpose of `weight`, plus `bias`.
pub fn linear(tape: &mut Tape<'_>, x: &Var, weight: &Var, bias: Option<&Var>) -> Result<Var> {
    let (&[rows, width], &[out, weight_width]) = (x.shape().dims(), weight.shape().dims()) else {
        let detail = format!("x {} and weight {} must be matrices", x.shape(), weight.shape());
        return Err(Error::shape("linear", detail));
    };
    if width != weight_width {
        let detail = format!("x {} does not fit weight {} (out, in)", x.shape(), weight.shape());
        return Err(Error::shape("linear", detail));
    }
    if let Some(bias) = bias.filter(|bias| bias.shape().dims() != [out]) {
        return Err(Error::shape("linear", format!("bias {} does not fit {out} outputs", bias.shape())));
    }
    let spec = ([rows, out].into(), x.value().dtype());
    tape.apply("linear", Linear { rows, width, out }, [x, weight, bias.unwrap_or(&Var::absent())], spec)
}

#[derive(Clone, Copy)]
struct Linear {
    rows: usize,
    width: usize,
    out: usize,
}

impl Operation<CpuPool, Fixed<3>> for Linear {
    /// x and W.
    type Saved = [Tensor; 2];

    fn forward(&self, cpu: &mut Cpu, [x, weight, bias]: [&Var; 3], y: &mut Tensor) -> Result<[Tensor; 2]> {
        let Self { rows, width, out } = *self;
        let to = y.as_mut_slice::<f32>()?;
        if let Some(bias) = bias.present() {
            let bias = bias.as_slice::<f32>()?;
            to.chunks_exact_mut(out).for_each(|row| row.copy_from_slice(bias));
        }
        let (from, w) = (x.value().as_slice()?, weight.value().as_slice()?);
        let accumulate = bias.present().is_some();
        matmul::nt(cpu.device, Matrix::new(from, rows, width), Matrix::new(w, out, width), to, accumulate)?;
        Ok([x.value().clone(), weight.value().clone()])
    }

    fn backward(
        &self,
        _: &mut Cpu,
        [x, weight]: &[Tensor; 2],
        dy: Tensor,
        [dx, dw, db]: To<3>,
    ) -> Result<()> {
        let Self { rows, width, out } = *self;
        let dy = Matrix::new(dy.as_slice()?, rows, out);
        if let Some(Target { tensor, accumulate, .. }) = dx {
            matmul::nn(dy, Matrix::new(weight.as_slice()?, out, width), tensor.as_mut_slice()?, *accumulate);
        }
        if let Some(Target { tensor, accumulate, .. }) = dw {
            matmul::tn(dy, Matrix::new(x.as_slice()?, rows, width), tensor.as_mut_slice()?, *accumulate);
        }
        match db {
            Some(db) => super::column_sum_gradient(dy.values, db),
            None => Ok(()),
        }
    }
}

/// Three matrix products by cuBLASLt. bf16 inputs meet weights rounded to bf16; sums are f32.
impl Operation<CudaDevice, Fixed<3>> for Linear {
    /// x, and W in its type.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, [x, weight, bias]: [&Var; 3], y: &mut Tensor) -> Result<[Tensor; 2]> {
        let Self { rows, width, out } = *self;
        // The weight in the type of x: both views and both passes of a step share it.
        let (x, weight) = (x.value(), weight.value());
        let weight = match x.dtype() {
            DType::Bf16 => cuda.tape.prepared(weight, "activation type", casts::cast_weight)?,
            _ => weight.clone(),
        };
        let _scope = cuda.context().scope(
            || format!("linear {width}->{out}"),
            2.0 * (rows * width * out) as f64,
            ((x.len() + y.len()) * x.dtype().size() + weight.len() * 4) as f64,
        );
        let precision = precision_of(x.dtype())?;
        let shape = MatmulShape::new(rows, out, width, precision, precision).transposed(false, true);
        cuda.multiply(&shape, 0.0, [view(x)?, view(&weight)?, view_mut(y)?])?;
        if let Some(bias) = bias.present() {
            add_bias(cuda, y, bias)?;
        }
        Ok([x.clone(), weight])
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        [x, weight]: &[Tensor; 2],
        dy: Tensor,
        [dx, dw, db]: To<3>,
    ) -> Result<()> {
        let Self { rows, width, out } = *self;
        let _scope = cuda.context().scope(
            || format!("linear {width}->{out} backward"),
            4.0 * (rows * width * out) as f64,
            (2 * (x.len() + dy.len()) * x.dtype().size() + 2 * weight.len() * 4) as f64,
        );
        let precision = precision_of(x.dtype())?;
        if let Some(dx) = dx {
            let shape = MatmulShape::new(rows, width, out, precision, precision);
            cuda.multiply(&shape, dx.beta(), [view(&dy)?, view(weight)?, view_mut(&mut dx.tensor)?])?;
        }
        if let Some(dw) = dw {
            let shape =
                MatmulShape::new(out, width, rows, precision, gpu::Precision::F32).transposed(true, false);
            cuda.multiply(&shape, dw.beta(), [view(&dy)?, view(x)?, view_mut(&mut dw.tensor)?])?;
        }
        match db {
            Some(db) => sums::column_sums(cuda, &dy, out, db),
            None => Ok(()),
        }
    }
}

/// Adds a bias to every row of `y` on the GPU.
pub(super) fn add_bias(cuda: &CudaDevice, y: &mut Tensor, bias: &Tensor) -> Result<()> {
    let (count, program) = (y.len(), Program::new(KernelFile::Elementwise, y.dtype()));
    let arguments = [view_mut(y)?.into(), view(bias)?.into(), (count as i64).into(), bias.len().into()];
    cuda.launch(&program, Kernel::add_bias, cuda.elementwise(count), &arguments)
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
