//! ResNet-18 as published with EquiCaps and SIE. It is not the stock network: the stem pads (2, 3), the pooling pads
//! right and bottom with -10000, the stride of a block sits in its second convolution, which then pads right and
//! bottom only, and every stage, the first included, starts with a 1x1 shortcut.

use engine::ops::{Images, Padding};
use engine::{Initialise, Result, StoreBuilder, Tape, Var};

use crate::layers::{BatchNorm, Conv};

/// Sizes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResNet18Config {
    /// Channels of the first stage (64); the stages have 1, 2, 4 and 8 times as many.
    pub width: usize,
}

impl Default for ResNet18Config {
    fn default() -> Self {
        Self { width: 64 }
    }
}

/// Kaiming-normal over the fan-out, as all convolutions of the backbone start.
fn fan_out(output: usize, kernel: usize) -> Initialise {
    Initialise::kaiming_normal(output * kernel * kernel)
}

/// The network without its pooling.
#[derive(Clone, Debug)]
pub struct ResNet18 {
    stem: Conv,
    stem_norm: BatchNorm,
    blocks: Vec<BasicBlock>,
    recompute: bool,
}

impl ResNet18Config {
    /// Channels of the output map.
    pub fn output_width(&self) -> usize {
        self.width * 8
    }

    /// Declares the parameters under `prefix` (for example `"backbone."`).
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str) -> ResNet18 {
        let padding = Padding::before_after(2, 3);
        let start = fan_out(self.width, 7);
        let stem = Conv::init(builder, &format!("{prefix}conv1"), [3, self.width, 7], 2, padding, start);
        let stem_norm = BatchNorm::init(builder, &format!("{prefix}bn1"), self.width, 1.0);
        let mut blocks = Vec::new();
        let mut input = self.width;
        for stage in 0..4 {
            let width = self.width << stage;
            for block in 0..2 {
                let name = format!("{prefix}layer{}.{block}", stage + 1);
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                blocks.push(BasicBlock::init(builder, &name, input, width, stride, block == 0));
                input = width;
            }
        }
        ResNet18 { stem, stem_norm, blocks, recompute: false }
    }
}

impl ResNet18 {
    /// Images (n, s, s, 3) -> map (n, s / 32, s / 32, 8 width).
    pub fn forward(&self, tape: &mut Tape<'_>, images: &Images) -> Result<Var> {
        let mut x = self.stem.forward_stem(tape, images, &self.stem_norm)?;
        for block in &self.blocks {
            x = if self.recompute {
                let block = block.clone();
                tape.recompute(&x, move |tape, x| block.forward(tape, x))?
            } else {
                block.forward(tape, &x)?
            };
        }
        Ok(x)
    }

    /// Whether backward computes the inside of blocks again instead of keeping it.
    pub fn set_recompute(&mut self, recompute: bool) {
        self.recompute = recompute;
    }
}

/// relu( bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x) ).
#[derive(Clone, Debug)]
struct BasicBlock {
    conv1: Conv,
    bn1: BatchNorm,
    conv2: Conv,
    bn2: BatchNorm,
    shortcut: Option<(Conv, BatchNorm)>,
}

impl BasicBlock {
    fn init(
        builder: &mut StoreBuilder,
        name: &str,
        input: usize,
        width: usize,
        stride: usize,
        shortcut: bool,
    ) -> Self {
        let sub = |suffix: &str| format!("{name}.{suffix}");
        let padding = if stride == 1 { Padding::all(1) } else { Padding::before_after(0, 1) };
        let start = fan_out(width, 3);
        Self {
            conv1: Conv::init(builder, &sub("conv1"), [input, width, 3], 1, Padding::all(1), start),
            bn1: BatchNorm::init(builder, &sub("bn1"), width, 1.0),
            conv2: Conv::init(builder, &sub("conv2"), [width, width, 3], stride, padding, start),
            // Zero: at the start every block is its shortcut.
            bn2: BatchNorm::init(builder, &sub("bn2"), width, 0.0),
            shortcut: shortcut.then(|| {
                let sizes = [input, width, 1];
                let start = fan_out(width, 1);
                let conv =
                    Conv::init(builder, &sub("downsample.0"), sizes, stride, Padding::default(), start);
                (conv, BatchNorm::init(builder, &sub("downsample.1"), width, 1.0))
            }),
        }
    }

    fn forward(&self, tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
        let y = self.conv1.forward(tape, x)?;
        let y = self.bn1.forward_relu_conv(tape, &y, &self.conv2)?;
        match &self.shortcut {
            Some((conv, norm)) => {
                let shortcut = conv.forward(tape, x)?;
                self.bn2.forward_add_relu(tape, &y, (&shortcut, Some(norm)))
            }
            None => self.bn2.forward_add_relu(tape, &y, (x, None)),
        }
    }
}
