//! Cross-entropy between the activations of two views: CE = - mean over samples of sum_j target_j ln prediction_j.
//!
//! Shapes: both (n, capsules). Gradients flow into both: dprediction = - target / prediction / n,
//! dtarget = - ln prediction / n.

use super::{cuda, matrix, number};
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view};
use crate::error::{Error, Result};
use crate::ops::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

/// Predictions are not taken smaller than this.
pub const SMALLEST_ACTIVATION: f32 = 1e-30;

/// The cross-entropy of `prediction` under `target`.
pub fn activation_cross_entropy(tape: &mut Tape<'_>, prediction: &Var, target: &Var) -> Result<Var> {
    let (rows, _) = matrix("activation_cross_entropy", prediction.shape())?;
    if prediction.shape() != target.shape() {
        let detail = format!("prediction {} and target {}", prediction.shape(), target.shape());
        return Err(Error::shape("activation_cross_entropy", detail));
    }
    tape.apply("activation_cross_entropy", CrossEntropy { rows }, [prediction, target], number())
}

struct CrossEntropy {
    rows: usize,
}

impl Operation<CpuPool, Fixed<2>> for CrossEntropy {
    /// Prediction and target.
    type Saved = [Tensor; 2];

    fn forward(&self, _: &mut Cpu, inputs: [&Var; 2], loss: &mut Tensor) -> Result<[Tensor; 2]> {
        let saved = inputs.map(|var| var.value().clone());
        let (p, t) = (saved[0].as_slice::<f32>()?, saved[1].as_slice::<f32>()?);
        let term = |(p, t): (&f32, &f32)| f64::from(*t) * f64::from(p.max(SMALLEST_ACTIVATION)).ln();
        let sum: f64 = p.iter().zip(t).map(term).sum();
        loss.write(&[(-sum / self.rows as f64) as f32])?;
        Ok(saved)
    }

    fn backward(&self, _: &mut Cpu, [p, t]: &[Tensor; 2], dy: Tensor, [dp, dt]: To<2>) -> Result<()> {
        let scale = -dy.scalar()? / self.rows as f32;
        let (p, t) = (p.as_slice::<f32>()?, t.as_slice::<f32>()?);
        if let Some(dp) = dp {
            dp.write(|i| scale * t[i] / p[i].max(SMALLEST_ACTIVATION))?;
        }
        if let Some(dt) = dt {
            dt.write(|i| scale * p[i].max(SMALLEST_ACTIVATION).ln())?;
        }
        Ok(())
    }
}

impl Operation<CudaDevice, Fixed<2>> for CrossEntropy {
    /// Prediction and target.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, inputs: [&Var; 2], loss: &mut Tensor) -> Result<[Tensor; 2]> {
        let [p, t] = inputs.map(|var| var.value().clone());
        let (count, scales) = (p.len(), (-1.0 / self.rows as f64, 0.0));
        let arguments =
            [view(&p)?.into(), view(&t)?.into(), (count as i64).into(), SMALLEST_ACTIVATION.into()];
        cuda::sum(cuda, Kernel::cross_entropy, cuda::blocks(cuda, count), &arguments, scales, loss)?;
        Ok([p, t])
    }

    fn backward(&self, cuda: &mut Cuda, [p, t]: &[Tensor; 2], dy: Tensor, [dp, dt]: To<2>) -> Result<()> {
        let mut arguments = vec![
            view(&dy)?.into(),
            view(p)?.into(),
            view(t)?.into(),
            (p.len() as i64).into(),
            self.rows.into(),
            SMALLEST_ACTIVATION.into(),
        ];
        arguments.extend(Target::arguments_of(dp)?);
        arguments.extend(Target::arguments_of(dt)?);
        cuda::launch(cuda, Kernel::cross_entropy_backward, cuda.elementwise(p.len()), &arguments)
    }
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
