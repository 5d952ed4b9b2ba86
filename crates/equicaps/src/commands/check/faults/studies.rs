//! Studies that are killed: a tiny one, at random moments, and then the same command until it is done. Either the study alone is
//! killed, and the part in hand (a process of its own) stops in order, or both.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use random::{Random, Stream};
use serde_json::Value;

use super::kills::{KILLS, is_crash, said};
use super::small::{Small, program, tree};
use super::{Row, Verdict};

/// Two methods on the views that the other faults are tried on.
const STUDY: &str = r#"
title = "A small study"
[data.views]
procedural = "2x5"
views = 3
size = 32
quality = "fast"
[all]
preset = "demo"
[all.set]
image_size = 32
epochs = 4
batch = 4
"network.width" = 8
"network.projector" = [16, 16, 16]
"network.capsules" = 4
"checkpoints.every_epochs" = 1
"checkpoints.keep" = 1
"logging.image_pairs" = 0
"probes.held_out_every" = 2
[evaluate]
preset = "quick"
tasks = ["classification"]
no_images = true
[[runs]]
data = "views"
method = ["equicaps", "vicreg"]
"#;

/// Calls until a study that was killed is done, at most: the part that it left may still be saving.
const CALLS: usize = 60;
const PAUSE: Duration = Duration::from_millis(100);

/// Kills studies, and lets them finish.
pub fn run(small: &Small, rounds: u32, seed: u64) -> anyhow::Result<Vec<Row>> {
    // One place for all: paths are among what is compared.
    let out = small.fresh("studies")?;
    let file = small.root().join("small.toml");
    std::fs::write(&file, STUDY)?;
    let began = Instant::now();
    if let Err((_, said)) = finish(&file, &out)? {
        anyhow::bail!("a small study fails: {said}");
    }
    let whole = began.elapsed();
    let expected = content(&out)?;
    let mut rows = Vec::new();
    for (name, with_part) in [("study", false), ("study with the part in hand", true)] {
        let mut row = Row::new(format!("{name}: killed {KILLS} times"));
        for round in 0..rounds {
            let mut random = Random::new(seed, Stream::new(name), u64::from(round));
            let out = small.fresh("studies")?;
            let mut left = Vec::new();
            for _ in 0..KILLS {
                let mut child = command(&file, &out)?.spawn()?;
                let moment = random.below(whole.as_micros().max(1) as u64);
                std::thread::sleep(Duration::from_micros(moment));
                let parts = parts_of(child.id());
                child.kill()?;
                child.wait()?;
                for part in parts.iter().filter(|_| with_part) {
                    kill(part);
                }
                left.extend(parts);
            }
            let finished = finish(&file, &out)?;
            // A part that the study left may have done the same work once more, and ends a little later.
            (0..CALLS).take_while(|_| left.iter().any(is_alive)).for_each(|_| std::thread::sleep(PAUSE));
            let (verdict, found) = match finished {
                Err(bad) => bad,
                Ok(()) => compare(&content(&out)?, &expected),
            };
            row.count_with(verdict, found);
        }
        rows.push(row);
    }
    Ok(rows)
}

fn command(file: &Path, out: &Path) -> anyhow::Result<Command> {
    let mut command = program()?;
    command.args(["study", "--quiet", "--json", "--device", "cpu"]).arg(file).arg("--out").arg(out);
    command.stdout(Stdio::piped());
    Ok(command)
}

/// Gives the command until nothing is left to do; or what is bad.
fn finish(file: &Path, out: &Path) -> anyhow::Result<Result<(), (Verdict, String)>> {
    let mut words = String::new();
    for _ in 0..CALLS {
        let output = command(file, out)?.output()?;
        words = said(&output);
        if is_crash(&output) {
            return Ok(Err((Verdict::Crashed, words)));
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let is_all = answer["finished"].is_number() && answer["finished"] == answer["runs"];
        if output.status.success() && is_all {
            return Ok(Ok(()));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(Err((Verdict::Wrong, format!("it is not done after {CALLS} calls: {words}"))))
}

type Content = std::collections::BTreeMap<PathBuf, Vec<u8>>;

/// What a study leaves: data, runs, evaluations; of the report, which tells times, that it is there.
fn content(out: &Path) -> anyhow::Result<Content> {
    let mut files = tree(out)?;
    for (name, bytes) in &mut files {
        if !name.starts_with("data") && !name.starts_with("runs") {
            bytes.clear();
        }
    }
    // Who renders holds this file; whether it was ever there depends on kills.
    files.retain(|name, _| !name.starts_with("state"));
    Ok(files)
}

fn compare(found: &Content, expected: &Content) -> (Verdict, String) {
    let other = found.keys().chain(expected.keys()).find(|name| found.get(*name) != expected.get(*name));
    match other {
        None => (Verdict::Same, String::new()),
        Some(name) => (Verdict::Wrong, format!("{} is another one", name.display())),
    }
}

/// Whether a process works, where the system tells.
fn is_alive(id: &String) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The state follows the name, which may hold anything, in brackets.
    text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Kills a process, which may have ended by itself; where the system tells of none, there is nothing to do.
fn kill(id: &str) {
    #[cfg(unix)]
    if let Some(id) = id.parse().ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = id;
}

/// The processes that a process has started, where the system tells.
fn parts_of(id: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
