//! An evaluation whose split holds out views: probes and retrieval keep to the views of their side.
#![allow(clippy::unwrap_used)]

mod synthetic;

use std::sync::Arc;

use dataset::{SplitBy, Views};
use engine::Device;
use evaluate::evaluation::{self, Wanted};
use evaluate::features::Extraction;
use evaluate::prediction::{PoseMatrices, Transformation};
use evaluate::protocol::Task;
use evaluate::{Encoded, Encoder, Error, GroundTruth, Preset, Protocol, Result, Widths};
use pose::{FrameKind, ViewPose};
use random::{Random, Stream};
use synthetic::{by_views, items};

const OBJECTS: usize = 40;
const VIEWS: usize = 12;
const HELD_OUT: usize = 5;
const LAYOUT: PoseMatrices = PoseMatrices { capsules: 2, size: 3, frame: FrameKind::Object };

/// Knows the pose of every view up to a turn of its object that is its own: nothing that is common to objects, as in a
/// collection without a common front. Of views beyond `knows` it says nothing.
struct Unaligned {
    truth: GroundTruth,
    knows: usize,
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
            let pose = &self.truth.poses[self.truth.row(object, view)];
            let mut base = Random::new(1, Stream::new("base"), object as u64);
            let base: Vec<f32> = (0..LAYOUT.width()).map(|_| base.normal() as f32).collect();
            let motion = LAYOUT.relative(&ViewPose::default(), pose);
            let mut random = Random::new(2, Stream::new("noise"), (object * 1000 + view) as u64);
            let noise: Vec<f32> = (0..LAYOUT.width()).map(|_| random.normal() as f32).collect();
            encoded.equivariant.extend(if view < self.knows {
                LAYOUT.transform(&base, &motion)
            } else {
                noise
            });
            let quaternion = if view < self.knows { pose.quaternion().to_f32() } else { [0.0; 4] };
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
    let views: Arc<dyn Views> = by_views(OBJECTS, 4, VIEWS, HELD_OUT, 3);
    let truth = GroundTruth::read(&*views);
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
    };
    let mut encoder = Unaligned { truth, knows };
    let device = Device::cpu();
    let subject = Default::default();
    evaluation::run(
        &mut encoder,
        subject,
        &views,
        "synthetic",
        &wanted,
        &protocol,
        &extraction,
        &device,
        |_| {},
        &|| false,
    )
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
