//! How networks grow over pre-training, of runs of which several checkpoints were evaluated: as a chart and as a table.

use std::collections::BTreeSet;

use train::metrics::Over;

use crate::axis::Axis;
use crate::compare::measured;
use crate::drawing::Drawing;
use crate::entry::{Entry, grouped};
use crate::figures::{Floor, run_name};
use crate::line_chart::{LineChart, Series};
use crate::paper::Metric;
use crate::table::{About, Cell, Column, Table};

/// Of so many runs a chart shows the spread, too; bands of more would hide each other.
const MOST_BANDS: usize = 4;

/// A metric of the evaluated checkpoints of every run.
pub struct Convergence<'a> {
    over: Over,
    runs: Vec<Run<'a>>,
}

struct Run<'a> {
    name: String,
    /// In the order of their places.
    checkpoints: Vec<Checkpoint<'a>>,
}

struct Checkpoint<'a> {
    /// Epochs or steps.
    at: u64,
    value: f64,
    spread: f64,
    entry: &'a Entry,
}

impl<'a> Convergence<'a> {
    /// Of the runs of `all` with two checkpoints or more, over steps where epochs of these runs have different numbers of
    /// them; `None` where there is no such run.
    pub fn of(metric: Metric, all: &'a [Entry]) -> Option<Self> {
        let mut runs: Vec<Run<'a>> = Vec::new();
        for entry in all.iter().filter(|entry| !entry.is_untrained()) {
            let (Some(at), Some((value, spread))) =
                (entry.results.subject.epochs, measured(&entry.results, metric))
            else {
                continue;
            };
            let (name, spread) = (run_name(&entry.results), spread.unwrap_or(0.0));
            let checkpoint = Checkpoint { at, value, spread, entry };
            match runs.iter_mut().find(|run| run.name == name) {
                Some(run) => run.checkpoints.push(checkpoint),
                None => runs.push(Run { name, checkpoints: vec![checkpoint] }),
            }
        }
        runs.retain(|run| run.checkpoints.len() > 1);
        let per_epoch = |one: &Checkpoint<'_>| Some(one.steps()? as f64 / one.at.max(1) as f64);
        let known: Option<Vec<f64>> = runs.iter().flat_map(|run| &run.checkpoints).map(per_epoch).collect();
        let over = known.map_or(Over::Epochs, Over::fitting);
        for checkpoint in runs.iter_mut().flat_map(|run| &mut run.checkpoints) {
            if let (Over::Steps, Some(steps)) = (over, checkpoint.steps()) {
                checkpoint.at = steps;
            }
        }
        runs.iter_mut().for_each(|run| run.checkpoints.sort_by_key(|one| one.at));
        (!runs.is_empty()).then_some(Self { over, runs })
    }

    /// A curve of every run, with floors as dashed lines.
    pub(crate) fn chart(&self, title: &str, label: &str, floors: Vec<Floor>) -> Drawing {
        let bands = self.runs.len() <= MOST_BANDS;
        let series = self.runs.iter().map(|run| {
            let points = run.checkpoints.iter().map(|one| (one.at as f64, one.value)).collect();
            let mut series = Series::new(run.name.clone(), points).with_dots();
            if bands {
                series.spread = run.checkpoints.iter().map(|one| one.spread).collect();
            }
            series
        });
        let chart = LineChart {
            // A single curve has no legend.
            title: match &self.runs[..] {
                [only] => format!("{title}: {}", only.name),
                _ => title.to_owned(),
            },
            x: Axis::new(self.over.word()),
            y: Axis::new(label),
            series: series.collect(),
            references: floors,
        };
        chart.draw(560.0, 340.0)
    }

    /// A row for every run, a column for every place.
    pub fn table(&self, name: &str, caption: &str) -> Table {
        let all = || self.runs.iter().flat_map(|run| &run.checkpoints);
        let places: BTreeSet<u64> = all().map(|one| one.at).collect();
        let heading = |place: &u64| match self.over {
            Over::Steps => Column::new(grouped(*place)).in_group("steps"),
            Over::Epochs => {
                let here: BTreeSet<_> = all().filter(|one| one.at == *place).map(Checkpoint::steps).collect();
                let steps = match here.first() {
                    Some(Some(steps)) if here.len() == 1 => format!(" ({} steps)", grouped(*steps)),
                    _ => String::new(),
                };
                Column::new(format!("{place}{steps}")).in_group("epochs")
            }
        };
        let row = |run: &Run<'_>| {
            let at = |place: &u64| {
                let found = run.checkpoints.iter().find(|one| one.at == *place);
                found.map_or(Cell::Missing, |one| Cell::number(one.value, 2))
            };
            std::iter::once(Cell::from(run.name.as_str())).chain(places.iter().map(at)).collect()
        };
        let about = |run: &Run<'_>| {
            let last = run.checkpoints.last().map(|one| one.entry);
            About {
                rivals: None,
                conditions: last.map(Entry::words).unwrap_or_default(),
                names: last.map(|entry| entry.runs.clone()).unwrap_or_default(),
            }
        };
        Table {
            name: name.to_owned(),
            caption: caption.to_owned(),
            columns: std::iter::once(Column::new("")).chain(places.iter().map(heading)).collect(),
            rows: self.runs.iter().map(row).collect(),
            notes: Vec::new(),
            about: self.runs.iter().map(about).collect(),
        }
    }
}

impl Checkpoint<'_> {
    fn steps(&self) -> Option<u64> {
        self.entry.conditions.steps
    }
}
