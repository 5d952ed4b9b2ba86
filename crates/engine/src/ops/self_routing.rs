//! Self-routing capsules. K lower capsules with activations a_i and poses u_i (P numbers) vote for N upper ones:
//!
//! ```text
//! r_ij = softmax over j of ( W2[i, j, :] . u_i + b2[i, j] )
//! v_ij = W1[i, j P .. (j + 1) P, :] u_i
//! a_j  = sum_i a_i r_ij / sum_i a_i               (a sums to 1 over j)
//! u_j  = sum_i a_i r_ij v_ij / sum_i a_i r_ij
//! ```
//!
//! Shapes: a (n, K), u (n, K P), W1 (K, N P, P), W2 (K, N, P), b2 (1, 1, K, N); outputs a (n, N), u (n, N P), both
//! float32. Without W1 only activations are computed. The routing coefficients are computed again in backward.
//!
//! Backward, with c_ij = a_i r_ij, D_j = sum_i c_ij, A = sum_i a_i, m_j = du_j / D_j:
//! dc_ij = m_j . v_ij - m_j . u_j + da_j / A,   da_i = sum_j r_ij dc_ij - sum_j da_j a_j / A,
//! du_i = sum_j c_ij W1_ij^T m_j + sum_j dl_ij W2_ij,   dl_ij = r_ij (a_i dc_ij - sum_k r_ik a_i dc_ik),
//! dW1_ij = sum_n c_ij m_j u_i^T,   dW2_ij = sum_n dl_ij u_i,   db2_ij = sum_n dl_ij.

mod cpu;
mod cuda;
mod tensor;

use super::operation::{Cpu, Fixed, Operation, To};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// The sizes of a routing layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingGeometry {
    /// Samples.
    pub batch: usize,
    /// Lower capsules.
    pub lower: usize,
    /// Upper capsules.
    pub upper: usize,
    /// Length of a pose.
    pub pose: usize,
}

impl RoutingGeometry {
    fn new(a: &Var, u: &Var, w2: &Var, b2: &Var, w1: Option<&Var>) -> Result<Self> {
        let fail = || {
            let w1 = w1.map(Var::shape);
            let detail = format!(
                "activations {}, poses {}, W1 {w1:?}, W2 {}, b2 {}",
                a.shape(),
                u.shape(),
                w2.shape(),
                b2.shape()
            );
            Error::shape("self_routing", detail)
        };
        let (&[batch, ..], &[lower, upper, pose]) = (a.shape().dims(), w2.shape().dims()) else {
            return Err(fail());
        };
        let w1_fits = w1.is_none_or(|w1| w1.shape().dims() == [lower, upper * pose, pose]);
        let fits = a.shape().len() == batch * lower
            && u.shape().len() == batch * lower * pose
            && b2.shape().len() == lower * upper
            && w1_fits;
        if fits && pose > 0 && upper > 0 { Ok(Self { batch, lower, upper, pose }) } else { Err(fail()) }
    }
}

/// Routes poses and activations; returns (activations, poses) of the upper capsules. `a` and `u` may be maps
/// (n, height, width, capsules): lower capsules are then all (position, capsule) pairs in reading order.
pub fn self_routing(
    tape: &mut Tape<'_>,
    a: &Var,
    u: &Var,
    w1: &Var,
    w2: &Var,
    b2: &Var,
) -> Result<(Var, Var)> {
    let [activations, poses] = route(tape, [a, u, w2, b2], Some(w1))?;
    Ok((activations, poses))
}

/// Routes activations only.
pub fn routing_activations(tape: &mut Tape<'_>, a: &Var, u: &Var, w2: &Var, b2: &Var) -> Result<Var> {
    let [activations, _] = route(tape, [a, u, w2, b2], None)?;
    Ok(activations)
}

fn route(tape: &mut Tape<'_>, [a, u, w2, b2]: [&Var; 4], w1: Option<&Var>) -> Result<[Var; 2]> {
    let geometry = RoutingGeometry::new(a, u, w2, b2, w1)?;
    let RoutingGeometry { batch, upper, pose, .. } = geometry;
    let width = if w1.is_some() { upper * pose } else { 0 };
    let specs = [[batch, upper], [batch, width]].map(|dims| (dims.into(), DType::F32));
    tape.apply("self_routing", SelfRouting(geometry), [a, u, w2, b2, w1.unwrap_or(&Var::absent())], specs)
}

/// Its inputs are a, u, W2, b2 and W1.
struct SelfRouting(RoutingGeometry);

/// The inputs, and the outputs, which backward needs.
struct Values {
    a: Tensor,
    u: Tensor,
    w2: Tensor,
    b2: Tensor,
    w1: Option<Tensor>,
    activations: Tensor,
    poses: Tensor,
}

impl Values {
    fn new([a, u, w2, b2, w1]: [&Var; 5], activations: &Tensor, poses: &Tensor) -> Self {
        let [a, u, w2, b2] = [a, u, w2, b2].map(|var| var.value().clone());
        let (activations, poses) = (activations.clone(), poses.clone());
        Self { a, u, w2, b2, w1: w1.present().cloned(), activations, poses }
    }
}

impl Operation<CpuPool, Fixed<5>, Fixed<2>> for SelfRouting {
    /// And sum_i a_i, per sample.
    type Saved = (Values, Tensor);

    fn forward(
        &self,
        cpu: &mut Cpu,
        inputs @ [a, u, w2, b2, w1]: [&Var; 5],
        [activations, poses]: [&mut Tensor; 2],
    ) -> Result<Self::Saved> {
        let mut total = cpu.empty([self.0.batch], DType::F32)?;
        let from = cpu::Inputs {
            geometry: self.0,
            a: a.value().as_slice()?,
            u: u.value().as_slice()?,
            w1: w1.present().map(Tensor::as_slice).transpose()?,
            w2: w2.value().as_slice()?,
            b2: b2.value().as_slice()?,
        };
        cpu::forward(&from, activations.as_mut_slice()?, poses.as_mut_slice()?, total.as_mut_slice()?);
        Ok((Values::new(inputs, activations, poses), total))
    }

    fn backward(
        &self,
        _: &mut Cpu,
        (values, total): &Self::Saved,
        [da, du]: [Option<Tensor>; 2],
        targets: To<5>,
    ) -> Result<()> {
        let inputs = cpu::Inputs {
            geometry: self.0,
            a: values.a.as_slice()?,
            u: values.u.as_slice()?,
            w1: values.w1.as_ref().map(Tensor::as_slice).transpose()?,
            w2: values.w2.as_slice()?,
            b2: values.b2.as_slice()?,
        };
        let outputs = cpu::Outputs {
            a: values.activations.as_slice()?,
            u: values.poses.as_slice()?,
            total: total.as_slice()?,
            da: da.as_ref().map(Tensor::as_slice).transpose()?,
            du: du.as_ref().map(Tensor::as_slice).transpose()?,
        };
        cpu::backward(&inputs, &outputs, targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::concat;
    use crate::ops::testing::{Case, check};

    fn reference(i: &[Vec<f64>], [batch, lower, upper, pose]: [usize; 4], votes: bool) -> Vec<f64> {
        let (a, u, w2, b2, w1) = (&i[0], &i[1], &i[2], &i[3], &i[4]);
        let mut out = Vec::new();
        for n in 0..batch {
            let (mut weight, mut pose_sum, mut total) = (vec![0.0; upper], vec![0.0; upper * pose], 0.0);
            for k in 0..lower {
                let u = &u[(n * lower + k) * pose..][..pose];
                let logits: Vec<f64> = (0..upper)
                    .map(|j| {
                        b2[k * upper + j]
                            + (0..pose).map(|p| w2[(k * upper + j) * pose + p] * u[p]).sum::<f64>()
                    })
                    .collect();
                let sum: f64 = logits.iter().map(|l| l.exp()).sum();
                total += a[n * lower + k];
                for j in 0..upper {
                    let c = a[n * lower + k] * logits[j].exp() / sum;
                    weight[j] += c;
                    for p in 0..pose {
                        let row = &w1[((k * upper + j) * pose + p) * pose..][..pose];
                        pose_sum[j * pose + p] += c * row.iter().zip(u).map(|(w, u)| w * u).sum::<f64>();
                    }
                }
            }
            out.extend(weight.iter().map(|w| w / total));
            if votes {
                out.extend((0..upper * pose).map(|jp| pose_sum[jp] / weight[jp / pose]));
            }
        }
        out
    }

    fn case(batch: usize, lower: usize, upper: usize, pose: usize) -> Case {
        let shapes: [&[usize]; 5] = [
            &[batch, lower],
            &[batch, lower * pose],
            &[lower, upper, pose],
            &[1, 1, lower, upper],
            &[lower, upper * pose, pose],
        ];
        // Activations lie between 0 and 1.
        Case::with(&shapes, |input, random| random.range(if input == 0 { 0.1 } else { -1.0 }, 1.0))
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for sizes @ [batch, lower, upper, pose] in [[3, 5, 4, 9], [17, 3, 3, 16], [2, 70, 2, 4], [1, 1, 1, 1]]
        {
            check(
                &case(batch, lower, upper, pose),
                |tape, i| {
                    let (a, u) = self_routing(tape, &i[0], &i[1], &i[4], &i[2], &i[3])?;
                    concat(tape, &[&a, &u])
                },
                |i| reference(i, sizes, true),
            );
            check(
                &case(batch, lower, upper, pose).constant(4),
                |tape, i| routing_activations(tape, &i[0], &i[1], &i[2], &i[3]),
                |i| reference(i, sizes, false),
            );
        }
    }
}
