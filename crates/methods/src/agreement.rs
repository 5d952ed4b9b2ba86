//! Do two devices train the same? Every method in every variant, on small networks of both backbones: loss, terms and
//! the whole gradient of one step, with the CPU as the measure. Parameters are moved away from their published start,
//! where some gradients are zero.

use engine::ops::Images;
use engine::{Device, Precision, Result, State};
use model::{BackboneConfig, ResNet18Config, VitConfig};
use pose::ViewPose;
use random::{Random, Stream};

use crate::batch::{PairBatch, PairTargets};
use crate::config::{LossConfig, MethodConfig, MethodName, PredictorName, Regularise, Task, Transform};
use crate::network::Network;

/// Pairs of a batch, and side of the images, of the small networks.
const PAIRS: usize = 6;
const SIDE: usize = 64;

/// How one variant of a method compares.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Agreement {
    /// Method, backbone and what is not as published.
    pub variant: String,
    /// The largest |difference| / max(|reference|, 0.1) of loss and terms.
    pub loss_error: f64,
    /// |difference| / |reference| of all gradients together.
    pub gradient_error: f64,
    /// Cosine of all gradients together.
    pub cosine: f64,
    /// Whether doing it twice gave the same bits.
    pub repeats: bool,
    /// Whether this is right.
    pub right: bool,
    /// What went wrong, where nothing could be compared.
    pub failure: Option<String>,
}

/// The variants: every method with both backbones; with every transformation it uses, task it has, and each inferred or
/// ablated setting on its own.
pub fn variants() -> Vec<(String, MethodConfig)> {
    let resnet = BackboneConfig::ResNet18(ResNet18Config { width: 16 });
    let vit = BackboneConfig::VitTiny(VitConfig { patch: 16, width: 128, depth: 2, heads: 2 });
    let mut all = Vec::new();
    for (backbone_name, backbone) in [("resnet18", resnet), ("vit_tiny", vit)] {
        for &method in MethodName::ALL {
            let base = MethodConfig {
                backbone,
                image_size: SIDE,
                batch: PAIRS,
                projector: vec![48, 48, 24],
                capsules: 8,
                classes: 7,
                ..MethodConfig::published(method)
            };
            let mut push = |what: &str, config: MethodConfig| {
                let gap = if what.is_empty() { "" } else { ", " };
                all.push((format!("{method} {backbone_name}{gap}{what}"), config));
            };
            push("", base.clone());
            for transform in [Transform::RotationObject, Transform::RotationBase] {
                if !matches!(method, MethodName::Supervised | MethodName::VicReg | MethodName::SimClr) {
                    push(transform.name(), MethodConfig { transform, ..base.clone() });
                }
            }
            for (what, config) in settings(&base) {
                push(what, config);
            }
        }
    }
    all
}

/// Settings other than the published ones.
fn settings(base: &MethodConfig) -> Vec<(&'static str, MethodConfig)> {
    let loss = |change: fn(&mut LossConfig)| {
        let mut config = base.clone();
        change(&mut config.loss);
        config
    };
    match base.method {
        MethodName::Supervised => [Task::Rotation, Task::Translation, Task::Colour]
            .map(|task| (task.name(), MethodConfig { task, ..base.clone() }))
            .to_vec(),
        MethodName::Sen | MethodName::EquiMod => vec![
            ("hypernetwork", MethodConfig { predictor: PredictorName::Hypernetwork, ..base.clone() }),
            ("two layers", MethodConfig { predictor_layers: 2, ..base.clone() }),
        ],
        MethodName::CapsIe => vec![
            ("3x3 poses", MethodConfig { pose_side: 3, ..base.clone() }),
            ("normalised poses", MethodConfig { normalise_poses: true, ..base.clone() }),
            ("without Vh(p)", loss(|loss| loss.predicted_variance = 0.0)),
            (
                "sharpened",
                loss(|loss| {
                    loss.sharpen_prediction = 0.5;
                    loss.sharpen_target = 0.25;
                }),
            ),
        ],
        MethodName::EquiCaps => vec![
            ("without invariance", loss(|loss| loss.invariance = 0.0)),
            ("without ME-MAX", loss(|loss| loss.mean_entropy = 0.0)),
            ("regularised poses", loss(|loss| loss.regularise = Regularise::Poses)),
            ("16 capsules", MethodConfig { capsules: 16, ..base.clone() }),
            ("64 capsules", MethodConfig { capsules: 64, ..base.clone() }),
        ],
        _ => Vec::new(),
    }
}

/// Compares every variant on `device` with the CPU.
pub fn compare(device: &Device) -> Vec<Agreement> {
    variants().into_iter().map(|(variant, config)| compare_variant(variant, &config, device)).collect()
}

fn compare_variant(variant: String, config: &MethodConfig, device: &Device) -> Agreement {
    let three = outcome(config, &Device::cpu()).and_then(|expected| {
        let first = outcome(config, device)?;
        Ok((expected, first, outcome(config, device)?))
    });
    let (expected, found, again) = match three {
        Ok(three) => three,
        Err(error) => {
            let (loss_error, gradient_error, failure) =
                (f64::INFINITY, f64::INFINITY, Some(error.to_string()));
            let cosine = f64::NAN;
            return Agreement {
                variant,
                loss_error,
                gradient_error,
                cosine,
                repeats: false,
                right: false,
                failure,
            };
        }
    };
    let pairs = found.numbers.iter().zip(&expected.numbers);
    let errors = pairs.map(|(f, e)| f64::from((f - e).abs()) / f64::from(e.abs()).max(0.1));
    let loss_error = errors.fold(0.0, |worst, error| if error <= worst { worst } else { error });
    let gradient_error = engine::agreement::relative_error(&found.gradient, &expected.gradient);
    let cosine = cosine(&found.gradient, &expected.gradient);
    let bits = |outcome: &Outcome| -> Vec<u32> { outcome.gradient.iter().map(|g| g.to_bits()).collect() };
    let repeats = found.numbers == again.numbers && bits(&found) == bits(&again);
    let close = match (device.precision(), config.backbone) {
        (Precision::F32, _) => loss_error < 1e-4 && gradient_error < 1e-3,
        // Batch norms over few numbers magnify what rounding does to small networks.
        (Precision::Bf16, BackboneConfig::ResNet18(_)) => loss_error < 0.02 && cosine > 0.85,
        (Precision::Bf16, BackboneConfig::VitTiny(_)) => loss_error < 0.05 && cosine > 0.97,
    };
    Agreement { variant, loss_error, gradient_error, cosine, repeats, right: repeats && close, failure: None }
}

/// The cosine of the gradients of EquiCaps' published network, at its start, on two devices: how much of its direction a
/// precision keeps.
pub fn published_cosine(
    backbone: BackboneConfig,
    (pairs, side): (usize, usize),
    devices: [&Device; 2],
) -> Result<f64> {
    let config = MethodConfig {
        backbone,
        image_size: side,
        batch: pairs,
        ..MethodConfig::published(MethodName::EquiCaps)
    };
    let gradient = |device: &Device| -> Result<Vec<f32>> {
        let mut network = Network::build(&config, device, 3)?;
        network.gradients(&batch(&config, device)?)?;
        let mut gradient = Vec::new();
        for id in network.store.parameters() {
            gradient.extend(network.store.export(State::Gradient, id)?);
        }
        Ok(gradient)
    };
    Ok(cosine(&gradient(devices[0])?, &gradient(devices[1])?))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

struct Outcome {
    /// Loss, then terms.
    numbers: Vec<f32>,
    gradient: Vec<f32>,
}

fn outcome(config: &MethodConfig, device: &Device) -> Result<Outcome> {
    let mut network = Network::build(config, device, 3)?;
    let ids: Vec<_> = network.store.parameters().collect();
    for (index, id) in ids.iter().enumerate() {
        let mut random = Random::new(3, Stream::new("agreement-parameters"), index as u64);
        let mut values = network.store.export(State::Value, *id)?;
        values.iter_mut().for_each(|value| *value += random.range(-0.05, 0.05) as f32);
        network.store.import(State::Value, *id, &values)?;
    }
    let report = network.gradients(&batch(config, device)?)?;
    let mut gradient = Vec::new();
    for id in ids {
        gradient.extend(network.store.export(State::Gradient, id)?);
    }
    let numbers = [report.loss].into_iter().chain(report.terms.iter().map(|(_, value)| *value)).collect();
    Ok(Outcome { numbers, gradient })
}

fn batch(config: &MethodConfig, device: &Device) -> Result<PairBatch> {
    let (pairs, side) = (config.batch, config.image_size);
    let view = |index| {
        let mut random = Random::new(3, Stream::new("agreement-images"), index);
        let bytes: Vec<u8> = (0..pairs * side * side * 3).map(|_| random.next_u32() as u8).collect();
        Images::from_bytes(device, [pairs, side, side], &bytes, [0.5; 3], [0.25; 3])
    };
    let mut random = Random::new(3, Stream::new("agreement-poses"), 0);
    let mut three = |bound: f64| std::array::from_fn(|_| random.range(-bound, bound));
    let mut pose = || ViewPose::published_precision(three(1.5), three(0.5));
    let poses: Vec<_> = (0..pairs).map(|_| [pose(), pose()]).collect();
    let labels: Vec<i32> = (0..pairs as i32).map(|label| label % 7).collect();
    let hues: Vec<[f32; 2]> = (0..pairs).map(|n| [0.1 * n as f32, 0.3 - 0.2 * n as f32]).collect();
    let targets = PairTargets::from_poses(device, config.transform, &poses)?;
    let targets = targets.with_labels(device, &labels)?.with_hues(device, &hues)?;
    Ok(PairBatch { views: [view(0)?, view(1)?], targets })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_runs_and_the_cpu_agrees_with_itself() {
        for agreement in compare(&Device::cpu()) {
            assert!(agreement.right && agreement.gradient_error == 0.0, "{agreement:?}");
        }
    }
}
