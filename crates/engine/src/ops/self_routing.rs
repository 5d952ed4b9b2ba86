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

use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{GradientId, Tape, Var};
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

fn geometry(a: &Var, u: &Var, w1: Option<&Var>, w2: &Var, b2: &Var) -> Result<RoutingGeometry> {
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
    if fits && pose > 0 && upper > 0 {
        Ok(RoutingGeometry { batch, lower, upper, pose })
    } else {
        Err(fail())
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
    let [activations, poses] = route(tape, a, u, Some(w1), w2, b2)?;
    Ok((activations, poses))
}

/// Routes activations only.
pub fn routing_activations(tape: &mut Tape<'_>, a: &Var, u: &Var, w2: &Var, b2: &Var) -> Result<Var> {
    let [activations, _] = route(tape, a, u, None, w2, b2)?;
    Ok(activations)
}

fn route(tape: &mut Tape<'_>, a: &Var, u: &Var, w1: Option<&Var>, w2: &Var, b2: &Var) -> Result<[Var; 2]> {
    let geometry = geometry(a, u, w1, w2, b2)?;
    let device = tape.device();
    let width = if w1.is_some() { geometry.upper * geometry.pose } else { 0 };
    let mut activations = Tensor::empty(&device, [geometry.batch, geometry.upper], DType::F32)?;
    let mut poses = Tensor::empty(&device, [geometry.batch, width], DType::F32)?;
    // sum_i a_i, per sample, kept for backward.
    let mut total = Tensor::empty(&device, [geometry.batch], DType::F32)?;
    let mut arranged = None;
    let on_cuda = match &device {
        Device::Cpu(_) => {
            let inputs = cpu::Inputs {
                geometry,
                a: a.value().as_slice()?,
                u: u.value().as_slice()?,
                w1: w1.map(|w1| w1.value().as_slice()).transpose()?,
                w2: w2.value().as_slice()?,
                b2: b2.value().as_slice()?,
            };
            let outputs = (activations.as_mut_slice()?, poses.as_mut_slice()?, total.as_mut_slice()?);
            cpu::forward(&inputs, outputs.0, outputs.1, outputs.2);
            None
        }
        Device::Cuda(cuda) => {
            if let Some(w1) = w1.filter(|_| tensor::takes(&geometry, u.value().dtype(), true)) {
                let all = [w1.value(), w2.value(), b2.value()];
                let arrange = |device: &Device, _: &Tensor| tensor::arrange(device, &geometry, all);
                arranged = Some(tape.prepared(w1.value(), "routing", arrange)?);
            }
            let inputs = cuda::Inputs {
                geometry,
                a: a.value(),
                u: u.value(),
                w1: w1.map(Var::value),
                w2: w2.value(),
                b2: b2.value(),
                arranged: arranged.as_ref(),
            };
            Some(cuda::forward(cuda, &device, &inputs, &mut activations, &mut poses)?)
        }
    };
    let ids = [a.gradient(), u.gradient(), w2.gradient(), b2.gradient()];
    let dw1 = w1.map(Var::gradient);
    let (a, u, w1) = (a.value().clone(), u.value().clone(), w1.map(|w1| w1.value().clone()));
    let (w2, b2) = (w2.value().clone(), b2.value().clone());
    let kept = (activations.clone(), poses.clone());
    let wanted: Vec<GradientId> = ids.into_iter().chain(dw1).collect();
    let outputs = [activations, poses];
    Ok(tape.record_many("self_routing", &wanted, outputs, move |context, [da_out, du_out]| {
        let mut targets = Vec::new();
        for id in ids {
            targets.push(context.target(id)?);
        }
        let mut dw1 = dw1.map(|dw1| context.target(dw1)).transpose()?.flatten();
        match context.device() {
            Device::Cpu(_) => {
                let inputs = cpu::Inputs {
                    geometry,
                    a: a.as_slice()?,
                    u: u.as_slice()?,
                    w1: w1.as_ref().map(|w1| w1.as_slice()).transpose()?,
                    w2: w2.as_slice()?,
                    b2: b2.as_slice()?,
                };
                let outputs = cpu::Outputs {
                    a: kept.0.as_slice()?,
                    u: kept.1.as_slice()?,
                    total: total.as_slice()?,
                    da: da_out.as_ref().map(|da| da.as_slice()).transpose()?,
                    du: du_out.as_ref().map(|du| du.as_slice()).transpose()?,
                };
                cpu::backward(&inputs, &outputs, &mut targets, dw1.as_mut())?;
            }
            Device::Cuda(cuda) => {
                let (w1, arranged) = (w1.as_ref(), arranged.as_ref());
                let inputs = cuda::Inputs { geometry, a: &a, u: &u, w1, w2: &w2, b2: &b2, arranged };
                let gradients = cuda::Gradients {
                    activations: &kept.0,
                    poses: &kept.1,
                    d_activations: da_out.as_ref(),
                    d_poses: du_out.as_ref(),
                    targets: &mut targets,
                    dw1: dw1.as_mut(),
                };
                if let Some(kept) = &on_cuda {
                    cuda::backward(&cuda, &inputs, kept, gradients)?;
                }
            }
        }
        targets.into_iter().chain([dw1]).flatten().for_each(|target| context.put(target));
        Ok(())
    }))
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
