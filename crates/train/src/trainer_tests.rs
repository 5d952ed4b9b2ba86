//! Tests of the loop with a learner of a few lines: interruption at any step, damage, trouble, bad samples.

use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use engine::Device;
use proptest::prelude::*;

use crate::batches::training_plan;
use crate::checkpoint;
use crate::config::Config;
use crate::data::Data;
use crate::error::{Error, Result};
use crate::event::{Event, Outcome};
use crate::metrics::{self, Kind, Record};
use crate::run_folder::{OwnedRun, RunFolder};
use crate::testing::{FakeLearner, FakeViews};
use crate::trainer::{starting_checkpoint, train};

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
        "probes.held_out_passes=2",
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

/// Runs, or continues, until the end or for `steps` steps, a held-out batch counting as one; the warnings said.
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
    // How often it is asked depends on how long batches take to load.
    let (done, before) = (Rc::clone(&learner.done), learner.done.get());
    let stop = move || done.get() - before >= steps;
    let data = Data::on_host(Arc::new(views), &Device::cpu());
    let outcome = train(Some(&run), config, data, learner, &mut tell, &stop);
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
fn looks_are_at_the_same_pairs_of_all_held_out_objects() {
    let root = tempfile::tempdir().unwrap();
    let mut learner = FakeLearner::new();
    session(root.path(), &config(&["probes.knn=false"]), &mut learner, u64::MAX).0.unwrap();
    // After epochs 2 and 3, two passes each over the four held-out objects, which follow the twenty others.
    let [first, second, later @ ..] = &learner.probed[..] else { panic!("{:?}", learner.probed) };
    assert_eq!(later, [first.clone(), second.clone()]);
    assert_ne!(first, second);
    for look in [first, second] {
        let objects: Vec<usize> = look.iter().map(|item| item.0).collect();
        assert_eq!(objects, [20, 21, 22, 23, 20, 21, 22, 23]);
        assert!((0..4).all(|k| look[k].1 != look[4 + k].1), "{look:?}");
    }
}

#[test]
fn what_the_learner_remarks_is_said_once() {
    let root = tempfile::tempdir().unwrap();
    let mut learner = FakeLearner::new();
    learner.remark = Some("slower".to_owned());
    let (outcome, warnings) = session(root.path(), &config(&[]), &mut learner, u64::MAX);
    assert!(matches!(outcome, Ok(Outcome::Finished(_))), "{outcome:?}");
    assert_eq!(warnings, ["slower"]);
}

#[test]
fn neighbours_are_looked_for_among_training_views_and_change_nothing_else() {
    const NAME: &str = "probe/knn_accuracy/representation";
    let run = |setting: &str, views: FakeViews| {
        let (root, mut learner) = (tempfile::tempdir().unwrap(), FakeLearner::new());
        session_on(views, root.path(), &config(&[setting]), &mut learner, u64::MAX).0.unwrap();
        let records = metrics::read(&root.path().join("metrics.jsonl")).unwrap();
        (final_bytes(root.path()), records, learner.probed)
    };
    let (bytes, mut records, probed) = run("probes.knn=true", FakeViews::new(4, 5));
    let without = run("probes.knn=false", FakeViews::new(4, 5));
    assert_eq!(bytes, without.0);
    for record in &mut records {
        let found = record.values.remove(NAME);
        assert_eq!(found.is_some(), record.kind == Kind::HeldOut);
        // The learner sees two classes where there are four.
        assert!(found.is_none_or(|value| value == serde_json::json!(0.5)), "{record:?}");
        record.timing.clear();
    }
    let untimed = without.1.into_iter().map(|mut record| {
        record.timing.clear();
        record
    });
    assert_eq!(records, untimed.collect::<Vec<_>>());
    // Two batches of held-out objects, then two passes over whole batches of training objects; all of it twice.
    assert_eq!(probed[..2], without.2[..2]);
    assert_eq!((probed.len(), &probed[..8]), (16, &probed[8..]));
    assert!(probed[2..8].iter().all(|items| items.len() == 12 && items.iter().all(|item| item.0 < 20)));
    // With a split by views, the bank has no view that is held out.
    let (_, _, probed) = run("probes.knn=true", FakeViews::new(4, 5).with_held_out_views(2));
    let of_bank = |items: &&Vec<crate::batches::Item>| items.iter().all(|item| item.1 < 4);
    let of_look = |items: &&Vec<crate::batches::Item>| items.iter().all(|item| (4..6).contains(&item.1));
    let counts = [probed.iter().filter(of_bank).count(), probed.iter().filter(of_look).count()];
    assert!(counts[0] > 0 && counts.iter().sum::<usize>() == probed.len(), "{counts:?}");
}

#[test]
fn with_a_split_by_views_all_objects_are_trained_on_and_looks_are_at_their_other_views() {
    let root = tempfile::tempdir().unwrap();
    let (mut learner, config) = (FakeLearner::new(), config(&["epochs=20", "probes.knn=false"]));
    let by_views = || FakeViews::new(4, 5).with_held_out_views(2);
    session_on(by_views(), root.path(), &config, &mut learner, 40).0.unwrap();
    let objects = |items: &[crate::batches::Item]| {
        let all: std::collections::BTreeSet<usize> = items.iter().map(|item| item.0).collect();
        all.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(objects(&learner.trained), (0..24).collect::<Vec<_>>());
    assert!(learner.trained.iter().all(|item| item.1 < 4));
    let looked: Vec<_> = learner.probed.concat();
    assert_eq!(objects(&looked), (0..24).collect::<Vec<_>>());
    assert!(looked.iter().all(|item| (4..6).contains(&item.1)));
    // A checkpoint knows it, and goes on with nothing else.
    let (_, newest) = checkpoint::newest(&root.path().join("checkpoints"), |_| ()).unwrap().unwrap();
    assert_eq!(newest.split(), dataset::SplitBy::Views);
    let other = session_on(FakeViews::new(4, 5), root.path(), &config, &mut FakeLearner::new(), 1);
    let refusal = other.0.unwrap_err().to_string();
    assert!(refusal.ends_with("was made with the split by views, not by objects"), "{refusal}");
    session_on(by_views(), root.path(), &config, &mut FakeLearner::new(), 3).0.unwrap();
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
            session(&broken, &config, &mut FakeLearner::new(), steps).0.unwrap();
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
    session(&broken, &config, &mut FakeLearner::new(), 17).0.unwrap();
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
    // Where none is whole the run begins again, and says so.
    for (_, path) in checkpoint::list(&broken.join("checkpoints")).unwrap() {
        fs::write(path, "scrap").unwrap();
    }
    let (outcome, warnings) = session(&broken, &config, &mut FakeLearner::new(), u64::MAX);
    outcome.unwrap();
    assert!(warnings[0].ends_with("the one before it is used"), "{warnings:?}");
    assert!(warnings[1].ends_with("the run begins again at its first step"), "{warnings:?}");
    assert_eq!(final_bytes(&whole), final_bytes(&broken));
    assert_eq!(records(&whole), records(&broken));
}

#[test]
fn weights_from_elsewhere_survive_a_kill_before_the_first_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    let (whole, broken) = (root.path().join("whole"), root.path().join("broken"));
    let config = config(&[]);
    let mut elsewhere = FakeLearner::new();
    elsewhere.weights = vec![3.0, -4.0, 0.5, 0.25];
    let start = starting_checkpoint(&config, &FakeViews::new(4, 5), &elsewhere).unwrap();
    for root in [&whole, &broken] {
        let new = OwnedRun::reserve(root).unwrap();
        start.write(&new.folder().checkpoints_path()).unwrap();
        new.begin(&config).unwrap();
    }
    session(&whole, &config, &mut elsewhere.clone(), u64::MAX).0.unwrap();
    // A killed process leaves no checkpoint of its own, and the next one knows only the folder.
    let (outcome, _) = session(&broken, &config, &mut elsewhere.clone(), 0);
    assert_eq!(outcome.unwrap(), Outcome::Interrupted(None));
    session(&broken, &config, &mut FakeLearner::new(), u64::MAX).0.unwrap();
    assert_eq!(final_bytes(&whole), final_bytes(&broken));
    let plain = root.path().join("plain");
    session(&plain, &config, &mut FakeLearner::new(), u64::MAX).0.unwrap();
    assert_ne!(final_bytes(&whole), final_bytes(&plain));
}

#[test]
fn a_look_that_cannot_be_finished_is_taken_when_the_run_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let [whole, stopped, mended] = ["whole", "stopped", "mended"].map(|name| root.path().join(name));
    let config = config(&["checkpoints.every_epochs=0"]);
    session(&whole, &config, &mut FakeLearner::new(), u64::MAX).0.unwrap();
    // Eight steps, and one of the two batches of the look behind them.
    let (outcome, _) = session(&stopped, &config, &mut FakeLearner::new(), 9);
    let path = stopped.join("checkpoints/epoch_00002.safetensors");
    assert_eq!(outcome.unwrap(), Outcome::Interrupted(Some(path.clone())));
    let position = checkpoint::Checkpoint::read(&path).unwrap().position;
    assert_eq!((position.epoch, position.step, position.step_in_epoch), (1, 8, 4));
    assert!(records(&stopped).iter().all(|record| record.kind != Kind::HeldOut));
    // A held-out image that comes back later.
    let views = FakeViews::new(4, 5).with_bad(|(object, _)| object == 21);
    let (outcome, _) = session_on(views, &mended, &config, &mut FakeLearner::new(), u64::MAX);
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("object 21"), "{message}");
    assert!(message.ends_with("the run is saved at step 4 of epoch 2"), "{message}");
    for root in [stopped, mended] {
        session(&root, &config, &mut FakeLearner::new(), u64::MAX).0.unwrap();
        assert_eq!((final_bytes(&whole), records(&whole)), (final_bytes(&root), records(&root)));
    }
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
    let collapsed = trouble(None, 9);
    assert!(
        collapsed.starts_with("the representation collapsed") && collapsed.ends_with(good),
        "{collapsed}"
    );
    // The checkpoint of epoch 2 is later than the collapse, which was not yet believed.
    let earlier = trouble(None, 7);
    assert!(earlier.ends_with("epoch_00001.safetensors (the end of epoch 1)"), "{earlier}");
    assert!(trouble(None, 1).starts_with("the representation collapsed"));
    assert!(trouble(Some((1, f64::INFINITY)), u64::MAX).ends_with("there is no good checkpoint before it"));
}

#[test]
fn weights_that_are_no_numbers_are_not_saved() {
    let root = tempfile::tempdir().unwrap();
    let mut learner = FakeLearner::new();
    learner.spoiled_by = 8;
    let (outcome, _) = session(root.path(), &config(&[]), &mut learner, u64::MAX);
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.starts_with("backbone.weights contains NaN or infinity at step 8 (epoch 2); the last good"),
        "{message}"
    );
    assert!(message.ends_with("epoch_00001.safetensors (the end of epoch 1)"), "{message}");
}

#[test]
fn a_run_whose_views_cannot_be_made_is_saved_and_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| root.path().join(name));
    session(&whole, &config(&[]), &mut FakeLearner::new(), u64::MAX).0.unwrap();
    let mut learner = FakeLearner::new();
    learner.unseen = 7;
    let (outcome, _) = session(&stopped, &config(&[]), &mut learner, u64::MAX);
    assert_eq!(outcome.unwrap_err().to_string(), "out of memory; the run is saved at step 2 of epoch 2");
    session(&stopped, &config(&[]), &mut FakeLearner::new(), u64::MAX).0.unwrap();
    assert_eq!((final_bytes(&whole), records(&whole)), (final_bytes(&stopped), records(&stopped)));
}

#[test]
fn bad_samples_fail_by_name_or_are_replaced_and_counted() {
    let root = tempfile::tempdir().unwrap();
    let bad = || FakeViews::new(4, 5).with_bad(|(object, view)| object == 7 && view != 2);
    let failing = root.path().join("failing");
    let (outcome, _) = session_on(bad(), &failing, &config(&[]), &mut FakeLearner::new(), u64::MAX);
    assert!(outcome.unwrap_err().to_string().contains("object 7, view"));
    // Images that come back later let the run go on as if they had been there all the time.
    let (plain, mended) = (root.path().join("plain"), root.path().join("mended"));
    session(&plain, &config(&[]), &mut FakeLearner::new(), u64::MAX).0.unwrap();
    let plan = training_plan(&config(&[]), &FakeViews::new(4, 5)).unwrap();
    let steps: Vec<_> = plan.steps_from(0, 0, Box::new(|_, _, _| 0.0)).collect();
    let late = steps[6].iter().find(|item| !steps[..6].concat().contains(item)).copied().unwrap();
    let views = FakeViews::new(4, 5).with_bad(move |item| item == late);
    let (outcome, _) = session_on(views, &mended, &config(&[]), &mut FakeLearner::new(), u64::MAX);
    let message = outcome.unwrap_err().to_string();
    assert!(message.starts_with(&format!("object {}, view {} is unreadable", late.0, late.1)), "{message}");
    assert!(message.contains("--on-bad-sample skip"), "{message}");
    assert!(message.ends_with("; the run is saved at step 2 of epoch 2"), "{message}");
    session(&mended, &config(&[]), &mut FakeLearner::new(), u64::MAX).0.unwrap();
    assert_eq!((final_bytes(&plain), records(&plain)), (final_bytes(&mended), records(&mended)));
    let skip = config(&["loader.on_bad_sample=skip"]);
    // A run that met a bad image may go on without it, as if it had been meant to from the beginning.
    let (late_skip, early_skip) = (root.path().join("late"), root.path().join("early"));
    let one_bad = || FakeViews::new(4, 5).with_bad(move |item| item == late);
    session_on(one_bad(), &late_skip, &config(&[]), &mut FakeLearner::new(), u64::MAX).0.unwrap_err();
    for run in [&late_skip, &early_skip] {
        session_on(one_bad(), run, &skip, &mut FakeLearner::new(), u64::MAX).0.unwrap();
    }
    assert_eq!(final_bytes(&late_skip), final_bytes(&early_skip));
    assert_eq!(records(&late_skip), records(&early_skip));
    let (whole, broken) = (root.path().join("whole"), root.path().join("broken"));
    let (outcome, warnings) = session_on(bad(), &whole, &skip, &mut FakeLearner::new(), u64::MAX);
    outcome.unwrap();
    assert!(warnings[0].contains("images replaced in epoch 1: "), "{warnings:?}");
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
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.ends_with("other settings than config.toml has now: learning_rate was 0.003 and is 0.5"),
        "{message}"
    );
    let other = FakeViews::new(4, 6);
    let (outcome, _) = session_on(other, root.path(), &config(&[]), &mut FakeLearner::new(), u64::MAX);
    assert!(outcome.unwrap_err().to_string().contains("with 20 training objects, but the data now have 24"));
    let turned = FakeViews::new(4, 5).with_stream("turned");
    let (outcome, _) = session_on(turned, root.path(), &config(&[]), &mut FakeLearner::new(), u64::MAX);
    assert!(outcome.unwrap_err().to_string().contains("was made with other views of these objects"));
    // A program that had no such setting yet made what the default makes now.
    let path = root.path().join("checkpoints/epoch_00002.safetensors");
    let mut old = checkpoint::Checkpoint::read(&path).unwrap();
    let before = old.metadata["config"].clone();
    let lines: Vec<&str> = before.lines().filter(|line| !line.starts_with("recompute")).collect();
    assert_eq!(lines.len() + 1, before.lines().count());
    old.metadata.insert("config".to_owned(), lines.join("\n"));
    old.metadata.insert("config_hash".to_owned(), "of an older program".to_owned());
    old.write_to(&path).unwrap();
    let (outcome, _) = session(root.path(), &config(&["recompute=true"]), &mut FakeLearner::new(), u64::MAX);
    let message = outcome.unwrap_err().to_string();
    assert!(message.ends_with("recompute was not set and is true"), "{message}");
    // What weights do not depend on may change.
    let longer = config(&["epochs=4", "checkpoints.keep=5"]);
    let (outcome, _) = session(root.path(), &longer, &mut FakeLearner::new(), u64::MAX);
    assert!(matches!(outcome.unwrap(), Outcome::Finished(path) if path.ends_with("epoch_00004.safetensors")));
}
