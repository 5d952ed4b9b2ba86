//! The paper's figures from evaluation results: rotations in pose space, bars, one measure over another.

use std::sync::Arc;

use evaluate::Results;
use evaluate::pose_space::{STEP_DEGREES, SweepStep};

use crate::axis::Axis;
use crate::bar_chart::{Bar, BarChart};
use crate::compare::measured;
use crate::drawing::{Bitmap, Drawing, Paint};
use crate::entry::Entry;
use crate::image_grid::{GridCell, ImageGrid};
use crate::line_chart::{LineChart, Series};
use crate::paper::Metric;
use crate::scatter::{Point, ScatterChart};

/// Frame of what is as it should be.
pub(crate) const GOOD: Paint = Paint::Rgb([0x2f, 0x8f, 0x5b]);
/// Frame of what is not.
pub(crate) const BAD: Paint = Paint::Rgb([0xc5, 0x30, 0x30]);

/// Rotation in pose space, forward or inverse: the views above, the neighbour found for each below, with its error.
/// Green: the expected view or one step off.
pub fn sweep(
    title: &str,
    steps: &[SweepStep],
    images: &[Arc<Bitmap>],
    forward: bool,
    cell_px: f64,
) -> Drawing {
    let at = |degrees: f64| {
        let index = (degrees / f64::from(STEP_DEGREES)).round().max(0.0) as usize;
        images.get(index).cloned()
    };
    let per_row = 10;
    let mut rows = Vec::new();
    let mut row_labels = Vec::new();
    for part in steps.chunks(per_row) {
        rows.push(
            part.iter()
                .map(|step| {
                    let captions = vec![format!("{:.0}\u{b0}", step.degrees)];
                    Some(GridCell {
                        image: at(step.degrees),
                        captions,
                        frame: None,
                        told: Default::default(),
                    })
                })
                .collect(),
        );
        row_labels.push("view".to_owned());
        rows.push(
            part.iter()
                .map(|step| {
                    let (found, error) = if forward {
                        (step.forward_degrees, step.forward_error())
                    } else {
                        (step.inverse_degrees, step.inverse_error())
                    };
                    let good = error <= f64::from(STEP_DEGREES) + 1e-9;
                    Some(GridCell {
                        image: at(found),
                        captions: vec![format!("{found:.0}\u{b0}"), format!("off by {error:.0}\u{b0}")],
                        frame: Some(if good { GOOD } else { BAD }),
                        told: Default::default(),
                    })
                })
                .collect(),
        );
        row_labels.push("found".to_owned());
    }
    ImageGrid { title: title.to_owned(), columns: Vec::new(), row_labels, rows, cell_px }.draw()
}

/// The angular errors of a sweep, forward and inverse.
pub fn sweep_errors(steps: &[SweepStep]) -> Drawing {
    let curve = |name: &str, error: fn(&SweepStep) -> f64| {
        Series::new(name, steps.iter().map(|step| (step.degrees, error(step))).collect()).with_dots()
    };
    LineChart {
        title: "Angular error of the nearest view in pose space".to_owned(),
        x: Axis::new("rotation about z (degrees)").with_range(0.0, 90.0),
        y: Axis::new("error (degrees)"),
        series: vec![
            curve("inverse (back to the source)", SweepStep::inverse_error),
            curve("forward (from the source)", SweepStep::forward_error),
        ],
        references: vec![(f64::from(STEP_DEGREES), "one step".to_owned())],
    }
    .draw(640.0, 320.0)
}

/// Equivariance over invariance, as in the first figure of the paper: rotation R2 over top-1, a point a network. What was
/// trained for has a colour. `None` where fewer than two networks have both.
pub fn equivariance_over_invariance(title: &str, all: &[Entry], floors: Vec<Floor>) -> Option<Drawing> {
    let mut groups: Vec<String> = Vec::new();
    let mut points = Vec::new();
    for entry in all {
        let results = &entry.results;
        let (Some((x, dx)), Some((y, dy))) =
            (measured(results, Metric::Top1), measured(results, Metric::Rotation))
        else {
            continue;
        };
        let group = match results.subject.method.as_str() {
            "untrained" => "untrained".to_owned(),
            "supervised" => "supervised".to_owned(),
            _ => match entry.objective() {
                Some(objective) => format!("trained for {objective}"),
                None => "not trained for poses".to_owned(),
            },
        };
        let number = groups.iter().position(|known| *known == group).unwrap_or(groups.len());
        if number == groups.len() {
            groups.push(group);
        }
        points.push(Point {
            name: results.subject.name.clone(),
            of: results.subject.name.clone(),
            at: (x, y),
            spread: (dx.unwrap_or(0.0), dy.unwrap_or(0.0)),
            group: number,
        });
    }
    let (x, y) = (Axis::new("top-1 (%)"), Axis::new("rotation R\u{b2}"));
    let chart = ScatterChart { title: title.to_owned(), x, y, points, groups, references: floors };
    (chart.points.len() > 1).then(|| chart.draw(620.0, 400.0))
}

/// Where the line of a floor is, and its name.
pub(crate) type Floor = (f64, String);

/// The lines of the floors of some runs, by their names: one where all have the same, as runs on the same data do.
pub(crate) fn floors<'a>(runs: impl IntoIterator<Item = (&'a str, f64)>) -> Vec<Floor> {
    let mut all: Vec<(f64, Vec<&str>)> = Vec::new();
    for (run, floor) in runs {
        match all.iter_mut().find(|(other, _)| (other - floor).abs() < SAME_FLOOR) {
            Some((_, names)) if names.contains(&run) => {}
            Some((_, names)) => names.push(run),
            None => all.push((floor, vec![run])),
        }
    }
    match &all[..] {
        [(floor, _)] => vec![(*floor, no_information(*floor))],
        several => several
            .iter()
            .map(|(floor, names)| {
                let more = match names.len() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                (*floor, format!("{}, {}{more}", no_information(*floor), names[0]))
            })
            .collect(),
    }
}

/// Floors that are nearer to each other are one line.
const SAME_FLOOR: f64 = 0.01;

/// The name of a floor's line.
fn no_information(value: f64) -> String {
    format!("no information ({value:.2})")
}

/// A run's name without the epoch that several checkpoints of it add.
pub(crate) fn run_name(results: &Results) -> String {
    results.subject.name.split(" @ ").next().unwrap_or_default().to_owned()
}

/// One metric of all results as bars, with floors as dashed lines.
pub fn bars(title: &str, label: &str, metric: Metric, all: &[Entry], floors: Vec<Floor>) -> Drawing {
    let bar = |entry: &Entry| {
        let results = &entry.results;
        let (value, spread) = measured(results, metric)?;
        Some(Bar { name: results.subject.name.clone(), value, spread: spread.unwrap_or(0.0) })
    };
    BarChart {
        title: title.to_owned(),
        x: Axis::new(label),
        bars: all.iter().filter_map(bar).collect(),
        references: floors,
        decimals: 2,
    }
    .draw(480.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_that_differ_are_lines_with_the_names_of_their_runs() {
        let line = |floor: f64, text: &str| (floor, text.to_owned());
        assert_eq!(floors([("a", 0.24), ("b", 0.2409)]), [line(0.24, "no information (0.24)")]);
        assert_eq!(
            floors([("a", 0.25), ("b", 0.22), ("c", 0.25)]),
            [line(0.25, "no information (0.25), a and 1 more"), line(0.22, "no information (0.22), b")]
        );
        assert!(floors([]).is_empty());
        let checkpoints = [("a", 0.25), ("a", 0.25), ("b", 0.22)];
        assert_eq!(floors(checkpoints)[0], line(0.25, "no information (0.25), a"), "of one run");
    }
}
