//! Multi-head self-attention on fused queries, keys and values: per sample and head,
//! P = softmax over keys of ( Q K^T / sqrt(head size) ), Y = P V.
//!
//! Shapes: qkv (n, tokens, 3 d): q, k, v one after the other, each head-major (head h owns columns h s .. (h + 1) s,
//! s = d / heads); y (n, tokens, d). The probabilities are computed again in backward, from one number per row.
//! Backward: dV = P^T dY, dP = dY V^T, dS = P (dP - rowsum(dP P)), dQ = dS K / sqrt s, dK = dS^T Q / sqrt s.

mod cpu;
mod cuda;

use super::operation::{Cpu, Fixed, Operation, To};
use crate::error::{Error, Result};
use crate::ops::{linear, reshape};
use crate::pool::CpuPool;
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
    attend(tape, qkv, &Var::absent(), heads)
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
    let on_cuda = tape.device().as_cuda().is_some();
    let nothing = Var::absent();
    let rows = reshape(tape, x, [batch * tokens, width])?;
    let qkv = linear(tape, &rows, weight, (!on_cuda).then_some(bias))?;
    let qkv = reshape(tape, &qkv, [batch, tokens, out])?;
    attend(tape, &qkv, if on_cuda { bias } else { &nothing }, heads)
}

/// With a `bias` (CUDA only), `qkv` comes without it.
fn attend(tape: &mut Tape<'_>, qkv: &Var, bias: &Var, heads: usize) -> Result<Var> {
    let fail = || Error::shape("attention", format!("qkv {} must be (n, tokens, 3 {heads} s)", qkv.shape()));
    let &[batch, tokens, width] = qkv.shape().dims() else { return Err(fail()) };
    if heads == 0 || width == 0 || !width.is_multiple_of(3 * heads) || tokens == 0 {
        return Err(fail());
    }
    let geometry = AttentionGeometry { batch, tokens, heads, size: width / (3 * heads) };
    let spec = ([batch, tokens, width / 3].into(), qkv.value().dtype());
    tape.apply("attention", Attention(geometry), [qkv, bias], spec)
}

struct Attention(AttentionGeometry);

/// What backward needs.
struct Saved {
    qkv: Tensor,
    bias: Option<Tensor>,
    y: Tensor,
    /// ln sum exp of every row of scores, per head.
    log_sums: Tensor,
}

impl Operation<CpuPool, Fixed<2>> for Attention {
    type Saved = Saved;

    fn forward(&self, cpu: &mut Cpu, [qkv, _]: [&Var; 2], y: &mut Tensor) -> Result<Saved> {
        let AttentionGeometry { batch, tokens, heads, .. } = self.0;
        let mut log_sums = cpu.empty([batch, heads, tokens], DType::F32)?;
        cpu::forward(&self.0, qkv.value().as_slice()?, y.as_mut_slice()?, log_sums.as_mut_slice()?);
        Ok(Saved { qkv: qkv.value().clone(), bias: None, y: y.clone(), log_sums })
    }

    fn backward(
        &self,
        _: &mut Cpu,
        Saved { qkv, y, log_sums, .. }: &Saved,
        dy: Tensor,
        [dqkv, _]: To<2>,
    ) -> Result<()> {
        let Some(dqkv) = dqkv else { return Ok(()) };
        let (qkv, y, log_sums) = (qkv.as_slice()?, y.as_slice()?, log_sums.as_slice()?);
        cpu::backward(&self.0, qkv, y, log_sums, dy.as_slice()?, dqkv.zeroed()?.as_mut_slice()?);
        Ok(())
    }
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
