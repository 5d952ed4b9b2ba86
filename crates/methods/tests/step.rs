//! Whole training steps of every method: the same bits with any number of threads, memory that stays flat, and a
//! loss that goes down.

use engine::ops::Images;
use engine::{AdamConfig, Device, MuonConfig, State};
use methods::{MethodConfig, MethodName, Network, NetworkConfig, PairBatch, PairTargets, Step, StepOptions};
use pose::ViewPose;
use random::{Random, Stream};

fn config(method: MethodName) -> MethodConfig {
    let published = MethodConfig::published(method).expect("a preset");
    let mut config = MethodConfig { image_size: 64, batch: 6, classes: 7, ..published };
    let network = &mut config.network;
    (network.width, network.projector, network.capsules) = (8, vec![24, 24, 12], 4);
    config
}

fn batch(device: &Device) -> PairBatch {
    let view = |index| {
        let mut random = Random::new(9, Stream::new("step-test"), index);
        let bytes: Vec<u8> = (0..6 * 64 * 64 * 3).map(|_| random.next_u32() as u8).collect();
        Images::from_bytes(device, [6, 64, 64], &bytes, [0.5; 3], [0.1; 3]).expect("images")
    };
    let mut random = Random::new(9, Stream::new("step-test-poses"), 0);
    let mut pose = || {
        let mut three = |bound: f64| std::array::from_fn(|_| random.range(-bound, bound));
        ViewPose::published_precision(three(1.5), three(0.5))
    };
    let pairs: Vec<_> = (0..6).map(|_| [pose(), pose()]).collect();
    let transform = methods::Transform::ROTATION;
    let targets = PairTargets::from_poses(device, transform, &pairs).expect("targets");
    PairBatch {
        views: [view(0), view(1)],
        targets: targets.with_labels(device, &[0, 1, 2, 3, 4, 5]).expect("labels"),
        whole: None,
    }
}

fn build(config: &MethodConfig, device: &Device, options: StepOptions) -> Step {
    Step::new(config, device, 5, options).expect("a network")
}

/// Losses of `steps` steps, the bits of all parameters after them, and what the pool held after each step.
fn run(method: MethodName, steps: usize) -> (Vec<f64>, Vec<u32>, Vec<usize>) {
    let device = Device::cpu();
    let mut step = build(&config(method), &device, StepOptions::default());
    let batch = batch(&device);
    let (mut losses, mut reserved) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        let output = step.step(&batch, &AdamConfig::default()).expect("a step");
        losses.push(output.read().expect("a measurement").loss);
        drop(output);
        reserved.push(device.memory().reserved);
    }
    let store = &step.network().store;
    let values = store.parameters().flat_map(|id| store.export(State::Value, id).expect("values"));
    (losses, values.map(f32::to_bits).collect(), reserved)
}

#[test]
fn every_method_repeats_with_any_number_of_threads_and_keeps_its_memory_flat() {
    for method in MethodName::all() {
        let (losses, bits, reserved) = run(method, 3);
        assert!(losses.iter().all(|loss| loss.is_finite()), "{method}: {losses:?}");
        assert!(reserved[1] == reserved[2], "{method}: {reserved:?}");
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let again = pool.install(|| run(method, 3));
            assert!(again.0 == losses && again.1 == bits, "{method} with {threads} threads");
        }
    }
}

#[test]
fn recomputing_saves_memory_and_changes_no_bit() {
    let run = |recompute: bool| {
        let device = Device::cpu();
        let options = StepOptions { recompute, ..StepOptions::default() };
        let mut step = build(&config(MethodName::EQUICAPS), &device, options);
        let batch = batch(&device);
        device.reset_peak();
        for _ in 0..2 {
            step.step(&batch, &AdamConfig::default()).expect("a step");
        }
        let store = &step.network().store;
        let values = store.parameters().flat_map(|id| store.export(State::Value, id).expect("values"));
        let mut bits: Vec<u32> = values.map(f32::to_bits).collect();
        for id in store.buffers() {
            if let Ok(tensor) = store.buffer_tensor(id) {
                bits.extend(tensor.to_f32().expect("a buffer").into_iter().map(f32::to_bits));
            }
        }
        (bits, device.memory().peak)
    };
    let (kept, recomputed) = (run(false), run(true));
    assert!(kept.0 == recomputed.0);
    assert!(recomputed.1 < kept.1, "{} {}", recomputed.1, kept.1);
}

#[test]
fn muon_updates_hidden_matrices_and_adam_the_rest() {
    let run = |muon: Option<MuonConfig>| {
        let device = Device::cpu();
        let mut step =
            build(&config(MethodName::EQUICAPS), &device, StepOptions { muon, ..StepOptions::default() });
        let values = |step: &Step| -> Vec<(String, Vec<f32>)> {
            let store = &step.network().store;
            let value = |id| (store.name(id).to_owned(), store.export(State::Value, id).expect("values"));
            store.parameters().map(value).collect()
        };
        let before = values(&step);
        step.step(&batch(&device), &AdamConfig::default()).expect("a step");
        before.into_iter().zip(values(&step)).map(|((name, a), (_, b))| (name, a, b)).collect::<Vec<_>>()
    };
    let hidden = |name: &str| {
        name == "projector.conv_a.weight"
            || name == "projector.conv_pose.weight"
            || name.starts_with("backbone.layer") && (name.contains(".conv") || name.contains("downsample.0"))
    };
    let pairs = run(None).into_iter().zip(run(Some(MuonConfig { rate: 0.5, ..MuonConfig::default() })));
    let mut found = 0;
    for ((name, before, adam), (_, _, muon)) in pairs {
        if !hidden(&name) {
            assert!(adam == muon, "{name}");
            continue;
        }
        found += 1;
        let squares: f64 = before.iter().zip(&muon).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        // Half the learning rate of 1e-3, where all singular values are 1; five rounds bring them near it.
        let rms = (squares / before.len() as f64).sqrt();
        assert!((1e-4..6.5e-4).contains(&rms), "{name}: {rms}");
    }
    assert_eq!(found, 16 + 4 + 2);
}

#[test]
fn the_loss_goes_down() {
    for method in [MethodName::EQUICAPS, MethodName::SIE, MethodName::SUPERVISED] {
        let (losses, _, _) = run(method, 12);
        assert!(losses[11] < losses[0], "{method}: {losses:?}");
    }
}

#[test]
fn inference_leaves_running_statistics_alone() {
    let device = Device::cpu();
    let mut step = build(&config(MethodName::EQUICAPS), &device, StepOptions::default());
    let batch = batch(&device);
    step.step(&batch, &AdamConfig::default()).expect("a step");
    let network = step.network_mut();
    let first = network.features(&batch.views[0]).expect("features");
    assert_eq!(first.len(), 6 * 64);
    assert_eq!(first, network.features(&batch.views[0]).expect("features"));
}

#[test]
fn networks_that_cannot_be_are_refused() {
    let device = Device::cpu();
    let build = |config: MethodConfig| {
        Network::build(&config, &device, 0).map(|_| ()).expect_err("refused").to_string()
    };
    let base = || config(MethodName::EQUICAPS);
    assert!(build(MethodConfig { image_size: 65, ..base() }).contains("multiple of 32"));
    let changed = |change: fn(&mut NetworkConfig)| {
        let mut config = base();
        change(&mut config.network);
        build(config)
    };
    assert!(changed(|network| network.pose = 4).contains("side 4"));
    assert!(changed(|network| network.capsules = 0).contains("positive"));
}
