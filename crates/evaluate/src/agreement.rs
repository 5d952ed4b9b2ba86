//! The same evaluation on a device and on the CPU, on made-up features that carry some information: what
//! `equicaps check evaluate` shows.
//!
//! After a few steps the two must agree to rounding. After many, rounding has grown, as it does in any training: then
//! only the values that are reported must agree.

use dataset::ViewIndex;
use engine::Device;
use pose::{Group, ViewPose};
use random::{Random, Stream};
use serde::Serialize;

use crate::encoder::{Encoded, Encoder, Widths};
use crate::error::Result;
use crate::feature_table::FeatureTable;
use crate::features::Table;
use crate::ground_truth::GroundTruth;
use crate::prediction::{PoseMatrices, Transformation};
use crate::protocol::{Preset, Protocol, Task};
use crate::results::{ProbeResult, Retrieval};
use crate::{probe, retrieval};

/// One value from both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// What was measured.
    pub what: String,
    /// By the CPU.
    pub cpu: f64,
    /// By the device.
    pub device: f64,
    /// The largest difference that is right.
    pub bound: f64,
    /// Whether the device gave the same bits twice.
    pub repeats: bool,
}

impl Agreement {
    /// Whether the two agree.
    pub fn is_right(&self) -> bool {
        self.repeats && (self.cpu - self.device).abs() <= self.bound
    }
}

/// Objects and views of the made-up set: odd numbers, so that blocks are never full.
const TRAIN: usize = 150;
const VAL: usize = 61;
const VIEWS: usize = 7;
const CLASSES: usize = 5;
const SEED: u64 = 11;

/// Poses, hues and classes at random: for checks and for measuring speed.
pub fn random_truth(train: usize, val: usize, views: usize, classes: usize) -> GroundTruth {
    use rayon::prelude::*;
    let half = std::f64::consts::FRAC_PI_2;
    let (poses, hues) = (0..(train + val) * views)
        .into_par_iter()
        .map(|row| {
            let mut random = Random::new(SEED, Stream::new("agreement-truth"), row as u64);
            let angles = [0; 3].map(|_| random.range(-half, half));
            let translation = [0; 3].map(|_| random.range(-0.5, 0.5));
            let pose = ViewPose::published_precision(angles, translation);
            (pose, [random.uniform(), random.uniform()])
        })
        .unzip();
    GroundTruth {
        index: ViewIndex::equal(train + val, views, 0),
        has_poses: true,
        has_hues: true,
        poses,
        hues,
        labels: (0..train + val).map(|object| (object % classes) as u32).collect(),
        classes,
        space: pose::Space::Object,
        has: pose::PerPart([true, true, false, false, false]),
        train_objects: train,
    }
}

/// Features with some information about pose, hues and class, the rest noise.
fn features(truth: &GroundTruth, width: usize) -> Table {
    let mut values = Vec::with_capacity(truth.poses.len() * width);
    for (row, pose) in truth.poses.iter().enumerate() {
        let mut random = Random::new(SEED, Stream::new("agreement-features"), row as u64);
        let mut features: Vec<f32> = (0..width).map(|_| random.normal() as f32).collect();
        features[..4].copy_from_slice(&pose.quaternion().to_f32());
        for k in 0..3 {
            features[4 + k] = pose.translation[k] as f32 * 3.0;
        }
        features[7] = truth.hues[row][0] as f32;
        features[8] = truth.hues[row][1] as f32;
        features[9 + truth.labels[truth.item(row).0] as usize] += 4.0;
        values.extend(features);
    }
    Table { width, values }
}

/// Pose matrices that follow their views, plus noise.
fn poses(truth: &GroundTruth, layout: PoseMatrices, noise: f64) -> Table {
    let mut values = Vec::new();
    for row in 0..truth.poses.len() {
        let mut base = Random::new(SEED, Stream::new("agreement-base"), truth.item(row).0 as u64);
        let base: Vec<f32> = (0..layout.width()).map(|_| base.normal() as f32).collect();
        let mut random = Random::new(SEED, Stream::new("agreement-noise"), row as u64);
        let moved = layout.transform(&base, &layout.relative(&ViewPose::default(), &truth.poses[row]));
        values.extend(moved.iter().map(|value| value + (noise * random.normal()) as f32));
    }
    Table { width: layout.width(), values }
}

/// Stands for a network: its predictor turns neighbouring pairs of numbers by an angle that depends on the parameters.
#[derive(Debug)]
pub struct MadeUp {
    /// What it claims to be.
    pub transformation: Transformation,
    /// Width of its embedding.
    pub width: usize,
}

impl Encoder for MadeUp {
    fn side(&self) -> usize {
        1
    }
    fn widths(&self) -> Widths {
        Widths { representation: 1, equivariant: Some(self.width), invariant: None }
    }
    fn encode(&mut self, _: &[u8], _: usize) -> Result<Encoded> {
        Ok(Encoded::default())
    }
    fn transformation(&self) -> Option<Transformation> {
        Some(self.transformation)
    }
    fn predict(&mut self, embeddings: &[f32], parameters: &[f32], count: usize) -> Result<Vec<f32>> {
        let z = parameters.len() / count.max(1);
        let rows = embeddings.chunks_exact(self.width).zip(parameters.chunks_exact(z.max(1)));
        Ok(rows
            .flat_map(|(row, parameters)| {
                let (sin, cos) = parameters[0].sin_cos();
                let pairs = row.chunks(2);
                pairs.flat_map(move |pair| match pair {
                    [a, b] => vec![cos * a - sin * b, sin * a + cos * b],
                    other => other.to_vec(),
                })
            })
            .collect())
    }
}

/// Compares `device` with the CPU. `progress` is called for every value.
pub fn compare(device: &Device, mut progress: impl FnMut(&Agreement)) -> Result<Vec<Agreement>> {
    let cpu = Device::cpu();
    let truth = random_truth(TRAIN, VAL, VIEWS, CLASSES);
    let mut all = Vec::new();
    for (width, epochs, hidden, bound) in
        [(24, 1, 48, 2e-5), (33, 1, 20, 2e-5), (24, 40, 48, 0.02), (24, 1, 1024, 2e-5)]
    {
        let table = features(&truth, width);
        let protocol = Protocol {
            epochs,
            colour_epochs: epochs,
            batch: 32,
            hidden,
            passes: 2,
            ..Protocol::new(Preset::Paper, SEED, 1024.max(TRAIN), 1024)
        };
        let run = |device: &Device| probes(&table, &truth, &protocol, device);
        let (wanted, found, again) = (run(&cpu)?, run(device)?, run(device)?);
        for ((task, wanted), (_, found_task)) in wanted.iter().zip(&found) {
            let loss = |result: &ProbeResult| result.curve.last().map_or(0.0, |point| point.1);
            // One held-out sample more or less of one pass.
            let one = if *task == Task::Classification { 1.01 / VAL as f64 } else { 0.0 };
            for (kind, cpu, device, bound) in [
                ("value", wanted.value.value, found_task.value.value, f64::max(bound, one)),
                ("loss", loss(wanted), loss(found_task), bound),
            ] {
                let what = format!("{task} probe, {width} numbers, hidden {hidden}, {epochs} epochs: {kind}");
                let agreement = Agreement { what, cpu, device, bound, repeats: found == again };
                progress(&agreement);
                all.push(agreement);
            }
        }
    }
    for (name, transformation, table) in searches(&truth) {
        let protocol = Protocol::new(Preset::Paper, SEED, 1024.max(TRAIN), 1024);
        let run = |device: &Device| {
            let mut encoder = MadeUp { transformation, width: table.width };
            retrieval::evaluate(
                &mut encoder,
                transformation,
                &table,
                &truth,
                &protocol,
                device,
                |_| {},
                &|| false,
            )
        };
        let (wanted, found, again) = (run(&cpu)?, run(device)?, run(device)?);
        for ((kind, cpu), (_, device)) in metrics(&wanted).into_iter().zip(metrics(&found)) {
            let agreement = Agreement {
                what: format!("{name}: {kind}"),
                cpu,
                device,
                bound: 1e-3,
                repeats: found == again,
            };
            progress(&agreement);
            all.push(agreement);
        }
    }
    Ok(all)
}

/// All probes, in their groups.
fn probes(
    table: &Table,
    truth: &GroundTruth,
    protocol: &Protocol,
    device: &Device,
) -> Result<Vec<(Task, ProbeResult)>> {
    let table = FeatureTable::new(table, device)?;
    let mut found = std::collections::BTreeMap::new();
    for group in probe::groups(&Task::PUBLISHED) {
        found.extend(probe::run_group(&group, &table, device, truth, protocol, |_| {}, &|| false)?);
    }
    Ok(found.into_iter().collect())
}

/// Embeddings to be searched, with what they are.
fn searches(truth: &GroundTruth) -> Vec<(&'static str, Transformation, Table)> {
    let layout = |capsules, group| PoseMatrices { capsules, group };
    let (small, large) = (layout(5, Group::ROTATION), layout(32, Group::ROTATION_OBJECT));
    vec![
        ("5 rotations", Transformation::PoseMatrices(small), poses(truth, small, 0.7)),
        ("32 motions", Transformation::PoseMatrices(large), poses(truth, large, 2.0)),
        ("a predictor", Transformation::Predictor { group: Group::ROTATION }, features(truth, 30)),
    ]
}

fn metrics(found: &Retrieval) -> Vec<(String, f64)> {
    let mut all = vec![
        ("MRR train".to_owned(), found.train.mrr),
        ("MRR val".to_owned(), found.val.mrr),
        ("H@1 val".to_owned(), found.val.h1),
        ("H@5 train".to_owned(), found.train.h5),
    ];
    for (set, error) in &found.pre {
        all.push((format!("PRE rotation {set}"), error.rotation));
        all.extend(error.translation.map(|translation| (format!("PRE translation {set}"), translation)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees_with_itself_on_values_that_mean_something() {
        let all = compare(&Device::cpu(), |_| {}).unwrap();
        assert!(all.len() > 50 && all.iter().all(Agreement::is_right));
        let value = |what: &str| all.iter().find(|a| a.what.contains(what)).unwrap().cpu;
        assert!(value("rotation probe, 24 numbers, hidden 48, 40 epochs: value") > 0.4);
        assert!(value("5 rotations: MRR val") > 0.4 && value("5 rotations: MRR val") < 0.95);
        assert!(value("32 motions: PRE rotation val-all") < 0.5);
    }
}
