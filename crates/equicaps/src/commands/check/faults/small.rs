//! The small dataset, run and evaluation that faults are tried on, and the commands that make them: each a process of
//! its own, as small as they can be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::itself;

/// Settings of the run.
const SETTINGS: [&str; 11] = [
    "epochs=6",
    "batch=4",
    "image_size=32",
    "network.width=8",
    "network.projector=[16, 16, 16]",
    "network.capsules=4",
    "checkpoints.every_epochs=1",
    "checkpoints.keep=1",
    "logging.every_steps=1",
    "logging.image_pairs=0",
    "probes.held_out_every=3",
];

/// Where everything is.
pub struct Small {
    root: PathBuf,
    /// The dataset as files.
    pub files: PathBuf,
    /// The same as archives.
    pub shards: PathBuf,
    /// A run on it.
    pub run: PathBuf,
    /// An evaluation of the run.
    pub evaluation: PathBuf,
    /// Its features.
    pub features: PathBuf,
}

impl Small {
    /// Makes all of it below `root`.
    pub fn new(root: &Path) -> anyhow::Result<Self> {
        let at = |name: &str| root.join(name);
        let small = Self {
            root: root.to_path_buf(),
            files: at("files"),
            shards: at("shards"),
            run: at("run"),
            evaluation: at("evaluation"),
            features: at(evaluate::features::FOLDER),
        };
        finish(&mut small.render("files", &small.files)?)?;
        finish(&mut small.render("shards", &small.shards)?)?;
        finish(&mut small.train(&small.run)?)?;
        finish(&mut small.evaluate(&small.evaluation, &small.features)?)?;
        Ok(small)
    }

    /// Where all of it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A new folder.
    pub fn fresh(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.root.join("tries").join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(self.root.join("tries"))?;
        Ok(path)
    }

    /// Renders the dataset into `out`.
    pub fn render(&self, format: &str, out: &Path) -> anyhow::Result<Command> {
        let mut command = program()?;
        command.args(["render", "--quiet", "--procedural", "2x5", "--views", "3", "--size", "32"]);
        command.args(["--quality", "fast", "--format", format, "--objects-per-tar", "3", "--out"]).arg(out);
        if format == "files" {
            command = without(&command, "--objects-per-tar");
        }
        Ok(command)
    }

    /// Trains the run into `out`, or goes on with it.
    pub fn train(&self, out: &Path) -> anyhow::Result<Command> {
        let mut command = program()?;
        if out.join("config.toml").exists() {
            command.args(["train", "--quiet", "--resume"]).arg(out);
            return Ok(command);
        }
        command.args(["train", "--quiet", "--preset", "demo", "--data"]).arg(&self.shards);
        command.arg("--run").arg(out);
        for setting in SETTINGS {
            command.args(["--set", setting]);
        }
        Ok(command)
    }

    /// Evaluates the run into `out`, with features kept in `cache`.
    pub fn evaluate(&self, out: &Path, cache: &Path) -> anyhow::Result<Command> {
        let mut command = program()?;
        command.args([
            "evaluate",
            "--quiet",
            "--preset",
            "quick",
            "--no-images",
            "--tasks",
            "classification",
        ]);
        command.arg(&self.run).arg("--data").arg(&self.files).arg("--out").arg(out).arg("--cache").arg(cache);
        Ok(command)
    }
}

/// This program, quiet but for what it says of errors.
pub fn program() -> anyhow::Result<Command> {
    let mut command = Command::new(itself::program()?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // One line, not a trace, where something panics.
    command.env("RUST_BACKTRACE", "0");
    Ok(command)
}

/// `command` without an option and its value.
fn without(command: &Command, option: &str) -> Command {
    let mut shorter = Command::new(command.get_program());
    let mut skip = 0;
    for argument in command.get_args() {
        if argument == option {
            skip = 2;
        }
        if skip > 0 {
            skip -= 1;
        } else {
            shorter.arg(argument);
        }
    }
    shorter.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).env("RUST_BACKTRACE", "0");
    shorter
}

/// Runs a command that must succeed.
pub fn finish(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("{said} ({})", output.status);
    }
    Ok(())
}

/// Every file below `root` that does not depend on the clock, with its content. Metrics are without their times.
pub fn tree(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
        {
            let path = entry?.path();
            let name = path.strip_prefix(root)?.to_path_buf();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(content) = content(&path)? {
                found.insert(name, content);
            }
        }
    }
    Ok(found)
}

fn content(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name == "metrics.jsonl" {
        let mut records = train::metrics::read(path)?;
        records.iter_mut().for_each(|record| record.timing.clear());
        return Ok(Some(serde_json::to_vec(&records)?));
    }
    if name == "results.json" {
        let mut results = evaluate::Results::read(path)?;
        results.seconds.clear();
        return Ok(Some(serde_json::to_vec(&results)?));
    }
    let is_timed = name == "run.lock" || name == "environment.json" || name.starts_with("events.out");
    if is_timed { Ok(None) } else { Ok(Some(std::fs::read(path)?)) }
}
