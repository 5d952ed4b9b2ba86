//! Training through the binary: kills, signals, locks, refusals, bad images, and what `runs` tells.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dataset::{Split, Views};

#[cfg(unix)]
use crate::support::{Signal, signal};
use crate::support::{TINY, equicaps, failure, ok, ok_json, set};

/// A run of small steps: 8 training objects in batches of 3, 3, 2.
const SMALL: [&str; 7] = [
    "data=procedural:2x5",
    "batch=3",
    "network.projector=[16, 16, 16]",
    "procedural.views=4",
    "logging.every_steps=1",
    "checkpoints.every_epochs=2",
    "probes.held_out_every=3",
];

/// `equicaps train --run RUN --set epochs=N` with small steps and more arguments, which may name other data.
fn new_run(run: &Path, epochs: u32, more: &[&str]) -> Command {
    let mut command = equicaps(&["train", "--preset", "demo", "--run"]);
    let others = more.contains(&"--data");
    let small: Vec<&str> =
        SMALL.into_iter().filter(|assignment| !(others && assignment.starts_with("data="))).collect();
    set(set(set(command.arg(run), &TINY), &small), &[&format!("epochs={epochs}")]).args(more);
    command
}

fn resume(run: &Path, more: &[&str]) -> Command {
    let mut command = equicaps(&["train", "--resume"]);
    command.arg(run).args(more);
    command
}

/// Waits until `child` has taken `run`, and a step is written down.
fn wait_for_a_step(run: &Path, child: &mut Child) {
    let began = Instant::now();
    let owner = format!("process {}\n", child.id());
    let text = |name: &str| std::fs::read_to_string(run.join(name)).unwrap_or_default();
    while text("run.lock") != owner || text("metrics.jsonl").is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its first step");
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn killed_runs_end_as_if_nothing_had_happened() {
    let result = ok_json(&mut equicaps(&["check", "resume", "--kills", "6", "--seed", "3"]));
    assert_eq!(result["checkpoint_identical"], true, "{result}");
    assert_eq!(result["metrics_identical"], true, "{result}");
    assert!(result["kills"].as_u64().unwrap() >= 3, "{result}");
}

#[test]
fn fresh_views_are_the_same_ones_after_a_kill() {
    let report = ok_json(&mut equicaps(&[
        "check",
        "resume",
        "--kills",
        "3",
        "--set",
        "refresh=0.5",
        "--set",
        "procedural.memory_mib=0",
    ]));
    assert_eq!(report["checkpoint_identical"], true);
    assert_eq!(report["metrics_identical"], true);
    assert!(report["kills"].as_u64() >= Some(1));
    let (code, said) = failure(&mut equicaps(&[
        "train",
        "--preset",
        "demo",
        "--data",
        "procedural:2x5",
        "--set",
        "refresh=1.5",
        "--run",
        "nowhere",
    ]));
    assert_eq!((code, said.contains("refresh must be between 0 and 1")), (2, true), "{said}");
}

#[cfg(unix)]
#[test]
fn signals_save_the_run_and_ask_for_another_try() {
    let root = tempfile::tempdir().unwrap();
    let (whole, broken) = (root.path().join("whole"), root.path().join("broken"));
    ok(&mut new_run(&whole, 8, &["--quiet"]));
    for sent in [Signal::TERM, Signal::USR1, Signal::INT] {
        let mut command = if broken.exists() { resume(&broken, &[]) } else { new_run(&broken, 8, &[]) };
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        wait_for_a_step(&broken, &mut child);
        signal(child.id(), sent);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            // It was faster than the signal.
            break;
        }
        assert_eq!(output.status.code(), Some(75), "{sent:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("continue with: equicaps train --resume"), "{said}");
    }
    ok(&mut resume(&broken, &["--quiet"]));
    let last = "checkpoints/epoch_00008.safetensors";
    assert_eq!(std::fs::read(whole.join(last)).unwrap(), std::fs::read(broken.join(last)).unwrap());
    let names: Vec<_> =
        std::fs::read_dir(broken.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(names.iter().all(|name| name.extension().unwrap() == "safetensors"), "{names:?}");
}

#[test]
fn a_run_goes_on_when_nobody_listens_any_more() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    let mut child = new_run(&run, 3, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert!(child.wait().unwrap().success());
    assert!(run.join("checkpoints/epoch_00003.safetensors").exists());
}

#[test]
fn a_run_has_one_owner_one_beginning_and_one_end() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    let mut child = new_run(&run, 2000, &["--quiet"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for_a_step(&run, &mut child);
    let (status, message) = failure(&mut resume(&run, &[]));
    assert_eq!(status, 1);
    assert!(message.contains(&format!("in use by another process (process {})", child.id())), "{message}");
    let listed = ok_json(equicaps(&["runs", "list"]).arg(root.path()));
    assert_eq!(listed["runs"][0]["state"], "running");
    assert!(listed["runs"][0]["step"].as_u64() >= Some(1), "how far it is shows before its first checkpoint");
    child.kill().unwrap();
    child.wait().unwrap();

    let (status, message) = failure(&mut new_run(&run, 2, &[]));
    assert_eq!(status, 1);
    assert!(message.contains(&format!("equicaps train --resume {}", run.display())), "{message}");
    let result = ok_json(&mut resume(&run, &["--set", "epochs=3"]));
    let ended = result["status"].as_str().unwrap();
    assert!(ended == "finished" || ended == "already_finished", "{result}");
    let again = ok(&mut resume(&run, &[]));
    assert!(again.starts_with("already finished"), "{again}");
    let (status, message) = failure(&mut resume(&run, &["--set", "batch=4"]));
    assert!(status == 2 && message.contains("begin a new run"), "{message}");
    // A learning rate that falls until the end makes the length matter.
    let falling = root.path().join("falling");
    ok(&mut new_run(&falling, 2, &["--quiet", "--set", "schedule=cosine"]));
    let (status, message) = failure(&mut resume(&falling, &["--set", "epochs=3"]));
    assert!(status == 2 && message.contains("--set epochs would change what"), "{message}");
    // Scripts may say again what holds already.
    ok(&mut resume(&falling, &["--quiet", "--set", "epochs=2", "--set", "schedule=cosine"]));
    // Without its checkpoints it begins again, says so, and ends as before.
    let last = falling.join("checkpoints/epoch_00002.safetensors");
    let before = std::fs::read(&last).unwrap();
    std::fs::remove_dir_all(falling.join("checkpoints")).unwrap();
    let output = resume(&falling, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("no checkpoint: the run begins again"), "{said}");
    assert!(std::fs::read(&last).unwrap() == before);
}

#[test]
fn weights_of_another_run_are_not_forgotten_when_a_run_is_killed_early() {
    let root = tempfile::tempdir().unwrap();
    let [donor, whole, broken] = ["donor", "whole", "broken"].map(|name| root.path().join(name));
    ok(&mut new_run(&donor, 4, &["--quiet"]));
    let weights = donor.join("checkpoints/epoch_00004.safetensors");
    let more = ["--quiet", "--set", "checkpoints.every_epochs=0", "--init-from", weights.to_str().unwrap()];
    ok(&mut new_run(&whole, 40, &more));
    let mut child = new_run(&broken, 40, &more).stdout(Stdio::null()).spawn().unwrap();
    wait_for_a_step(&broken, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !broken.join("checkpoints/epoch_00040.safetensors").exists(),
        "the run was too fast to be killed"
    );
    ok(&mut resume(&broken, &["--quiet"]));
    let last = "checkpoints/epoch_00040.safetensors";
    assert_eq!(std::fs::read(whole.join(last)).unwrap(), std::fs::read(broken.join(last)).unwrap());

    // A run's folder stands for its newest checkpoint.
    let [of_file, of_run] = ["of_file", "of_run"].map(|name| root.path().join(name));
    ok(&mut new_run(&of_file, 1, &["--quiet", "--init-from", weights.to_str().unwrap()]));
    ok(&mut new_run(&of_run, 1, &["--quiet", "--init-from", donor.to_str().unwrap()]));
    let first = "checkpoints/epoch_00001.safetensors";
    assert_eq!(std::fs::read(of_file.join(first)).unwrap(), std::fs::read(of_run.join(first)).unwrap());
    let (status, message) = failure(&mut new_run(&root.path().join("none"), 1, &["--init-from", "src"]));
    assert!(status == 1 && message.contains("src"), "{message}");

    let wide = root.path().join("wide");
    let (status, message) = failure(new_run(&wide, 2, &more).args(["--set", "network.width=16"]));
    assert_eq!(status, 1);
    assert!(message.contains("the backbone of the checkpoint does not fit"), "{message}");
    assert!(!wide.exists());
}

#[test]
fn a_preset_file_that_names_a_method_brings_its_settings() {
    let root = tempfile::tempdir().unwrap();
    let preset = root.path().join("own.toml");
    std::fs::write(&preset, "method = \"sie\"\nepochs = 3\n").unwrap();
    let print = ["train", "--print-config", "--preset", preset.to_str().unwrap()];
    let config = ok_json(&mut equicaps(&print));
    assert_eq!((config["method"].as_str(), config["epochs"].as_u64()), (Some("sie"), Some(3)));
    assert_eq!(config["network"]["predictor"], "hypernetwork");
    let (status, message) = failure(equicaps(&print).args(["--method", "vicreg"]));
    assert!(status == 2 && message.contains("is for the method \"sie\", not for \"vicreg\""), "{message}");
}

#[test]
fn mistakes_are_named() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    let wrong = |more: &[&str], expected: &str| {
        let (status, message) = failure(&mut new_run(&run, 2, more));
        assert!(message.contains(expected), "{message}");
        assert!(!run.exists(), "a mistake leaves no folder");
        status
    };
    assert_eq!(wrong(&["--set", "epoch=3"], "there is no setting \"epoch\"; did you mean \"epochs\"?"), 2);
    assert_eq!(wrong(&["--set", "lr=0.1"], "did you mean \"learning_rate\"?"), 2);
    assert_eq!(wrong(&["--set", "batch=big"], "batch takes a whole number"), 2);
    assert_eq!(wrong(&["--method", "equicap"], "did you mean \"equicaps\"?"), 2);
    assert_eq!(wrong(&["--transform", "rotations"], "did you mean \"rotation\"?"), 2);
    assert_eq!(wrong(&["--device", "gpu"], "use auto, cpu, cuda or cuda:N"), 2);
    assert_eq!(wrong(&["--data", "no/such/place"], "there is no dataset at no/such/place"), 1);
    assert_eq!(wrong(&["--init-from", "no.safetensors"], "cannot read no.safetensors"), 1);
    assert_eq!(wrong(&["--choices-of", "no/such/run"], "there is no folder no/such/run"), 1);
    let one = ["--data", "procedural:1x2", "--set", "pairs_per_object=1"];
    assert_eq!(wrong(&one, "a step needs two training pairs"), 1);
    assert_eq!(wrong(&["--seed", "9223372036854775808"], "is not in 0..="), 2);
    assert_eq!(wrong(&["--set", "method=sie"], "give --method sie"), 2);
    assert_eq!(wrong(&["--set", "loss.equivariance=-20"], "loss.equivariance must be a number from 0 on"), 2);
    let twice = "--seed 3 and --set seed=4 contradict each other; give one of them";
    assert_eq!(wrong(&["--seed", "3", "--set", "seed=4"], twice), 2);
    assert_eq!(
        wrong(&["--on-bad-sample", "skip", "--set", "loader.on_bad_sample=\"replace\""], "contradict"),
        2
    );
    let size = "image_size is 4294967296, but must be a multiple of 32 between 32 and 8192";
    assert_eq!(wrong(&["--set", "image_size=4294967296"], size), 2);
    let width = "network.width is 4611686018427387904, but must be at most 4096";
    assert_eq!(wrong(&["--set", "network.width=4611686018427387904"], width), 2);
    assert_eq!(wrong(&["--set", "network.width=8000000"], "must be at most 4096"), 2);
    assert_eq!(wrong(&["--set", "procedural.views=9223372036854775807"], "between 2 and 1000000"), 2);
    // More than any machine that runs tests has.
    let memory = ["--set", "network.width=4096", "--set", "image_size=8192"];
    assert_eq!(wrong(&memory, "GB of memory, and "), 2);
    let (status, message) = failure(&mut equicaps(&["train", "--data", "procedural:2x5"]));
    assert!(status == 2 && message.contains("--run DIR"), "{message}");
    let (status, message) = failure(&mut resume(root.path(), &[]));
    assert!(status == 1 && message.contains("holds no run"), "{message}");
    let (_, message) = failure(&mut resume(&root.path().join("nowhere"), &[]));
    assert!(message.contains("there is no folder"), "{message}");
}

#[test]
fn bad_images_are_named_or_replaced() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("views");
    let path = data.to_str().unwrap();
    ok(&mut equicaps(&[
        "render",
        "--procedural",
        "2x5",
        "--views",
        "3",
        "--size",
        "32",
        "--quality",
        "fast",
        "--format",
        "files",
        "--preset",
        "3diebench-t",
        "--quiet",
        "--out",
        path,
    ]));
    let good = root.path().join("good");
    let more = ["--data", path, "--transform", "rotation+base", "--quiet"];
    let result = ok_json(&mut new_run(&good, 3, &more));
    assert!(result["held_out"]["probe/translation_r2/representation"].is_number(), "{result}");

    let lists = dataset::Dataset::open(&data).unwrap();
    let first = lists.image_name(0, 0);
    std::fs::write(&first, b"not an image").unwrap();
    for view in 1..3 {
        std::fs::remove_file(lists.image_name(1, view)).unwrap();
    }
    let failing = root.path().join("failing");
    let (status, message) = failure(&mut new_run(&failing, 3, &more));
    let object = |number: usize| lists.image_name(number, 0).parent().unwrap().to_str().unwrap().to_owned();
    assert_eq!(status, 1);
    assert!(message.contains(&object(0)) || message.contains(&object(1)), "{message}");
    let shown = ok(equicaps(&["runs", "show"]).arg(&failing));
    assert!(shown.contains("(failed)") && shown.contains(&format!("failed: {}", data.display())), "{shown}");
    let skipping = root.path().join("skipping");
    let result = ok_json(new_run(&skipping, 3, &more).args(["--on-bad-sample", "skip"]));
    assert!(result["epoch_means"]["bad_samples"].as_f64().unwrap() > 0.0, "{result}");

    // It is evaluated without them, and without one of a held-out object, unless that is not wanted.
    std::fs::write(lists.image_name(lists.split(Split::Val).start, 0), b"not an image").unwrap();
    let evaluate = || {
        let mut command = equicaps(&["evaluate", "--preset", "quick", "--quiet"]);
        command.arg(&skipping);
        command
    };
    let found = ok_json(&mut evaluate());
    let measured = &found["results"][0];
    assert_eq!((&measured["data"]["left_out"], &measured["data"]["views"]), (&4.into(), &3.into()));
    assert!(measured["representations"]["rotation"].is_object(), "{measured}");
    let (status, message) = failure(evaluate().args(["--on-bad-sample", "fail"]));
    assert!(
        status == 1 && message.contains("--on-bad-sample skip leaves out what cannot be used"),
        "{message}"
    );
    assert!(message.contains(&object(0)) || message.contains(&object(1)), "{message}");
    // Neighbours have the numbers of the whole dataset, with which a report draws them.
    let neighbours = Path::new(found["folders"][0].as_str().unwrap()).join("neighbours.json");
    let neighbours: Vec<serde_json::Value> =
        serde_json::from_slice(&std::fs::read(neighbours).unwrap()).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap() as usize;
    assert!(!neighbours.is_empty());
    for view in neighbours.iter().flat_map(|query| query["found"].as_array().unwrap().iter().chain([query])) {
        lists.read_jpeg(number(&view["object"]), number(&view["view"])).unwrap();
    }
    let report = root.path().join("report.html");
    ok(equicaps(&["report"]).arg(&skipping).arg("--out").arg(&report));
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("4 left out, which cannot be read"), "conditions say so");

    std::fs::remove_dir_all(&data).unwrap();
    let (_, message) = failure(&mut resume(&failing, &[]));
    assert!(message.contains("there is no dataset at"), "{message}");
    // A finished run needs no data.
    assert!(ok(&mut resume(&good, &[])).starts_with("already finished"));
}

#[test]
fn split_files_may_be_kept_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    let [data, lists, run] = ["views", "lists", "run"].map(|name| root.path().join(name));
    let small = ["--procedural", "2x5", "--views", "3", "--size", "32", "--quality", "fast", "--quiet"];
    ok(equicaps(&["render", "--format", "files"]).args(small).arg("--out").arg(&data));
    // As published: images and latents in one folder, the lists in another, and no card.
    std::fs::create_dir(&lists).unwrap();
    for name in ["train_images.npy", "train_labels.npy", "val_images.npy", "val_labels.npy"] {
        std::fs::rename(data.join(name), lists.join(name)).unwrap();
    }
    for name in ["dataset.json", "classes.json", "all_latents_train.npy", "all_latents_val.npy"] {
        std::fs::remove_file(data.join(name)).unwrap();
    }
    let path = data.to_str().unwrap();
    let (_, message) = failure(&mut new_run(&run, 2, &["--data", path]));
    assert!(message.contains("named by --lists"), "{message}");
    let lists = lists.to_str().unwrap();
    ok(&mut new_run(&run, 2, &["--quiet", "--data", path, "--lists", lists]));
    assert!(ok(&mut resume(&run, &["--quiet", "--set", "epochs=3"])).starts_with("finished"));
}

#[test]
fn one_view_of_every_object_is_too_few() {
    let root = tempfile::tempdir().unwrap();
    let (data, run) = (root.path().join("views"), root.path().join("run"));
    let small = ["--procedural", "2x3", "--views", "1", "--size", "32", "--quality", "fast", "--quiet"];
    ok(equicaps(&["render"]).args(small).arg("--out").arg(&data));
    let (status, message) = failure(&mut new_run(&run, 2, &["--data", data.to_str().unwrap()]));
    assert_eq!(status, 1);
    assert!(message.contains("has one view of every object, but a pair needs two"), "{message}");
    assert!(!run.exists());
}

#[test]
fn runs_tell_about_themselves() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (root.path().join("first"), root.path().join("second"));
    ok(&mut new_run(&first, 3, &["--quiet"]));
    let donor = first.join("checkpoints/epoch_00003.safetensors");
    let init = ["--quiet", "--method", "vicreg", "--init-from", donor.to_str().unwrap()];
    ok(&mut new_run(&second, 2, &init));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());

    let listed = ok_json(equicaps(&["runs", "list"]).arg(root.path()));
    assert_eq!(listed["runs"][1]["method"], "vicreg");
    assert_eq!(listed["runs"][0]["state"], "finished");
    let table = ok(equicaps(&["runs", "list"]).arg(root.path()));
    assert!(table.starts_with("run ") && table.contains("3/3"), "{table}");
    let shown = ok(&mut equicaps(&["runs", "show", first]));
    assert!(shown.contains("epoch 3 of 3, step 9") && shown.contains("probe/rotation_r2/poses"), "{shown}");
    let compared = ok_json(&mut equicaps(&["runs", "compare", first, second]));
    assert_eq!(compared["settings_that_differ"]["method"], serde_json::json!(["equicaps", "vicreg"]));
    let ends = serde_json::json!([
        { "epoch": 3, "epochs": 3, "state": "finished" },
        { "epoch": 2, "epochs": 2, "state": "finished" },
    ]);
    assert_eq!(compared["progress"], ends);

    let twin = root.path().join("elsewhere/first");
    ok(&mut new_run(&twin, 1, &["--quiet"]));
    let compared = ok(&mut equicaps(&["runs", "compare", first, twin.to_str().unwrap()]));
    let heading = compared.lines().next().unwrap();
    assert!(heading.contains(&format!(" {first} ")) && heading.ends_with("elsewhere/first"), "{heading}");

    let out = root.path().join("curves");
    let plotted =
        ok_json(equicaps(&["runs", "plot", first, second, "--metric", "rotation_r2", "--out"]).arg(&out));
    let image = plotted["files"][0].as_str().unwrap();
    assert!(std::fs::read(image).unwrap().starts_with(b"\x89PNG"));
    // Over epochs, which have equally many steps here, unless something else is asked for.
    let axis = |word: &str| {
        std::fs::read_to_string(image.replace(".png", ".svg")).unwrap().contains(&format!(">{word}</text>"))
    };
    assert!(axis("epoch") && !axis("step"));
    ok(equicaps(&["runs", "plot", first, second, "--over", "steps", "--metric", "rotation_r2", "--out"])
        .arg(&out));
    assert!(axis("step") && !axis("epoch"));
    // Without a metric, what people look at first, on one page.
    let plotted = ok_json(equicaps(&["runs", "plot", first, second, "--out"]).arg(&out));
    assert_eq!(plotted["files"], serde_json::json!([out.join("curves.png")]));
    let all = ok_json(equicaps(&["runs", "plot", first, "--all", "--out"]).arg(&out));
    assert!(all["files"].as_array().unwrap().len() > 5, "{all}");
    let shown = ok_json(&mut equicaps(&["runs", "show", first]));
    for kind in ["epoch_means", "held_out"] {
        for name in shown[kind].as_object().unwrap().keys() {
            assert!(shown["meanings"][name].is_string(), "{name} is not explained");
        }
    }
    let (status, _) = failure(&mut equicaps(&["runs", "plot", first, "--metric", "no such number"]));
    assert_eq!(status, 2);

    // A damaged line is left out, and that is said; the run is of use without it.
    let metrics = Path::new(first).join("metrics.jsonl");
    let text = std::fs::read_to_string(&metrics).unwrap();
    std::fs::write(&metrics, text.replacen('{', "x", 1)).unwrap();
    let sentence =
        format!("damaged lines in {}: 1, the first is line 1; they are left out", metrics.display());
    let report = root.path().join("report.html");
    for words in [
        &["runs", "show", first][..],
        &["runs", "compare", first, second],
        &["runs", "list", root.path().to_str().unwrap()],
        &["train", "--resume", first],
        &["report", first, second, "--out", report.to_str().unwrap()],
    ] {
        let output = equicaps(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains(&sentence), "{words:?}: {said}");
    }
}

/// Killed between the last checkpoint and the removal of the one before it.
#[test]
fn a_kill_right_after_the_last_checkpoint_leaves_nothing_behind() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    ok(&mut new_run(&run, 2, &["--set", "checkpoints.keep=1", "--quiet"]));
    let [before, last] = [1, 2].map(|epoch| run.join(format!("checkpoints/epoch_{epoch:05}.safetensors")));
    assert!(!before.exists());
    std::fs::copy(&last, &before).unwrap();
    assert!(ok(&mut resume(&run, &[])).starts_with("already finished"));
    assert!(!before.exists() && last.exists());
}
