//! Do two devices train the same? Every method in every variant, on small networks of both backbones: loss, terms and
//! the whole gradient of one step, with the CPU as the measure. Parameters are moved away from their published start,
//! where some gradients are zero.

use engine::ops::Images;
use engine::{Device, Precision, Result, State};
use model::VitConfig;
use pose::ViewPose;
use random::{Random, Stream};

use crate::batch::{PairBatch, PairTargets};
use crate::config::{BackboneName, MethodConfig, PoseNorm, PredictorName, Regularise, Task, Transform};
use crate::registry::MethodName;
use crate::step::{Step, StepOptions};

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
pub fn variants() -> Result<Vec<(String, MethodConfig)>> {
    let mut all = Vec::new();
    for &backbone in BackboneName::ALL {
        for method in MethodName::all() {
            let published = MethodConfig::published(method)?;
            let mut base = MethodConfig { backbone, image_size: SIDE, batch: PAIRS, classes: 7, ..published };
            base.network.width = 16;
            base.network.vit = VitConfig { patch: 16, width: 128, depth: 2, heads: 2 };
            base.network.projector = vec![48, 48, 24];
            base.network.capsules = 8;
            let mut push = |what: &str, config: MethodConfig| {
                let gap = if what.is_empty() { "" } else { ", " };
                all.push((format!("{method} {backbone}{gap}{what}"), config));
            };
            push("", base.clone());
            let affine = [pose::Group::ROTATION_4X4, pose::Group::AFFINE, pose::Group::IMAGE_HOMOGRAPHY];
            let published = [Transform::ROTATION_OBJECT, Transform::ROTATION_BASE];
            for transform in published.into_iter().chain(affine.map(Transform::from)) {
                if ![MethodName::SUPERVISED, MethodName::VICREG, MethodName::SIMCLR].contains(&method) {
                    push(transform.name(), MethodConfig { transform, ..base.clone() });
                }
            }
            for (what, config) in settings(&base) {
                push(what, config);
            }
        }
    }
    Ok(all)
}

/// Settings other than the published ones.
fn settings(base: &MethodConfig) -> Vec<(&'static str, MethodConfig)> {
    type Change = fn(&mut MethodConfig);
    let changes: &[(&str, Change)] = match base.name.name() {
        "supervised" => &[
            ("rotation", |config| config.network.task = Task::Rotation),
            ("translation", |config| config.network.task = Task::Translation),
            ("colour", |config| config.network.task = Task::Colour),
            ("shear", |config| {
                (config.transform, config.network.task) = (pose::Group::AFFINE.into(), Task::Shear);
            }),
        ],
        "sen" | "equimod" => &[
            ("hypernetwork", |config| config.network.predictor = PredictorName::Hypernetwork),
            ("two layers", |config| config.network.predictor_layers = 2),
        ],
        "capsie" => &[
            ("3x3 poses", |config| config.network.pose = 3),
            ("normalised poses", |config| config.network.normalise_poses = true),
            ("without Vh(p)", |config| config.loss.predicted_variance = 0.0),
            ("sharpened", |config| {
                config.loss.sharpen_prediction = 0.5;
                config.loss.sharpen_target = 0.25;
            }),
        ],
        "equicaps" => &[
            ("without invariance", |config| config.loss.invariance = 0.0),
            ("without ME-MAX", |config| config.loss.mean_entropy = 0.0),
            ("regularised poses", |config| config.loss.regularise = Regularise::Poses),
            ("4x4 poses, norm of the linear part", |config| {
                config.transform = pose::Group::AFFINE.into();
                config.loss.pose_norm = PoseNorm::Linear;
            }),
            ("16 capsules", |config| config.network.capsules = 16),
            ("64 capsules", |config| config.network.capsules = 64),
        ],
        _ => &[],
    };
    let changed = |&(what, change): &(&'static str, Change)| {
        let mut config = base.clone();
        change(&mut config);
        (what, config)
    };
    changes.iter().map(changed).collect()
}

/// Compares every variant on `device` with the CPU.
pub fn compare(device: &Device) -> Result<Vec<Agreement>> {
    Ok(variants()?.into_iter().map(|(variant, config)| compare_variant(variant, &config, device)).collect())
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
    let errors = pairs.map(|(f, e)| (f - e).abs() / e.abs().max(0.1));
    let loss_error = errors.fold(0.0, |worst, error| if error <= worst { worst } else { error });
    let gradient_error = engine::agreement::relative_error(&found.gradient, &expected.gradient);
    let cosine = cosine(&found.gradient, &expected.gradient);
    let bits = |outcome: &Outcome| -> Vec<u32> { outcome.gradient.iter().map(|g| g.to_bits()).collect() };
    let repeats = found.numbers == again.numbers && bits(&found) == bits(&again);
    let close = match (device.precision(), config.backbone) {
        (Precision::F32, _) => loss_error < 1e-4 && gradient_error < 1e-3,
        // Batch norms over few numbers magnify what rounding does to small networks.
        (Precision::Mixed, BackboneName::ResNet18) => loss_error < 0.02 && cosine > 0.85,
        (Precision::Mixed, BackboneName::VitTiny) => loss_error < 0.05 && cosine > 0.97,
    };
    Agreement { variant, loss_error, gradient_error, cosine, repeats, right: repeats && close, failure: None }
}

/// The cosine of the gradients of EquiCaps' published network, at its start, on two devices: how much of its direction a
/// precision keeps.
pub fn published_cosine(
    backbone: BackboneName,
    (pairs, side): (usize, usize),
    devices: [&Device; 2],
) -> Result<f64> {
    let config = MethodConfig {
        backbone,
        image_size: side,
        batch: pairs,
        ..MethodConfig::published(MethodName::EQUICAPS)?
    };
    let gradient = |device: &Device| -> Result<Vec<f32>> {
        let mut step = Step::new(&config, device, 3, StepOptions::default())?;
        step.gradients(&batch(&config, device)?)?;
        gradients(&step)
    };
    Ok(cosine(&gradient(devices[0])?, &gradient(devices[1])?))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

struct Outcome {
    /// Loss, then terms.
    numbers: Vec<f64>,
    gradient: Vec<f32>,
}

fn outcome(config: &MethodConfig, device: &Device) -> Result<Outcome> {
    let mut step = Step::new(config, device, 3, StepOptions::default())?;
    let store = &mut step.network_mut().store;
    let ids: Vec<_> = store.parameters().collect();
    for (index, id) in ids.into_iter().enumerate() {
        let mut random = Random::new(3, Stream::new("agreement-parameters"), index as u64);
        let mut values = store.export(State::Value, id)?;
        values.iter_mut().for_each(|value| *value += random.range(-0.05, 0.05) as f32);
        store.import(State::Value, id, &values)?;
    }
    let shown = step.gradients(&batch(config, device)?)?.read()?;
    let numbers = [shown.loss].into_iter().chain(shown.terms.iter().map(|(_, value)| *value)).collect();
    Ok(Outcome { numbers, gradient: gradients(&step)? })
}

/// All gradients, one after the other.
fn gradients(step: &Step) -> Result<Vec<f32>> {
    let store = &step.network().store;
    let mut all = Vec::new();
    for id in store.parameters() {
        all.extend(store.export(State::Gradient, id)?);
    }
    Ok(all)
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
    Ok(PairBatch { views: [view(0)?, view(1)?], targets, whole: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_runs_and_the_cpu_agrees_with_itself() {
        for agreement in compare(&Device::cpu()).unwrap() {
            assert!(agreement.right && agreement.gradient_error == 0.0, "{agreement:?}");
        }
    }
}
