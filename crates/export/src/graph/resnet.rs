//! The published ResNet-18 as nodes; `model::ResNet18` says how it differs from the stock network.

use super::{Attribute, Graph, Value};
use crate::error::Result;

/// Images (n, 3, s, s) -> map (n, 8 width, s / 32, s / 32).
pub(super) fn map(graph: &mut Graph<'_>, images: &str) -> Result<Value> {
    let x = graph.convolution("backbone.conv1", images, 2, (2, 3))?;
    let x = graph.batch_norm("backbone.bn1", &x)?;
    let x = graph.relu("backbone.relu", &x);
    // Nothing here is negative, so that padding by minus infinity is what padding by -10000 is.
    let pooling = vec![
        Attribute::Ints("kernel_shape", vec![3, 3]),
        Attribute::Ints("strides", vec![2, 2]),
        Attribute::Ints("pads", vec![0, 0, 1, 1]),
    ];
    let mut x = graph.node("MaxPool", "backbone.maxpool", &[&x], pooling);
    for stage in 1..=4 {
        for index in 0..2 {
            let stride = if stage > 1 && index == 0 { 2 } else { 1 };
            x = block(graph, &format!("backbone.layer{stage}.{index}"), &x, stride, index == 0)?;
        }
    }
    Ok(x)
}

fn block(graph: &mut Graph<'_>, name: &str, x: &str, stride: usize, shortcut: bool) -> Result<Value> {
    let y = graph.convolution(&format!("{name}.conv1"), x, 1, (1, 1))?;
    let y = graph.batch_norm(&format!("{name}.bn1"), &y)?;
    let y = graph.relu(&format!("{name}.relu1"), &y);
    let padding = if stride == 1 { (1, 1) } else { (0, 1) };
    let y = graph.convolution(&format!("{name}.conv2"), &y, stride, padding)?;
    let y = graph.batch_norm(&format!("{name}.bn2"), &y)?;
    let around = if shortcut {
        let around = graph.convolution(&format!("{name}.downsample.0"), x, stride, (0, 0))?;
        graph.batch_norm(&format!("{name}.downsample.1"), &around)?
    } else {
        x.to_owned()
    };
    let sum = graph.node("Add", &format!("{name}.sum"), &[&y, &around], Vec::new());
    Ok(graph.relu(&format!("{name}.relu2"), &sum))
}
