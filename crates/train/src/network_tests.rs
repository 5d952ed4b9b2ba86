//! Tests of [`crate::network`] with small networks of every method.

use std::sync::Arc;

use dataset::{Loader, LoaderOptions, Views};
use engine::ops::Images;
use engine::{AdamConfig, Device, State};
use methods::{
    Ask, Measurement, MethodConfig, MethodName, PairImages, PairTargets, Step, StepOptions, Transform,
};
use pose::{FrameKind, ViewPose};

use crate::batches::{PairBatch, pair_items};
use crate::checkpoint::{Checkpoint, Numbers};
use crate::config::Config;
use crate::learner::Learner;
use crate::network::NetworkLearner;
use crate::testing::FakeViews;

fn config(method: &str, settings: &[&str]) -> Config {
    let mut layers = Config::settings(method, "demo").unwrap();
    let base = [
        "batch=6",
        "image_size=32",
        "network.width=8",
        "network.capsules=4",
        "network.projector=[16, 16, 16]",
        "learning_rate=0.003",
    ];
    base.iter().chain(settings).for_each(|assignment| layers.set(assignment).unwrap());
    Config::resolve(layers).unwrap()
}

fn learner(method: &str, settings: &[&str]) -> NetworkLearner {
    NetworkLearner::new(&config(method, settings), &FakeViews::new(3, 6), &Device::cpu()).unwrap()
}

/// Trains on `steps` batches, from batch `first` on.
fn train(learner: &mut NetworkLearner, first: u64, steps: u64) -> Vec<Measurement> {
    let views: Arc<dyn Views> = Arc::new(FakeViews::new(3, 6));
    let plan: Vec<_> = (first..first + steps).map(|step| pair_items(0..6, 5, step, |_| 0..6)).collect();
    let options = LoaderOptions { side: Some(32), workers: 1, queue: 1 };
    for batch in Loader::start(Arc::clone(&views), plan, options).unwrap() {
        let batch = batch.unwrap();
        let pairs = PairBatch::new(&*views, |item| item, &batch, transform_of(learner));
        learner.step(pairs, Ask { probes: true, health: true }).unwrap();
    }
    learner.collect(true).unwrap()
}

fn transform_of(learner: &NetworkLearner) -> Transform {
    learner.network().model.config().transform
}

fn state(learner: &NetworkLearner) -> Checkpoint {
    let mut checkpoint = Checkpoint::default();
    learner.save(&mut checkpoint).unwrap();
    checkpoint
}

#[test]
fn every_method_trains_is_probed_in_every_place_and_continues_bit_for_bit() {
    for method in MethodName::all().into_iter().map(MethodName::name) {
        let mut whole = learner(method, &[]);
        let measurements = train(&mut whole, 0, 4);
        assert_eq!(measurements.len(), 4);
        assert!(measurements.iter().all(|m| m.loss.is_finite() && !m.terms.is_empty()), "{method}");
        let scores: Vec<String> = measurements[3].probes.scores().map(|(name, _)| name).collect();
        let places = match method {
            "supervised" => 2,
            "vicreg" | "simclr" | "simclr_augself" | "sen" => 4,
            "equimod" => 6,
            "sie" => 8,
            "capsie" => 8,
            _ => 9,
        };
        assert_eq!(scores.len(), places, "{method}: {scores:?}");
        let health = measurements[3].health.unwrap();
        assert_eq!(health.capsule_entropy.is_some(), method.starts_with("caps") || method == "equicaps");

        let mut broken = learner(method, &[]);
        train(&mut broken, 0, 2);
        let saved = state(&broken);
        let mut continued = learner(method, &["seed=9"]);
        continued.load(&saved).unwrap();
        assert_eq!(state(&continued), saved, "{method}");
        train(&mut continued, 2, 2);
        assert_eq!(state(&continued), state(&whole), "{method}");
    }
}

#[test]
fn probes_do_not_touch_the_method() {
    let mut with = learner("equicaps", &[]);
    let mut without = learner("equicaps", &["probes.enabled=false"]);
    train(&mut with, 0, 3);
    train(&mut without, 0, 3);
    let (with, without) = (state(&with), state(&without));
    let of_method = without.tensors.iter().filter(|(name, _)| !name.contains("evaluator."));
    for (name, stored) in of_method {
        assert_eq!(&with.tensors[name], stored, "{name}");
    }
    assert!(with.tensors.contains_key("evaluator.classifier_emb_inv_caps.W2"));
    assert!(!without.tensors.keys().any(|name| name.contains("evaluator.")));
}

#[test]
fn a_vit_starts_from_weights_for_another_image_size() {
    let donor = state(&learner("vicreg", &["backbone=vit_tiny"]));
    let mut larger = learner("vicreg", &["backbone=vit_tiny", "image_size=48"]);
    larger.load_weights(&donor).unwrap();
    let after = state(&larger);
    assert_eq!(
        after.tensors["backbone.blocks.3.attn.qkv.weight"],
        donor.tensors["backbone.blocks.3.attn.qkv.weight"]
    );
    let Numbers::F32(old) = &donor.tensors["backbone.pos_embed"].numbers else { panic!("not floats") };
    let Numbers::F32(new) = &after.tensors["backbone.pos_embed"].numbers else { panic!("not floats") };
    assert_eq!(*new, model::interpolate_positions(old, 192, 3).unwrap());
}

#[test]
fn weights_of_another_run_can_be_the_start() {
    let donor = state(&learner("equicaps", &["seed=3"]));
    let mut same = learner("equicaps", &[]);
    assert!(same.load_weights(&donor).unwrap().anew.is_empty());
    assert_eq!(state(&same).tensors["projector.fc.W1"], donor.tensors["projector.fc.W1"]);
    // Another method takes over the backbone alone.
    let mut other = learner("vicreg", &[]);
    let before = state(&other);
    let taken = other.load_weights(&donor).unwrap();
    assert_eq!(taken.anew.iter().map(String::as_str).collect::<Vec<_>>(), ["evaluator", "projector"]);
    let after = state(&other);
    assert_eq!(after.tensors["backbone.conv1.weight"], donor.tensors["backbone.conv1.weight"]);
    assert_eq!(after.tensors["projector.0.weight"], before.tensors["projector.0.weight"]);
    // Without the backbone nothing is taken at all, whatever else fits.
    for (settings, what) in [
        (["network.width=16"], "tensor backbone.conv1.weight of the checkpoint has shape [8, 3, 7, 7]"),
        (["backbone=vit_tiny"], "the checkpoint has no tensor backbone."),
    ] {
        let mut misfit = learner("equicaps", &settings);
        let before = state(&misfit);
        let message = misfit.load_weights(&donor).unwrap_err().to_string();
        assert!(message.starts_with("the backbone of the checkpoint does not fit: "), "{message}");
        assert!(message.contains(what), "{message}");
        assert_eq!(state(&misfit).tensors, before.tensors);
    }
    let misshapen = learner("equicaps", &["network.capsules=5"]).load(&donor).unwrap_err().to_string();
    assert!(misshapen.contains("of the checkpoint has shape"), "{misshapen}");
}

#[test]
fn training_on_a_few_pairs_lowers_the_loss_and_teaches_the_probe() {
    let mut learner = learner("equicaps", &[]);
    let views: Arc<dyn Views> = Arc::new(FakeViews::new(3, 6));
    let options = LoaderOptions { side: Some(32), workers: 1, queue: 1 };
    let plan = vec![pair_items(0..12, 5, 0, |_| 0..6)];
    let batch = Loader::start(Arc::clone(&views), plan, options).unwrap().next().unwrap().unwrap();
    for _ in 0..60 {
        let pairs = PairBatch::new(&*views, |item| item, &batch, Transform::ROTATION);
        learner.step(pairs, Ask { probes: true, health: false }).unwrap();
    }
    let measurements = learner.collect(true).unwrap();
    let (first, last) = (&measurements[0], &measurements[59]);
    assert!(last.loss < 0.95 * first.loss, "{} -> {}", first.loss, last.loss);
    let score = |m: &Measurement, wanted: &str| m.probes.scores().find(|(name, _)| name == wanted).unwrap().1;
    let name = "rotation_r2/representation";
    assert!(score(last, name) > score(first, name) + 0.3, "{} -> {}", score(first, name), score(last, name));
}

/// A learner's steps are those of the bare method on the same images, with targets and settings put together here.
#[test]
fn steps_are_those_of_the_method_on_the_same_pairs() {
    for (method, transform, settings) in [
        ("equicaps", Transform::ROTATION, &["loss.covariance=0.7", "loss.equivariance=4"][..]),
        ("equicaps", Transform::ROTATION_BASE, &["adam.beta1=0.8"]),
        ("sie", Transform::ROTATION_OBJECT, &["loss.predicted_variance=3", "adam.beta2=0.99"]),
        ("simclr", Transform::ROTATION, &["loss.temperature=0.5"]),
        ("supervised", Transform::ROTATION, &["network.task=colour"]),
        ("supervised", Transform::ROTATION_BASE, &["network.task=translation"]),
    ] {
        let transform_setting = format!("transform={transform}");
        let base =
            ["weight_decay=0.05", "schedule=cosine", "epochs=4", "warmup_epochs=1", &transform_setting];
        let config = config(method, &[&base[..], settings].concat());
        let device = Device::cpu();
        let views = FakeViews::new(3, 6).with_translation();
        let mut learner = NetworkLearner::new(&config, &views, &device).unwrap();
        let bare = MethodConfig { classes: 3, ..config.method.clone() };
        assert_eq!((bare.batch, bare.image_size, bare.network.capsules), (6, 32, 4));
        assert_eq!(
            (&bare.network.projector[..], bare.transform, bare.name.name()),
            (&[16; 3][..], transform, method)
        );
        // Without the probes.
        let mut bare = Step::new(&bare, &device, config.seed, StepOptions::default()).unwrap();
        let options = LoaderOptions { side: Some(32), workers: 1, queue: 1 };
        let plan: Vec<_> = (0..3).map(|step| pair_items(0..6, 5, step, |_| 0..6)).collect();
        let views: Arc<dyn Views> = Arc::new(views);
        for (step, items) in plan.iter().enumerate() {
            let mut loader = Loader::start(Arc::clone(&views), [items.clone()], options).unwrap();
            let batch = loader.next().unwrap().unwrap();
            learner.step(PairBatch::new(&*views, |item| item, &batch, transform), Ask::default()).unwrap();
            let found = learner.collect(true).unwrap().remove(0);

            let (mean, std) = ([0.5016, 0.5037, 0.5060], [0.1030, 0.0999, 0.0969]);
            let images = |side: usize| {
                let mut bytes = vec![0; 6 * 32 * 32 * 3];
                for (image, &(object, view)) in
                    bytes.chunks_exact_mut(32 * 32 * 3).zip(&items[side * 6..side * 6 + 6])
                {
                    views.image(object, view, 32, image).unwrap();
                }
                Images::from_bytes(&device, [6, 32, 32], &bytes, mean, std).unwrap()
            };
            let latents = |place: usize| views.latents(items[place].0, items[place].1);
            let pose = |place: usize| {
                let latents = latents(place);
                ViewPose::published_precision(latents.rotation, latents.translation.unwrap())
            };
            let poses: Vec<_> = (0..6).map(|pair| [pose(pair), pose(6 + pair)]).collect();
            let hues: Vec<_> = (0..6)
                .map(|pair| {
                    let (first, second) = (latents(pair), latents(6 + pair));
                    let differences = [second.floor_hue - first.floor_hue, second.spot_hue - first.spot_hue];
                    differences.map(|value| value as f32)
                })
                .collect();
            let labels: Vec<i32> = (0..6).map(|pair| views.objects()[items[pair].0].label as i32).collect();
            let targets = PairTargets::from_poses(&device, transform, &poses).unwrap();
            let targets = targets.with_labels(&device, &labels).unwrap().with_hues(&device, &hues).unwrap();
            // 18 objects in steps of 6: three an epoch, of which a tenth of the twelve is the rise.
            let factor = crate::schedule::Schedule::Cosine { warmup: 1, steps: 12 }.factor(step as u64);
            let adam = AdamConfig {
                learning_rate: 0.003 * factor,
                beta1: config.adam.beta1,
                beta2: config.adam.beta2,
                epsilon: 1e-8,
                weight_decay: 0.05,
            };
            let pairs = methods::PairBatch { views: [images(0), images(1)], targets, whole: None };
            let wanted = bare.step(&pairs, &adam).unwrap().read().unwrap();
            assert_eq!(found.loss, wanted.loss, "{method} {transform}, step {step}");
            assert_eq!(found.terms.len(), wanted.terms.len());
        }
        let store = &bare.network().store;
        for id in store.parameters() {
            let name = store.name(id);
            let own = learner.network().store.find(name).unwrap();
            let [own, wanted] = [(&learner.network().store, own), (store, id)]
                .map(|(store, id)| store.export(State::Value, id).unwrap());
            assert!(own == wanted, "{method} {transform}: {name}");
        }
    }
}

#[test]
fn probes_are_asked_for_translations_in_the_frame_that_is_trained_on() {
    let views: Arc<dyn Views> = Arc::new(FakeViews::new(3, 6).with_translation());
    let options = LoaderOptions { side: Some(32), workers: 1, queue: 1 };
    for (transform, frame) in [
        ("rotation", FrameKind::Object),
        ("rotation+object", FrameKind::Object),
        ("rotation+base", FrameKind::Base),
    ] {
        let config = config("equicaps", &[&format!("transform={transform}")]);
        let mut learner = NetworkLearner::new(&config, &*views, &Device::cpu()).unwrap();
        let items = pair_items(0..6, 5, 0, |_| 0..6);
        let mut loader = Loader::start(Arc::clone(&views), [items.clone()], options).unwrap();
        let batch = loader.next().unwrap().unwrap();
        let pairs = PairBatch::new(&*views, |item| item, &batch, config.method.transform);
        let pose = |place: usize| {
            let latents = views.latents(items[place].0, items[place].1);
            ViewPose::published_precision(latents.rotation, latents.translation.unwrap())
        };
        let wanted: Vec<f32> = (0..6)
            .flat_map(|pair| ViewPose::translation_difference(frame, &pose(pair), &pose(6 + pair)))
            .map(|value| value as f32)
            .collect();
        assert_eq!(pairs.targets.parts[pose::Part::Translation], wanted, "{transform}");
        assert!(matches!(pairs.images, PairImages::Host { side: 32, .. }));
        // A look changes nothing, running statistics included.
        let before = state(&learner);
        let seen = learner.look(pairs, true).unwrap();
        assert_eq!((seen.representations.labels.len(), seen.representations.width), (12, 64));
        assert_eq!(seen.representations.values.len(), 12 * 64);
        let scores: Vec<String> = seen.tallies.scores().map(|(name, _)| name).collect();
        assert!(scores.contains(&"translation_r2/poses".to_owned()), "{scores:?}");
        assert_eq!(state(&learner), before);
    }
}
