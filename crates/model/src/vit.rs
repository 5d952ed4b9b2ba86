//! ViT-Tiny/16 as in DINO: patch embedding, class token, learned positions, 12 pre-norm blocks, final norm. The class
//! token is dropped: capsule methods get the map of patch tokens, the others its mean.

use engine::ops::{self, Images, Padding};
use engine::{Initialise, Layout, ParameterId, Result, StoreBuilder, Tape, Var};

/// Added to the variance in layer norms.
const EPSILON: f32 = 1e-6;

/// Linear weights, class token and positions start like this.
const START: Initialise = Initialise::TruncatedNormal { std: 0.02, cut: 2.0 };

/// Sizes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VitConfig {
    /// Side of a patch in pixels (16).
    pub patch: usize,
    /// Width of a token (192).
    pub width: usize,
    /// Blocks (12).
    pub depth: usize,
    /// Heads (3).
    pub heads: usize,
}

impl Default for VitConfig {
    fn default() -> Self {
        Self { patch: 16, width: 192, depth: 12, heads: 3 }
    }
}

/// A layer norm.
#[derive(Clone, Debug)]
struct LayerNorm {
    weight: ParameterId,
    bias: ParameterId,
}

impl LayerNorm {
    fn init(builder: &mut StoreBuilder, name: &str, width: usize) -> Self {
        let mut parameter = |suffix: &str, start| {
            builder.parameter(
                format!("{name}.{suffix}"),
                [width],
                Layout::Published,
                Initialise::Constant(start),
            )
        };
        Self { weight: parameter("weight", 1.0), bias: parameter("bias", 0.0) }
    }

    fn forward(&self, tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
        let (weight, bias) = (tape.parameter(self.weight), tape.parameter(self.bias));
        ops::layer_norm(tape, x, &weight, &bias, EPSILON)
    }
}

/// x += attention(norm1(x)); x += mlp(norm2(x)).
#[derive(Clone, Debug)]
struct Block {
    norm1: LayerNorm,
    qkv: TokenLinear,
    projection: TokenLinear,
    norm2: LayerNorm,
    expand: TokenLinear,
    contract: TokenLinear,
}

impl Block {
    fn init(builder: &mut StoreBuilder, name: &str, width: usize) -> Self {
        let sub = |suffix: &str| format!("{name}.{suffix}");
        Self {
            norm1: LayerNorm::init(builder, &sub("norm1"), width),
            qkv: TokenLinear::init(builder, &sub("attn.qkv"), width, 3 * width),
            projection: TokenLinear::init(builder, &sub("attn.proj"), width, width),
            norm2: LayerNorm::init(builder, &sub("norm2"), width),
            expand: TokenLinear::init(builder, &sub("mlp.fc1"), width, 4 * width),
            contract: TokenLinear::init(builder, &sub("mlp.fc2"), 4 * width, width),
        }
    }

    /// x and norm1(x), (n, tokens, width) each -> the new x and `next` of it.
    fn forward(
        &self,
        tape: &mut Tape<'_>,
        x: &Var,
        normal: &Var,
        next: &LayerNorm,
        heads: usize,
    ) -> Result<[Var; 2]> {
        let y = self.qkv.forward_attention(tape, normal, heads)?;
        let [x, normal] = self.projection.add_norm(tape, x, &y, &self.norm2)?;
        let y = self.expand.forward_gelu(tape, &normal)?;
        self.contract.add_norm(tape, &x, &y, next)
    }
}

/// A linear layer of tokens: one with what follows it in a block.
#[derive(Clone, Debug)]
struct TokenLinear {
    weight: ParameterId,
    bias: ParameterId,
}

impl TokenLinear {
    fn init(builder: &mut StoreBuilder, name: &str, input: usize, output: usize) -> Self {
        let weight = builder.parameter(format!("{name}.weight"), [output, input], Layout::Published, START);
        let zero = Initialise::Constant(0.0);
        Self { weight, bias: builder.parameter(format!("{name}.bias"), [output], Layout::Published, zero) }
    }

    fn parameters(&self, tape: &mut Tape<'_>) -> [Var; 2] {
        [tape.parameter(self.weight), tape.parameter(self.bias)]
    }

    /// Attention of this layer's queries, keys and values.
    fn forward_attention(&self, tape: &mut Tape<'_>, x: &Var, heads: usize) -> Result<Var> {
        let [weight, bias] = self.parameters(tape);
        ops::linear_attention(tape, x, &weight, &bias, heads)
    }

    /// (n, tokens, in) -> (n tokens, out).
    fn forward_gelu(&self, tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
        let [weight, bias] = self.parameters(tape);
        let x = rows(tape, x)?;
        ops::linear_gelu(tape, &x, &weight, &bias)
    }

    /// x plus this layer of `y`, and `norm` of that.
    fn add_norm(&self, tape: &mut Tape<'_>, x: &Var, y: &Var, norm: &LayerNorm) -> Result<[Var; 2]> {
        let [weight, bias] = self.parameters(tape);
        let (gamma, beta) = (tape.parameter(norm.weight), tape.parameter(norm.bias));
        let y = rows(tape, y)?;
        ops::linear_add_norm(tape, x, &y, [&weight, &bias], [&gamma, &beta], EPSILON)
    }
}

/// Tokens as the rows of a matrix.
fn rows(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    let width = x.shape().last().copied().unwrap_or(0).max(1);
    ops::reshape(tape, x, [x.shape().len() / width, width])
}

/// The network.
#[derive(Clone, Debug)]
pub struct Vit {
    config: VitConfig,
    patch_weight: ParameterId,
    patch_bias: ParameterId,
    class: ParameterId,
    position: ParameterId,
    blocks: Vec<Block>,
    norm: LayerNorm,
    recompute: bool,
}

impl VitConfig {
    /// Declares the parameters under `prefix` for images of `image_size` pixels: that is what the position table is
    /// made for.
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str, image_size: usize) -> Vit {
        let Self { patch, width, depth, .. } = *self;
        let tokens = (image_size / patch).pow(2);
        let default = Initialise::default_for(3 * patch * patch);
        let mut parameter = |name: &str, shape: &[usize], layout, start| {
            builder.parameter(format!("{prefix}{name}"), shape, layout, start)
        };
        let class = parameter("cls_token", &[1, 1, width], Layout::Published, START);
        let position = parameter("pos_embed", &[1, 1 + tokens, width], Layout::Published, START);
        let shape = [width, 3, patch, patch];
        let patch_weight = parameter("patch_embed.proj.weight", &shape, Layout::Convolution, default);
        let patch_bias = parameter("patch_embed.proj.bias", &[width], Layout::Published, default);
        let blocks =
            (0..depth).map(|block| Block::init(builder, &format!("{prefix}blocks.{block}"), width)).collect();
        let norm = LayerNorm::init(builder, &format!("{prefix}norm"), width);
        Vit { config: *self, patch_weight, patch_bias, class, position, blocks, norm, recompute: false }
    }
}

impl Vit {
    /// Whether backward computes the inside of blocks again instead of keeping it.
    pub fn set_recompute(&mut self, recompute: bool) {
        self.recompute = recompute;
    }

    /// Images (n, s, s, 3) -> map (n, s / patch, s / patch, width).
    pub fn forward(&self, tape: &mut Tape<'_>, images: &Images) -> Result<Var> {
        let VitConfig { patch, heads, .. } = self.config;
        let (weight, bias) = (tape.parameter(self.patch_weight), tape.parameter(self.patch_bias));
        let patches = ops::image_conv(tape, images, &weight, Some(&bias), patch, Padding::default())?;
        let map = patches.shape();
        let (class, position) = (tape.parameter(self.class), tape.parameter(self.position));
        let mut x = ops::embed_tokens(tape, &patches, &class, &position)?;
        drop(patches);
        let normal = if self.recompute {
            for block in &self.blocks {
                let (block, norm) = (block.clone(), self.norm.clone());
                // The norm behind the block belongs to the next one, which computes it again.
                x = tape.recompute(&x, move |tape, x| {
                    let normal = block.norm1.forward(tape, x)?;
                    Ok(block.forward(tape, x, &normal, &norm, heads)?[0].clone())
                })?;
            }
            self.norm.forward(tape, &x)?
        } else {
            let first = self.blocks.first().map_or(&self.norm, |block| &block.norm1);
            let mut normal = first.forward(tape, &x)?;
            for (index, block) in self.blocks.iter().enumerate() {
                let next = self.blocks.get(index + 1).map_or(&self.norm, |block| &block.norm1);
                [x, normal] = block.forward(tape, &x, &normal, next, heads)?;
            }
            normal
        };
        let x = ops::drop_first_token(tape, &normal)?;
        ops::reshape(tape, &x, map)
    }
}

/// A position table (1, 1 + side^2, width) for another number of patches: the class token's row is kept, the others
/// are interpolated bicubically over the grid (cubic convolution with a = -0.75, as the published code does).
pub fn interpolate_positions(table: &[f32], width: usize, side: usize) -> Option<Vec<f32>> {
    let old = (table.len() / width).checked_sub(1)?.isqrt();
    if width == 0 || side == 0 || old == 0 || table.len() != (1 + old * old) * width {
        return None;
    }
    if old == side {
        return Some(table.to_vec());
    }
    // For every new coordinate: four old ones and their weights.
    let taps: Vec<[(usize, f64); 4]> = (0..side)
        .map(|target| {
            let source = (target as f64 + 0.5) * old as f64 / side as f64 - 0.5;
            let (base, fraction) = (source.floor(), source - source.floor());
            std::array::from_fn(|tap| {
                let offset = tap as f64 - 1.0;
                let index = (base + offset).clamp(0.0, old as f64 - 1.0) as usize;
                (index, cubic((fraction - offset).abs()))
            })
        })
        .collect();
    let mut result = table[..width].to_vec();
    for (row, column) in (0..side).flat_map(|row| (0..side).map(move |column| (row, column))) {
        for c in 0..width {
            let mut sum = 0.0;
            for &(y, weight_y) in &taps[row] {
                for &(x, weight_x) in &taps[column] {
                    sum += weight_y * weight_x * f64::from(table[(1 + y * old + x) * width + c]);
                }
            }
            result.push(sum as f32);
        }
    }
    Some(result)
}

/// `values` of shape `stored` for the parameter `name` of shape `wanted`, where that is a position table made for another
/// image size; `None` where it is not.
pub fn fit_positions(name: &str, stored: &[usize], values: &[f32], wanted: &[usize]) -> Option<Vec<f32>> {
    let (&[1, _, width], &[1, rows, wanted_width]) = (stored, wanted) else { return None };
    let side = rows.checked_sub(1)?.isqrt();
    let fits = width == wanted_width && 1 + side * side == rows && values.len() == stored[1] * width;
    if !fits || !name.ends_with("pos_embed") {
        return None;
    }
    interpolate_positions(values, width, side)
}

fn cubic(x: f64) -> f64 {
    const A: f64 = -0.75;
    if x <= 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Device, Tensor};

    #[test]
    fn positions_are_interpolated_bicubically() {
        let (old, new) = (8, 16);
        let ramp: Vec<f32> = std::iter::once(9.0).chain((0..old * old).map(|i| (i % old) as f32)).collect();
        let result = interpolate_positions(&ramp, 1, new).unwrap();
        assert_eq!(result.len(), 1 + new * new);
        assert_eq!(result[0], 9.0);
        // Column 7 lies at 3.25: the published code's weights there, times columns 2 to 5.
        let weights = [-0.105_468_75, 0.878_906_25, 0.261_718_75, -0.035_156_25];
        let wanted: f32 =
            weights.iter().zip([2.0, 3.0, 4.0, 5.0]).map(|(weight, column)| weight * column).sum();
        assert!((result[1 + 7 * new + 7] - wanted).abs() < 1e-5);
        assert!(
            interpolate_positions(&vec![2.0; 17 * 3], 3, 7).unwrap().iter().all(|v| (v - 2.0).abs() < 1e-6)
        );
        assert_eq!(interpolate_positions(&ramp, 1, old).unwrap(), ramp);
        assert!(interpolate_positions(&ramp[..64], 1, new).is_none());
    }

    #[test]
    fn the_published_sizes_and_shapes() {
        let mut builder = StoreBuilder::new();
        let vit = VitConfig { depth: 2, ..VitConfig::default() }.init(&mut builder, "backbone.", 64);
        let device = Device::cpu();
        let mut store = builder.build(&device, 1).unwrap();
        let shape = |name: &str| store.shape(store.find(name).unwrap()).dims().to_vec();
        assert_eq!(shape("backbone.pos_embed"), [1, 17, 192]);
        assert_eq!(shape("backbone.patch_embed.proj.weight"), [192, 3, 16, 16]);
        assert_eq!(shape("backbone.blocks.1.attn.qkv.weight"), [576, 192]);
        assert_eq!(shape("backbone.blocks.1.mlp.fc1.bias"), [768]);
        let pixels = Tensor::from_slice(&device, [2, 64, 64, 3], &vec![128_u8; 2 * 64 * 64 * 3]).unwrap();
        let images = Images { pixels, scale: [0.01; 3], shift: [0.0; 3] };
        let mut tape = Tape::inference(&mut store);
        assert_eq!(vit.forward(&mut tape, &images).unwrap().shape().dims(), [2, 4, 4, 192]);
    }
}
