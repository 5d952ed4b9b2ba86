//! What a method is made of: names, sizes and weights, with the published values for each method.

use std::str::FromStr;

use model::{BackboneConfig, ResNet18Config};
use pose::FrameKind;

/// A name that is not known.
#[derive(Debug, thiserror::Error)]
#[error("there is no {what} {name:?} (known: {known})")]
pub struct UnknownName {
    /// What was looked for.
    pub what: &'static str,
    /// The name.
    pub name: String,
    /// The names that exist.
    pub known: String,
}

/// An enum whose variants have names on the command line and in files.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident, $what:literal { $($(#[$variant_meta:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $($(#[$variant_meta])* #[serde(rename = $name)] $variant),+
        }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in files and on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                Self::ALL.iter().copied().find(|known| known.name() == name).ok_or_else(|| UnknownName {
                    what: $what,
                    name: name.to_owned(),
                    known: Self::ALL.iter().map(|known| known.name()).collect::<Vec<_>>().join(", "),
                })
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

names! {
    /// A method.
    MethodName, "method" {
        /// One network per task, trained end to end.
        Supervised = "supervised",
        /// Invariance with variance and covariance regularisation.
        VicReg = "vicreg",
        /// Contrastive.
        SimClr = "simclr",
        /// Contrastive, with a head that predicts the transformation.
        SimClrAugSelf = "simclr_augself",
        /// Contrastive on the predictor's output.
        Sen = "sen",
        /// Contrastive twice: an invariant and an equivariant embedding.
        EquiMod = "equimod",
        /// Split representation, hypernetwork predictor.
        Sie = "sie",
        /// Capsules with SIE's hypernetwork.
        CapsIe = "capsie",
        /// Capsules whose poses are transformed directly.
        EquiCaps = "equicaps",
    }
}

impl MethodName {
    /// What it is, in a line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Supervised => "one network per task, trained end to end on its labels",
            Self::VicReg => "invariance between the views, variance and covariance regularised",
            Self::SimClr => "contrastive: a view finds the other view of its object among all others",
            Self::SimClrAugSelf => {
                "SimCLR, and a head that predicts the transformation from both representations"
            }
            Self::Sen => "contrastive between a predictor's output and the other view",
            Self::EquiMod => "SimCLR twice: an invariant embedding, and one with a predictor",
            Self::Sie => "split representation: invariant half, equivariant half with a hypernetwork",
            Self::CapsIe => "capsules, with SIE's hypernetwork on the poses",
            Self::EquiCaps => "capsules whose pose matrices are transformed by the motion itself",
        }
    }
}

names! {
    /// Which transformation between the views a method is trained on.
    Transform, "transform" {
        /// Rotation: a quaternion, or a 3x3 matrix.
        Rotation = "rotation",
        /// Rotation and translation in the object frame: 7 numbers, or a 4x4 matrix.
        RotationObject = "rotation+object",
        /// Rotation and translation in the base frame: 7 numbers, or a 4x4 matrix.
        RotationBase = "rotation+base",
    }
}

impl Transform {
    /// Numbers that describe it: 4, or 7 with translation.
    pub fn parameters(self) -> usize {
        if self == Self::Rotation { 4 } else { 7 }
    }

    /// The frame of its translation; the object frame where it has none.
    pub fn frame(self) -> FrameKind {
        if self == Self::RotationBase { FrameKind::Base } else { FrameKind::Object }
    }

    /// Side of its matrix: 3, or 4 with translation.
    pub fn matrix_side(self) -> usize {
        if self == Self::Rotation { 3 } else { 4 }
    }
}

names! {
    /// What turns the embedding of view 1 into that of view 2.
    PredictorName, "predictor" {
        /// Nothing.
        None = "none",
        /// Linear layers on the transformation and the embedding.
        Mlp = "mlp",
        /// A matrix that is linear in the transformation.
        Hypernetwork = "hypernetwork",
    }
}

names! {
    /// What a supervised network learns.
    Task, "task" {
        /// The class of a view.
        Classification = "classification",
        /// The relative rotation of a pair.
        Rotation = "rotation",
        /// The relative translation of a pair, in the transform's frame.
        Translation = "translation",
        /// The differences of floor and spot hue of a pair.
        Colour = "colour",
    }
}

names! {
    /// What the variance and covariance terms of EquiCaps see.
    Regularise, "regularisation" {
        /// Activations and poses.
        Both = "both",
        /// Poses only (an ablation).
        Poses = "poses",
    }
}

/// Weights of the terms of a loss. A method uses those it has.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossConfig {
    /// Invariance.
    pub invariance: f32,
    /// Equivariance.
    pub equivariance: f32,
    /// Variance hinge, both views.
    pub variance: f32,
    /// Covariance, both views.
    pub covariance: f32,
    /// Variance hinge of the predictor's output.
    pub predicted_variance: f32,
    /// Mean-entropy maximisation, both views.
    pub mean_entropy: f32,
    /// Temperature of contrastive terms.
    pub temperature: f32,
    /// CapsIE: temperature that sharpens the activations of view 1 in the cross-entropy (1: as they are).
    pub sharpen_prediction: f32,
    /// As `sharpen_prediction`, of view 2, the target.
    pub sharpen_target: f32,
    /// What variance and covariance see.
    pub regularise: Regularise,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self {
            invariance: 1.0,
            equivariance: 1.0,
            variance: 0.0,
            covariance: 0.0,
            predicted_variance: 0.0,
            mean_entropy: 0.0,
            temperature: 1.0,
            sharpen_prediction: 1.0,
            sharpen_target: 1.0,
            regularise: Regularise::Both,
        }
    }
}

/// A method with all its sizes and weights.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MethodConfig {
    /// Which method.
    pub method: MethodName,
    /// The backbone.
    pub backbone: BackboneConfig,
    /// The transformation it is trained on.
    pub transform: Transform,
    /// Side of the images in pixels.
    pub image_size: usize,
    /// Configured global batch size: the divisor of covariances is this minus one, even for a smaller last batch.
    pub batch: usize,
    /// Widths of the MLP projector.
    pub projector: Vec<usize>,
    /// Capsules of a capsule projector.
    pub capsules: usize,
    /// Side of a pose matrix; 0: that of the transformation's matrix (CapsIE: 4).
    pub pose_side: usize,
    /// The predictor.
    pub predictor: PredictorName,
    /// Layers of an MLP predictor.
    pub predictor_layers: usize,
    /// Whether CapsIE normalises its poses before its losses.
    pub normalise_poses: bool,
    /// What a supervised network learns.
    pub task: Task,
    /// Number of classes.
    pub classes: usize,
    /// Weights of the terms.
    pub loss: LossConfig,
}

impl Default for MethodConfig {
    fn default() -> Self {
        Self::published(MethodName::EquiCaps)
    }
}

impl MethodConfig {
    /// The published settings of `method` with the full ResNet-18 at 256 pixels and batch 1024.
    pub fn published(method: MethodName) -> Self {
        let base = Self {
            method,
            backbone: BackboneConfig::ResNet18(ResNet18Config::default()),
            transform: Transform::Rotation,
            image_size: 256,
            batch: 1024,
            projector: vec![2048, 2048, 2048],
            capsules: 32,
            pose_side: 0,
            predictor: PredictorName::None,
            predictor_layers: 1,
            normalise_poses: false,
            task: Task::Classification,
            classes: 55,
            loss: LossConfig::default(),
        };
        let regularised = LossConfig { variance: 10.0, covariance: 1.0, ..LossConfig::default() };
        match method {
            MethodName::Supervised | MethodName::SimClr | MethodName::SimClrAugSelf => base,
            MethodName::VicReg => Self { loss: LossConfig { invariance: 10.0, ..regularised }, ..base },
            MethodName::Sen => Self { predictor: PredictorName::Mlp, ..base },
            MethodName::EquiMod => Self {
                projector: vec![1024, 1024, 128],
                predictor: PredictorName::Mlp,
                loss: LossConfig { temperature: 0.1, ..LossConfig::default() },
                ..base
            },
            MethodName::Sie => Self {
                projector: vec![1024, 1024, 1024],
                predictor: PredictorName::Hypernetwork,
                loss: LossConfig {
                    invariance: 10.0,
                    equivariance: 4.5,
                    predicted_variance: 10.0,
                    ..regularised
                },
                ..base
            },
            MethodName::CapsIe => Self {
                predictor: PredictorName::Hypernetwork,
                loss: LossConfig {
                    invariance: 0.1,
                    equivariance: 5.0,
                    predicted_variance: 10.0,
                    mean_entropy: 1.0,
                    ..regularised
                },
                ..base
            },
            MethodName::EquiCaps => Self {
                loss: LossConfig { invariance: 0.1, equivariance: 5.0, mean_entropy: 1.0, ..regularised },
                ..base
            },
        }
    }

    /// Side of a pose matrix.
    pub fn pose_matrix_side(&self) -> usize {
        match (self.pose_side, self.method) {
            (0, MethodName::CapsIe) => 4,
            (0, _) => self.transform.matrix_side(),
            (side, _) => side,
        }
    }

    /// Divisor of covariances.
    pub fn covariance_divisor(&self) -> usize {
        self.batch.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_weights_and_sizes_are_those_of_the_papers() {
        // Weights: invariance, equivariance, variance, covariance, predicted variance, mean entropy, temperature.
        let wide = [2048, 2048, 2048];
        for (method, weights, projector, predictor) in [
            (MethodName::Supervised, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0], wide, PredictorName::None),
            (MethodName::VicReg, [10.0, 1.0, 10.0, 1.0, 0.0, 0.0, 1.0], wide, PredictorName::None),
            (MethodName::SimClr, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0], wide, PredictorName::None),
            (MethodName::SimClrAugSelf, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0], wide, PredictorName::None),
            (MethodName::Sen, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0], wide, PredictorName::Mlp),
            (MethodName::EquiMod, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.1], [1024, 1024, 128], PredictorName::Mlp),
            (MethodName::Sie, [10.0, 4.5, 10.0, 1.0, 10.0, 0.0, 1.0], [1024; 3], PredictorName::Hypernetwork),
            (MethodName::CapsIe, [0.1, 5.0, 10.0, 1.0, 10.0, 1.0, 1.0], wide, PredictorName::Hypernetwork),
            (MethodName::EquiCaps, [0.1, 5.0, 10.0, 1.0, 0.0, 1.0, 1.0], wide, PredictorName::None),
        ] {
            let config = MethodConfig::published(method);
            let loss = config.loss;
            let found = [
                loss.invariance,
                loss.equivariance,
                loss.variance,
                loss.covariance,
                loss.predicted_variance,
                loss.mean_entropy,
                loss.temperature,
            ];
            assert_eq!(
                (found, &config.projector[..], config.predictor),
                (weights, &projector[..], predictor)
            );
            assert_eq!((loss.sharpen_prediction, loss.sharpen_target), (1.0, 1.0));
            assert_eq!((config.batch, config.covariance_divisor(), config.image_size), (1024, 1023, 256));
            assert_eq!((config.capsules, config.classes, config.predictor_layers), (32, 55, 1));
            let side = |transform| MethodConfig { transform, ..config.clone() }.pose_matrix_side();
            let rotation = if method == MethodName::CapsIe { 4 } else { 3 };
            assert_eq!([side(Transform::Rotation), side(Transform::RotationBase)], [rotation, 4], "{method}");
        }
    }
}
