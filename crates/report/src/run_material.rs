//! What a report is made of: a run's configuration, metrics and evaluations, as they lie in its folder.

use std::path::{Path, PathBuf};

use dataset::SplitBy;
use evaluate::protocol::Task;
use evaluate::results::Subject;
use evaluate::{Results, results};
use methods::verdict::PoseVerdict;
use train::environment::Environment;
use train::metrics::{self, Kind, Over, Record};
use train::verdict::{self, floor_of};
use train::{Config, RunFolder};

use crate::axis::Axis;
use crate::compare::tells_something;
use crate::entry::Conditions;
use crate::figures::Floor;
use crate::{Drawing, Error, LineChart, Result, Series, run_curves, run_names};

/// Everything about one run.
#[derive(Clone, Debug, Default)]
pub struct RunMaterial {
    /// Its name.
    pub name: String,
    /// What was held out when it was trained.
    pub split: SplitBy,
    /// `config.toml`.
    pub config_text: Option<String>,
    /// The same, parsed, where it can be.
    pub config: Option<Config>,
    /// `environment.json`.
    pub environment_text: Option<String>,
    /// Lines of `metrics.jsonl`.
    pub records: Vec<Record>,
    /// Of which some are damaged, in a sentence.
    pub damage: Option<String>,
    /// Folders of evaluations with their results, by epoch.
    pub evaluations: Vec<(PathBuf, Results)>,
    /// Whether the run, which has come to its end, has learnt poses; nothing where it was not to.
    pub pose: Option<PoseVerdict>,
}

impl RunMaterial {
    /// Reads a run's folder, or a folder of evaluations.
    pub fn read(path: &Path) -> Result<Self> {
        let mut material = Self {
            name: path
                .file_name()
                .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned()),
            ..Self::default()
        };
        let evaluations = match RunFolder::open(path) {
            Ok(run) => {
                material.config = run.config().ok();
                material.split = run.config().map_or(SplitBy::Objects, |c| c.split.or(SplitBy::Objects));
                material.config_text = std::fs::read_to_string(run.config_path()).ok();
                material.environment_text = std::fs::read_to_string(run.environment_path()).ok();
                (material.records, material.damage) = metrics::read_undamaged(&run.metrics_path())?;
                // Settings that cannot be read are no reason for a report to fail.
                material.pose =
                    run.config().ok().and_then(|config| verdict::of_run(&config, &material.records));
                path.join("evaluation")
            }
            Err(_) if path.is_dir() => path.to_path_buf(),
            Err(error) => return Err(error.into()),
        };
        find(&evaluations, 0, &mut material.evaluations)?;
        if material.config_text.is_none() && material.evaluations.is_empty() {
            let text = format!("{} holds neither a run nor results of an evaluation", path.display());
            return Err(Error::Request(text));
        }
        material.evaluations.sort_by_key(|(_, results)| (results.subject.epochs, results.subject.steps));
        Ok(material)
    }
}

impl RunMaterial {
    /// Whether it is known that all held-out objects are of one class.
    fn is_of_one_class(&self) -> bool {
        let mut accuracies = self
            .evaluations
            .iter()
            .filter_map(|(_, results)| results.representations.get(&Task::Classification))
            .peekable();
        accuracies.peek().is_some() && !accuracies.any(tells_something)
    }

    /// The conditions of its network as `subject` was evaluated.
    pub fn conditions(&self, subject: &Subject) -> Conditions {
        let Some(config) = &self.config else { return Conditions::default() };
        let epochs = subject.epochs;
        let records = || self.records.iter().filter(|record| record.kind == Kind::Epoch && record.epoch > 0);
        let exact = records().find(|record| Some(record.epoch) == epochs).map(|record| record.step);
        // Lines of all epochs have the same steps each.
        let scaled = || Some(records().next_back().map(|last| last.step / last.epoch)? * epochs?);
        let steps = subject.steps.or(exact).or_else(scaled);
        Conditions { begun_from: self.begun_from(), ..Conditions::of(config, steps) }
    }

    /// The weights that training began from (`train --init-from`), where there were any.
    fn begun_from(&self) -> Option<String> {
        const OPTION: &str = "--init-from";
        let sessions: Vec<Environment> = serde_json::from_str(self.environment_text.as_deref()?).ok()?;
        let words = &sessions.first()?.command;
        let inline = || words.iter().find_map(|word| word.strip_prefix(OPTION)?.strip_prefix('='));
        let after = words.iter().position(|word| word == OPTION).and_then(|at| words.get(at + 1));
        after.map(String::as_str).or_else(inline).map(str::to_owned)
    }
}

/// Collects every `results.json` down to two folders below.
fn find(folder: &Path, depth: usize, found: &mut Vec<(PathBuf, Results)>) -> Result<()> {
    let file = folder.join(results::FILE);
    if file.is_file() {
        found.push((folder.to_path_buf(), Results::read(&file)?));
    }
    if depth < 2
        && let Ok(entries) = std::fs::read_dir(folder)
    {
        let mut folders: Vec<PathBuf> =
            entries.flatten().map(|e| e.path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        for folder in folders {
            find(&folder, depth + 1, found)?;
        }
    }
    Ok(())
}

/// Curves of one chart that a reader can still tell apart.
const MOST_CURVES: usize = 9;

/// Runs that share charts, with what their titles end with: all, or, where they are many, those that were trained on the same
/// data for the same, in as many parts as it takes.
fn charts(runs: &[RunMaterial]) -> Vec<(String, Vec<&RunMaterial>)> {
    if runs.len() <= MOST_CURVES {
        return vec![(String::new(), runs.iter().collect())];
    }
    let mut charts: Vec<(String, Vec<&RunMaterial>)> = Vec::new();
    for run in runs {
        let what = run.config.as_ref().map_or_else(String::new, |config| {
            let folder = Path::new(&config.data).file_name().map(|name| name.to_string_lossy().into_owned());
            format!(", {} for {}", folder.unwrap_or_default(), config.method.transform)
        });
        match charts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, chart)) => chart.push(run),
            None => charts.push((what, vec![run])),
        }
    }
    let parts = charts.into_iter().flat_map(|(what, runs)| {
        let count = runs.len().div_ceil(MOST_CURVES);
        let size = runs.len().div_ceil(count);
        let end = move |index: usize| {
            if count > 1 { format!("{what}, {} of {count}", index + 1) } else { what.clone() }
        };
        let parts: Vec<Vec<&RunMaterial>> = runs.chunks(size).map(<[_]>::to_vec).collect();
        parts.into_iter().enumerate().map(move |(index, part)| (end(index), part))
    });
    parts.collect()
}

/// What names of drawings begin with that show a run's loss.
pub(crate) const LOSS: &str = "loss_";

/// Curves of training: the loss of every run, and the online probes on what is held out of runs together.
pub(crate) fn curves(runs: &[RunMaterial], rotation_floors: &[Floor]) -> Vec<(String, Drawing)> {
    let mut drawings = Vec::new();
    for (index, (end, chart)) in charts(runs).iter().enumerate() {
        let number = if index == 0 { String::new() } else { format!("_{}", index + 1) };
        for (name, drawing) in online(chart, end, rotation_floors) {
            drawings.push((format!("{name}{number}"), drawing));
        }
    }
    for run in runs {
        let points = metrics::curve(&run.records, Over::Epochs, Kind::Epoch, "loss");
        if points.len() > 1 {
            let chart = LineChart {
                title: format!("Loss of {}", run.name),
                x: Axis::new("epoch"),
                y: Axis::new("loss"),
                series: vec![Series::new("loss", points)],
                references: Vec::new(),
            };
            let plain: String = run.name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
            let mut name = format!("{LOSS}{plain}");
            while drawings.iter().any(|(other, _)| *other == name) {
                name.push('_');
            }
            drawings.push((name, chart.draw(560.0, 320.0)));
        }
    }
    drawings
}

/// The online probes of some runs; titles end with `end`.
fn online(runs: &[&RunMaterial], end: &str, rotation_floors: &[Floor]) -> Vec<(String, Drawing)> {
    let mut drawings = Vec::new();
    let splits: Vec<(&str, SplitBy)> = runs.iter().map(|run| (run.name.as_str(), run.split)).collect();
    let (held_out, names) = run_names::held_out(&splits);
    let over = Over::of(runs.iter().map(|run| &run.records[..]));
    let curve = |run: &RunMaterial, name: &str| metrics::curve(&run.records, over, Kind::HeldOut, name);
    let probes = [
        ("online_rotation", "rotation R\u{b2}", "probe/rotation_r2/representation"),
        ("online_top1", "top-1", "probe/class_accuracy/representation"),
        ("online_knn", "kNN accuracy", "probe/knn_accuracy/representation"),
    ];
    let is_of_one_class = runs.iter().all(|run| run.is_of_one_class());
    for (name, title, key) in
        probes.into_iter().filter(|(_, _, key)| !(is_of_one_class && key.contains("_accuracy/")))
    {
        let floor = floor_of(key);
        let last_floor = |run| Some(curve(run, floor.as_ref()?).last()?.1);
        let (mut series, own): (Vec<Series>, Vec<(&str, Option<f64>)>) = runs
            .iter()
            .zip(&names)
            .map(|(run, name)| (Series::new(name.clone(), curve(run, key)), (name.as_str(), last_floor(run))))
            .filter(|(series, _)| series.points.len() > 1)
            .unzip();
        if series.is_empty() {
            continue;
        }
        let references = match name {
            "online_rotation" if own.iter().all(|(_, floor)| floor.is_none()) => rotation_floors.to_vec(),
            "online_rotation" => run_curves::with_floors(&mut series, &own),
            _ => Vec::new(),
        };
        let label = if name == "online_rotation" { "R\u{b2}" } else { "share" };
        let height = 320.0 + 18.0 * (series.len() / 3) as f64;
        let chart = LineChart {
            title: format!("Online probe on {held_out}: {title}{end}"),
            x: Axis::new(over.word()),
            y: run_curves::axis(key, label),
            series,
            references,
        };
        drawings.push((name.to_owned(), chart.draw(560.0, height)));
    }
    drawings
}
