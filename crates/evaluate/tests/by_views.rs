//! An evaluation whose split holds out views: probes and retrieval keep to the views of their side.
#![allow(clippy::unwrap_used)]

mod synthetic;

use std::sync::Arc;

use dataset::{SplitBy, Views};
use engine::Device;
use evaluate::evaluation::{self, DataSource, Wanted};
use evaluate::features::Extraction;
use evaluate::prediction::{PoseMatrices, Transformation};
use evaluate::protocol::Task;
use evaluate::{Encoded, Encoder, Error, GroundTruth, Preset, Protocol, Result, Widths};
use pose::{Group, ViewPose};
use random::{Random, Stream};
use synthetic::{by_views, items};

const OBJECTS: usize = 40;
const VIEWS: usize = 12;
const HELD_OUT: usize = 5;
const LAYOUT: PoseMatrices = PoseMatrices { capsules: 2, group: Group::ROTATION };

/// Knows the pose of every view up to a turn of its object that is its own: nothing that is common to objects, as in a
/// collection without a common front. Of views beyond `knows` it says nothing, nor of the object `blind_to`.
struct Unaligned {
    truth: GroundTruth,
    knows: usize,
    blind_to: Option<usize>,
}

impl Encoder for Unaligned {
    fn side(&self) -> usize {
        2
    }
    fn widths(&self) -> Widths {
        Widths { representation: 4 + OBJECTS, equivariant: Some(LAYOUT.width()), invariant: None }
    }
    fn encode(&mut self, pixels: &[u8], _: usize) -> Result<Encoded> {
        let mut encoded = Encoded::default();
        for (object, view) in items(pixels) {
            let knows = view < self.knows && self.blind_to != Some(object);
            let pose = &self.truth.poses[self.truth.row(object, view)];
            let mut base = Random::new(1, Stream::new("base"), object as u64);
            let base: Vec<f32> = (0..LAYOUT.width()).map(|_| base.normal() as f32).collect();
            let motion = LAYOUT.relative(&ViewPose::default(), pose);
            let mut random = Random::new(2, Stream::new("noise"), (object * 1000 + view) as u64);
            let noise: Vec<f32> = (0..LAYOUT.width()).map(|_| random.normal() as f32).collect();
            encoded.equivariant.extend(if knows { LAYOUT.transform(&base, &motion) } else { noise });
            let quaternion = if knows { pose.quaternion().to_f32() } else { [0.0; 4] };
            encoded.representation.extend(quaternion);
            encoded.representation.extend((0..OBJECTS).map(|other| f32::from(u8::from(other == object))));
        }
        Ok(encoded)
    }
    fn transformation(&self) -> Option<Transformation> {
        Some(Transformation::PoseMatrices(LAYOUT))
    }
    fn predict(&mut self, _: &[f32], _: &[f32], _: usize) -> Result<Vec<f32>> {
        Err(Error::Request("no predictor".into()))
    }
}

fn evaluate(knows: usize) -> evaluation::Outcome {
    evaluate_on(knows, None, &[3])
}

/// Evaluates on a dataset of the first of `seeds`, and with its probes on those of the others, whose views look as if they
/// were of the first.
fn evaluate_on(knows: usize, blind_to: Option<usize>, seeds: &[u64]) -> evaluation::Outcome {
    let all: Vec<Arc<dyn Views>> =
        seeds.iter().map(|&seed| by_views(OBJECTS, 4, VIEWS, HELD_OUT, seed) as Arc<dyn Views>).collect();
    let data: Vec<DataSource<'_>> =
        all.iter().map(|views| DataSource { views, path: "synthetic", key: "data" }).collect();
    let views = &all[0];
    let truth = GroundTruth::read(&**views);
    let wanted = Wanted { probes: vec![Task::Classification, Task::Rotation], ..Wanted::everything() };
    let protocol = Protocol {
        epochs: 60,
        samples_per_object: 16,
        hidden: 64,
        ..Protocol::new(Preset::Quick, 0, OBJECTS, OBJECTS)
    };
    let extraction = Extraction {
        cache: None,
        weights_key: "weights".into(),
        data_key: "data".into(),
        kind: "2".into(),
        batch: 7,
        workers: 2,
        share: (0, 1),
    };
    let mut encoder = Unaligned { truth, knows, blind_to };
    let device = Device::cpu();
    let subject = Default::default();
    evaluation::run(&mut encoder, subject, &data, &wanted, &protocol, &extraction, &device, |_| {}, &|| false)
        .unwrap()
}

#[test]
fn probes_and_retrieval_are_on_the_held_out_views_of_all_objects() {
    let results = evaluate(VIEWS).results;
    let data = &results.data;
    assert_eq!(
        (data.split, data.train_objects, data.val_objects, data.views, data.held_out_views),
        (SplitBy::Views, OBJECTS, OBJECTS, VIEWS, HELD_OUT)
    );
    // Every object is known: its class can be told from what it is.
    assert!(results.representations[&Task::Classification].value.value > 0.95, "{results:?}");
    assert!(results.representations[&Task::Rotation].value.value > 0.8, "{results:?}");
    let found = results.retrieval.unwrap();
    assert_eq!((found.train.mrr, found.val.mrr), (1.0, 1.0));
    assert_eq!((found.train.queries, found.val.queries), (OBJECTS * (VIEWS - HELD_OUT), OBJECTS * HELD_OUT));
    let candidates = ["train-train", "val-val", "val-all"].map(|set| found.pre[set].candidates);
    assert_eq!(candidates, [OBJECTS * (VIEWS - HELD_OUT), OBJECTS * HELD_OUT, OBJECTS * VIEWS]);
    assert!(found.pre.values().all(|error| error.rotation < 1e-9), "{:?}", found.pre);
    // By chance the target is one of five held-out views, or of seven others.
    let mean = |views: usize| (1..=views).map(|rank| 1.0 / rank as f64).sum::<f64>() / views as f64;
    assert!((found.chance.mrr - mean(HELD_OUT)).abs() < 1e-12);
    assert!((found.chance_train.unwrap().mrr - mean(VIEWS - HELD_OUT)).abs() < 1e-12);
}

#[test]
fn a_network_that_knows_only_its_training_views_is_at_the_floor() {
    let results = evaluate(VIEWS - HELD_OUT).results;
    let rotation = &results.representations[&Task::Rotation];
    assert!(rotation.value.value < rotation.floor + 0.05, "{rotation:?}");
    let found = results.retrieval.unwrap();
    assert_eq!(found.train.mrr, 1.0);
    assert!(found.val.mrr < found.chance.mrr + 0.12, "{:?}", found.val);
    assert!(found.pre["val-val"].rotation > 0.2, "{:?}", found.pre);
}

#[test]
fn an_object_whose_pose_cannot_be_told_is_the_worst_of_all() {
    let results = evaluate_on(VIEWS, Some(7), &[3]).results;
    let scores = &results.by_object;
    assert_eq!(scores.0.len(), OBJECTS);
    let worst = scores.worst_first();
    assert_eq!(worst[0].name, "00000003/o7");
    assert!(worst[0].rotation_r2 < Some(0.5) && worst[1].rotation_r2 > Some(0.5), "{:?}", &worst[..2]);
    assert!(worst[0].mrr < Some(0.9) && worst[1..].iter().all(|score| score.mrr == Some(1.0)));
    assert!(worst[0].rotation_error > worst[OBJECTS - 1].rotation_error);
    // The mean over objects is the value of all: up to the spread of the passes, over whose values it is the mean.
    let mean = scores.0.iter().filter_map(|score| score.rotation_r2).sum::<f64>() / OBJECTS as f64;
    let rotation = &results.representations[&Task::Rotation].value;
    assert!((mean - rotation.value).abs() < rotation.spread, "{mean} {rotation:?}");
    let classes = &results.by_class.0;
    assert_eq!(classes.iter().map(|class| class.objects).collect::<Vec<_>>(), [10; 4]);
    assert_eq!(results.by_class.worst_first()[0].name, "class 3");
    // Files keep it.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    results.write(&file).unwrap();
    let again = evaluate::Results::read(&file).unwrap();
    assert_eq!(again.by_object.worst_first()[0].name, worst[0].name);
    let close = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-4;
    let all = again.by_object.0.iter().zip(&scores.0);
    assert!(all.into_iter().all(|(a, b)| a.name == b.name && close(a.rotation_r2, b.rotation_r2)));
}

#[test]
fn probes_of_one_dataset_are_tested_on_others() {
    let results = evaluate_on(VIEWS, None, &[3, 3, 8]).results;
    let [same, other] = &results.also[..] else { panic!("{} others", results.also.len()) };
    // The same data give the same numbers: nothing was trained on them again.
    for (also, first) in
        [(&same.representations, &results.representations), (&same.embeddings, &results.embeddings)]
    {
        assert_eq!(also.keys().collect::<Vec<_>>(), first.keys().collect::<Vec<_>>());
        for (task, result) in also {
            assert_eq!((result.value, result.floor), (first[task].value, first[task].floor), "{task}");
            assert!(result.curve.is_empty());
        }
    }
    assert_eq!(same.retrieval.as_ref().unwrap().val, results.retrieval.as_ref().unwrap().val);
    // Other poses than those that the features tell of.
    let rotation = &other.representations[&Task::Rotation];
    assert!(rotation.value.value < rotation.floor, "{rotation:?}");
    assert!(other.representations[&Task::Classification].value.value > 0.95);
    assert!(other.retrieval.as_ref().unwrap().val.mrr < 0.7);
}
