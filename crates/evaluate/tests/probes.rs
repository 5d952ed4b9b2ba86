//! Probes on features whose content is known.
#![allow(clippy::unwrap_used)]

mod synthetic;

use std::sync::Arc;

use dataset::Views;
use engine::Device;
use evaluate::results::ProbeResult;
use evaluate::{FeatureTable, GroundTruth, Preset, Protocol, Result, Table, Task, probe};
use random::{Random, Stream};
use synthetic::synthetic;

/// The probe of one task on the CPU, and how many epochs it reported.
fn run(
    task: Task,
    (table, truth): &(Table, GroundTruth),
    epochs: u32,
    stop: &dyn Fn() -> bool,
) -> Result<(ProbeResult, u64)> {
    let protocol = Protocol {
        epochs,
        colour_epochs: epochs,
        samples_per_object: 8,
        hidden: 64,
        batch: 64,
        passes: 3,
        ..Protocol::new(Preset::Quick, 0, 100, 100)
    };
    let (device, mut ticks) = (Device::cpu(), 0);
    let table = FeatureTable::new(table, &device)?;
    let mut found = probe::run_group(&[task], &table, &device, truth, &protocol, |n| ticks += n, stop)?;
    Ok((found.remove(&task).unwrap(), ticks))
}

/// Features that hold the pose, the hues and the class in the clear, or nothing but noise.
fn table(views: &Arc<dyn Views>, informed: bool) -> (Table, GroundTruth) {
    let truth = GroundTruth::read(&**views);
    let mut values = Vec::new();
    for object in 0..truth.objects() {
        for view in 0..truth.index.most() {
            let row = object * truth.index.most() + view;
            let mut random = Random::new(1, Stream::new("noise"), row as u64);
            let mut features: Vec<f32> = (0..20).map(|_| random.normal() as f32).collect();
            if informed {
                let pose = &truth.poses[row];
                features[..4].copy_from_slice(&pose.quaternion().to_f32());
                for k in 0..3 {
                    features[4 + k] = pose.translation[k] as f32 * 3.0;
                }
                features[7] = truth.hues[row][0] as f32;
                features[8] = truth.hues[row][1] as f32;
                features[9 + truth.labels[object] as usize] += 6.0;
            }
            values.extend(features);
        }
    }
    (Table { width: 20, values }, truth)
}

#[test]
fn probes_find_what_is_there() {
    let views: Arc<dyn Views> = synthetic(60, 40, 4, 20, 3);
    let table = table(&views, true);
    let value = |task, epochs| {
        let (found, ticks) = run(task, &table, epochs, &|| false).unwrap();
        assert_eq!(ticks, u64::from(epochs));
        assert!(found.value.spread >= 0.0 && !found.curve.is_empty());
        found
    };
    let top1 = value(Task::Classification, 50);
    assert!(top1.value.value > 0.9 && top1.top5.unwrap().value == 1.0, "{top1:?}");
    assert_eq!(top1.floor, 0.25);
    let rotation = value(Task::Rotation, 60);
    assert!(rotation.value.value > 0.6, "{:?}", rotation.value);
    assert!((rotation.floor - 0.23).abs() < 0.06, "{}", rotation.floor);
    let translation = value(Task::TranslationObject, 40);
    assert!(translation.value.value > 0.6 && translation.floor.abs() < 0.05, "{:?}", translation.value);
    let colour = value(Task::Colour, 200);
    assert!(colour.value.value > 0.8, "{:?}", colour.value);
}

#[test]
fn probes_on_noise_stay_near_the_floor_and_repeat_exactly() {
    let views: Arc<dyn Views> = synthetic(60, 40, 4, 20, 3);
    let table = table(&views, false);
    let noise = || run(Task::Rotation, &table, 3, &|| false).unwrap().0;
    let found = noise();
    assert!(found.value.value < found.floor + 0.05, "{found:?}");
    assert_eq!(found, noise());
    let stopped = run(Task::Colour, &table, 3, &|| true);
    assert!(matches!(stopped, Err(evaluate::Error::Interrupted)));
}

#[test]
fn a_dataset_without_held_out_objects_is_refused() {
    let views: Arc<dyn Views> = synthetic(5, 0, 2, 3, 3);
    let found = run(Task::Rotation, &table(&views, false), 1, &|| false);
    assert!(found.unwrap_err().to_string().contains("held-out"));
}
