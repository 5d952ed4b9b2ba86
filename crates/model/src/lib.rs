//! The networks: backbones, projectors, predictors and heads, with the published parameter names. A layer is a
//! handful of parameter ids and a `forward` in terms of the engine's operations; it names no device and no loss.
//!
//! Every module follows one pattern: a `...Config` with documented defaults, `init(&mut StoreBuilder, prefix)` that
//! declares its parameters with their published initialisers, and `forward(&mut Tape, ...)`.

mod backbone;
mod capsules;
mod layers;
mod mlp;
mod predictor;
mod resnet;
mod vit;

pub use backbone::{Backbone, BackboneConfig};
pub use capsules::{CapsuleProjector, CapsuleProjectorConfig};
pub use layers::{BatchNorm, Conv, Linear};
pub use mlp::{MlpHead, MlpHeadConfig, MlpProjector, MlpProjectorConfig};
pub use predictor::{Hypernetwork, HypernetworkConfig, MlpPredictor, MlpPredictorConfig};
pub use resnet::{ResNet18, ResNet18Config};
pub use vit::{Vit, VitConfig, fit_positions, interpolate_positions};
