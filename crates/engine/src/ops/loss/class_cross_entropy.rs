//! Cross-entropy of classes: CE = - mean over samples of ln softmax(logits)[label].
//!
//! Shapes: logits (n, classes), labels (n) as i32. Gradient: dlogits = (softmax(logits) - one_hot(label)) / n.

use super::{cuda, matrix};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// The cross-entropy of `logits` under the classes `labels`.
pub fn class_cross_entropy(tape: &mut Tape<'_>, logits: &Var, labels: &Tensor) -> Result<Var> {
    const OP: &str = "class_cross_entropy";
    let (rows, classes) = matrix(OP, logits.shape())?;
    if labels.dims() != [rows] || labels.dtype() != DType::I32 {
        let detail =
            format!("logits {} and {} labels {}", logits.shape(), labels.dtype().name(), labels.shape());
        return Err(Error::shape(OP, detail));
    }
    let device = tape.device();
    let loss = match &device {
        Device::Cpu(_) => {
            let labels = labels.as_slice::<i32>()?;
            if let Some(label) = labels.iter().find(|label| !(0..classes as i32).contains(label)) {
                return Err(Error::shape(OP, format!("label {label} among {classes} classes")));
            }
            let rows_of = logits.value().as_slice::<f32>()?.chunks_exact(classes).zip(labels);
            let sum: f64 = rows_of.map(|(row, &label)| log_sum(row) - f64::from(row[label as usize])).sum();
            Tensor::from_slice(&device, [1], &[(sum / rows as f64) as f32])?
        }
        Device::Cuda(cuda) => cuda::class_cross_entropy(cuda, &device, logits.value(), labels)?,
    };
    let dlogits = logits.gradient();
    let (logits, labels) = (logits.value().clone(), labels.clone());
    Ok(tape.record(OP, &[dlogits], loss, move |context, dy| {
        let Some(mut target) = context.target(dlogits)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let scale = f64::from(dy.scalar()?) / rows as f64;
                let accumulate = target.accumulate;
                let from = logits.as_slice::<f32>()?.chunks_exact(classes).zip(labels.as_slice::<i32>()?);
                for (to, (row, &label)) in
                    target.tensor.as_mut_slice::<f32>()?.chunks_exact_mut(classes).zip(from)
                {
                    let total = log_sum(row);
                    for (class, (to, &logit)) in to.iter_mut().zip(row).enumerate() {
                        let hot = if class == label as usize { 1.0 } else { 0.0 };
                        let gradient = (scale * ((f64::from(logit) - total).exp() - hot)) as f32;
                        *to = if accumulate { *to + gradient } else { gradient };
                    }
                }
            }
            Device::Cuda(cuda) => {
                cuda::class_cross_entropy_backward(&cuda, &dy, &logits, &labels, &mut target)?;
            }
        }
        context.put(target);
        Ok(())
    }))
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
