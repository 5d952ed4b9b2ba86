//! The part of a run's settings that makes its network: names, sizes and weights of terms. Numbers are in the files of
//! `presets/` only.

use model::{BackboneConfig, ResNet18Config, VitConfig};
use pose::{Group, Part};
use serde::{Deserialize, Serialize};

use crate::names;
use crate::names::UnknownName;
use crate::presets;
use crate::registry::MethodName;
use crate::settings::SettingError;

names! {
    /// A backbone.
    BackboneName, "backbone" {
        /// The published ResNet-18.
        ResNet18 = "resnet18",
        /// DINO's ViT-Tiny/16.
        VitTiny = "vit_tiny",
    }
}

/// Which transformation between the views a method is trained on: a [`Group`] by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform(Group);

impl Transform {
    /// [`Group::ROTATION`].
    pub const ROTATION: Self = Self(Group::ROTATION);
    /// [`Group::ROTATION_OBJECT`].
    pub const ROTATION_OBJECT: Self = Self(Group::ROTATION_OBJECT);
    /// [`Group::ROTATION_BASE`].
    pub const ROTATION_BASE: Self = Self(Group::ROTATION_BASE);

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Group::ALL.into_iter().map(Self)
    }

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The group.
    pub fn group(self) -> Group {
        self.0
    }
}

impl From<Group> for Transform {
    fn from(group: Group) -> Self {
        Self(group)
    }
}

impl std::str::FromStr for Transform {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::all().find(|transform| transform.name() == name).ok_or_else(|| UnknownName {
            what: "transform",
            name: name.to_owned(),
            known: Self::all().map(Self::name).collect(),
        })
    }
}

impl std::fmt::Display for Transform {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.name())
    }
}

crate::serde_by_name!(Transform);

names! {
    /// What turns the embedding of view 1 into that of view 2.
    PredictorName, "network.predictor" {
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
    Task, "network.task" {
        /// The class of a view.
        Classification = "classification",
        /// The relative rotation of a pair.
        Rotation = "rotation",
        /// The relative translation of a pair, in the transform's frame.
        Translation = "translation",
        /// The ratios of the scales of a pair.
        Scale = "scale",
        /// The differences of the shears of a pair.
        Shear = "shear",
        /// The differences of the perspective of a pair of photographs.
        Perspective = "perspective",
        /// The differences of floor and spot hue of a pair.
        Colour = "colour",
    }
}

impl Task {
    /// The part of a pose that it asks for, if it does.
    pub fn part(self) -> Option<Part> {
        match self {
            Self::Classification | Self::Colour => None,
            Self::Rotation => Some(Part::Rotation),
            Self::Translation => Some(Part::Translation),
            Self::Scale => Some(Part::Scale),
            Self::Shear => Some(Part::Shear),
            Self::Perspective => Some(Part::Perspective),
        }
    }
}

names! {
    /// What the variance and covariance terms of EquiCaps see.
    Regularise, "loss.regularise" {
        /// Activations and poses.
        Both = "both",
        /// Poses only (an ablation).
        Poses = "poses",
    }
}

names! {
    /// By which norm the poses of EquiCaps are divided before they are compared.
    PoseNorm, "loss.pose_norm" {
        /// That of all their numbers, as published.
        Whole = "whole",
        /// That of the linear part: all columns but the one that rotations leave alone, where the group has one.
        Linear = "linear",
    }
}

/// Weights of the terms of a loss; `presets/defaults.toml` explains each. A method uses those it has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct LossConfig {
    pub invariance: f64,
    pub equivariance: f64,
    pub variance: f64,
    pub covariance: f64,
    pub predicted_variance: f64,
    pub mean_entropy: f64,
    pub temperature: f64,
    pub sharpen_prediction: f64,
    pub sharpen_target: f64,
    pub regularise: Regularise,
    pub pose_norm: PoseNorm,
}

/// Sizes of the network; `presets/defaults.toml` explains each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct NetworkConfig {
    pub width: usize,
    pub projector: Vec<usize>,
    pub capsules: usize,
    pub pose: usize,
    pub predictor: PredictorName,
    pub predictor_layers: usize,
    pub normalise_poses: bool,
    pub routing_std: f64,
    pub task: Task,
    /// Sizes of the transformer: those of ViT-Tiny/16; no setting.
    #[serde(skip)]
    pub vit: VitConfig,
}

/// A method with all its sizes and weights; `presets/defaults.toml` explains each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct MethodConfig {
    #[serde(rename = "method")]
    pub name: MethodName,
    pub backbone: BackboneName,
    pub transform: Transform,
    /// Configured global batch size: the divisor of covariances is this minus one, even for a smaller last batch.
    pub batch: usize,
    pub image_size: usize,
    pub network: NetworkConfig,
    pub loss: LossConfig,
    /// Number of classes, which the data say: no setting. Only a supervised network depends on it.
    #[serde(skip, default = "published_classes")]
    pub classes: usize,
}

/// Classes of the published datasets.
fn published_classes() -> usize {
    55
}

impl MethodConfig {
    /// The published settings of `method`, for 55 classes.
    pub fn published(method: MethodName) -> Result<Self, SettingError> {
        presets::published(method)?.parse()
    }

    /// The backbone with its sizes.
    pub fn backbone(&self) -> BackboneConfig {
        match self.backbone {
            BackboneName::ResNet18 => BackboneConfig::ResNet18(ResNet18Config { width: self.network.width }),
            BackboneName::VitTiny => BackboneConfig::VitTiny(self.network.vit),
        }
    }

    /// Side of a pose matrix.
    pub(crate) fn pose_side(&self) -> usize {
        match self.network.pose {
            0 => self.transform.group().side,
            side => side,
        }
    }

    /// Divisor of covariances.
    pub(crate) fn covariance_divisor(&self) -> usize {
        self.batch.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_the_published_settings() {
        for method in MethodName::all() {
            let config = MethodConfig::published(method).unwrap();
            assert_eq!((config.name, config.classes), (method, 55));
            assert_eq!(config.covariance_divisor(), config.batch - 1);
            let side = |transform| MethodConfig { transform, ..config.clone() }.pose_side();
            // CapsIE has 4x4 poses also for rotations.
            let rotation = if method == MethodName::CAPSIE { 4 } else { 3 };
            assert_eq!(
                [Transform::ROTATION, Transform::ROTATION_OBJECT, Transform::ROTATION_BASE].map(side),
                [rotation, 4, 4]
            );
            // Every key of a method's settings is one of its preset or of the defaults, none is lost on the way.
            let text = toml::to_string(&config).unwrap();
            let mut settings = presets::published(method).unwrap();
            settings.overlay("again", &text).unwrap();
            assert_eq!(settings.parse::<MethodConfig>().unwrap(), config);
        }
    }

    #[test]
    fn transformations_have_their_numbers_and_frames() {
        let numbers = |transform: Transform| (transform.group().parameters(), transform.group().side);
        assert_eq!([numbers(Transform::ROTATION), numbers(Transform::ROTATION_BASE)], [(4, 3), (7, 4)]);
        assert_eq!(Transform::ROTATION_OBJECT.group().frame, pose::FrameKind::Object);
        assert_eq!(Transform::ROTATION_BASE.group().frame, pose::FrameKind::Base);
        assert_eq!(numbers(Group::AFFINE.into()), (13, 4));
        assert_eq!(numbers(Group::IMAGE_HOMOGRAPHY.into()), (9, 3));
    }

    #[test]
    fn names_are_read_and_written_and_the_nearest_is_suggested() {
        for transform in Transform::all() {
            assert_eq!(transform.name().parse(), Ok(transform));
        }
        let message = "rotation+objects".parse::<Transform>().unwrap_err().to_string();
        assert_eq!(
            message,
            "transform is \"rotation+objects\", but must be one of rotation, rotation+object, rotation+base, rotation-4x4, \
             similarity, similarity+base, affine, affine+base, image-rotation, image-similarity, image-affine, \
             image-homography; did you mean \"rotation+object\"?"
        );
        assert!(
            "equicap".parse::<MethodName>().unwrap_err().to_string().contains("did you mean \"equicaps\"?")
        );
    }
}
