//! Several ranks under mpirun: what one rank gives, signals, ranks that are killed or hang, resuming, rendering, evaluation.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Signal, TINY, equicaps, failure, ok, ok_json, render_views, set, signal};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// `equicaps` on `ranks` ranks.
fn mpirun(ranks: usize, arguments: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none", "-n", &ranks.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_equicaps")).args(arguments);
    command.stdin(Stdio::null()).env("CUDA_VISIBLE_DEVICES", "");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// A run of ten steps on `ranks` ranks; one without mpirun.
fn train(ranks: usize, data: &Path, run: &Path, more: &[&str]) -> Command {
    let arguments = ["train", "--quiet", "--preset", "demo", "--threads", "1"];
    let mut command = if ranks == 1 { equicaps(&arguments) } else { mpirun(ranks, &arguments) };
    command.arg("--data").arg(data).arg("--run").arg(run);
    let settings = ["batch=6", "epochs=5", "logging.every_steps=1", "checkpoints.every_epochs=1"];
    set(set(set(&mut command, &TINY), &settings), more);
    command
}

fn resume(ranks: usize, run: &Path) -> Command {
    let arguments = ["train", "--threads", "1", "--resume"];
    let mut command = if ranks == 1 { equicaps(&arguments) } else { mpirun(ranks, &arguments) };
    command.arg(run);
    command
}

fn last_checkpoint(run: &Path) -> Vec<u8> {
    std::fs::read(run.join("checkpoints/epoch_00005.safetensors")).unwrap()
}

/// The losses and held-out scores of a run, by line.
fn numbers(run: &Path) -> Vec<(String, f64)> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let mut found = Vec::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        for (name, value) in line["values"].as_object().unwrap() {
            found.push((format!("{} {name}", line["step"]), value.as_f64().unwrap()));
        }
    }
    found
}

fn close(one: &[(String, f64)], several: &[(String, f64)]) {
    assert_eq!(one.len(), several.len());
    for ((name, a), (other, b)) in one.iter().zip(several) {
        assert_eq!(name, other);
        // Rounding grows from step to step: a gradient that is nearly zero moves its weight one way or the other.
        if name.split(' ').next().is_some_and(|step| step.parse::<u64>().unwrap() <= 8) {
            assert!((a - b).abs() < 1e-3 * a.abs().max(1.0), "{name}: {a} and {b}");
        }
    }
}

/// The process that is `rank` of those that `mpirun` started.
fn process(mpirun: &Child, rank: usize) -> Option<u32> {
    let wanted = format!("OMPI_COMM_WORLD_RANK={rank}");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut own = ids.filter(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parent == Some(mpirun.id())
    });
    own.find(|id| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
    })
}

/// Waits until there is `file`.
fn wait_for(file: &Path, child: &mut Child) {
    let began = Instant::now();
    while !file.exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended before {}", file.display());
        assert!(began.elapsed() < PATIENCE, "there is no {}", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The exit status and what was said.
fn end(mut child: Child) -> (Option<i32>, String) {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("mpirun did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    let said = [output.stderr, output.stdout].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Views of 15 objects, 12 of them for training.
fn views(root: &Path) -> PathBuf {
    let views = root.join("views");
    render_views("3x5", &views, &[]);
    views
}

#[test]
fn ranks_train_what_one_rank_trains_and_the_same_bits_again() {
    let root = tempfile::tempdir().unwrap();
    let data = views(root.path());
    let run = |name: &str| root.path().join(name);
    ok(&mut train(1, &data, &run("one"), &[]));
    for ranks in [2, 3] {
        let [first, again] = ["first", "again"].map(|name| run(&format!("{name}-{ranks}")));
        ok(&mut train(ranks, &data, &first, &[]));
        ok(&mut train(ranks, &data, &again, &[]));
        close(&numbers(&run("one")), &numbers(&first));
        assert!(last_checkpoint(&first) == last_checkpoint(&again), "{ranks} ranks, twice");
    }
    let (status, said) = failure(&mut train(4, &data, &run("four"), &[]));
    assert_ne!(status, 0);
    assert!(said.contains("4 ranks cannot share a batch: batch is 6; use 3 or 6"), "{said}");
    assert_eq!(said.matches("cannot share").count(), 1, "{said}");
}

#[test]
fn ranks_update_by_muon_what_one_rank_updates() {
    let root = tempfile::tempdir().unwrap();
    let data = views(root.path());
    let muon = ["optimiser=muon", "learning_rate=5e-3", "epochs=2"];
    for ranks in [1, 2] {
        ok(&mut train(ranks, &data, &root.path().join(ranks.to_string()), &muon));
    }
    close(&numbers(&root.path().join("1")), &numbers(&root.path().join("2")));
}

#[test]
fn a_signal_to_any_rank_saves_once_and_the_run_resumes_bit_for_bit() {
    let root = tempfile::tempdir().unwrap();
    let data = views(root.path());
    let (whole, broken) = (root.path().join("whole"), root.path().join("broken"));
    // Long enough to be interrupted.
    let more = ["epochs=5", "pairs_per_object=40"];
    ok(&mut train(2, &data, &whole, &more));
    let mut child = spawn(&mut train(2, &data, &broken, &more));
    wait_for(&broken.join("metrics.jsonl"), &mut child);
    std::thread::sleep(Duration::from_millis(300));
    signal(process(&child, 1).unwrap(), Signal::TERM);
    let (status, said) = end(child);
    assert_eq!(status, Some(75), "{said}");
    assert_eq!(said.matches("continue with: equicaps train --resume").count(), 1, "{said}");
    // Goes on with another number of ranks, and says so.
    let other = root.path().join("other");
    copy(&broken, &other);
    ok(&mut resume(2, &broken));
    assert!(last_checkpoint(&broken) == last_checkpoint(&whole), "resumed on as many ranks");
    let output = resume(1, &other).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("this run used 2 ranks"), "{said}");
    assert!(said.contains("not bit for bit"), "{said}");
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
}

#[test]
fn a_rank_that_is_killed_or_hangs_ends_the_others_and_is_named() {
    let root = tempfile::tempdir().unwrap();
    let data = views(root.path());
    let run = root.path().join("run");
    let mut child = spawn(train(3, &data, &run, &["pairs_per_object=400"]).env("EQUICAPS_RANK_SILENCE", "4"));
    wait_for(&run.join("metrics.jsonl"), &mut child);
    let hanging = process(&child, 2).unwrap();
    signal(hanging, Signal::STOP);
    let began = Instant::now();
    // mpirun waits for the one that was stopped; the others have ended.
    while process(&child, 0).is_some() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(hanging, Signal::KILL);
    let (status, said) = end(child);
    assert_ne!(status, Some(0));
    assert!(said.contains("rank 2 on ") && said.contains("has not answered for"), "{said}");

    let child = spawn(&mut resume(3, &run));
    let began = Instant::now();
    while process(&child, 1).is_none() && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1500));
    signal(process(&child, 1).unwrap(), Signal::KILL);
    let (status, said) = end(child);
    assert_ne!(status, Some(0), "{said}");
    assert!(said.contains("rank 1"), "{said}");
    // The run is whole.
    assert_eq!(ok_json(equicaps(&["runs", "show"]).arg(&run))["state"], "stopped");
}

#[test]
fn ranks_render_the_same_bytes_and_evaluate_to_the_same_numbers() {
    let root = tempfile::tempdir().unwrap();
    let data = views(root.path());
    let shared = root.path().join("shared");
    let arguments = ["render", "--quiet", "--procedural", "3x5", "--views", "4", "--size", "32"];
    let said = ok(mpirun(3, &arguments).args(["--quality", "fast", "--out"]).arg(&shared));
    assert!(said.contains("complete, 60 images of 15 objects"), "{said}");
    let same = Command::new("diff").arg("-r").args([&data, &shared]).output().unwrap();
    assert!(same.status.success(), "{}", String::from_utf8_lossy(&same.stdout));
    let run = root.path().join("run");
    ok(&mut train(1, &data, &run, &["epochs=1"]));
    let evaluate = |ranks: usize, out: &str| {
        let arguments = ["evaluate", "--quiet", "--preset", "quick", "--no-images", "--json", "--data"];
        let mut command = if ranks == 1 { equicaps(&arguments) } else { mpirun(ranks, &arguments) };
        let said = ok(command.arg(&data).arg(&run).arg("--out").arg(root.path().join(out)));
        let mut results: serde_json::Value = serde_json::from_str(&said).unwrap();
        let results = results["results"][0].as_object_mut().unwrap();
        ["representations", "embeddings", "retrieval"].map(|part| results[part].clone())
    };
    assert_eq!(evaluate(1, "one"), evaluate(2, "two"));
}

#[test]
fn the_check_of_ranks_starts_them_itself() {
    let report = ok_json(&mut equicaps(&[
        "check",
        "ranks",
        "--ranks",
        "2",
        "--method",
        "equicaps",
        "--backbone",
        "resnet18",
        "--steps",
        "5",
    ]));
    let row = &report["rows"][0];
    assert_eq!((row["within"].as_bool(), row["same_bits"].as_bool()), (Some(true), Some(true)), "{report}");
}
