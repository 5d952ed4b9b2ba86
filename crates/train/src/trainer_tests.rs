//! Tests of the loop with a learner of a few lines: interruption at any step, damage, trouble, bad samples.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::checkpoint;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::event::{Event, Outcome};
use crate::metrics::{self, Kind, Record};
use crate::run_folder::{OwnedRun, RunFolder};
use crate::testing::{FakeLearner, FakeViews};
use crate::trainer::Trainer;

/// 20 training objects in steps of 6, 6, 6, 2: four an epoch, three epochs.
fn config(settings: &[&str]) -> Config {
    let mut layers = Config::settings("equicaps", "demo").unwrap();
    let base = [
        "batch=6",
        "epochs=3",
        "image_size=32",
        "logging.every_steps=3",
        "guards.every_steps=2",
        "guards.collapse_after=2",
        "guards.collapse_patience=2",
        "checkpoints.every_epochs=1",
        "probes.held_out_every=2",
        "loader.workers=2",
    ];
    base.iter().chain(settings).for_each(|assignment| layers.set(assignment).unwrap());
    Config::resolve(layers).unwrap()
}

fn own(root: &Path, config: &Config) -> OwnedRun {
    match RunFolder::open(root) {
        Ok(folder) => folder.acquire().unwrap(),
        Err(_) => OwnedRun::create(root, config).unwrap(),
    }
}

/// Runs, or continues, until the end or for `steps` steps; the warnings said.
fn session(
    root: &Path,
    config: &Config,
    learner: &mut FakeLearner,
    steps: u64,
) -> (Result<Outcome>, Vec<String>) {
    let views = FakeViews::new(4, 5);
    session_on(views, root, config, learner, steps)
}

fn session_on(
    views: FakeViews,
    root: &Path,
    config: &Config,
    learner: &mut FakeLearner,
    steps: u64,
) -> (Result<Outcome>, Vec<String>) {
    let mut warnings = Vec::new();
    let run = own(root, config);
    let mut tell = |event: Event<'_>| {
        if let Event::Warning(text) = event {
            warnings.push(text);
        }
    };
    let outcome = match Trainer::prepare(&run, config.clone(), Arc::new(views), learner, &mut tell) {
        Ok(Ok(trainer)) => {
            let left = Cell::new(steps);
            trainer.train(&|| left.replace(left.get().wrapping_sub(1)) == 0)
        }
        Ok(Err(outcome)) => Ok(outcome),
        Err(error) => Err(error),
    };
    (outcome, warnings)
}

fn records(root: &Path) -> Vec<Record> {
    let mut records = metrics::read(&root.join("metrics.jsonl")).unwrap();
    records.iter_mut().for_each(|record| record.timing.clear());
    records
}

fn final_bytes(root: &Path) -> Vec<u8> {
    fs::read(root.join("checkpoints/epoch_00003.safetensors")).unwrap()
}

#[test]
fn a_whole_run_leaves_what_it_should() {
    let root = tempfile::tempdir().unwrap();
    let config = config(&["checkpoints.milestones=[1]", "checkpoints.keep=1"]);
    let (outcome, warnings) = session(root.path(), &config, &mut FakeLearner::new(), u64::MAX);
    let path = root.path().join("checkpoints/epoch_00003.safetensors");
    assert_eq!(outcome.unwrap(), Outcome::Finished(path.clone()));
    assert!(warnings.is_empty());
    let names: Vec<u64> =
        checkpoint::list(&root.path().join("checkpoints")).unwrap().into_iter().map(|c| c.0).collect();
    assert_eq!(names, [1, 3]);
    let records = records(root.path());
    let of = |kind| records.iter().filter(|r| r.kind == kind).map(|r| (r.epoch, r.step)).collect::<Vec<_>>();
    assert_eq!(of(Kind::Step), [(1, 3), (2, 6), (3, 9), (3, 12)]);
    assert_eq!(of(Kind::Epoch), [(1, 4), (2, 8), (3, 12)]);
    assert_eq!(of(Kind::HeldOut), [(2, 8), (3, 12)]);
    assert!(records[0].value("probe/class_accuracy/representation").is_some());
    let (again, _) = session(root.path(), &config, &mut FakeLearner::new(), u64::MAX);
    assert_eq!(again.unwrap(), Outcome::AlreadyFinished(path));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn interruptions_anywhere_change_nothing(cuts in prop::collection::vec(0_u64..6, 1..4)) {
        let root = tempfile::tempdir().unwrap();
        let (whole, broken) = (root.path().join("whole"), root.path().join("broken"));
        let config = config(&[]);
        session(&whole, &config, &mut FakeLearner::new(), u64::MAX).0.unwrap();
        for steps in cuts {
            let outcome = session(&broken, &config, &mut FakeLearner::new(), steps).0.unwrap();
            prop_assert!(!matches!(outcome, Outcome::AlreadyFinished(_)) || steps == 0 || broken.exists());
        }
        session(&broken, &config, &mut FakeLearner::new(), u64::MAX).0.unwrap();
        prop_assert_eq!(final_bytes(&whole), final_bytes(&broken));
        prop_assert_eq!(records(&whole), records(&broken));
    }
}

#[test]
fn a_run_that_is_stopped_inside_an_epoch_says_where() {
    let root = tempfile::tempdir().unwrap();
    let config = config(&[]);
    let (outcome, _) = session(root.path(), &config, &mut FakeLearner::new(), 0);
    assert_eq!(outcome.unwrap(), Outcome::Interrupted(None));
    let (outcome, _) = session(root.path(), &config, &mut FakeLearner::new(), 6);
    let path = root.path().join("checkpoints/epoch_00002.safetensors");
    assert_eq!(outcome.unwrap(), Outcome::Interrupted(Some(path.clone())));
    let position = checkpoint::Checkpoint::read(&path).unwrap().position;
    assert_eq!((position.epoch, position.step, position.step_in_epoch), (1, 6, 2));
}

#[test]
fn a_damaged_newest_checkpoint_is_replaced_by_the_one_before_it() {
    let root = tempfile::tempdir().unwrap();
    let (whole, broken) = (root.path().join("whole"), root.path().join("broken"));
    let config = config(&[]);
    session(&whole, &config, &mut FakeLearner::new(), u64::MAX).0.unwrap();
    session(&broken, &config, &mut FakeLearner::new(), 9).0.unwrap();
    let newest = broken.join("checkpoints/epoch_00003.safetensors");
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() - 3;
    bytes[middle] ^= 0x40;
    fs::write(&newest, bytes).unwrap();
    let (outcome, warnings) = session(&broken, &config, &mut FakeLearner::new(), u64::MAX);
    outcome.unwrap();
    assert!(
        warnings[0].contains("damaged") && warnings[0].contains("the one before it is used"),
        "{warnings:?}"
    );
    assert_eq!(final_bytes(&whole), final_bytes(&broken));
    assert_eq!(records(&whole), records(&broken));
}

#[test]
fn trouble_stops_the_run_and_names_the_last_good_checkpoint() {
    let trouble = |loss_from, collapse_from| {
        let root = tempfile::tempdir().unwrap();
        let mut learner = FakeLearner::new();
        (learner.loss_from, learner.collapse_from) = (loss_from, collapse_from);
        let (outcome, _) = session(root.path(), &config(&[]), &mut learner, u64::MAX);
        let Err(Error::Unhealthy(text)) = outcome else { panic!("the run went on") };
        assert_eq!(records(root.path()).last().unwrap().kind, Kind::Step, "the bad step is written down");
        text.replace(&root.path().display().to_string(), "RUN")
    };
    let good = "the last good checkpoint is RUN/checkpoints/epoch_00002.safetensors (the end of epoch 2)";
    assert_eq!(
        trouble(Some((10, f64::NAN)), u64::MAX),
        format!("the loss became NaN at step 10 (epoch 3); {good}")
    );
    assert_eq!(
        trouble(Some((9, 1e9)), u64::MAX),
        format!("the loss exploded to 1.000e9 (guards.explosion is 1e6) at step 9 (epoch 3); {good}")
    );
    let collapsed = trouble(None, 7);
    assert!(
        collapsed.starts_with("the representation collapsed") && collapsed.ends_with(good),
        "{collapsed}"
    );
    assert!(trouble(None, 1).starts_with("the representation collapsed"));
    assert!(trouble(Some((1, f64::INFINITY)), u64::MAX).ends_with("there is no checkpoint before it"));
}

#[test]
fn bad_samples_fail_by_name_or_are_replaced_and_counted() {
    let root = tempfile::tempdir().unwrap();
    let bad = || FakeViews::new(4, 5).with_bad(|(object, view)| object == 7 && view != 2);
    let failing = root.path().join("failing");
    let (outcome, _) = session_on(bad(), &failing, &config(&[]), &mut FakeLearner::new(), u64::MAX);
    assert!(outcome.unwrap_err().to_string().contains("object 7, view"));
    // Pictures that come back later let the run go on as if they had been there all the time.
    let (plain, mended) = (root.path().join("plain"), root.path().join("mended"));
    session(&plain, &config(&[]), &mut FakeLearner::new(), u64::MAX).0.unwrap();
    let later = || FakeViews::new(4, 5).with_bad(|(object, view)| object == 7 && view == 3);
    let mut saved = 0;
    for _ in 0..2 {
        let (outcome, _) = session_on(later(), &mended, &config(&[]), &mut FakeLearner::new(), u64::MAX);
        if let Err(error) = outcome {
            assert!(error.to_string().contains("object 7, view 3"), "{error}");
            saved += usize::from(error.to_string().contains("the run is saved at"));
        }
    }
    session(&mended, &config(&[]), &mut FakeLearner::new(), u64::MAX).0.unwrap();
    assert_eq!((final_bytes(&plain), records(&plain)), (final_bytes(&mended), records(&mended)));
    assert!(saved <= 2);
    let skip = config(&["loader.on_bad_sample=skip"]);
    let (whole, broken) = (root.path().join("whole"), root.path().join("broken"));
    let (outcome, warnings) = session_on(bad(), &whole, &skip, &mut FakeLearner::new(), u64::MAX);
    outcome.unwrap();
    assert!(warnings[0].contains("pictures were replaced in epoch 1"), "{warnings:?}");
    for steps in [5, u64::MAX] {
        session_on(bad(), &broken, &skip, &mut FakeLearner::new(), steps).0.unwrap();
    }
    assert_eq!(final_bytes(&whole), final_bytes(&broken));
    assert_eq!(records(&whole), records(&broken));
    assert!(records(&whole).iter().any(|r| r.kind == Kind::Epoch && r.value("bad_samples") > Some(0.0)));
}

#[test]
fn other_settings_or_data_are_refused() {
    let root = tempfile::tempdir().unwrap();
    session(root.path(), &config(&[]), &mut FakeLearner::new(), 5).0.unwrap();
    let (outcome, _) =
        session(root.path(), &config(&["learning_rate=0.5"]), &mut FakeLearner::new(), u64::MAX);
    assert!(outcome.unwrap_err().to_string().contains("was made with other settings"));
    let other = FakeViews::new(4, 6);
    let (outcome, _) = session_on(other, root.path(), &config(&[]), &mut FakeLearner::new(), u64::MAX);
    assert!(outcome.unwrap_err().to_string().contains("with 20 training objects, but the data now have 24"));
    // What weights do not depend on may change.
    let longer = config(&["epochs=4", "checkpoints.keep=5"]);
    let (outcome, _) = session(root.path(), &longer, &mut FakeLearner::new(), u64::MAX);
    assert!(matches!(outcome.unwrap(), Outcome::Finished(path) if path.ends_with("epoch_00004.safetensors")));
}
