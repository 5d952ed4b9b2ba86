//! Multi-head self-attention on fused queries, keys and values: per sample and head,
//! P = softmax over keys of ( Q K^T / sqrt(head size) ), Y = P V.
//!
//! Shapes: qkv (n, tokens, 3 d): q, k, v one after the other, each head-major (head h owns columns h s .. (h + 1) s,
//! s = d / heads); y (n, tokens, d). The probabilities are computed again in backward, from one number per row.
//! Backward: dV = P^T dY, dP = dY V^T, dS = P (dP - rowsum(dP P)), dQ = dS K / sqrt s, dK = dS^T Q / sqrt s.

mod cpu;
mod cuda;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::{linear, reshape};
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// The sizes of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionGeometry {
    /// Samples.
    pub batch: usize,
    /// Tokens of a sample.
    pub tokens: usize,
    /// Heads.
    pub heads: usize,
    /// Width of a head.
    pub size: usize,
}

/// Attends with `heads` heads.
pub fn attention(tape: &mut Tape<'_>, qkv: &Var, heads: usize) -> Result<Var> {
    attend(tape, qkv, None, heads)
}

/// The linear layer that makes queries, keys and values of x (n, tokens, in), and [`attention`](attention()): weight
/// (3 d, in), bias (3 d), result (n, tokens, d). On CUDA attention adds the bias itself.
pub fn linear_attention(tape: &mut Tape<'_>, x: &Var, weight: &Var, bias: &Var, heads: usize) -> Result<Var> {
    let (&[batch, tokens, width], &[out, _]) = (x.shape().dims(), weight.shape().dims()) else {
        let detail = format!("x {} must be (n, tokens, d), weight {} (3 d, d)", x.shape(), weight.shape());
        return Err(Error::shape("linear_attention", detail));
    };
    if bias.shape().dims() != [out] {
        let detail = format!("bias {} does not fit weight {}", bias.shape(), weight.shape());
        return Err(Error::shape("linear_attention", detail));
    }
    let on_cuda = matches!(tape.device(), Device::Cuda(_));
    let rows = reshape(tape, x, [batch * tokens, width])?;
    let qkv = linear(tape, &rows, weight, (!on_cuda).then_some(bias))?;
    let qkv = reshape(tape, &qkv, [batch, tokens, out])?;
    attend(tape, &qkv, on_cuda.then_some(bias), heads)
}

/// With a `bias` (CUDA only), `qkv` comes without it.
fn attend(tape: &mut Tape<'_>, qkv: &Var, bias: Option<&Var>, heads: usize) -> Result<Var> {
    let fail = || Error::shape("attention", format!("qkv {} must be (n, tokens, 3 {heads} s)", qkv.shape()));
    let &[batch, tokens, width] = qkv.shape().dims() else { return Err(fail()) };
    if heads == 0 || width == 0 || !width.is_multiple_of(3 * heads) || tokens == 0 {
        return Err(fail());
    }
    let geometry = AttentionGeometry { batch, tokens, heads, size: width / (3 * heads) };
    let device = tape.device();
    let mut y = Tensor::empty(&device, [batch, tokens, width / 3], qkv.value().dtype())?;
    // ln sum exp of every row of scores, per head.
    let mut log_sums = Tensor::empty(&device, [batch, heads, tokens], DType::F32)?;
    match &device {
        Device::Cpu(_) => {
            cpu::forward(&geometry, qkv.value().as_slice()?, y.as_mut_slice()?, log_sums.as_mut_slice()?);
        }
        Device::Cuda(cuda) => {
            cuda::forward(cuda, &geometry, qkv.value(), bias.map(Var::value), &mut y, &mut log_sums)?;
        }
    }
    let (dqkv, dbias) = (qkv.gradient(), bias.map(Var::gradient));
    let (qkv, bias, kept) = (qkv.value().clone(), bias.map(|bias| bias.value().clone()), y.clone());
    Ok(tape.record("attention", &[dqkv, dbias.unwrap_or(dqkv)], y, move |context, dy| {
        let Some(mut target) = context.target(dqkv)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let accumulate = target.accumulate;
                let values = target.tensor.as_mut_slice::<f32>()?;
                if !accumulate {
                    values.fill(0.0);
                }
                let (qkv, y) = (qkv.as_slice()?, kept.as_slice()?);
                cpu::backward(&geometry, qkv, y, log_sums.as_slice()?, dy.as_slice()?, values);
            }
            Device::Cuda(cuda) => {
                let mut dbias = dbias.map(|dbias| context.target(dbias)).transpose()?.flatten();
                let from = (&qkv, bias.as_ref());
                let forward = (&kept, &log_sums);
                if target.accumulate {
                    let mut own = Tensor::empty(&context.device(), qkv.shape(), qkv.dtype())?;
                    cuda::backward(&cuda, &geometry, from, forward, &dy, &mut own, dbias.as_mut())?;
                    super::accumulate(&context.device(), &own, &mut target)?;
                } else {
                    let to = &mut target.tensor;
                    cuda::backward(&cuda, &geometry, from, forward, &dy, to, dbias.as_mut())?;
                }
                dbias.into_iter().for_each(|target| context.put(target));
            }
        }
        context.put(target);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        for [batch, tokens, heads, size] in [[2, 5, 3, 4], [1, 17, 1, 33], [3, 1, 2, 3], [1, 40, 2, 8]] {
            let d = heads * size;
            check(
                &Case::with(&[&[batch, tokens, 3 * d]], |_, random| random.range(-1.5, 1.5)),
                |tape, i| attention(tape, &i[0], heads),
                |i| {
                    let at = |n: usize, t: usize, column: usize| i[0][(n * tokens + t) * 3 * d + column];
                    let mut y = Vec::new();
                    for (n, t) in (0..batch).flat_map(|n| (0..tokens).map(move |t| (n, t))) {
                        for c in 0..d {
                            let head = c / size * size;
                            let score = |s: usize| -> f64 {
                                let dot: f64 =
                                    (0..size).map(|e| at(n, t, head + e) * at(n, s, d + head + e)).sum();
                                (dot / (size as f64).sqrt()).exp()
                            };
                            let total: f64 = (0..tokens).map(score).sum();
                            y.push((0..tokens).map(|s| score(s) * at(n, s, 2 * d + c)).sum::<f64>() / total);
                        }
                    }
                    y
                },
            );
        }
    }
}
