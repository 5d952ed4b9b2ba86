//! Cross-entropy between the activations of two views: CE = - mean over samples of sum_j target_j ln prediction_j.
//!
//! Shapes: both (n, capsules). Gradients flow into both: dprediction = - target / prediction / n,
//! dtarget = - ln prediction / n.

use super::{cuda, matrix, write};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

/// Predictions are not taken smaller than this.
pub const SMALLEST_ACTIVATION: f32 = 1e-30;

/// The cross-entropy of `prediction` under `target`.
pub fn activation_cross_entropy(tape: &mut Tape<'_>, prediction: &Var, target: &Var) -> Result<Var> {
    const OP: &str = "activation_cross_entropy";
    let (rows, _) = matrix(OP, prediction.shape())?;
    if prediction.shape() != target.shape() {
        let detail = format!("prediction {} and target {}", prediction.shape(), target.shape());
        return Err(Error::shape(OP, detail));
    }
    let device = tape.device();
    let loss = match &device {
        Device::Cpu(_) => {
            let (p, t) = (prediction.value().as_slice::<f32>()?, target.value().as_slice::<f32>()?);
            let sum: f64 = p
                .iter()
                .zip(t)
                .map(|(p, t)| f64::from(*t) * f64::from(p.max(SMALLEST_ACTIVATION)).ln())
                .sum();
            Tensor::from_slice(&device, [1], &[(-sum / rows as f64) as f32])?
        }
        Device::Cuda(cuda) => {
            let operands = (prediction.value(), target.value());
            cuda::cross_entropy(cuda, &device, operands, rows, SMALLEST_ACTIVATION)?
        }
    };
    let (dp, dt) = (prediction.gradient(), target.gradient());
    let (p, t) = (prediction.value().clone(), target.value().clone());
    Ok(tape.record(OP, &[dp, dt], loss, move |context, dy| {
        let (mut dp, mut dt) = (context.target(dp)?, context.target(dt)?);
        match context.device() {
            Device::Cpu(_) => {
                let scale = -dy.scalar()? / rows as f32;
                let (p, t) = (p.as_slice::<f32>()?, t.as_slice::<f32>()?);
                if let Some(dp) = &mut dp {
                    write(dp, |i| scale * t[i] / p[i].max(SMALLEST_ACTIVATION))?;
                }
                if let Some(dt) = &mut dt {
                    write(dt, |i| scale * p[i].max(SMALLEST_ACTIVATION).ln())?;
                }
            }
            Device::Cuda(cuda) => {
                let (dp, dt) = (dp.as_mut(), dt.as_mut());
                cuda::cross_entropy_backward(&cuda, &dy, (&p, &t), (rows, SMALLEST_ACTIVATION), dp, dt)?;
            }
        }
        [dp, dt].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        check(
            &Case::with(&[&[5, 3], &[5, 3]], |_, random| random.range(0.1, 1.0)),
            |tape, i| activation_cross_entropy(tape, &i[0], &i[1]),
            |i| vec![-i[0].iter().zip(&i[1]).map(|(p, t)| t * p.ln()).sum::<f64>() / 5.0],
        );
    }
}
