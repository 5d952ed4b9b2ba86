//! Retrieval metrics and kept features on a synthetic dataset, against float64 brute force and known answers.
#![allow(clippy::unwrap_used)]

mod synthetic;

use std::ops::Range;
use std::sync::Arc;

use dataset::{Split, Views};
use engine::Device;
use evaluate::features::{Extraction, extract};
use evaluate::prediction::{PoseMatrices, Transformation};
use evaluate::{Encoded, Encoder, Error, GroundTruth, Preset, Protocol, Result, Table, Widths, retrieval};
use pose::{Group, Part, ViewPose};
use random::{Random, Stream};
use synthetic::{items, synthetic};

/// Embeddings `P0(object) M(view)`, plus noise, with capsules of very different lengths; counts the images it has
/// seen.
struct Equivariant {
    truth: GroundTruth,
    layout: PoseMatrices,
    noise: f64,
    /// Whether all objects look the same.
    shared: bool,
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
            let look = if self.shared { 0 } else { object as u64 };
            let mut base_random = Random::new(1, Stream::new("base"), look);
            let mut random = Random::new(2, Stream::new("noise"), (object * 1000 + view) as u64);
            let base: Vec<f32> = (0..self.layout.width()).map(|_| base_random.normal() as f32).collect();
            let motion =
                self.layout.relative(&ViewPose::default(), &self.truth.poses[self.truth.row(object, view)]);
            let moved = self.layout.transform(&base, &motion);
            let noisy = moved.iter().map(|v| v + (self.noise * random.normal()) as f32);
            let length = |index: usize| [1.0, 30.0, 0.05, 4.0][index / self.layout.entries() % 4];
            encoded.equivariant.extend(noisy.enumerate().map(|(index, v)| v * length(index)));
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
        share: (0, 1),
    }
}

fn run(
    noise: f64,
    shared: bool,
    group: Group,
) -> (evaluate::results::Retrieval, evaluate::Features, Equivariant) {
    let views: Arc<dyn Views> = synthetic(6, 4, 3, 11, 5);
    let truth = GroundTruth::read(&*views);
    let layout = PoseMatrices { capsules: 4, group };
    let mut encoder = Equivariant { truth: truth.clone(), layout, noise, shared, seen: 0 };
    let features = extract(&mut encoder, &views, &extraction(None), |_| {}, &|| false).unwrap();
    let protocol = Protocol::new(Preset::Paper, 0, 100, 100);
    let found = retrieve(&mut encoder, &features.equivariant, &truth, &protocol);
    (found, features, encoder)
}

fn retrieve(
    encoder: &mut dyn Encoder,
    table: &Table,
    truth: &GroundTruth,
    protocol: &Protocol,
) -> evaluate::results::Retrieval {
    let transformation = encoder.transformation().unwrap();
    let device = Device::cpu();
    retrieval::evaluate(encoder, transformation, table, truth, protocol, &device, |_| {}, &|| false).unwrap()
}

#[test]
fn perfectly_equivariant_embeddings_score_perfectly() {
    for group in [Group::ROTATION, Group::ROTATION_OBJECT, Group::ROTATION_BASE, Group::ROTATION_4X4] {
        let (found, ..) = run(0.0, false, group);
        assert_eq!((found.train.mrr, found.val.mrr, found.val.h1), (1.0, 1.0, 1.0));
        assert_eq!((found.train.queries, found.val.queries), (66, 44));
        for (set, candidates) in [("train-train", 66), ("val-val", 44), ("val-all", 110)] {
            let error = found.pre[set];
            assert!(error.rotation < 1e-9 && error.candidates == candidates, "{set}: {error:?}");
            if group.has(Part::Translation) {
                assert!(error.translation.unwrap() < 1e-9);
            }
        }
    }
}

/// What a search over all pairs finds, in float64 and without blocks.
struct BruteForce<'a> {
    truth: &'a GroundTruth,
    rows: Vec<Vec<f64>>,
}

impl<'a> BruteForce<'a> {
    fn new(truth: &'a GroundTruth, table: &Table) -> Self {
        let row = |row: usize| table.row(row).iter().map(|&v| f64::from(v)).collect();
        Self { truth, rows: (0..table.rows()).map(row).collect() }
    }

    fn normalised(row: &[f64]) -> Vec<f64> {
        let norm = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
        let capsules: Vec<f64> =
            row.chunks(9).flat_map(|pose| pose.iter().map(move |v| v / norm(pose))).collect();
        capsules.iter().map(|v| v / norm(&capsules)).collect()
    }

    /// Sums of reciprocal ranks, hits at 1, 2, 5 and 10, and distances of rotation and translation over the views of
    /// the objects `queries`, with the views of `candidates` for the last two; and how many queries found a candidate
    /// of another object.
    fn sums(&self, queries: Range<usize>, candidates: Range<usize>) -> ([f64; 7], usize) {
        let (mut sums, mut elsewhere) = ([0.0; 7], 0);
        let rows: Vec<Vec<f64>> = self.rows.iter().map(|row| Self::normalised(row)).collect();
        for (object, view) in queries.flat_map(|object| (0..11).map(move |view| (object, view))) {
            let poses = self.truth.poses_of(Split::Train, object);
            let m = ViewPose::relative_rotation(&poses[0], &poses[view]).to_matrix();
            let moved: Vec<f64> = self.rows[object * 11]
                .chunks(9)
                .flat_map(|p| (0..9).map(|e| (0..3).map(|k| p[e / 3 * 3 + k] * m[k][e % 3]).sum()))
                .collect();
            let prediction = Self::normalised(&moved);
            let similarity = |row: usize| rows[row].iter().zip(&prediction).map(|(a, b)| a * b).sum::<f64>();
            let own = similarity(object * 11 + view);
            let rank = 1 + (0..11).filter(|&v| similarity(object * 11 + v) > own).count();
            sums[0] += 1.0 / rank as f64;
            for (sum, k) in sums[1..5].iter_mut().zip([1, 2, 5, 10]) {
                *sum += f64::from(u8::from(rank <= k));
            }
            let all = candidates.start * 11..candidates.end * 11;
            let best = all.max_by(|&a, &b| similarity(a).total_cmp(&similarity(b))).unwrap();
            let (found, target) = (&self.truth.poses[best], &poses[view]);
            sums[5] += pose::rotation_distance(found.quaternion(), target.quaternion());
            sums[6] += pose::translation_distance(found.translation, target.translation);
            elsewhere += usize::from(best / 11 != object);
        }
        (sums, elsewhere)
    }
}

#[test]
fn noisy_embeddings_agree_with_float64_brute_force() {
    for (noise, shared) in [(0.6, false), (0.3, true)] {
        let (found, features, encoder) = run(noise, shared, Group::ROTATION);
        let brute = BruteForce::new(&encoder.truth, &features.equivariant);
        let close = |found: f64, wanted: f64, what: &str| {
            assert!((found - wanted).abs() < 1e-9, "{what} (shared: {shared}): {found} {wanted}");
        };
        for (set, ranking, queries, candidates) in [
            ("train-train", &found.train, 0..6, 0..6),
            ("val-val", &found.val, 6..10, 6..10),
            ("val-all", &found.val, 6..10, 0..10),
        ] {
            let n = 11.0 * queries.len() as f64;
            let (sums, elsewhere) = brute.sums(queries, candidates);
            let [mrr, h1, h2, h5, h10, rotation, translation] = sums.map(|sum| sum / n);
            close(ranking.mrr, mrr, "mrr");
            close(ranking.h1, h1, "h1");
            close(ranking.h2, h2, "h2");
            close(ranking.h5, h5, "h5");
            close(ranking.h10, h10, "h10");
            close(found.pre[set].rotation, rotation, set);
            close(found.pre[set].translation.unwrap(), translation, set);
            assert!(mrr > 0.3 && mrr < 0.999, "the noise should matter: {mrr}");
            // Where all objects look the same, the nearest view is often another object's.
            assert!(!shared || elsewhere > 5, "{set}: {elsewhere}");
        }
    }
}

/// Embeddings that are the pose itself, quaternion and translation, and a predictor that knows how poses change.
struct Knowing {
    truth: GroundTruth,
    group: Group,
}

impl Knowing {
    fn table(&self) -> Table {
        let row = |pose: &ViewPose| -> Vec<f32> {
            let moved = self.group.frame.translation(pose.rotation, pose.translation);
            let values = pose.quaternion().to_array().into_iter().chain(moved).take(self.group.parameters());
            values.map(|value| value as f32).collect()
        };
        let width = self.group.parameters();
        Table { width, values: self.truth.poses.iter().flat_map(row).collect() }
    }
}

impl Encoder for Knowing {
    fn side(&self) -> usize {
        2
    }
    fn widths(&self) -> Widths {
        Widths { representation: 0, equivariant: Some(self.table().width), invariant: None }
    }
    fn encode(&mut self, _: &[u8], _: usize) -> Result<Encoded> {
        Err(Error::Request("no images".into()))
    }
    fn transformation(&self) -> Option<Transformation> {
        Some(Transformation::Predictor { group: self.group })
    }
    fn predict(&mut self, embeddings: &[f32], parameters: &[f32], count: usize) -> Result<Vec<f32>> {
        let width = embeddings.len() / count;
        assert_eq!((embeddings.len() % count, parameters.len()), (0, embeddings.len()));
        let pairs = embeddings.chunks(width).zip(parameters.chunks(width));
        let predicted = pairs.flat_map(|(from, z)| {
            let quaternion = |v: &[f32]| pose::Quaternion::from([v[0], v[1], v[2], v[3]].map(f64::from));
            let turned = (quaternion(from) * quaternion(z)).to_f32();
            let moved: Vec<f32> = from[4..].iter().zip(&z[4..]).map(|(a, b)| a + b).collect();
            // Predictions of any length compare alike.
            turned.into_iter().chain(moved).map(|value| 7.0 * value).collect::<Vec<_>>()
        });
        Ok(predicted.collect())
    }
}

#[test]
fn predictors_are_given_the_change_from_view_0_to_the_target() {
    let views: Arc<dyn Views> = synthetic(6, 4, 3, 11, 5);
    let truth = GroundTruth::read(&*views);
    for group in [Group::ROTATION, Group::ROTATION_OBJECT, Group::ROTATION_BASE] {
        let mut encoder = Knowing { truth: truth.clone(), group };
        let table = encoder.table();
        let protocol = Protocol::new(Preset::Paper, 0, 100, 100);
        let found = retrieve(&mut encoder, &table, &truth, &protocol);
        assert_eq!((found.train.mrr, found.val.mrr), (1.0, 1.0), "{group}");
        assert!(found.pre["val-all"].rotation < 1e-9, "{group}");
    }
}

#[test]
fn what_is_not_a_number_counts_as_the_worst() {
    let views: Arc<dyn Views> = synthetic(6, 4, 3, 11, 5);
    let mut truth = GroundTruth::read(&*views);
    let mut encoder = Knowing { truth: truth.clone(), group: Group::ROTATION };
    let table = Table { width: 4, values: vec![f32::NAN; 110 * 4] };
    let protocol = Protocol::new(Preset::Paper, 0, 100, 100);
    let found = retrieve(&mut encoder, &table, &truth, &protocol);
    assert!((found.val.mrr - 1.0 / 11.0).abs() < 1e-12 && found.val.h10 == 0.0, "{:?}", found.val);
    assert_eq!((found.pre["val-all"].rotation, found.pre["val-all"].translation), (1.0, Some(3.0)));
    // Without translations there is no error of them.
    truth.has[Part::Translation] = false;
    let found = retrieve(&mut encoder, &table, &truth, &protocol);
    assert!(found.pre.values().chain(found.pre_chance.values()).all(|error| error.translation.is_none()));
}

#[test]
fn the_ground_truth_is_that_of_every_view() {
    let views: Arc<dyn Views> = synthetic(2, 1, 2, 3, 5);
    let truth = GroundTruth::read(&*views);
    assert_eq!((truth.objects(), truth.index.most(), truth.classes, truth.train_objects), (3, 3, 2, 2));
    assert_eq!(truth.labels, [0, 1, 0]);
    for (row, (pose, hues)) in truth.poses.iter().zip(&truth.hues).enumerate() {
        let latents = views.latents(row / 3, row % 3);
        assert_eq!(*pose, ViewPose::published_precision(latents.rotation, latents.translation.unwrap()));
        assert_eq!(*hues, [latents.floor_hue, latents.spot_hue]);
    }
    assert_eq!(truth.poses.len(), 9);
}

#[test]
fn hits_count_up_to_their_rank() {
    let mut tally = retrieval::Tally::default();
    [1, 2, 3, 5, 6, 10, 11, 50].into_iter().for_each(|rank| tally.count(rank));
    let found = tally.finish();
    assert_eq!([found.h1, found.h2, found.h5, found.h10], [1.0, 2.0, 4.0, 6.0].map(|hits| hits / 8.0));
    assert_eq!(retrieval::ranks(&[f32::NAN, 0.5, 0.1, /**/ 0.2, 0.3, 0.1, /**/ 0.9, 0.9, 0.9], 3), [3, 1, 3]);
}

#[test]
fn queries_are_a_random_part_of_the_objects_where_there_are_many() {
    let views: Arc<dyn Views> = synthetic(60, 40, 3, 2, 9);
    let truth = GroundTruth::read(&*views);
    let chosen = |split, seed| {
        let protocol = Protocol { query_objects: Some(5), ..Protocol::new(Preset::Quick, seed, 100, 100) };
        retrieval::query_objects(&truth, split, &protocol)
    };
    let objects = chosen(Split::Val, 1);
    assert_eq!(objects.len(), 5);
    assert!(
        objects.windows(2).all(|pair| pair[0] < pair[1]) && objects.iter().all(|o| (60..100).contains(o))
    );
    assert_ne!(objects, [60, 61, 62, 63, 64]);
    assert_eq!(objects, chosen(Split::Val, 1));
    assert_ne!(objects, chosen(Split::Val, 2));
    assert!(chosen(Split::Train, 1).iter().all(|&object| object < 60));
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
    let mut truth = GroundTruth::read(&*views);
    let mut encoder = Knowing { truth: truth.clone(), group: Group::ROTATION };
    let table = encoder.table();
    let protocol = Protocol { query_objects: Some(3), ..Protocol::new(Preset::Quick, 1, 100, 100) };
    let found = retrieve(&mut encoder, &table, &truth, &protocol);
    let chance = found.pre_chance["val-all"];
    assert!((chance.rotation - 0.63).abs() < 0.02, "{chance:?}");
    assert!((chance.translation.unwrap() - 0.5).abs() < 0.02);
    assert_eq!(found.train.queries, 150);
    // Views all alike on each side of the split, half a turn between the sides: candidates are those of their set.
    let side = |row: usize| if row < 60 * 50 { 0.0 } else { std::f64::consts::PI };
    let turned = |row| ViewPose::published_precision([0.0, 0.0, side(row)], [0.0; 3]);
    truth.poses = (0..100 * 50).map(turned).collect();
    let found = retrieve(&mut encoder, &table, &truth, &protocol);
    let chance = ["train-train", "val-val", "val-all"].map(|set| found.pre_chance[set].rotation);
    assert!(chance[0] < 1e-9 && chance[1] < 1e-9 && (chance[2] - 0.6).abs() < 0.02, "{chance:?}");
}

#[test]
fn features_are_kept_resumed_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let views: Arc<dyn Views> = synthetic(70, 10, 3, 3, 5);
    let truth = GroundTruth::read(&*views);
    let layout = PoseMatrices { capsules: 2, group: Group::ROTATION };
    let mut encoder = Equivariant { truth, layout, noise: 0.1, shared: false, seen: 0 };
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
