//! The backbones behind one type: images in, a map and a representation out.

use engine::ops::{self, Images};
use engine::{StoreBuilder, Tape, Var};

use crate::resnet::{ResNet18, ResNet18Config};

/// Which backbone, and its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackboneConfig {
    /// The published ResNet-18.
    #[serde(rename = "resnet18")]
    ResNet18(ResNet18Config),
}

impl Default for BackboneConfig {
    fn default() -> Self {
        Self::ResNet18(ResNet18Config::default())
    }
}

/// A backbone.
#[derive(Clone, Debug)]
pub enum Backbone {
    /// The published ResNet-18.
    ResNet18(ResNet18),
}

impl BackboneConfig {
    /// Width of the representation, which is also the number of channels of the map.
    pub fn output_width(&self) -> usize {
        match self {
            Self::ResNet18(config) => config.output_width(),
        }
    }

    /// Side of the map for images of `image_size` pixels.
    pub fn map_size(&self, image_size: usize) -> usize {
        match self {
            Self::ResNet18(_) => {
                [2, 2, 2, 2, 2].iter().fold(image_size, |size, stride| size.div_ceil(*stride))
            }
        }
    }

    /// Declares the parameters under `prefix`.
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str) -> Backbone {
        match self {
            Self::ResNet18(config) => Backbone::ResNet18(config.init(builder, prefix)),
        }
    }
}

impl Backbone {
    /// The map before pooling: (n, side, side, width).
    pub fn map(&self, tape: &mut Tape<'_>, images: &Images) -> engine::Result<Var> {
        match self {
            Self::ResNet18(network) => network.forward(tape, images),
        }
    }

    /// The representation h of a map: its mean over all positions, (n, width).
    pub fn representation(&self, tape: &mut Tape<'_>, map: &Var) -> engine::Result<Var> {
        ops::avg_pool(tape, map)
    }
}

/// A backbone that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("there is no backbone {0:?} (known: resnet18)")]
pub struct UnknownBackbone(String);

impl std::str::FromStr for BackboneConfig {
    type Err = UnknownBackbone;

    /// The backbone of this name with its published sizes.
    fn from_str(name: &str) -> Result<Self, UnknownBackbone> {
        match name {
            "resnet18" => Ok(Self::ResNet18(ResNet18Config::default())),
            _ => Err(UnknownBackbone(name.to_owned())),
        }
    }
}
