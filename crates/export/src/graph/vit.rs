//! ViT-Tiny as nodes. The batch size is free, so nothing is expanded to it: the row of the class token is a row of zeros in
//! front of the patches, to which the class token and all positions are added at once.

use model::VitConfig;

use super::{Attribute, Graph, Value};
use crate::error::{Error, Result};

/// Added to the variance in layer norms.
const EPSILON: f32 = 1e-6;

/// Images (n, 3, s, s) -> map (n, width, s / patch, s / patch).
pub(super) fn map(
    graph: &mut Graph<'_>,
    images: &str,
    config: &VitConfig,
    image_size: usize,
) -> Result<Value> {
    let (width, side) = (config.width as i64, (image_size / config.patch) as i64);
    let patches = graph.convolution("backbone.patch_embed.proj", images, config.patch, (0, 0))?;
    let tokens = graph.reshape("backbone.patches", &patches, &[0, width, side * side]);
    let tokens = graph.transpose("backbone.tokens", &tokens, &[0, 2, 1]);
    let room = graph.integers("backbone.room", &[0, 1, 0, 0, 0, 0]);
    let tokens = graph.node("Pad", "backbone.padded", &[&tokens, &room], Vec::new());
    let positions = positions(graph, config.width)?;
    let mut x = graph.node("Add", "backbone.embedded", &[&tokens, &positions], Vec::new());
    for index in 0..config.depth {
        x = block(graph, &format!("backbone.blocks.{index}"), &x, config)?;
    }
    let x = layer_norm(graph, "backbone.norm", &x)?;
    let x = graph.slice("backbone.without_class", &x, 1, [1, 1 + side * side]);
    let x = graph.transpose("backbone.channels", &x, &[0, 2, 1]);
    Ok(graph.reshape("backbone.map", &x, &[0, width, side, side]))
}

/// The table of positions (1, 1 + patches, width), with the class token added to its first row.
fn positions(graph: &mut Graph<'_>, width: usize) -> Result<Value> {
    let (_, class) = graph.tensors.floats("backbone.cls_token")?;
    let (shape, values) = graph.tensors.floats("backbone.pos_embed")?;
    let mut table = values.to_vec();
    if class.len() != width || table.len() < width {
        return Err(Error::Network("the class token does not fit the positions".to_owned()));
    }
    table.iter_mut().zip(class).for_each(|(position, class)| *position += class);
    Ok(graph.floats("backbone.positions", shape, &table))
}

fn layer_norm(graph: &mut Graph<'_>, name: &str, x: &str) -> Result<Value> {
    let weight = graph.parameter(&format!("{name}.weight"))?;
    let bias = graph.parameter(&format!("{name}.bias"))?;
    let attributes = vec![Attribute::Int("axis", -1), Attribute::Float("epsilon", EPSILON)];
    Ok(graph.node("LayerNormalization", name, &[x, &weight, &bias], attributes))
}

/// x += attention(norm1(x)); x += mlp(norm2(x)).
fn block(graph: &mut Graph<'_>, name: &str, x: &str, config: &VitConfig) -> Result<Value> {
    let sub = |suffix: &str| format!("{name}.{suffix}");
    let y = layer_norm(graph, &sub("norm1"), x)?;
    let y = attention(graph, &sub("attn"), &y, config)?;
    let x = graph.node("Add", &sub("attended"), &[x, &y], Vec::new());
    let y = layer_norm(graph, &sub("norm2"), &x)?;
    let y = graph.token_linear(&sub("mlp.fc1"), &y)?;
    let y = gelu(graph, &sub("mlp.gelu"), &y);
    let y = graph.token_linear(&sub("mlp.fc2"), &y)?;
    Ok(graph.node("Add", &sub("out"), &[&x, &y], Vec::new()))
}

fn attention(graph: &mut Graph<'_>, name: &str, x: &str, config: &VitConfig) -> Result<Value> {
    let sub = |suffix: &str| format!("{name}.{suffix}");
    let (heads, size) = (config.heads as i64, (config.width / config.heads) as i64);
    let qkv = graph.token_linear(&sub("qkv"), x)?;
    let parts = ["queries", "keys", "values"].map(sub);
    graph.add("Split", &sub("split"), &[&qkv], parts.to_vec(), vec![Attribute::Int("axis", 2)]);
    let mut split = |part: &str, order: &[i64]| {
        let y = graph.reshape(&format!("{part}.heads"), part, &[0, 0, heads, size]);
        graph.transpose(&format!("{part}.turned"), &y, order)
    };
    let queries = split(&parts[0], &[0, 2, 1, 3]);
    let keys = split(&parts[1], &[0, 2, 3, 1]);
    let values = split(&parts[2], &[0, 2, 1, 3]);
    let scores = graph.node("MatMul", &sub("scores"), &[&queries, &keys], Vec::new());
    let scale = graph.floats("backbone.scale", &[], &[(size as f32).sqrt().recip()]);
    let scaled = graph.node("Mul", &sub("scaled"), &[&scores, &scale], Vec::new());
    let weights = graph.node("Softmax", &sub("softmax"), &[&scaled], vec![Attribute::Int("axis", -1)]);
    let mixed = graph.node("MatMul", &sub("mixed"), &[&weights, &values], Vec::new());
    let mixed = graph.transpose(&sub("tokens"), &mixed, &[0, 2, 1, 3]);
    let mixed = graph.reshape(&sub("joined"), &mixed, &[0, 0, heads * size]);
    graph.token_linear(&sub("proj"), &mixed)
}

/// x / 2 (1 + erf(x / sqrt 2)).
fn gelu(graph: &mut Graph<'_>, name: &str, x: &str) -> Value {
    let sub = |suffix: &str| format!("{name}.{suffix}");
    let root = graph.floats("sqrt_2", &[], &[std::f32::consts::SQRT_2]);
    let (one, half) = (graph.floats("one", &[], &[1.0]), graph.floats("half", &[], &[0.5]));
    let y = graph.node("Div", &sub("inner"), &[x, &root], Vec::new());
    let y = graph.node("Erf", &sub("erf"), &[&y], Vec::new());
    let y = graph.node("Add", &sub("plus_one"), &[&y, &one], Vec::new());
    let y = graph.node("Mul", &sub("times_x"), &[x, &y], Vec::new());
    graph.node("Mul", name, &[&y, &half], Vec::new())
}
