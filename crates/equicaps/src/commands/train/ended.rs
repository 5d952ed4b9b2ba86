//! What is said of a run after a session: where it is, and its last numbers.

use std::collections::BTreeMap;
use std::fmt;

use methods::verdict::PoseVerdict;
use serde::Serialize;
use train::metrics::Kind;
use train::summary::Summary;
use train::verdict::floor_of;
use train::{Config, RunFolder};

use super::resume_command;
use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};

/// How a session ended.
pub(super) fn report(
    folder: &RunFolder,
    config: &Config,
    ended: train::Outcome,
    mut warnings: Vec<String>,
    terminal: &Terminal,
) -> anyhow::Result<Outcome> {
    let (status, checkpoint) = match ended {
        train::Outcome::Finished(path) => ("finished", Some(path)),
        train::Outcome::AlreadyFinished(path) => ("already_finished", Some(path)),
        train::Outcome::Interrupted(path) => ("interrupted", path),
    };
    let summary = Summary::of(folder)?;
    summary.damage.iter().for_each(|damage| terminal.warn(damage));
    warnings.extend(summary.damage.clone());
    let last = |kind: Kind| {
        let names = summary.names(kind).into_iter();
        names.filter_map(|name| summary.last(kind, &name).map(|value| (name, value))).collect()
    };
    let trained = Trained {
        status,
        run: shown(folder.root()),
        checkpoint: checkpoint.map(shown),
        epoch: summary.position.epoch,
        epochs: config.epochs,
        step: summary.position.step,
        epoch_means: last(Kind::Epoch),
        held_out: last(Kind::HeldOut),
        pose: summary.pose_verdict(),
        warnings,
        resume: resume_command(folder),
    };
    Ok(Outcome::new(&trained)?.interrupted_if(status == "interrupted"))
}

/// A run after a session: where it is, and its last numbers.
#[derive(Serialize)]
struct Trained {
    status: &'static str,
    run: String,
    checkpoint: Option<String>,
    epoch: u64,
    epochs: u64,
    step: u64,
    epoch_means: BTreeMap<String, f64>,
    held_out: BTreeMap<String, f64>,
    /// Whether a pose was learnt, once the run is finished and where it was to be.
    pose: Option<PoseVerdict>,
    warnings: Vec<String>,
    /// The command that resumes it.
    #[serde(skip)]
    resume: String,
}

impl fmt::Display for Trained {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, checkpoint, resume, .. } = self;
        match (*status, checkpoint) {
            ("interrupted", None) => {
                return write!(formatter, "interrupted before the first step; continue with: {resume}");
            }
            ("interrupted", Some(path)) => return write!(formatter, "saved {path}; continue with: {resume}"),
            (_, None) => formatter.write_str(&status.replace('_', " "))?,
            (_, Some(path)) => write!(formatter, "{}: {path}", status.replace('_', " "))?,
        }
        let held_out = |task: &str| {
            let name = format!("probe/{task}/representation");
            (self.held_out.get(&name), floor_of(&name).and_then(|floor| self.held_out.get(&floor)))
        };
        let numbers = [
            ("loss", (self.epoch_means.get("loss"), None)),
            ("held-out class accuracy", held_out("class_accuracy")),
            ("held-out kNN accuracy", held_out("knn_accuracy")),
            ("held-out rotation R2", held_out("rotation_r2")),
            ("held-out translation R2", held_out("translation_r2")),
            ("held-out scale R2", held_out("scale_r2")),
            ("held-out shear R2", held_out("shear_r2")),
            ("held-out perspective R2", held_out("perspective_r2")),
        ];
        for (name, (value, floor)) in numbers {
            let Some(value) = value else { continue };
            write!(formatter, "\n{name} {value:.4}")?;
            floor.map_or(Ok(()), |floor| write!(formatter, " (floor {floor:.4})"))?;
        }
        let said = self.pose.iter().filter_map(|verdict| verdict.message.as_ref());
        said.into_iter().try_for_each(|message| write!(formatter, "\n{message}"))
    }
}
