//! The step between two parts of a transformer block: a linear layer, added to what goes around it, and the layer norm
//! that begins the next part.
//!
//! ```text
//! sum = x + (z W^T + b),  normal = layer_norm(sum)
//! ```
//!
//! Shapes: x, sum, normal (..., d); z (rows, in), W (d, in), b, gamma, beta (d). On CUDA bias, sum and norm are one
//! pass, and so are their gradients; elsewhere it is made of the single operations.

use super::operation::{Cuda, Fixed, Operation, To};
use crate::cuda::CudaDevice;
use crate::error::{Error, Result};
use crate::ops::layer_norm::cuda;
use crate::ops::{add, layer_norm, linear, reshape};
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// `x` plus the linear layer of `z`, and the layer norm of that (by gamma and beta).
pub fn linear_add_norm(
    tape: &mut Tape<'_>,
    x: &Var,
    z: &Var,
    [weight, bias]: [&Var; 2],
    [gamma, beta]: [&Var; 2],
    epsilon: f32,
) -> Result<[Var; 2]> {
    let d = x.shape().last().copied().unwrap_or(0);
    if [bias, gamma, beta].iter().any(|var| var.shape().dims() != [d]) || d == 0 {
        let detail =
            format!("x {}, bias {}, gamma {}, beta {}", x.shape(), bias.shape(), gamma.shape(), beta.shape());
        return Err(Error::shape("linear_add_norm", detail));
    }
    let device = tape.device();
    let Some(cuda) = device.as_cuda() else {
        let y = linear(tape, z, weight, Some(bias))?;
        let y = reshape(tape, &y, x.shape())?;
        let sum = add(tape, x, &y)?;
        let normal = layer_norm(tape, &sum, gamma, beta, epsilon)?;
        return Ok([sum, normal]);
    };
    let y = linear(tape, z, weight, None)?;
    let y = reshape(tape, &y, x.shape())?;
    if x.value().dtype() != y.value().dtype() {
        let types = [x, &y].map(|var| var.value().dtype().name());
        return Err(Error::shape("linear_add_norm", format!("x of {} and z of {}", types[0], types[1])));
    }
    tape.apply_on("add_norm", cuda.clone(), AddNorm { epsilon }, [x, &y, bias, gamma, beta], [x.spec(); 2])
}

/// sum = x + y + b, normal = layer_norm(sum), on CUDA only.
struct AddNorm {
    epsilon: f32,
}

/// What backward needs.
struct Saved {
    sum: Tensor,
    statistics: Tensor,
    gamma: Tensor,
}

impl Operation<CudaDevice, Fixed<5>, Fixed<2>> for AddNorm {
    type Saved = Saved;

    fn forward(&self, cuda: &mut Cuda, inputs: [&Var; 5], [sum, normal]: [&mut Tensor; 2]) -> Result<Saved> {
        let [x, y, bias, gamma, beta] = inputs.map(Var::value);
        let mut statistics = cuda.empty([x.len() / gamma.len(), 2], DType::F32)?;
        let added = Some((y, bias, &mut *sum));
        cuda::forward(cuda, x, added, [gamma, beta], self.epsilon, &mut statistics, normal)?;
        Ok(Saved { sum: sum.clone(), statistics, gamma: gamma.clone() })
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        Saved { sum, statistics, gamma }: &Saved,
        [dsum, dnormal]: [Option<Tensor>; 2],
        [_, _, dbias, dgamma, dbeta]: To<5>,
    ) -> Result<()> {
        let dnormal = match dnormal {
            Some(dnormal) => dnormal,
            None => Tensor::zeros(cuda.device, sum.shape(), sum.dtype())?,
        };
        let mut gradient = Target::unplaced(cuda.empty(sum.shape(), sum.dtype())?);
        let (dy, saved) = ((&dnormal, dsum.as_ref()), (sum, statistics, gamma));
        cuda::backward(cuda, dy, saved, &mut gradient, [dgamma, dbeta, dbias])?;
        cuda.pass(gradient.tensor);
        Ok(())
    }

    /// x and y have the same gradient.
    fn passes(&self, input: usize) -> bool {
        input < 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::concat;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (rows, inner, d) = (6, 4, 5);
        check(
            &Case::new(&[&[2, 3, d], &[rows, inner], &[d, inner], &[d], &[d], &[d]]),
            |tape, i| {
                let [sum, normal] =
                    linear_add_norm(tape, &i[0], &i[1], [&i[2], &i[3]], [&i[4], &i[5]], 1e-6)?;
                concat(tape, &[&sum, &normal])
            },
            |i| {
                let mut out = Vec::new();
                for row in 0..rows {
                    let product = |o: usize| -> f64 {
                        (0..inner).map(|k| i[1][row * inner + k] * i[2][o * inner + k]).sum()
                    };
                    let sum: Vec<f64> = (0..d).map(|o| i[0][row * d + o] + product(o) + i[3][o]).collect();
                    let mean = sum.iter().sum::<f64>() / d as f64;
                    let variance = sum.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / d as f64;
                    out.extend(&sum);
                    out.extend(
                        (0..d).map(|o| (sum[o] - mean) / (variance + 1e-6).sqrt() * i[4][o] + i[5][o]),
                    );
                }
                out
            },
        );
    }
}
