//! What one evaluation found, as it is written to `results.json` and read again by reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dataset::SplitBy;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::object_scores::{RotationScore, Scores};
use crate::protocol::{Protocol, Task};

/// The version of the file.
pub const FORMAT: u32 = 1;

/// Name of the file in an evaluation's folder.
pub const FILE: &str = "results.json";

/// A value with its spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Mean over the validation passes.
    pub value: f64,
    /// Standard deviation over the validation passes (0 for a single one).
    pub spread: f64,
}

impl Measured {
    /// Mean and standard deviation of repeated measurements.
    pub fn over(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let value = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - value).powi(2)).sum();
        let spread = if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        Self { value, spread }
    }
}

/// One probe's outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Top-1 (a share of 1) for classification, R2 for the others.
    pub value: Measured,
    /// Top-5 for classification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top5: Option<Measured>,
    /// What is reached without any information: the majority class, or the best constant.
    pub floor: f64,
    /// Width of the probe's input.
    pub input_width: usize,
    /// (epoch, training loss, validation value) along the way.
    #[serde(default)]
    pub curve: Vec<(u32, f64, f64)>,
    /// Of rotation: every held-out object by itself; kept in [`Results::by_object`].
    #[serde(skip)]
    pub by_object: Vec<RotationScore>,
}

/// Ranks of the target among the views of its object.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Mean reciprocal rank.
    pub mrr: f64,
    /// Share of queries with rank 1.
    pub h1: f64,
    /// Share with rank at most 2.
    pub h2: f64,
    /// Share with rank at most 5.
    pub h5: f64,
    /// Share with rank at most 10.
    pub h10: f64,
    /// Number of queries.
    pub queries: usize,
}

/// Prediction retrieval errors: mean distances between the nearest view and the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrievalError {
    /// Mean of `1 - <q_nn, q_t>^2`.
    pub rotation: f64,
    /// Mean of `|t_nn - t_t|^2` in the object frame; missing without translations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<f64>,
    /// Mean squared difference of the logarithms of scales; missing without scales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Mean squared difference of shears; missing without shears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shear: Option<f64>,
    /// Mean squared difference of perspectives; missing without perspective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perspective: Option<f64>,
    /// Number of queries.
    pub queries: usize,
    /// Number of candidates for each.
    pub candidates: usize,
}

/// All retrieval metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retrieval {
    /// Ranks on the training side.
    pub train: Ranking,
    /// Ranks on the held-out side.
    pub val: Ranking,
    /// PRE by query and candidate sets: `train-train`, `val-val`, `val-all`.
    pub pre: BTreeMap<String, RetrievalError>,
    /// Ranks by pure chance; where sides have different numbers of views, on the held-out side.
    pub chance: Ranking,
    /// With a split by views, ranks by pure chance on the training side, which has more of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance_train: Option<Ranking>,
    /// PRE of a random view, same set names.
    pub pre_chance: BTreeMap<String, RetrievalError>,
    /// Objects of the held-out side that were queried, with their mean reciprocal ranks; kept in [`Results::by_object`].
    #[serde(skip)]
    pub by_object: Vec<(usize, f64)>,
}

/// What was evaluated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// A name for tables.
    pub name: String,
    /// The method (`equicaps`, `vicreg`, ...); `untrained` for random weights.
    pub method: String,
    /// The backbone.
    pub backbone: String,
    /// Number of capsules, for methods with capsules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capsules: Option<usize>,
    /// What it was trained for: `rotation`, `rotation+translation-object`, `rotation+translation-base`, or empty.
    pub trained_for: String,
    /// Complete epochs of pre-training.
    pub epochs: Option<u64>,
    /// Steps of pre-training, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// A number for the data it was trained on, where they are known: the same for the same views on the same sides.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trained_on: String,
    /// The weights' file.
    pub checkpoint: String,
    /// Hash of the weights.
    pub weights_key: String,
    /// The task of a supervised network; empty for the others.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Changed terms of the loss, for ablations; empty for the full loss.
    pub ablation: String,
}

/// On what it was evaluated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Data {
    /// The dataset's folder.
    pub path: String,
    /// `3DIEBench` or `3DIEBench-T`, by its latents.
    pub kind: String,
    /// What is held out: objects, or views of all objects.
    pub split: SplitBy,
    /// Training objects.
    pub train_objects: usize,
    /// Held-out objects; with a split by views, all of them.
    pub val_objects: usize,
    /// Views of each.
    pub views: usize,
    /// Those of them that are held out, with a split by views.
    #[serde(skip_serializing_if = "is_zero")]
    pub held_out_views: usize,
    /// Views of the data that cannot be read and are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Classes.
    pub classes: usize,
    /// Side of the images as the network saw them.
    pub side: usize,
    /// Hash of the data.
    pub data_key: String,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What probes that were trained on the first dataset reach on another, and retrieval there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Also {
    /// The other dataset; only its held-out side is tested on.
    pub data: Data,
    /// Probes on representations.
    pub representations: BTreeMap<Task, ProbeResult>,
    /// Probes on embeddings.
    #[serde(default)]
    pub embeddings: BTreeMap<Task, ProbeResult>,
    /// Retrieval in the space of embeddings.
    #[serde(default)]
    pub retrieval: Option<Retrieval>,
}

/// One evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the file.
    pub format: u32,
    /// What was evaluated.
    pub subject: Subject,
    /// On what.
    pub data: Data,
    /// How.
    pub protocol: Protocol,
    /// Probes on representations.
    pub representations: BTreeMap<Task, ProbeResult>,
    /// Probes on embeddings.
    #[serde(default)]
    pub embeddings: BTreeMap<Task, ProbeResult>,
    /// Retrieval in the space of embeddings.
    #[serde(default)]
    pub retrieval: Option<Retrieval>,
    /// Held-out objects one by one, by the rotation probe on representations and by retrieval.
    #[serde(default, skip_serializing_if = "Scores::is_empty")]
    pub by_object: Scores,
    /// Means of these over classes.
    #[serde(default, skip_serializing_if = "Scores::is_empty")]
    pub by_class: Scores,
    /// Further datasets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Also>,
    /// The device it ran on.
    pub device: String,
    /// Seconds spent by part.
    #[serde(default)]
    pub seconds: BTreeMap<String, f64>,
}

impl Results {
    /// Takes over what `known` has and this has not, where both were measured on the same weights and data by the same
    /// protocol.
    pub fn keep(&mut self, known: Self) {
        if !self.is_of_the_same(&known) {
            return;
        }
        for (task, result) in known.representations {
            self.representations.entry(task).or_insert(result);
        }
        for (task, result) in known.embeddings {
            self.embeddings.entry(task).or_insert(result);
        }
        self.retrieval = self.retrieval.take().or(known.retrieval);
        self.by_object.keep(known.by_object);
        self.by_class = self.by_object.by_class();
        for known in known.also {
            let is_same = |also: &&mut Also| {
                also.data.data_key == known.data.data_key && also.data.split == known.data.split
            };
            match self.also.iter_mut().find(is_same) {
                Some(also) => {
                    for (task, result) in known.representations {
                        also.representations.entry(task).or_insert(result);
                    }
                    for (task, result) in known.embeddings {
                        also.embeddings.entry(task).or_insert(result);
                    }
                    also.retrieval = also.retrieval.take().or(known.retrieval);
                }
                None => self.also.push(known),
            }
        }
    }

    /// Whether both were measured on the same data by the same protocol on the same device.
    pub(crate) fn is_measured_like(&self, other: &Self) -> bool {
        other.data.data_key == self.data.data_key
            && other.data.split == self.data.split
            && other.protocol == self.protocol
            && other.device == self.device
    }

    /// Whether both were measured in the same way on the same network.
    fn is_of_the_same(&self, other: &Self) -> bool {
        other.subject.weights_key == self.subject.weights_key && self.is_measured_like(other)
    }

    /// The file beside `results.json` that keeps these once others are measured: in another way, or of another network (its
    /// weights, or images of another size).
    pub(crate) fn name_aside(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let device: String = self.device.chars().map(plain).collect();
        let Protocol { preset, seed, frozen, .. } = self.protocol;
        let frozen = if frozen { "_frozen" } else { "" };
        let split = match self.data.split {
            SplitBy::Objects => "",
            SplitBy::Views => "_views",
        };
        let (data, weights) = (&self.data.data_key, &self.subject.weights_key);
        format!("results_{preset}{frozen}_seed{seed}_{data}{split}_{weights}_{device}.json")
    }

    /// Takes over what the evaluation's folder holds: what was measured before under the same conditions stays; what was
    /// measured otherwise, or of another network, is kept in a file beside, whose path is returned.
    pub fn merge_from(&mut self, folder: &Path) -> Result<Option<PathBuf>> {
        let Ok(known) = Self::read(&folder.join(FILE)) else { return Ok(None) };
        let mut kept = None;
        if !self.is_of_the_same(&known) {
            let aside = folder.join(known.name_aside());
            known.write(&aside)?;
            kept = Some(aside);
            if let Ok(earlier) = Self::read(&folder.join(self.name_aside())) {
                self.keep(earlier);
            }
        }
        self.keep(known);
        Ok(kept)
    }

    /// Writes the main file of an evaluation's folder; a file beside that kept the same is no longer needed.
    pub fn write_into(&self, folder: &Path) -> Result<()> {
        self.write(&folder.join(FILE))?;
        let _ = std::fs::remove_file(folder.join(self.name_aside()));
        Ok(())
    }

    /// The name of a measurement that is NaN or infinite, if there is one: `representations.rotation.value`. JSON has
    /// no such numbers, so the file could not be read again.
    pub fn not_finite(&self) -> Option<String> {
        let parts = [
            ("representations", serde_json::to_value(&self.representations)),
            ("embeddings", serde_json::to_value(&self.embeddings)),
            ("retrieval", serde_json::to_value(self.retrieval.iter().collect::<Vec<_>>())),
        ];
        parts
            .iter()
            .find_map(|(name, value)| null_in(value.as_ref().ok()?).map(|rest| format!("{name}{rest}")))
    }

    /// Reads a `results.json`.
    pub fn read(path: &Path) -> Result<Self> {
        let bad = |message: String| Error::File { path: path.to_path_buf(), message };
        let bytes = std::fs::read(path).map_err(dataset::Error::read(path))?;
        let mut results: Self = serde_json::from_slice(&bytes)
            .map_err(|error| bad(format!("is not a result of `equicaps evaluate`: {error}")))?;
        if results.format != FORMAT {
            return Err(bad(format!("has format {}, expected {FORMAT}", results.format)));
        }
        // Earlier versions did not say it; a network's own head has one task.
        results.protocol.frozen |= !results.subject.task.is_empty() && results.representations.len() > 1;
        Ok(results)
    }

    /// Writes a `results.json`.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::File { path: path.to_path_buf(), message: error.to_string() })?;
        Ok(dataset::durable::write(path, format!("{text}\n").as_bytes()).map_err(dataset::Error::from)?)
    }
}

/// The place of a null in `value`, `.a.b`; places in lists are not named.
fn null_in(value: &serde_json::Value) -> Option<String> {
    use serde_json::Value;
    match value {
        Value::Null => Some(String::new()),
        Value::Array(values) => values.iter().find_map(null_in),
        Value::Object(values) => {
            values.iter().find_map(|(name, value)| null_in(value).map(|rest| format!(".{name}{rest}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_spread() {
        let measured = Measured::over(&[1.0, 2.0, 3.0]);
        assert_eq!((measured.value, measured.spread), (2.0, 1.0));
        assert_eq!(Measured::over(&[4.0]).spread, 0.0);
    }

    #[test]
    fn only_what_was_measured_alike_is_kept() {
        let probe = |value| ProbeResult {
            value: Measured { value, spread: 0.0 },
            top5: None,
            floor: 0.0,
            input_width: 4,
            curve: Vec::new(),
            by_object: Vec::new(),
        };
        let results = |tasks: &[(Task, f64)]| Results {
            format: FORMAT,
            subject: Subject { weights_key: "w".to_owned(), ..Subject::default() },
            data: Data { data_key: "d".to_owned(), ..Data::default() },
            protocol: Protocol::new(crate::protocol::Preset::Paper, 0, 100, 100),
            representations: tasks.iter().map(|&(task, value)| (task, probe(value))).collect(),
            embeddings: BTreeMap::new(),
            retrieval: None,
            by_object: Scores::default(),
            by_class: Scores::default(),
            also: Vec::new(),
            device: "cpu".to_owned(),
            seconds: BTreeMap::new(),
        };
        let known = results(&[(Task::Rotation, 0.1), (Task::Colour, 0.2)]);
        assert_eq!(known.not_finite(), None);
        for value in [f64::NAN, f64::INFINITY] {
            let broken = results(&[(Task::Rotation, 0.1), (Task::Colour, value)]);
            assert_eq!(broken.not_finite().as_deref(), Some("representations.colour.value.value"));
        }
        let kept = |known: Results| {
            let mut new = results(&[(Task::Rotation, 0.9)]);
            new.keep(known);
            new.representations.into_iter().map(|(task, probe)| (task, probe.value.value)).collect::<Vec<_>>()
        };
        assert_eq!(kept(known.clone()), [(Task::Rotation, 0.9), (Task::Colour, 0.2)]);
        let mut others = vec![known.clone(); 4];
        others[0].subject.weights_key = "other".to_owned();
        others[1].data.data_key = "other".to_owned();
        others[2].protocol.seed = 1;
        others[3].device = "cuda".to_owned();
        for other in others {
            assert_eq!(kept(other), [(Task::Rotation, 0.9)]);
        }

        // Two protocols in turn in one folder: each keeps what it measured.
        let folder = tempfile::tempdir().unwrap();
        let evaluate = |seed, tasks: &[(Task, f64)]| {
            let mut new = results(tasks);
            new.protocol.seed = seed;
            let aside = new.merge_from(folder.path()).unwrap();
            new.write_into(folder.path()).unwrap();
            (aside.is_some(), new.representations.len(), std::fs::read_dir(folder.path()).unwrap().count())
        };
        assert_eq!(evaluate(0, &[(Task::Rotation, 0.1)]), (false, 1, 1));
        assert_eq!(evaluate(0, &[(Task::Colour, 0.2)]), (false, 2, 1));
        assert_eq!(evaluate(1, &[(Task::Rotation, 0.3)]), (true, 1, 2));
        assert_eq!(evaluate(0, &[(Task::Rotation, 0.4)]), (true, 2, 2));
        // Another network takes the place of none.
        let mut other = results(&[(Task::Rotation, 0.5)]);
        other.subject.weights_key = "other".to_owned();
        assert!(other.merge_from(folder.path()).unwrap().is_some() && other.representations.len() == 1);
        other.write_into(folder.path()).unwrap();
        assert_eq!(evaluate(0, &[]), (true, 2, 3));
    }
}
