//! The backbones behind one type: images in, a map and a representation out.

use engine::ops::{self, Images};
use engine::{StoreBuilder, Tape, Var};

use crate::resnet::{ResNet18, ResNet18Config};
use crate::vit::{Vit, VitConfig};

/// Which backbone, and its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackboneConfig {
    /// The published ResNet-18.
    ResNet18(ResNet18Config),
    /// DINO's ViT-Tiny/16.
    VitTiny(VitConfig),
}

/// A backbone.
#[derive(Clone, Debug)]
pub enum Backbone {
    /// The published ResNet-18.
    ResNet18(ResNet18),
    /// DINO's ViT-Tiny/16.
    VitTiny(Vit),
}

impl BackboneConfig {
    /// Width of the representation, which is also the number of channels of the map.
    pub fn output_width(&self) -> usize {
        match self {
            Self::ResNet18(config) => config.output_width(),
            Self::VitTiny(config) => config.width,
        }
    }

    /// Side of the map for images of `image_size` pixels.
    pub fn map_size(&self, image_size: usize) -> usize {
        match self {
            Self::ResNet18(_) => image_size / 32,
            Self::VitTiny(config) => image_size / config.patch.max(1),
        }
    }

    /// What this backbone has against images of `image_size` pixels, if anything.
    pub fn refuses(&self, image_size: usize) -> Option<String> {
        let multiple = match self {
            Self::ResNet18(config) if config.width == 0 || !config.width.is_multiple_of(8) => {
                let width = config.width;
                return Some(format!("the backbone's width {width} must be a positive multiple of 8"));
            }
            Self::ResNet18(_) => 32,
            Self::VitTiny(VitConfig { patch, width, depth, heads }) => {
                if [*patch, *width, *depth, *heads].contains(&0) || !width.is_multiple_of(*heads) {
                    return Some(format!(
                        "{self:?} has a size of 0 or a width that is no multiple of its heads"
                    ));
                }
                *patch
            }
        };
        let fits = image_size > 0 && image_size.is_multiple_of(multiple);
        (!fits).then(|| format!("the side of images, {image_size} pixels, must be a multiple of {multiple}"))
    }

    /// Declares the parameters under `prefix` for images of `image_size` pixels.
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str, image_size: usize) -> Backbone {
        match self {
            Self::ResNet18(config) => Backbone::ResNet18(config.init(builder, prefix)),
            Self::VitTiny(config) => Backbone::VitTiny(config.init(builder, prefix, image_size)),
        }
    }
}

impl Backbone {
    /// The map before pooling: (n, side, side, width).
    pub fn map(&self, tape: &mut Tape<'_>, images: &Images) -> engine::Result<Var> {
        match self {
            Self::ResNet18(network) => network.forward(tape, images),
            Self::VitTiny(network) => network.forward(tape, images),
        }
    }

    /// Whether backward computes the inside of blocks again instead of keeping it: less memory, more time, the same
    /// numbers.
    pub fn set_recompute(&mut self, recompute: bool) {
        match self {
            Self::ResNet18(network) => network.set_recompute(recompute),
            Self::VitTiny(network) => network.set_recompute(recompute),
        }
    }

    /// The representation h of a map: its mean over all positions, (n, width).
    pub fn representation(&self, tape: &mut Tape<'_>, map: &Var) -> engine::Result<Var> {
        ops::avg_pool(tape, map)
    }
}
