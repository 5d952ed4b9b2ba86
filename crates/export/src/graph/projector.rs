//! The projectors as nodes: capsules on the map, and perceptrons on the representation. The nodes of the outputs have the
//! names of the parts of the embedding.

use methods::{PartName, Projector};

use super::{Attribute, Graph, transposed};
use crate::error::Result;

/// Adds the layers of a projector.
pub(super) fn add(
    graph: &mut Graph<'_>,
    projector: &Projector,
    map: &str,
    (h, width): (&str, usize),
    map_size: usize,
) -> Result<()> {
    match projector {
        Projector::Capsules { prefix, capsules, side } => {
            let lower = map_size * map_size * capsules;
            capsules_of(graph, prefix, map, [lower, *capsules, *side])
        }
        Projector::Perceptron { part, prefix, first, input, widths } => {
            let mut x = h.to_owned();
            let (first, last) = (*first as i64, (first + input) as i64);
            if *input != width {
                x = graph.slice(&format!("{prefix}columns"), h, 1, [first, last]);
            }
            for index in 0..widths.len().saturating_sub(1) {
                let y = graph.linear(&format!("{prefix}{}", 3 * index), &x)?;
                let y = graph.batch_norm(&format!("{prefix}{}", 3 * index + 1), &y)?;
                x = graph.relu(&format!("{prefix}{}", 3 * index + 2), &y);
            }
            let last = format!("{prefix}{}", 3 * widths.len().saturating_sub(1));
            let weight = graph.parameter(&format!("{last}.weight"))?;
            graph.node("Gemm", part.name(), &[&x, &weight], vec![Attribute::Int("transB", 1)]);
            Ok(())
        }
    }
}

/// `engine::ops::self_routing` has the formulas. Lower capsules come first in all shapes: (K, n, ...).
fn capsules_of(
    graph: &mut Graph<'_>,
    prefix: &str,
    map: &str,
    [lower, upper, side]: [usize; 3],
) -> Result<()> {
    let sub = |suffix: &str| format!("{prefix}{suffix}");
    let pose = side * side;
    let [k, j, p] = [lower as i64, upper as i64, pose as i64];
    let a = graph.convolution(&sub("conv_a"), map, 1, (1, 1))?;
    let a = graph.batch_norm(&sub("bn_a"), &a)?;
    let a = graph.node("Sigmoid", &sub("sigmoid"), &[&a], Vec::new());
    // Lower capsules are (row, column, capsule) in reading order.
    let a = graph.transpose(&sub("a.map"), &a, &[2, 3, 1, 0]);
    let a = graph.reshape(&sub("a"), &a, &[k, -1, 1]);
    let u = graph.convolution(&sub("conv_pose"), map, 1, (1, 1))?;
    let u = graph.batch_norm(&sub("bn_pose"), &u)?;
    let u = graph.transpose(&sub("u.map"), &u, &[0, 2, 3, 1]);
    let u = graph.reshape(&sub("u.rows"), &u, &[0, k, p]);
    let u = graph.transpose(&sub("u"), &u, &[1, 0, 2]);

    let (_, routing) = graph.tensors.floats(&sub("fc.W2"))?;
    let routing = transposed(routing, upper, pose)?;
    let routing = graph.floats(&sub("fc.W2.transposed"), &[lower, pose, upper], &routing);
    let (_, bias) = graph.tensors.floats(&sub("fc.b2"))?;
    let bias = graph.floats(&sub("fc.b2"), &[lower, 1, upper], bias);
    let logits = graph.node("MatMul", &sub("logits"), &[&u, &routing], Vec::new());
    let logits = graph.node("Add", &sub("logits.biased"), &[&logits, &bias], Vec::new());
    let r = graph.node("Softmax", &sub("r"), &[&logits], vec![Attribute::Int("axis", -1)]);
    let c = graph.node("Mul", &sub("c"), &[&r, &a], Vec::new());

    let axis = graph.integers(&sub("lower"), &[0]);
    let sum = |graph: &mut Graph<'_>, name: &str, x: &str| {
        graph.node("ReduceSum", name, &[x, &axis], vec![Attribute::Int("keepdims", 0)])
    };
    let total = sum(graph, &sub("a.sum"), &a);
    let shares = sum(graph, &sub("c.sum"), &c);
    graph.node("Div", PartName::Activations.name(), &[&shares, &total], Vec::new());

    let (_, votes) = graph.tensors.floats(&sub("fc.W1"))?;
    let votes = transposed(votes, upper * pose, pose)?;
    let votes = graph.floats(&sub("fc.W1.transposed"), &[lower, pose, upper * pose], &votes);
    let v = graph.node("MatMul", &sub("v.rows"), &[&u, &votes], Vec::new());
    let v = graph.reshape(&sub("v"), &v, &[0, 0, j, p]);
    let c = graph.reshape(&sub("c.column"), &c, &[0, 0, j, 1]);
    let weighted = graph.node("Mul", &sub("weighted"), &[&v, &c], Vec::new());
    let sums = sum(graph, &sub("weighted.sum"), &weighted);
    let shares = graph.reshape(&sub("c.sum.column"), &shares, &[0, j, 1]);
    let poses = graph.node("Div", &sub("poses"), &[&sums, &shares], Vec::new());
    let side = side as i64;
    graph.reshape(PartName::Poses.name(), &poses, &[0, j, side, side]);
    Ok(())
}
