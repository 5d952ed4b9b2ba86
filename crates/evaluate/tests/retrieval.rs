//! Retrieval metrics and kept features on a synthetic dataset, against float64 brute force and known answers.
#![allow(clippy::unwrap_used)]

mod synthetic;

use std::sync::Arc;

use dataset::{Split, Views};
use engine::Device;
use evaluate::features::{Extraction, extract};
use evaluate::prediction::{PoseMatrices, Transformation};
use evaluate::{Encoded, Encoder, Error, GroundTruth, Preset, Protocol, Result, Widths, retrieval};
use pose::{FrameKind, ViewPose};
use random::{Random, Stream};
use synthetic::{items, synthetic};

/// Embeddings `P0(object) M(view)`, plus noise; counts the pictures it has seen.
struct Equivariant {
    truth: GroundTruth,
    layout: PoseMatrices,
    noise: f64,
    seen: usize,
}

impl Encoder for Equivariant {
    fn side(&self) -> usize {
        2
    }
    fn widths(&self) -> Widths {
        Widths { representation: 3, equivariant: Some(self.layout.width()), invariant: None }
    }
    fn encode(&mut self, pixels: &[u8], count: usize) -> Result<Encoded> {
        self.seen += count;
        let mut encoded = Encoded::default();
        for (object, view) in items(pixels) {
            let base = Random::new(1, Stream::new("base"), object as u64);
            let mut random = Random::new(2, Stream::new("noise"), (object * 1000 + view) as u64);
            let mut base_random = base;
            let base: Vec<f32> = (0..self.layout.width()).map(|_| base_random.normal() as f32).collect();
            let motion = self.layout.relative(&ViewPose::default(), &self.truth.poses_of(object)[view]);
            let moved = self.layout.transform(&base, &motion);
            encoded.equivariant.extend(moved.iter().map(|v| v + (self.noise * random.normal()) as f32));
            encoded.representation.extend([object as f32, view as f32, 1.0]);
        }
        Ok(encoded)
    }
    fn transformation(&self) -> Option<Transformation> {
        Some(Transformation::PoseMatrices(self.layout))
    }
    fn predict(&mut self, _: &[f32], _: &[f32], _: usize) -> Result<Vec<f32>> {
        Err(Error::Request("no predictor".into()))
    }
}

fn extraction(cache: Option<&std::path::Path>) -> Extraction {
    Extraction {
        cache: cache.map(Into::into),
        weights_key: "weights".into(),
        data_key: "data".into(),
        kind: "2".into(),
        batch: 7,
        workers: 2,
    }
}

fn run(
    noise: f64,
    size: usize,
    frame: FrameKind,
) -> (evaluate::results::Retrieval, evaluate::Features, Equivariant) {
    let views: Arc<dyn Views> = synthetic(6, 4, 3, 11, 5);
    let truth = GroundTruth::read(&*views);
    let layout = PoseMatrices { capsules: 4, size, frame };
    let mut encoder = Equivariant { truth: truth.clone(), layout, noise, seen: 0 };
    let features = extract(&mut encoder, &views, &extraction(None), |_| {}, &|| false).unwrap();
    let transformation = encoder.transformation().unwrap();
    let protocol = Protocol::new(Preset::Paper, 0, 100);
    let table = features.equivariant.clone();
    let found = retrieval::evaluate(
        &mut encoder,
        transformation,
        &table,
        &truth,
        &protocol,
        &Device::cpu(),
        |_| {},
        &|| false,
    )
    .unwrap();
    (found, features, encoder)
}

#[test]
fn perfectly_equivariant_embeddings_score_perfectly() {
    for (size, frame) in [(3, FrameKind::Object), (4, FrameKind::Object), (4, FrameKind::Base)] {
        let (found, ..) = run(0.0, size, frame);
        assert_eq!((found.train.mrr, found.val.mrr, found.val.h1), (1.0, 1.0, 1.0));
        assert_eq!((found.train.queries, found.val.queries), (66, 44));
        for (set, candidates) in [("train-train", 66), ("val-val", 44), ("val-all", 110)] {
            let error = found.pre[set];
            assert!(error.rotation < 1e-9 && error.candidates == candidates, "{set}: {error:?}");
            if size == 4 {
                assert!(error.translation.unwrap() < 1e-9);
            }
        }
    }
}

#[test]
fn noisy_embeddings_agree_with_float64_brute_force() {
    let (found, features, encoder) = run(0.6, 3, FrameKind::Object);
    let truth = &encoder.truth;
    let (mut reciprocal, mut hits5, mut rotation, mut translation) = (0.0, 0.0, 0.0, 0.0);
    let normalise = |row: &[f64]| -> Vec<f64> {
        let per_capsule: Vec<f64> = row
            .chunks(9)
            .flat_map(|pose| {
                let norm = pose.iter().map(|v| v * v).sum::<f64>().sqrt();
                pose.iter().map(move |v| v / norm).collect::<Vec<_>>()
            })
            .collect();
        let norm = per_capsule.iter().map(|v| v * v).sum::<f64>().sqrt();
        per_capsule.iter().map(|v| v / norm).collect()
    };
    let raw = |row: usize| features.equivariant.row(row).iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    let queries: Vec<(usize, usize)> =
        truth.split(Split::Val).flat_map(|object| (0..11).map(move |view| (object, view))).collect();
    for &(object, view) in &queries {
        let poses = truth.poses_of(object);
        let m = ViewPose::relative_rotation(&poses[0], &poses[view]).to_matrix();
        let source = raw(object * 11);
        let moved: Vec<f64> = source
            .chunks(9)
            .flat_map(|p| {
                (0..9).map(|e| (0..3).map(|k| p[e / 3 * 3 + k] * m[k][e % 3]).sum()).collect::<Vec<f64>>()
            })
            .collect();
        let prediction = normalise(&moved);
        let similarity =
            |row: usize| normalise(&raw(row)).iter().zip(&prediction).map(|(a, b)| a * b).sum::<f64>();
        let own = similarity(object * 11 + view);
        let rank = 1 + (0..11).filter(|&v| similarity(object * 11 + v) > own).count();
        reciprocal += 1.0 / rank as f64;
        hits5 += f64::from(u8::from(rank <= 5));
        let best = (0..110).max_by(|&a, &b| similarity(a).total_cmp(&similarity(b))).unwrap();
        let target = &poses[view];
        rotation += pose::rotation_distance(truth.poses[best].quaternion(), target.quaternion());
        translation += pose::translation_distance(truth.poses[best].translation, target.translation);
    }
    let n = queries.len() as f64;
    assert!((found.val.mrr - reciprocal / n).abs() < 1e-9, "{} {}", found.val.mrr, reciprocal / n);
    assert!((found.val.h5 - hits5 / n).abs() < 1e-9);
    assert!((found.pre["val-all"].rotation - rotation / n).abs() < 1e-9);
    assert!((found.pre["val-all"].translation.unwrap() - translation / n).abs() < 1e-9);
    assert!(found.val.mrr > 0.4 && found.val.mrr < 0.999, "the noise should matter: {}", found.val.mrr);
}

#[test]
fn embeddings_that_ignore_the_view_score_at_chance() {
    let mut tally = retrieval::Tally::default();
    retrieval::ranks(&[0.5; 2500], 50).into_iter().for_each(|rank| tally.count(rank));
    let (found, chance) = (tally.finish(), retrieval::chance_ranking(50));
    assert!((found.mrr - chance.mrr).abs() < 1e-12 && (chance.mrr - 0.08998).abs() < 1e-4);
    assert_eq!((found.h1, found.h5), (0.02, 0.1));
    // By hand: the target 1 has rank 2, the target 0 has rank 1.
    let mut tally = retrieval::Tally::default();
    retrieval::ranks(&[0.9, 0.1, /**/ 0.8, 0.3], 2).into_iter().for_each(|rank| tally.count(rank));
    assert_eq!(tally.finish().mrr, 0.75);
}

#[test]
fn chance_levels_are_those_of_the_angle_distribution() {
    let views: Arc<dyn Views> = synthetic(60, 40, 3, 50, 9);
    let truth = GroundTruth::read(&*views);
    let layout = PoseMatrices { capsules: 1, size: 3, frame: FrameKind::Object };
    let mut encoder = Equivariant { truth: truth.clone(), layout, noise: 0.0, seen: 0 };
    let features = extract(&mut encoder, &views, &extraction(None), |_| {}, &|| false).unwrap();
    let protocol = Protocol { query_objects: 3, ..Protocol::new(Preset::Quick, 1, 100) };
    let transformation = encoder.transformation().unwrap();
    let found = retrieval::evaluate(
        &mut encoder,
        transformation,
        &features.equivariant,
        &truth,
        &protocol,
        &Device::cpu(),
        |_| {},
        &|| false,
    )
    .unwrap();
    let chance = found.pre_chance["val-all"];
    assert!((chance.rotation - 0.63).abs() < 0.02, "{chance:?}");
    assert!((chance.translation.unwrap() - 0.5).abs() < 0.02);
    assert_eq!(found.train.queries, 150);
}

#[test]
fn features_are_kept_resumed_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let views: Arc<dyn Views> = synthetic(70, 10, 3, 3, 5);
    let truth = GroundTruth::read(&*views);
    let layout = PoseMatrices { capsules: 2, size: 3, frame: FrameKind::Object };
    let mut encoder = Equivariant { truth, layout, noise: 0.1, seen: 0 };
    let plain = extract(&mut encoder, &views, &extraction(None), |_| {}, &|| false).unwrap();
    assert_eq!(encoder.seen, 240);
    let kept = extraction(Some(folder.path()));
    // Stopped after the first part (32 objects), then taken up again.
    let calls = std::cell::Cell::new(0);
    let stop = || {
        calls.set(calls.get() + 1);
        calls.get() > 16
    };
    encoder.seen = 0;
    assert!(matches!(extract(&mut encoder, &views, &kept, |_| {}, &stop), Err(Error::Interrupted)));
    encoder.seen = 0;
    let mut told = 0;
    let resumed = extract(&mut encoder, &views, &kept, |done| told += done, &|| false).unwrap();
    assert_eq!((resumed == plain, encoder.seen, told), (true, 240 - 96, 240));
    encoder.seen = 0;
    assert!(extract(&mut encoder, &views, &kept, |_| {}, &|| false).unwrap() == plain);
    assert_eq!(encoder.seen, 0);
    // A damaged part is computed again; other weights share nothing.
    let part =
        std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path().join("part-000001.bin");
    let mut bytes = std::fs::read(&part).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    assert!(extract(&mut encoder, &views, &kept, |_| {}, &|| false).unwrap() == plain);
    assert_eq!(encoder.seen, 96);
    let other = Extraction { weights_key: "other".into(), ..kept };
    extract(&mut encoder, &views, &other, |_| {}, &|| false).unwrap();
    assert_eq!(encoder.seen, 96 + 240);
}
