//! Cross-entropy of classes: CE = - mean over samples of ln softmax(logits)[label].
//!
//! Shapes: logits (n, classes), labels (n) as i32. Gradient: dlogits = (softmax(logits) - one_hot(label)) / n.

use super::{cuda, matrix, number};
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view};
use crate::error::{Error, Result};
use crate::ops::operation::{Cpu, Cuda, Operation};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// The cross-entropy of `logits` under the classes `labels`.
pub fn class_cross_entropy(tape: &mut Tape<'_>, logits: &Var, labels: &Tensor) -> Result<Var> {
    let (rows, classes) = matrix("class_cross_entropy", logits.shape())?;
    if labels.dims() != [rows] || labels.dtype() != DType::I32 {
        let detail =
            format!("logits {} and {} labels {}", logits.shape(), labels.dtype().name(), labels.shape());
        return Err(Error::shape("class_cross_entropy", detail));
    }
    tape.apply(
        "class_cross_entropy",
        ClassCrossEntropy { rows, classes, labels: labels.clone() },
        logits,
        number(),
    )
}

struct ClassCrossEntropy {
    rows: usize,
    classes: usize,
    labels: Tensor,
}

impl Operation<CpuPool> for ClassCrossEntropy {
    /// The logits.
    type Saved = Tensor;

    fn forward(&self, _: &mut Cpu, logits: &Var, loss: &mut Tensor) -> Result<Tensor> {
        let (classes, labels) = (self.classes, self.labels.as_slice::<i32>()?);
        if let Some(label) = labels.iter().find(|label| !(0..classes as i32).contains(label)) {
            return Err(Error::shape(
                "class_cross_entropy",
                format!("label {label} among {classes} classes"),
            ));
        }
        let rows = logits.value().as_slice::<f32>()?.chunks_exact(classes).zip(labels);
        let sum: f64 = rows.map(|(row, &label)| log_sum(row) - f64::from(row[label as usize])).sum();
        loss.write(&[(sum / self.rows as f64) as f32])?;
        Ok(logits.value().clone())
    }

    fn backward(&self, _: &mut Cpu, logits: &Tensor, dy: Tensor, to: &mut Target) -> Result<()> {
        let scale = f64::from(dy.scalar()?) / self.rows as f64;
        let (accumulate, classes) = (to.accumulate, self.classes);
        let from = logits.as_slice::<f32>()?.chunks_exact(classes).zip(self.labels.as_slice::<i32>()?);
        for (to, (row, &label)) in to.tensor.as_mut_slice::<f32>()?.chunks_exact_mut(classes).zip(from) {
            let total = log_sum(row);
            for (class, (to, &logit)) in to.iter_mut().zip(row).enumerate() {
                let hot = if class == label as usize { 1.0 } else { 0.0 };
                let gradient = (scale * ((f64::from(logit) - total).exp() - hot)) as f32;
                *to = if accumulate { *to + gradient } else { gradient };
            }
        }
        Ok(())
    }
}

impl Operation<CudaDevice> for ClassCrossEntropy {
    /// The logits.
    type Saved = Tensor;

    fn forward(&self, cuda: &mut Cuda, logits: &Var, loss: &mut Tensor) -> Result<Tensor> {
        let &Self { rows, classes, ref labels } = self;
        let (logits, scales) = (logits.value(), (1.0 / rows as f64, 0.0));
        let arguments = [view(logits)?.into(), view(labels)?.into(), rows.into(), classes.into()];
        cuda::sum(cuda, Kernel::class_cross_entropy, cuda::blocks(cuda, rows), &arguments, scales, loss)?;
        Ok(logits.clone())
    }

    fn backward(&self, cuda: &mut Cuda, logits: &Tensor, dy: Tensor, to: &mut Target) -> Result<()> {
        let &Self { rows, classes, ref labels } = self;
        let ([to, add], dy) = (to.arguments()?, view(&dy)?.into());
        let arguments =
            [dy, view(logits)?.into(), view(labels)?.into(), rows.into(), classes.into(), to, add];
        cuda::launch(cuda, Kernel::class_cross_entropy_backward, cuda.elementwise(rows), &arguments)
    }
}

/// ln of the sum of exponentials.
fn log_sum(row: &[f32]) -> f64 {
    let largest = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    largest + row.iter().map(|&value| (f64::from(value) - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        let labels = [2, 0, 1, 2, 2];
        check(
            &Case::new(&[&[5, 3]]),
            |tape, i| {
                let labels = Tensor::from_slice(&tape.device(), [5], &labels)?;
                class_cross_entropy(tape, &i[0], &labels)
            },
            |i| {
                let rows = i[0].chunks(3).zip(labels);
                let sum: f64 = rows
                    .map(|(row, label)| row.iter().map(|v| v.exp()).sum::<f64>().ln() - row[label as usize])
                    .sum();
                vec![sum / 5.0]
            },
        );
    }

    #[test]
    fn labels_beyond_the_classes_are_refused() {
        let case = Case::new(&[&[2, 3]]);
        let run = |labels: [i32; 2]| {
            case.run(|tape, i| {
                let labels = Tensor::from_slice(&tape.device(), [2], &labels)?;
                class_cross_entropy(tape, &i[0], &labels)
            })
        };
        assert!(run([0, 2]).is_ok());
        assert!(run([0, 3]).unwrap_err().to_string().contains("label 3 among 3 classes"));
        assert!(run([-1, 0]).is_err());
    }
}
