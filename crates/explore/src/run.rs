//! A run that is looked at: a run's folder, a single checkpoint, or the network inside the program.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use evaluate::builtin;
use evaluate::features;
use evaluate::weights::{self, Weights, Which};
use pose::Space;
use serde_json::{Map, Value, json};
use train::checkpoint;
use train::metrics::{self, Kind, Over};
use train::summary::Summary;
use train::verdict::{FLOORS, floor_of};
use train::{Config, RunFolder};

use crate::error::{Error, Result};

/// Points of a curve that the page gets, at most.
const MOST_POINTS: usize = 1500;

/// One of the runs on the command line.
pub struct Run {
    /// Its name on the page.
    pub name: String,
    path: PathBuf,
    folder: Option<RunFolder>,
    config: Config,
    /// The curves with what they were made from.
    curves: Mutex<Option<(Stamp, Arc<Value>)>>,
}

/// What a file of metrics was when it was read.
type Stamp = (u64, Option<SystemTime>, usize);

impl Run {
    /// The run, checkpoint or network that `path` names.
    pub fn open(path: &Path) -> Result<Self> {
        let (folder, config, name) = if path.is_file() || builtin::is_named(path) {
            let weights = weights::find(path, &Which::Newest)?.remove(0);
            (None, weights.config, weights.name)
        } else {
            let folder = RunFolder::open(path)?;
            let config = folder.config()?;
            let name = folder.name();
            (Some(folder), config, name)
        };
        Ok(Self { name, path: path.to_path_buf(), folder, config, curves: Mutex::default() })
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where features of its networks are kept.
    pub fn cache(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.root().join("evaluation").join(features::FOLDER))
    }

    /// The epochs of its checkpoints, oldest first.
    pub fn epochs(&self) -> Result<Vec<u64>> {
        match &self.folder {
            Some(folder) => {
                Ok(checkpoint::list(&folder.checkpoints_path())?.into_iter().map(|found| found.0).collect())
            }
            None => Ok(vec![weights::find(&self.path, &Which::Newest)?.remove(0).epochs.unwrap_or(0)]),
        }
    }

    /// The weights of one checkpoint.
    pub fn weights(&self, epoch: u64) -> Result<Weights> {
        let which = if self.folder.is_some() { Which::Within(epoch) } else { Which::Newest };
        Ok(weights::find(&self.path, &which)?.remove(0))
    }

    /// What the page says about it at a glance.
    pub fn describe(&self) -> Result<Value> {
        let method = &self.config.method;
        Ok(json!({
            "name": self.name,
            "word": dataset::shell_word(&self.path).to_string(),
            "method": method.name.name(),
            "title": method.name.title(),
            "transform": method.transform.name(),
            "space": space_name(method.transform.group().space),
            "parts": method.transform.group().parts,
            "uniform_scale": method.transform.group().uniform,
            "image_size": method.image_size,
            "data": self.config.data,
            "epochs": self.epochs()?,
            "has_curves": self.folder.is_some(),
        }))
    }

    /// Where it stands and all its curves; from memory where nothing was written since.
    pub fn curves(&self) -> Result<Arc<Value>> {
        let Some(folder) = &self.folder else {
            return Err(Error::Request(format!("{} has no curves: it is not a run's folder", self.name)));
        };
        let known = std::fs::metadata(folder.metrics_path()).ok();
        let count = self.epochs()?.len();
        let stamp = (
            known.as_ref().map_or(0, |known| known.len()),
            known.and_then(|known| known.modified().ok()),
            count,
        );
        let mut kept = self.curves.lock().unwrap_or_else(PoisonError::into_inner);
        let summary_state = |summary: &Summary| summary.state.name();
        if let Some((before, curves)) = &*kept
            && *before == stamp
            && curves["state"] != "running"
        {
            return Ok(Arc::clone(curves));
        }
        let summary = Summary::of(folder)?;
        let mut kinds = Map::new();
        for (word, kind) in [("held_out", Kind::HeldOut), ("epoch", Kind::Epoch), ("step", Kind::Step)] {
            let mut curves = Map::new();
            for name in summary.names(kind).into_iter().filter(|name| !name.starts_with(FLOORS)) {
                let floor = floor_of(&name).and_then(|floor| summary.last(kind, &floor));
                let points = thinned(&metrics::curve(&summary.records, Over::Steps, kind, &name));
                curves.insert(name, json!({ "points": points, "floor": floor }));
            }
            kinds.insert(word.to_owned(), curves.into());
        }
        let curves = Arc::new(json!({
            "name": self.name,
            "state": summary_state(&summary),
            "epoch": summary.reached.epoch,
            "epochs": summary.config.epochs,
            "step": summary.reached.step,
            "steps_per_epoch": metrics::steps_per_epoch(&summary.records),
            "checkpoints": self.epochs()?,
            "curves": kinds,
            "pose": summary.pose_verdict(),
        }));
        *kept = Some((stamp, Arc::clone(&curves)));
        Ok(curves)
    }
}

/// The word for what views are of.
pub fn space_name(space: Space) -> &'static str {
    match space {
        Space::Object => "object",
        Space::Image => "image",
    }
}

/// At most [`MOST_POINTS`] of the points, the last one always among them.
fn thinned(points: &[(f64, f64)]) -> Vec<[f64; 2]> {
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate().filter(|(index, _)| (last - index).is_multiple_of(step));
    kept.map(|(_, &(x, y))| [x, y]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_keep_their_last_point_and_stay_short() {
        let points: Vec<(f64, f64)> = (0..10_001).map(|x| (f64::from(x), 0.5)).collect();
        let kept = thinned(&points);
        assert!(kept.len() <= MOST_POINTS && kept.len() > MOST_POINTS / 2, "{}", kept.len());
        assert_eq!(kept.last(), Some(&[10_000.0, 0.5]));
        assert_eq!(thinned(&points[..3]).len(), 3);
        assert!(thinned(&[]).is_empty());
    }
}
