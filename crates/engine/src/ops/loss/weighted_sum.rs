//! The total loss: a weighted sum of single numbers.

use super::{cuda, write};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

/// `sum of weight * term`.
pub fn weighted_sum(tape: &mut Tape<'_>, terms: &[(&Var, f32)]) -> Result<Var> {
    if let Some((term, _)) = terms.iter().find(|(term, _)| term.shape().len() != 1) {
        return Err(Error::shape(
            "weighted_sum",
            format!("a term of shape {} is not one number", term.shape()),
        ));
    }
    let device = tape.device();
    let total = match &device {
        Device::Cpu(_) => {
            let mut sum = 0.0_f64;
            for (term, weight) in terms {
                sum += f64::from(*weight) * f64::from(term.value().scalar()?);
            }
            Tensor::from_slice(&device, [1], &[sum as f32])?
        }
        Device::Cuda(cuda) => {
            let terms: Vec<_> = terms.iter().map(|(term, weight)| (term.value(), *weight)).collect();
            cuda::weighted_sum(cuda, &device, &terms)?
        }
    };
    let inputs: Vec<_> = terms.iter().map(|(term, weight)| (term.gradient(), *weight)).collect();
    let ids: Vec<_> = inputs.iter().map(|(id, _)| *id).collect();
    Ok(tape.record("weighted_sum", &ids, total, move |context, dy| {
        for (id, weight) in inputs {
            let Some(mut target) = context.target(id)? else { continue };
            match context.device() {
                Device::Cpu(_) => {
                    let gradient = weight * dy.scalar()?;
                    write(&mut target, |_| gradient)?;
                }
                Device::Cuda(cuda) => {
                    let add = target.accumulate;
                    cuda::weigh(&cuda, &dy, weight, crate::cuda::view_mut(&mut target.tensor)?, add)?;
                }
            }
            context.put(target);
        }
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
            &Case::new(&[&[1], &[1]]),
            |tape, i| weighted_sum(tape, &[(&i[0], 0.1), (&i[1], 5.0), (&i[0], 2.0)]),
            |i| vec![2.1 * i[0][0] + 5.0 * i[1][0]],
        );
    }
}
