//! The total loss: a weighted sum of single numbers.

use gpu::Launch;

use super::{cuda, number};
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::operation::{Cpu, Cuda, Operation, Several};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

/// `sum of weight * term`.
pub fn weighted_sum(tape: &mut Tape<'_>, terms: &[(&Var, f32)]) -> Result<Var> {
    if let Some((term, _)) = terms.iter().find(|(term, _)| term.shape().len() != 1) {
        let detail = format!("a term of shape {} is not one number", term.shape());
        return Err(Error::shape("weighted_sum", detail));
    }
    let (terms, weights) = terms.iter().copied().unzip();
    tape.apply("weighted_sum", WeightedSum { weights }, terms, number())
}

struct WeightedSum {
    weights: Vec<f32>,
}

impl Operation<CpuPool, Several> for WeightedSum {
    type Saved = ();

    fn forward(&self, _: &mut Cpu, terms: Vec<&Var>, total: &mut Tensor) -> Result<()> {
        let mut sum = 0.0_f64;
        for (term, weight) in terms.iter().zip(&self.weights) {
            sum += f64::from(*weight) * f64::from(term.value().scalar()?);
        }
        total.write(&[sum as f32])
    }

    fn backward(&self, _: &mut Cpu, (): &(), dy: Tensor, terms: Vec<Option<&mut Target>>) -> Result<()> {
        let dy = dy.scalar()?;
        for (term, weight) in terms.into_iter().zip(&self.weights) {
            if let Some(term) = term {
                term.write(|_| weight * dy)?;
            }
        }
        Ok(())
    }
}

impl Operation<CudaDevice, Several> for WeightedSum {
    type Saved = ();

    fn forward(&self, cuda: &mut Cuda, terms: Vec<&Var>, total: &mut Tensor) -> Result<()> {
        if terms.is_empty() {
            return total.fill_zero();
        }
        for (index, (term, weight)) in terms.iter().zip(&self.weights).enumerate() {
            weigh(cuda, term.value(), *weight, [view_mut(total)?.into(), i32::from(index > 0).into()])?;
        }
        Ok(())
    }

    fn backward(&self, cuda: &mut Cuda, (): &(), dy: Tensor, terms: Vec<Option<&mut Target>>) -> Result<()> {
        for (term, weight) in terms.into_iter().zip(&self.weights) {
            if let Some(term) = term {
                weigh(cuda, &dy, *weight, term.arguments()?)?;
            }
        }
        Ok(())
    }
}

/// `to (+)= weight * from`, for single numbers.
fn weigh(cuda: &CudaDevice, from: &Tensor, weight: f32, [to, add]: [gpu::Argument; 2]) -> Result<()> {
    cuda::launch(cuda, Kernel::weigh, Launch::linear(1, 1), &[view(from)?.into(), weight.into(), to, add])
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
