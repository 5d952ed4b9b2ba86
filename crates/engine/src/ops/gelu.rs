//! GELU, exact: y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)), elementwise.
//! Backward: dx = dy (Phi(x) + x phi(x)), phi(x) = exp(-x^2/2) / sqrt(2 pi).

mod cuda;

use rayon::prelude::*;

use crate::cpu::exp;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::linear;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

const CHUNK: usize = 1 << 12;

/// The Gaussian error linear unit of every element.
pub fn gelu(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    let device = tape.device();
    let mut y = Tensor::empty(&device, x.shape(), x.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let from = x.value().as_slice::<f32>()?.par_chunks(CHUNK);
            from.zip(y.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK)).for_each(|(x, y)| forward(x, y));
        }
        Device::Cuda(cuda) => cuda::forward(cuda, x.value(), None, &mut y)?,
    }
    let (dx, x) = (x.gradient(), x.value().clone());
    Ok(tape.record("gelu", &[dx], y, move |context, dy| {
        let Some(mut target) = context.target(dx)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let accumulate = target.accumulate;
                let dx = target.tensor.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK);
                let from =
                    dy.as_slice::<f32>()?.par_chunks(CHUNK).zip(x.as_slice::<f32>()?.par_chunks(CHUNK));
                dx.zip(from).for_each(|(dx, (dy, x))| backward(x, dy, accumulate, dx));
            }
            Device::Cuda(cuda) => {
                let to = (&mut target.tensor, target.accumulate);
                cuda::backward(&cuda, &dy, &x, None, to, None)?;
            }
        }
        context.put(target);
        Ok(())
    }))
}

/// gelu(x W^T + b). On CUDA the bias is added, and its gradient made, in the passes of the GELU.
pub fn linear_gelu(tape: &mut Tape<'_>, x: &Var, weight: &Var, bias: &Var) -> Result<Var> {
    let Device::Cuda(device) = tape.device() else {
        let y = linear(tape, x, weight, Some(bias))?;
        return gelu(tape, &y);
    };
    let product = linear(tape, x, weight, None)?;
    if bias.shape().dims() != &product.shape().dims()[1..] {
        let detail = format!("bias {} does not fit weight {}", bias.shape(), weight.shape());
        return Err(Error::shape("linear_gelu", detail));
    }
    let mut y = Tensor::empty(&tape.device(), product.shape(), product.value().dtype())?;
    cuda::forward(&device, product.value(), Some(bias.value()), &mut y)?;
    let ids = [product.gradient(), bias.gradient()];
    let (x, bias) = (product.value().clone(), bias.value().clone());
    Ok(tape.record("linear_gelu", &ids, y, move |context, dy| {
        let Device::Cuda(cuda) = context.device() else { return Ok(()) };
        let Some(mut dx) = context.target(ids[0])? else { return Ok(()) };
        let mut dbias = context.target(ids[1])?;
        cuda::backward(&cuda, &dy, &x, Some(&bias), (&mut dx.tensor, dx.accumulate), dbias.as_mut())?;
        [Some(dx), dbias].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    }))
}

/// Phi(x) = (1 + erf(x / sqrt 2)) / 2 to 1e-7: erf by formula 7.1.26 of Abramowitz and Stegun.
#[inline(always)]
fn normal_distribution(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let p = 1.061_405_4 * t - 1.453_152;
    let p = p * t + 1.421_413_7;
    let p = p * t - 0.284_496_74;
    let p = p * t + 0.254_829_6;
    let tail = 0.5 * p * t * exp(-z * z);
    if x >= 0.0 { 1.0 - tail } else { tail }
}

multiversion! {
    fn forward(x: &[f32], y: &mut [f32]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = x * normal_distribution(x);
        }
    }
}

multiversion! {
    fn backward(x: &[f32], dy: &[f32], accumulate: bool, dx: &mut [f32]) {
        const INVERSE_ROOT_TAU: f32 = 0.398_942_3;
        for ((dx, dy), &x) in dx.iter_mut().zip(dy).zip(x) {
            let gradient = dy * (normal_distribution(x) + x * INVERSE_ROOT_TAU * exp(-0.5 * x * x));
            *dx = if accumulate { *dx + gradient } else { gradient };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    /// erf by its series, in float64.
    fn erf(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        2.0 / std::f64::consts::PI.sqrt() * sum
    }

    #[test]
    fn gradient_agrees_with_finite_differences() {
        check(
            &Case::with(&[&[13, 17]], |_, random| random.range(-4.0, 4.0)),
            |tape, i| gelu(tape, &i[0]),
            |i| i[0].iter().map(|x| 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt()))).collect(),
        );
    }

    #[test]
    fn behind_a_linear_layer_gradients_agree_with_finite_differences() {
        let (rows, width, out) = (3, 4, 6);
        check(
            &Case::new(&[&[rows, width], &[out, width], &[out]]),
            |tape, i| linear_gelu(tape, &i[0], &i[1], &i[2]),
            |i| {
                let at = |row: usize, o: usize| -> f64 {
                    (0..width).map(|k| i[0][row * width + k] * i[1][o * width + k]).sum::<f64>() + i[2][o]
                };
                let all = (0..rows).flat_map(|row| (0..out).map(move |o| (row, o)));
                all.map(|(row, o)| at(row, o)).map(|x| 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt()))).collect()
            },
        );
    }

    #[test]
    fn far_from_zero_it_is_the_identity_or_nothing() {
        let mut case = Case::new(&[&[4]]);
        case.inputs[0] = vec![-60.0, -20.0, 20.0, 60.0];
        let y = case.run(|tape, i| gelu(tape, &i[0])).unwrap();
        assert!(y[0].abs() < 1e-30 && y[1].abs() < 1e-30 && y[2..] == [20.0, 60.0], "{y:?}");
    }
}
