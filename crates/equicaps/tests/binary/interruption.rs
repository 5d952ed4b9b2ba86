//! Ctrl-C while a step, or what comes before the first one, takes long: what is said, how the program ends, what it leaves.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::support::{Signal, equicaps, exit_status, ok, ok_json, set, signal};

/// Longer than the program may need to answer on a busy machine, shorter than what it is interrupted in.
const PATIENCE: Duration = Duration::from_secs(60);

fn interrupt(child: &Child) {
    signal(child.id(), Signal::INT);
}

fn spawn(command: &mut Command) -> (Child, BufReader<ChildStderr>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    (child, said)
}

/// Reads lines until one contains `text`; all of them.
fn read_until(said: &mut BufReader<ChildStderr>, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        let count = said.read_line(&mut all).unwrap();
        assert!(count > 0, "ended without {text:?}: {all}");
    }
    all
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().file_name()));
    let mut names: Vec<String> =
        entries.map(|names| names.map(|name| name.into_string().unwrap()).collect()).unwrap_or_default();
    names.sort();
    names
}

#[test]
fn before_the_first_step_one_interruption_ends_the_program() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    // Its first batch takes minutes to be rendered.
    let slow = ["data=procedural:2x400", "batch=512", "image_size=256", "procedural.quality=reference"];
    let mut command = equicaps(&["train", "--preset", "paper", "--run"]);
    let (mut child, mut said) = spawn(set(command.arg(&run), &slow).args(["--device", "cpu"]));
    read_until(&mut said, "equicaps on cpu:");
    interrupt(&child);
    assert_eq!(exit_status(&mut child, PATIENCE), Some(75));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("interrupted before the first step; continue with: equicaps train --resume"),
        "{rest}"
    );
    assert_eq!(files(&run.join("checkpoints")), Vec::<String>::new());
    let shown = ok_json(equicaps(&["runs", "show"]).arg(&run));
    assert_eq!((shown["state"].as_str(), shown["step"].as_u64()), (Some("stopped"), Some(0)));
}

#[test]
fn during_a_long_step_the_first_interruption_saves_and_the_second_ends() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    // A step takes seconds.
    let settings = [
        "data=procedural:2x20",
        "batch=32",
        "image_size=128",
        "epochs=1000",
        "logging.every_steps=1",
        "probes.held_out_every=0",
        "procedural.views=2",
        "device=cpu",
    ];
    let begin = || {
        let mut command = equicaps(&["train", "--preset", "paper", "--run"]);
        set(command.arg(&run), &settings);
        command
    };
    let resume = || {
        let mut command = equicaps(&["train", "--resume"]);
        command.arg(&run);
        command
    };
    // The step in hand may end between the two.
    let ended = (0..5).any(|_| {
        let (mut child, mut said) = spawn(&mut if run.exists() { resume() } else { begin() });
        read_until(&mut said, "step ");
        interrupt(&child);
        let line = read_until(&mut said, "saving after this step");
        assert!(line.contains("once more to end at once without saving"), "{line}");
        interrupt(&child);
        exit_status(&mut child, PATIENCE) == Some(130)
    });
    assert!(ended, "the second interruption never came in time");
    let (mut child, mut said) = spawn(&mut resume());
    read_until(&mut said, "step ");
    interrupt(&child);
    assert_eq!(exit_status(&mut child, PATIENCE), Some(75));
    let names = files(&run.join("checkpoints"));
    assert!(!names.is_empty() && names.iter().all(|name| name.ends_with(".safetensors")), "{names:?}");
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("continue with: equicaps train --resume"), "{text}");
    assert!(ok(equicaps(&["runs", "show"]).arg(&run)).contains("(stopped)"));
}
