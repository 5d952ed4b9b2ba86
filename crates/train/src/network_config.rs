//! What network a configuration means: the method with its sizes and weights, its optimiser, and the places that are
//! probed in it.

use engine::AdamConfig;
use methods::{LossConfig, MethodConfig, MethodName};
use model::{BackboneConfig, ResNet18Config, VitConfig};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::probes::Place;

/// The optimiser before any schedule.
pub(crate) fn adam_config(config: &Config) -> AdamConfig {
    AdamConfig {
        learning_rate: config.learning_rate,
        beta1: config.adam.beta1,
        beta2: config.adam.beta2,
        epsilon: config.adam.epsilon,
        weight_decay: config.weight_decay,
    }
}

/// The part of a configuration that makes the network, for data with `classes` classes.
pub fn method_config(config: &Config, classes: usize) -> Result<MethodConfig> {
    fn named<T: std::str::FromStr<Err = methods::UnknownName>>(name: &str) -> Result<T> {
        name.parse().map_err(|error: methods::UnknownName| Error::Setting(error.to_string()))
    }
    let backbone = match config.backbone.as_str() {
        "resnet18" => BackboneConfig::ResNet18(ResNet18Config { width: config.network.width }),
        "vit_tiny" => BackboneConfig::VitTiny(VitConfig::default()),
        other => return Err(Error::Setting(format!("backbone {other} is not available"))),
    };
    let (network, loss) = (&config.network, &config.loss);
    Ok(MethodConfig {
        method: named(&config.method)?,
        backbone,
        transform: named(&config.transform)?,
        image_size: config.image_size,
        batch: config.batch,
        projector: network.projector.clone(),
        capsules: network.capsules,
        pose_side: network.pose,
        predictor: named(&network.predictor)?,
        predictor_layers: network.predictor_layers,
        normalise_poses: network.normalise_poses,
        task: named(&network.task)?,
        classes,
        loss: LossConfig {
            invariance: loss.invariance as f32,
            equivariance: loss.equivariance as f32,
            variance: loss.variance as f32,
            covariance: loss.covariance as f32,
            predicted_variance: loss.predicted_variance as f32,
            mean_entropy: loss.mean_entropy as f32,
            temperature: loss.temperature as f32,
            sharpen_prediction: loss.sharpen_prediction as f32,
            sharpen_target: loss.sharpen_target as f32,
            regularise: named(&loss.regularise)?,
        },
    })
}

/// The places that are probed in a network, as published.
pub(crate) fn places(config: &MethodConfig) -> Vec<Place> {
    let place = |name, width, class, pose| Place { name, width, class, pose };
    let h = config.backbone.output_width();
    let embedding = config.projector.last().copied().unwrap_or(h);
    let capsules = config.capsules;
    let poses = capsules * config.pose_matrix_side().pow(2);
    let mut places = vec![place("representation", h, true, true)];
    match config.method {
        MethodName::Supervised => {}
        MethodName::VicReg | MethodName::SimClr | MethodName::SimClrAugSelf | MethodName::Sen => {
            places.push(place("embedding", embedding, true, true));
        }
        MethodName::EquiMod => {
            places.push(place("invariant", embedding, true, false));
            places.push(place("equivariant", embedding, false, true));
            places.push(place("embedding", 2 * embedding, true, true));
        }
        MethodName::Sie => {
            places.push(place("invariant_half", h / 2, true, false));
            places.push(place("equivariant_half", h - h / 2, false, true));
            places.push(place("invariant", embedding, true, false));
            places.push(place("equivariant", embedding, false, true));
            places.push(place("embedding", 2 * embedding, true, true));
        }
        MethodName::CapsIe | MethodName::EquiCaps => {
            places.push(place("activations", capsules, true, true));
            places.push(place("poses", poses, true, true));
            places.push(place("embedding", capsules + poses, true, true));
        }
    }
    places
}
