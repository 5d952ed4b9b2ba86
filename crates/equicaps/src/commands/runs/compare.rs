//! `equicaps runs compare`: what differs between runs, and where each stands.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use train::metrics::Kind;
use train::summary::Summary;

use crate::terminal::{Terminal, shown};

/// Shows `runs` side by side.
pub fn run(runs: &[Summary], terminal: &Terminal) {
    let settings: Vec<BTreeMap<String, String>> =
        runs.iter().map(|run| super::flat_settings(&run.config).into_iter().collect()).collect();
    let differing: Vec<&String> = settings[0]
        .keys()
        .filter(|key| settings.iter().any(|other| other.get(*key) != settings[0].get(*key)))
        .collect();
    let mut columns = vec![report::Column::new("")];
    columns.extend(runs.iter().map(|run| report::Column::new(run.name.clone())));
    let mut rows: Vec<Vec<report::Cell>> = Vec::new();
    for key in &differing {
        let values = settings.iter().map(|run| run.get(*key).cloned().unwrap_or_default().into());
        rows.push(std::iter::once(key.as_str().into()).chain(values).collect());
    }
    let positions = runs.iter().map(|run| {
        format!("{} of {} epochs, {}", run.reached.epoch, run.config.epochs, run.state.name()).into()
    });
    rows.push(std::iter::once("progress".into()).chain(positions).collect());
    let mut numbers = serde_json::Map::new();
    for (title, kind) in [("train", Kind::Epoch), ("held-out", Kind::HeldOut)] {
        let mut names: Vec<String> = runs.iter().flat_map(|run| run.names(kind)).collect();
        names.sort();
        names.dedup();
        for name in names {
            let values: Vec<Option<f64>> = runs.iter().map(|run| run.last(kind, &name)).collect();
            let cells = values.iter().map(|value| report::Cell::number(*value, 4));
            let label = format!("{title} {name}");
            rows.push(std::iter::once(label.as_str().into()).chain(cells).collect());
            numbers.insert(label, json!(values));
        }
    }
    let settings: BTreeMap<&String, Vec<Value>> = differing
        .into_iter()
        .map(|key| (key, settings.iter().map(|run| json!(run.get(key))).collect()))
        .collect();
    let roots: Vec<_> = runs.iter().map(|run| shown(&run.root)).collect();
    terminal.result(
        super::text_table(columns, rows),
        &json!({ "runs": roots, "settings_that_differ": settings, "numbers": numbers }),
    );
}
