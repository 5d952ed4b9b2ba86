//! Runs side by side: the settings that differ, where each stands, and its last numbers.

use std::collections::BTreeMap;
use std::fmt;

use dataset::counted;
use methods::verdict::PoseVerdict;
use serde::Serialize;
use serde_json::Value;
use train::Config;
use train::metrics::Kind;
use train::summary::{State, Summary};
use train::verdict::FLOORS;

use crate::table::{Cell, Column, Table};

/// What differs between runs; prints as a table with a column a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunComparison {
    /// Their folders.
    pub runs: Vec<String>,
    /// Settings that are not the same in all, a value a run.
    pub settings_that_differ: BTreeMap<String, Vec<Option<String>>>,
    /// How far each is.
    pub progress: Vec<Progress>,
    /// The last values of everything measured, a value a run.
    pub numbers: BTreeMap<String, Vec<Option<f64>>>,
    /// Whether each, where it has come to its end and was to learn poses, has learnt them.
    pub pose: Vec<Option<PoseVerdict>>,
    #[serde(skip)]
    names: Vec<String>,
    /// Names of `numbers` in the order of the table.
    #[serde(skip)]
    order: Vec<String>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Complete epochs.
    pub epoch: u64,
    /// Epochs in all.
    pub epochs: u64,
    /// Whether it goes on.
    pub state: State,
}

impl fmt::Display for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}, {}", self.epoch, counted(self.epochs, "epoch"), self.state.name())
    }
}

impl RunComparison {
    /// Compares `runs`.
    pub fn of(runs: &[Summary]) -> Self {
        let settings: Vec<BTreeMap<String, String>> =
            runs.iter().map(|run| flat_settings(&run.config)).collect();
        let differs = |key: &&String| settings.iter().any(|run| run.get(*key) != settings[0].get(*key));
        let keys = settings.first().into_iter().flat_map(BTreeMap::keys).filter(differs);
        let settings_that_differ = keys
            .map(|key| (key.clone(), settings.iter().map(|run| run.get(key).cloned()).collect()))
            .collect();
        let (mut numbers, mut order) = (BTreeMap::new(), Vec::new());
        for (title, kind) in [("train", Kind::Epoch), ("held-out", Kind::HeldOut)] {
            let mut names: Vec<String> = runs.iter().flat_map(|run| run.names(kind)).collect();
            // A floor stands before the R2 it belongs to.
            names.sort_by_key(|name| {
                name.strip_prefix(FLOORS).map_or(name.clone(), |task| format!("probe/{task}"))
            });
            names.dedup();
            for name in names {
                let label = format!("{title} {name}");
                order.push(label.clone());
                numbers.insert(label, runs.iter().map(|run| run.last(kind, &name)).collect());
            }
        }
        let reached = |run: &Summary| Progress {
            epoch: run.reached.epoch,
            epochs: run.config.epochs,
            state: run.state,
        };
        Self {
            runs: runs.iter().map(|run| run.root.display().to_string()).collect(),
            settings_that_differ,
            numbers,
            pose: runs.iter().map(Summary::pose_verdict).collect(),
            names: runs.iter().map(|run| run.name.clone()).collect(),
            progress: runs.iter().map(reached).collect(),
            order,
        }
    }
}

impl fmt::Display for RunComparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.iter().map(|name| Column::new(name.clone()));
        let columns = std::iter::once(Column::new("")).chain(names).collect();
        let row = |label: &str, cells: Vec<Cell>| std::iter::once(label.into()).chain(cells).collect();
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        for (key, values) in &self.settings_that_differ {
            rows.push(row(
                key,
                values.iter().map(|value| value.clone().unwrap_or_default().into()).collect(),
            ));
        }
        rows.push(row(
            "progress",
            self.progress.iter().map(|progress| progress.to_string().into()).collect(),
        ));
        for name in &self.order {
            let values = self.numbers.get(name).into_iter().flatten();
            rows.push(row(name, values.map(|value| Cell::number(*value, 4)).collect()));
        }
        let table = Table { columns, rows, ..Table::default() };
        formatter.write_str(table.to_text().trim_end())?;
        let said =
            self.pose.iter().map(|verdict| verdict.as_ref().and_then(|verdict| verdict.message.as_ref()));
        let mut said = self.names.iter().zip(said).filter_map(|(name, message)| Some((name, message?)));
        said.try_for_each(|(name, message)| write!(formatter, "\n{name}: {message}"))
    }
}

/// The settings of `config` by dotted key.
fn flat_settings(config: &Config) -> BTreeMap<String, String> {
    fn walk(prefix: &str, value: &Value, flat: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(map) => {
                for (name, inner) in map {
                    let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    walk(&key, inner, flat);
                }
            }
            Value::String(text) => _ = flat.insert(prefix.to_owned(), text.clone()),
            other => _ = flat.insert(prefix.to_owned(), other.to_string()),
        }
    }
    let mut flat = BTreeMap::new();
    walk("", &serde_json::to_value(config).unwrap_or_default(), &mut flat);
    flat
}
