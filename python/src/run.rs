//! A run's folder: its settings, its checkpoints and its metrics.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use train::metrics::Record;
use train::summary::Summary;
use train::{Config, RunFolder, metrics};

use crate::errors::refused;

/// A run.
#[pyclass(frozen, module = "equicaps._native")]
pub struct Run {
    folder: RunFolder,
    config: Config,
}

#[pymethods]
impl Run {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| {
            let folder = RunFolder::open(&path)?;
            Ok(Self { config: folder.config()?, folder })
        })
        .map_err(|error: train::Error| refused(error))
    }

    /// The folder's name.
    #[getter]
    fn name(&self) -> String {
        self.folder.name()
    }

    /// All settings, as TOML.
    fn config(&self) -> PyResult<String> {
        self.config.to_toml().map_err(refused)
    }

    /// `running`, `finished`, `failed` or `stopped`.
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        let summary = py.detach(|| Summary::of(&self.folder)).map_err(refused)?;
        Ok(summary.state.name())
    }

    /// The files of weights, oldest first.
    fn checkpoints(&self) -> PyResult<Vec<PathBuf>> {
        let all = train::checkpoint::list(&self.folder.checkpoints_path()).map_err(refused)?;
        Ok(all.into_iter().map(|(_, path)| path).collect())
    }

    /// Every line of metrics as a dictionary.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let records = py.detach(|| metrics::read(&self.folder.metrics_path())).map_err(refused)?;
        let rows = records.iter().map(|record| row(py, record)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)
    }
}

fn row<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    let kind = match record.kind {
        metrics::Kind::Step => "step",
        metrics::Kind::Epoch => "epoch",
        metrics::Kind::HeldOut => "held_out",
    };
    row.set_item("kind", kind)?;
    row.set_item("epoch", record.epoch)?;
    row.set_item("step", record.step)?;
    let timing = record.timing.iter().map(|(name, value)| (format!("timing/{name}"), value));
    for (name, value) in record.values.iter().map(|(name, value)| (name.clone(), value)).chain(timing) {
        // What JSON has no number for is a word: NaN, inf.
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        row.set_item(name, number)?;
    }
    Ok(row)
}
