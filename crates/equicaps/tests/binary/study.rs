//! `equicaps study`: a tiny study from end to end, interrupted, shared, and with a run that fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

#[cfg(unix)]
use crate::support::{Signal, signal};
use crate::support::{equicaps, exit_status, failure, object, ok, ok_json};

const PATIENCE: Duration = Duration::from_secs(120);

/// Two methods on four views of twelve objects; `more` ends the file.
pub fn study(root: &Path, epochs: u64, more: &str) -> PathBuf {
    let file = root.join("tiny.toml");
    let text = format!(
        r#"
title = "A tiny study"
[data.T]
procedural = "3x4"
views = 4
size = 32
quality = "fast"
[all]
preset = "demo"
set = {{ image_size = 32, "network.width" = 8, "network.capsules" = 4, batch = 8, epochs = {epochs}, "checkpoints.every_epochs" = 1 }}
[evaluate]
preset = "quick"
tasks = ["rotation"]
no_images = true
[[runs]]
data = "T"
method = ["vicreg", "equicaps"]
{more}"#
    );
    std::fs::write(&file, text).unwrap();
    file
}

pub fn call(root: &Path, more: &[&str]) -> Command {
    let mut command = equicaps(&["study", "tiny.toml", "--quiet", "--threads", "1"]);
    command.args(more).current_dir(root);
    command
}

fn text(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join("tiny").join(path)).unwrap()
}

/// Lets the preset `own` choose how long the runs of `file` are.
fn own(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.replace("preset = \"demo\"", "preset = \"own\"").replace("epochs = 1, ", "");
    std::fs::write(file, text.replace("batch = 8", "batch = 4")).unwrap();
}

/// The last checkpoint of a run.
fn weights(root: &Path, run: &str) -> Vec<u8> {
    let folder = root.join("tiny/runs").join(run).join("checkpoints");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    std::fs::read(files.last().unwrap()).unwrap()
}

#[test]
fn a_study_is_made_once_and_reported() {
    let root = tempfile::tempdir().unwrap();
    study(root.path(), 2, "");
    let plan = ok_json(&mut call(root.path(), &["--dry-run"]));
    assert_eq!(plan["runs"].as_array().unwrap().len(), 2, "{plan}");
    assert_eq!(
        (&plan["runs"][0]["progress"], &plan["runs"][0]["steps"]),
        (&"to do".into(), &4.into()),
        "{plan}"
    );
    assert!(plan["estimated_seconds"].as_f64().unwrap() > 0.0, "{plan}");
    assert!(!root.path().join("tiny").exists(), "a plan writes nothing");
    let made = ok_json(&mut call(root.path(), &[]));
    assert_eq!((&made["finished"], &made["report"]), (&2.into(), &"tiny/report.html".into()), "{made}");
    let page = text(root.path(), "report.html");
    assert!(page.contains("A tiny study") && page.contains("EquiCaps"), "the report of the study");
    assert!(!root.path().join("tiny/runs/T-vicreg-s0/evaluation/features").exists(), "features are removed");
    // Nothing is made twice.
    let environment = "runs/T-vicreg-s0/environment.json";
    let (sessions, before) = (text(root.path(), environment), weights(root.path(), "T-equicaps-s0"));
    let results = "runs/T-vicreg-s0/evaluation/epoch_00002/results.json";
    let evaluated = std::fs::metadata(root.path().join("tiny").join(results)).unwrap().modified().unwrap();
    ok(&mut call(root.path(), &[]));
    assert_eq!(text(root.path(), environment), sessions);
    assert!(weights(root.path(), "T-equicaps-s0") == before);
    let again = std::fs::metadata(root.path().join("tiny").join(results)).unwrap().modified().unwrap();
    assert_eq!(evaluated, again);
    let plan = ok(&mut call(root.path(), &["--dry-run"]));
    assert_eq!(plan.matches("finished").count(), 2, "{plan}");
    // More epochs go on from where it ended.
    study(root.path(), 3, "");
    let made = ok_json(&mut call(root.path(), &["--only", "vicreg"]));
    assert_eq!((&made["runs"], &made["finished"]), (&1.into(), &1.into()), "{made}");
    assert!(root.path().join("tiny/runs/T-vicreg-s0/evaluation/epoch_00003/results.json").exists());
    // Checkpoints and views of what is evaluated may be removed; what is not evaluated yet is trained anew without them.
    let folder = |path: &str| root.path().join("tiny").join(path);
    for path in ["runs/T-vicreg-s0/checkpoints", "runs/T-equicaps-s0/checkpoints", "data"] {
        std::fs::remove_dir_all(folder(path)).unwrap();
    }
    let made = ok_json(&mut call(root.path(), &["--only", "vicreg"]));
    assert_eq!(made["finished"], 1, "{made}");
    // What was the newest checkpoint when it was evaluated is that of an epoch.
    study(root.path(), 3, "evaluate = { epochs = [2, 3] }\n");
    let made = ok_json(&mut call(root.path(), &["--only", "vicreg"]));
    assert_eq!(made["finished"], 1, "{made}");
    study(root.path(), 3, "");
    assert!(!folder("data").exists() && !folder("runs/T-vicreg-s0/checkpoints").exists());
    let made = ok_json(&mut call(root.path(), &[]));
    assert_eq!(made["finished"], 2, "{made}");
    assert!(folder("runs/T-equicaps-s0/evaluation/epoch_00003/results.json").exists());
    let (code, said) = failure(&mut call(root.path(), &["--only", "nobody"]));
    assert!(
        code == 2 && said.contains("no run has such a name (runs: T-vicreg-s0, T-equicaps-s0)"),
        "{said}"
    );
}

#[test]
fn further_data_to_evaluate_on_are_those_of_the_study_or_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let more = |also: &str| {
        format!(
            "evaluate = {{ also = [\"{also}\"] }}\n[data.O]\nprocedural = \"3x4\"\nviews = 4\nsize = 32\nseed = 5\n"
        )
    };
    study(root.path(), 1, &more("P"));
    let (code, said) = failure(&mut call(root.path(), &["--dry-run"]));
    let wrong = "tiny.toml, line 15: also is \"P\", which is neither a folder nor one of the data of this study (O, T)";
    assert!(code == 2 && said.contains(wrong), "{said}");
    study(root.path(), 1, &more("O"));
    ok(&mut call(root.path(), &["--only", "equicaps"]));
    let results: Value =
        serde_json::from_str(&text(root.path(), "runs/T-equicaps-s0/evaluation/epoch_00001/results.json"))
            .unwrap();
    assert_eq!(results["also"][0]["data"]["path"], "tiny/data/O");
    assert!(results["also"][0]["representations"]["rotation"]["value"]["value"].is_f64());
}

#[test]
fn folders_of_others_are_left_alone() {
    let root = tempfile::tempdir().unwrap();
    study(root.path(), 1, "");
    let (mine, text) = (root.path().join("mine"), "my thesis");
    std::fs::create_dir(&mine).unwrap();
    std::fs::write(mine.join("report.html"), text).unwrap();
    for words in
        [&["study", "tiny.toml"][..], &["demo"], &["evaluate", "builtin", "--data", "procedural:2x4"]]
    {
        let mut command = equicaps(words);
        let (code, said) = failure(command.current_dir(root.path()).args(["--quiet", "--out", "mine"]));
        assert!(code == 2 && said.contains("mine is not empty and holds no"), "{said}");
        assert_eq!(std::fs::read_dir(&mine).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(mine.join("report.html")).unwrap(), text);
    }
}

#[test]
fn text_is_no_number() {
    let root = tempfile::tempdir().unwrap();
    study(root.path(), 1, "set = { epochs = \"3\" }\n");
    let (code, said) = failure(&mut call(root.path(), &["--dry-run"]));
    assert!(code == 2 && said.contains("epochs takes a whole number, 0 or more, not \"3\""), "{said}");
}

#[test]
fn what_has_changed_or_is_lost_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    // The checkpoint after the first epoch would not stay by itself.
    let more = r#"set = { "checkpoints.every_epochs" = 0 }
evaluate = { epochs = [1, 3] }
"#;
    let file = study(root.path(), 3, more);
    ok(&mut call(root.path(), &["--only", "vicreg"]));
    let results = |epoch: u64| format!("runs/T-vicreg-s0/evaluation/epoch_{epoch:05}/results.json");
    let (first, last) = (text(root.path(), &results(1)), text(root.path(), &results(3)));
    // Results that are damaged or gone are made again, the others are not.
    std::fs::write(root.path().join("tiny").join(results(1)), &first[..99]).unwrap();
    let made = ok_json(&mut call(root.path(), &["--only", "vicreg"]));
    assert_eq!(made["finished"], 1, "{made}");
    let without_times = |text: &str| {
        let mut results: Value = serde_json::from_str(text).unwrap();
        results.as_object_mut().unwrap().remove("seconds");
        results
    };
    assert_eq!(without_times(&text(root.path(), &results(1))), without_times(&first));
    assert_eq!(text(root.path(), &results(3)), last);
    // Where other results have taken the place of those that are asked for, these are made again.
    let asked = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, asked.replace("[evaluate]", "[evaluate]\nseed = 1")).unwrap();
    ok(&mut call(root.path(), &["--only", "vicreg"]));
    assert_ne!(without_times(&text(root.path(), &results(3))), without_times(&last));
    std::fs::write(&file, asked.replace("[1, 3]", "[1, \"newest\"]")).unwrap();
    ok(&mut call(root.path(), &["--only", "vicreg"]));
    assert_eq!(without_times(&text(root.path(), &results(3))), without_times(&last));
    std::fs::write(&file, &asked).unwrap();
    ok(&mut call(root.path(), &["--only", "vicreg"]));
    assert_eq!(without_times(&text(root.path(), &results(3))), without_times(&last));
    // Other devices and versions make the same data.
    let card = root.path().join("tiny/data/T/dataset.json");
    let made = std::fs::read_to_string(&card).unwrap();
    let mut other: Value = serde_json::from_str(&made).unwrap();
    let settings = other["settings"].as_object_mut().unwrap();
    settings.insert("mixed_devices".to_owned(), serde_json::json!(["cuda"]));
    settings.insert("version".to_owned(), "0.0.9".into());
    std::fs::write(&card, other.to_string()).unwrap();
    assert_eq!(ok_json(&mut call(root.path(), &["--only", "vicreg"]))["finished"], 1);
    std::fs::write(&card, made).unwrap();
    // Nothing is made of other data, or for less; the plan says so, too.
    for (before, after, expected) in [
        (
            "3x4",
            "3x5",
            "data/T was made otherwise than tiny.toml says (objects is 12 there, 15 was asked for)",
        ),
        ("epochs = 3, ", "epochs = 2, ", "epoch 3 is to be evaluated, but T-vicreg-s0 has 2"),
        ("epochs = 3, ", "epochs = 4, \"loss.variance\" = 7.0, ", "loss.variance = "),
        ("[1, 3]", "[1, 9]", "epoch 9 is to be evaluated, but T-vicreg-s0 has 3"),
        ("tasks = [\"rotation\"]", "tasks = [\"rotatoin\"]", "there is no task \"rotatoin\""),
    ] {
        std::fs::write(&file, asked.replace(before, after)).unwrap();
        for dry in [&["--only", "vicreg", "--dry-run"][..], &["--only", "vicreg"]] {
            let (_, said) = failure(&mut call(root.path(), dry));
            assert!(said.contains(expected), "{after}: {said}");
        }
    }
    std::fs::write(&file, asked.replace("epochs = 3, ", "epochs = 2, ").replace("[1, 3]", "[1]")).unwrap();
    let (_, said) = failure(&mut call(root.path(), &["--only", "vicreg"]));
    assert!(said.contains("has been trained for 3 epochs, but tiny.toml says 2 epochs"), "{said}");
    // Data that somebody else made.
    let there = |path: &str| {
        let data = asked.find("procedural = ").unwrap()..asked.find("[all]").unwrap();
        let mut text = asked.clone();
        text.replace_range(data, &format!("path = \"{path}\"\n"));
        std::fs::write(&file, text).unwrap();
        call(root.path(), &["--only", "vicreg", "--out", "there"])
    };
    ok(&mut there("procedural:2x4"));
    let (_, said) = failure(&mut there("procedural:2x5"));
    let expected = "has been trained on procedural:2x4, but tiny.toml says procedural:2x5";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn two_calls_at_a_time_share_the_runs_and_wait_for_each_other() {
    let root = tempfile::tempdir().unwrap();
    study(root.path(), 12, "");
    let start =
        || call(root.path(), &["--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let both = [start(), start()];
    for child in both {
        let ended = child.wait_with_output().unwrap();
        let said: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!((ended.status.code(), &said["finished"]), (Some(0), &2.into()), "{said}");
        assert!(
            said["failed"].as_object().unwrap().is_empty() && said["left"] == serde_json::json!([]),
            "{said}"
        );
    }
    for run in ["T-vicreg-s0", "T-equicaps-s0"] {
        let sessions: Value =
            serde_json::from_str(&text(root.path(), &format!("runs/{run}/environment.json"))).unwrap();
        assert_eq!(sessions.as_array().unwrap().len(), 1, "{run} was trained once");
    }
}

#[test]
fn what_the_preset_own_chose_holds_where_a_run_goes_on() {
    let root = tempfile::tempdir().unwrap();
    own(&study(root.path(), 1, ""));
    let planned = || ok_json(&mut call(root.path(), &["--dry-run"]))["runs"][1].clone();
    // The views are not there yet.
    let before = planned();
    assert_eq!(before["progress"], "to do", "{before}");
    let some = ["--only", "equicaps", "--stop-after", "2"];
    let mut child = call(root.path(), &some).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(exit_status(&mut child, PATIENCE), Some(75));
    let begun = planned();
    assert_eq!((&begun["steps"], &begun["epochs"]), (&before["steps"], &before["epochs"]), "{begun}");
    assert!(begun["progress"] != "finished" && begun["progress"] != "trained, to be evaluated", "{begun}");
    let made = ok_json(&mut call(root.path(), &["--only", "equicaps"]));
    assert_eq!(made["finished"], 1, "{made}");
    let run = shown(root.path(), "T-equicaps-s0");
    assert_eq!((&run["state"], &run["step"]), (&"finished".into(), &before["steps"]), "{run}");
    let epochs = before["epochs"].as_u64().unwrap();
    let results = format!("runs/T-equicaps-s0/evaluation/epoch_{epochs:05}/results.json");
    assert!(root.path().join("tiny").join(&results).exists(), "{results}");
    // What the file says now is compared with what the run has.
    let file = root.path().join("tiny.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("batch = 4", "batch = 6")).unwrap();
    let (code, said) = failure(&mut call(root.path(), &["--dry-run"]));
    assert!(code == 1 && said.contains("has batch = 4, but tiny.toml says batch = 6"), "{said}");
}

#[test]
fn a_run_that_fails_is_named_and_the_others_go_on() {
    let root = tempfile::tempdir().unwrap();
    // Translations that the data do not have.
    let file = study(root.path(), 1, "[[runs]]\ndata = \"T\"\nmethod = \"sie\"\n");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace(
        "method = [\"vicreg\", \"equicaps\"]",
        "method = \"equicaps\"\ntransform = \"rotation+base\"",
    );
    std::fs::write(&file, text.replace("procedural =", "preset = \"3diebench\"\nprocedural =")).unwrap();
    let output = call(root.path(), &["--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let made = object(&String::from_utf8(output.stdout).unwrap());
    let why = made["failed"]["T-equicaps-rotation+base-s0"].as_str().unwrap();
    assert!(why.contains("needs views with translations"), "{made}");
    assert_eq!(
        (&made["finished"], &made["error"]),
        (&1.into(), &"1 run failed: T-equicaps-rotation+base-s0".into())
    );
    assert!(made["report"].is_string(), "{made}");
    // A run with other settings is not overwritten.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("batch = 8", "batch = 6")).unwrap();
    let (code, said) = failure(&mut call(root.path(), &["--only", "sie"]));
    assert!(code == 1 && said.contains("has batch = 8, but tiny.toml says batch = 6"), "{said}");
}

#[test]
fn mistakes_in_the_file_are_found_before_anything_begins() {
    let root = tempfile::tempdir().unwrap();
    for (more, expected) in [
        ("[[runs]]\ndata = \"T\"\nmethod = \"equicap\"\n", "did you mean \"equicaps\"?"),
        ("[[runs]]\ndata = \"T\"\nmethod = \"sie\"\nset = { epoch = 3 }\n", "there is no setting \"epoch\""),
        (
            "[[runs]]\ndata = \"T\"\nmethod = \"sie\"\nevaluate = { presets = \"quick\" }\n",
            "unexpected argument '--presets'",
        ),
    ] {
        study(root.path(), 1, more);
        let (code, said) = failure(&mut call(root.path(), &[]));
        let line = said.lines().last().unwrap();
        assert!(code == 2 && line.contains("tiny.toml, line 18: ") && line.contains(expected), "{said}");
    }
    assert!(!root.path().join("tiny").exists());
}

#[test]
fn shards_share_the_runs_and_the_last_one_reports() {
    let root = tempfile::tempdir().unwrap();
    study(root.path(), 1, "");
    let first = ok_json(&mut call(root.path(), &["--shard", "1/2"]));
    assert_eq!((&first["finished"], &first["report"]), (&1.into(), &Value::Null), "{first}");
    assert_eq!(first["left"], serde_json::json!(["T-vicreg-s0"]));
    let mut array = call(root.path(), &[]);
    array.env("SLURM_ARRAY_TASK_ID", "0").env("SLURM_ARRAY_TASK_COUNT", "2");
    let second = ok_json(&mut array);
    assert_eq!((&second["finished"], &second["report"]), (&2.into(), &"tiny/report.html".into()), "{second}");
}

#[test]
fn several_runs_at_a_time_are_the_same_runs() {
    let (one, several) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The third run fails.
    let more = "[[runs]]\ndata = \"N\"\nmethod = \"sie\"\n[data.N]\npath = \"nowhere\"\n";
    for (root, jobs) in [(&one, "1"), (&several, "3")] {
        study(root.path(), 3, more);
        let mut command = equicaps(&["study", "tiny.toml", "--json", "--threads", "2", "--jobs", jobs]);
        let output = command.current_dir(root.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let made = object(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(made["finished"], 2, "{made}");
        assert_eq!(made["failed"]["N-sie-s0"], "nowhere, its data, are not there", "{made}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("warning: [3/3] N-sie-s0 failed: nowhere, its data"), "{said}");
        // The words of several do not get mixed up: every line says whose it is.
        if jobs == "3" {
            let stray = said.lines().find(|line| !line.trim_start_matches("warning: ").starts_with('['));
            assert!(stray.is_none_or(|line| line.starts_with("error: ")), "{said}");
            assert_eq!(said.matches(": done, ").count(), 2, "{said}");
        }
    }
    for run in ["T-vicreg-s0", "T-equicaps-s0"] {
        assert!(weights(one.path(), run) == weights(several.path(), run), "{run}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_study_goes_on_where_its_program_is_removed() {
    let root = tempfile::tempdir().unwrap();
    study(root.path(), 60, "");
    let program = root.path().join("program");
    std::fs::copy(equicaps(&[]).get_program(), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["study", "tiny.toml", "--quiet", "--threads", "1"]).current_dir(root.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(root.path(), "T-vicreg-s0", "running");
    std::fs::remove_file(&program).unwrap();
    assert_eq!(exit_status(&mut child, PATIENCE), Some(0));
    assert!(root.path().join("tiny/runs/T-equicaps-s0/evaluation/epoch_00060/results.json").exists());
}

#[test]
fn ranks_of_a_launcher_share_the_runs() {
    let root = tempfile::tempdir().unwrap();
    study(root.path(), 1, "");
    let rank = |rank: &str| {
        let mut command = call(root.path(), &["--json"]);
        command.env("OMPI_COMM_WORLD_RANK", rank).env("OMPI_COMM_WORLD_SIZE", "2");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [rank("0"), rank("1")].map(|child| child.wait_with_output().unwrap());
    let reports = both.iter().filter(|output| {
        assert!(output.status.success(), "{output:?}");
        object(std::str::from_utf8(&output.stdout).unwrap())["report"].is_string()
    });
    assert!(reports.count() >= 1);
}

/// What is known about a run.
fn shown(root: &Path, run: &str) -> Value {
    let output =
        equicaps(&["runs", "show", "--json"]).arg(root.join("tiny/runs").join(run)).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Waits until a run is `state`, and has a checkpoint.
fn wait_until(root: &Path, run: &str, state: &str) {
    let began = Instant::now();
    loop {
        let found = shown(root, run);
        if found["state"] == state && found["checkpoints"].as_array().is_some_and(|all| !all.is_empty()) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{run} is not {state}: {found}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_study_goes_on_where_it_was() {
    let (whole, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for root in [&whole, &broken] {
        study(root.path(), 150, "");
    }
    ok(&mut call(whole.path(), &[]));
    let (int, term, kill) = ((Signal::INT, Some(75)), (Signal::TERM, Some(75)), (Signal::KILL, None));
    for ((sent, status), jobs) in [(int, "1"), (term, "2"), (kill, "1"), (int, "2"), (kill, "2")] {
        let mut child = call(broken.path(), &["--jobs", jobs]);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let runs = if jobs == "1" { &["T-vicreg-s0"][..] } else { &["T-vicreg-s0", "T-equicaps-s0"] };
        runs.iter().for_each(|run| wait_until(broken.path(), run, "running"));
        signal(child.id(), sent);
        assert_eq!(exit_status(&mut child, PATIENCE), status, "{sent:?}");
        // The parts of a study that was killed save what they have and end.
        runs.iter().for_each(|run| wait_until(broken.path(), run, "stopped"));
    }
    let made = ok_json(&mut call(broken.path(), &[]));
    assert_eq!(made["finished"], 2, "{made}");
    for run in ["T-vicreg-s0", "T-equicaps-s0"] {
        assert!(weights(whole.path(), run) == weights(broken.path(), run), "{run}");
    }
    // Time that is over is an interruption, too.
    std::fs::remove_dir_all(broken.path().join("tiny/runs")).unwrap();
    study(broken.path(), 90_000, "");
    let mut child = call(broken.path(), &["--stop-after", "2"]).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(exit_status(&mut child, PATIENCE), Some(75));
}
