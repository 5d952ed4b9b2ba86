//! Storage that fails: a disk that is full, data that disappear. What was learned stays, one sentence says what happened,
//! and a run goes on as if nothing had happened once there is room, or there are data, again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{TINY, equicaps, failure, render_views, set};

const SETTINGS: [&str; 9] = [
    "batch=3",
    "network.projector=[16, 16, 16]",
    "procedural.views=4",
    "logging.every_steps=1",
    "logging.image_pairs=0",
    "checkpoints.every_epochs=1",
    "checkpoints.keep=1",
    "probes.held_out_every=0",
    "loader.queue=1",
];

fn train(data: &str, run: &Path, epochs: u32) -> Command {
    let mut command = equicaps(&["train", "--quiet", "--preset", "demo", "--data", data, "--run"]);
    command.arg(run);
    set(set(set(&mut command, &TINY), &SETTINGS), &[&format!("epochs={epochs}")]);
    command
}

fn resume(run: &Path) -> Command {
    let mut command = equicaps(&["train", "--quiet", "--resume"]);
    command.arg(run);
    command
}

fn shell_words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| format!("'{}'", word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// A real full disk: a file system of a few hundred kilobytes, mounted where only this test's processes see it. Where
/// the system does not allow that, the test says so and passes.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_nothing() {
    let namespace = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c"]);
        command
    };
    let root = tempfile::tempdir().unwrap();
    let disk = root.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = format!("mount -t tmpfs -o size=16m tmpfs '{}'", disk.display());
    let is_possible = namespace().arg(&mount).output().is_ok_and(|output| output.status.success());
    if !is_possible {
        eprintln!("skipped: this system lets nobody mount a file system");
        return;
    }
    let (whole, run) = (root.path().join("whole"), disk.join("run"));
    assert!(train("procedural:2x5", &whole, 6).output().unwrap().status.success());
    // Three epochs; then nearly all room is taken, and the fourth cannot be saved; then there is room again.
    let mut longer = resume(&run);
    longer.args(["--set", "epochs=6"]);
    let script = format!(
        "{mount} && {first} && cp '{last}' '{kept}' && \
         {{ dd if=/dev/zero of='{ballast}' bs=1k 2>/dev/null; truncate -s -8k '{ballast}'; \
            {longer} 2>'{said}'; echo $? >'{status}'; cmp '{last}' '{kept}' || exit 9; ls '{checkpoints}' >'{listed}'; \
            rm '{ballast}'; {longer} && cp '{end}' '{out}'; }}",
        first = shell_words(&train("procedural:2x5", &run, 3)),
        last = run.join("checkpoints/epoch_00003.safetensors").display(),
        kept = root.path().join("kept").display(),
        ballast = disk.join("ballast").display(),
        longer = shell_words(&longer),
        said = root.path().join("said").display(),
        status = root.path().join("status").display(),
        checkpoints = run.join("checkpoints").display(),
        listed = root.path().join("listed").display(),
        end = run.join("checkpoints/epoch_00006.safetensors").display(),
        out = root.path().join("out").display(),
    );
    let output = namespace().arg(&script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
    assert_eq!(read("status").trim(), "1");
    let said = read("said");
    assert!(said.contains("cannot write") && said.ends_with("the disk is full\n"), "{said}");
    assert_eq!(said.trim().lines().count(), 1, "{said}");
    assert_eq!(read("listed").trim(), "epoch_00003.safetensors", "nothing half written stays");
    let expected = fs::read(whole.join("checkpoints/epoch_00006.safetensors")).unwrap();
    assert!(expected == fs::read(root.path().join("out")).unwrap(), "the end is that of a run with room");
}

#[test]
fn data_that_disappear_end_the_run_saved() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    let (data, away) = (path("data"), path("away"));
    render_views("2x5", &data, &["--preset", "3diebench"]);
    let data_text = data.to_string_lossy().into_owned();
    const EPOCHS: u32 = 300;
    let mut child = train(&data_text, &path("run"), EPOCHS).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while fs::read_to_string(path("run/metrics.jsonl")).unwrap_or_default().lines().count() < 5 {
        assert!(began.elapsed() < Duration::from_secs(60), "no step was done");
        assert!(child.try_wait().unwrap().is_none(), "the run ended too early");
        std::thread::sleep(Duration::from_millis(2));
    }
    fs::rename(&data, &away).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot read") && said.contains(&data_text), "{said}");
    assert!(said.contains("no such file or directory; the run is saved at"), "{said}");
    fs::rename(&away, &data).unwrap();
    assert!(resume(&path("run")).output().unwrap().status.success());
    assert!(train(&data_text, &path("whole"), EPOCHS).output().unwrap().status.success());
    let end =
        |run: &str| fs::read(path(run).join(format!("checkpoints/epoch_{EPOCHS:05}.safetensors"))).unwrap();
    assert!(end("run") == end("whole"), "the end is that of a run whose data were there all the time");
}

/// Thirty archives and a limit of 32 open files, some of which the program needs for itself.
#[cfg(target_os = "linux")]
#[test]
fn more_archives_than_files_may_be_open_are_trained_on_and_saved() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    render_views("2x15", &data, &["--preset", "3diebench", "--format", "shards", "--objects-per-tar", "1"]);
    let archives = fs::read_dir(data.join("shards")).unwrap().count() / 2;
    assert_eq!(archives, 30);
    let data = data.to_string_lossy().into_owned();
    let run = root.path().join("run");
    let words = shell_words(&train(&data, &run, 2));
    let output = Command::new("sh").args(["-c", &format!("ulimit -n 32; {words}")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(run.join("checkpoints/epoch_00002.safetensors").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let mut command = Command::new("sh");
    let words = shell_words(&equicaps(&["methods"]));
    let (status, message) = failure(command.args(["-c", &format!("{words} > /dev/full")]));
    assert!(status == 1 && message.contains("the result cannot be written to standard output"), "{message}");
}
