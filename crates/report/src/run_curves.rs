//! Curves of training: every number of some runs as a chart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dataset::SplitBy;
use train::metrics::{self, Kind, Over};
use train::summary::Summary;
use train::verdict::{FLOORS, floor_of};

use crate::axis::Axis;
use crate::{Drawing, LineChart, Result, Series, figures, run_names};

/// What suits the curves of `runs`.
pub fn over(runs: &[Summary]) -> Over {
    Over::of(runs.iter().map(|run| &run.records[..]))
}

/// Draws all numbers whose name is `wanted` into `out`, each as PNG and SVG; returns the PNG files.
pub fn write(
    runs: &[Summary],
    over: Over,
    wanted: impl Fn(&str) -> bool,
    out: &Path,
) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (folder, kind) in [("train", Kind::Epoch), ("step", Kind::Step), ("held_out", Kind::HeldOut)] {
        let names: BTreeSet<String> = runs.iter().flat_map(|run| run.names(kind)).collect();
        for name in names.into_iter().filter(|name| wanted(name) && !name.starts_with(FLOORS)) {
            // Steps repeat what epochs say, except for what only some steps have.
            if kind == Kind::Step && runs.iter().any(|run| run.last(Kind::Epoch, &name).is_some()) {
                continue;
            }
            let stem = format!("{folder}_{}", name.replace('/', "_"));
            files.push(draw(runs, over, kind, &name, &out.join(stem))?);
        }
    }
    Ok(files)
}

/// What people look at first: where it is written, its name, and which lines have it.
const FIRST: [(Kind, &str); 6] = [
    (Kind::HeldOut, "probe/rotation_r2/representation"),
    (Kind::HeldOut, "probe/class_accuracy/representation"),
    (Kind::HeldOut, "probe/translation_r2/representation"),
    (Kind::HeldOut, "probe/knn_accuracy/representation"),
    (Kind::Epoch, "loss"),
    (Kind::Epoch, "health/effective_rank"),
];

/// Draws what people look at first on one page, `out/curves.png` and `.svg`; returns the PNG file, where there is anything.
pub fn write_first(runs: &[Summary], over: Over, out: &Path) -> Result<Option<PathBuf>> {
    let has = |(kind, name): &(Kind, &str)| runs.iter().any(|run| run.last(*kind, name).is_some());
    let charts: Vec<Drawing> =
        FIRST.iter().filter(|first| has(first)).map(|(kind, name)| chart(runs, over, *kind, name)).collect();
    if charts.is_empty() {
        return Ok(None);
    }
    let columns = if charts.len() > 1 { 2 } else { 1 };
    let page = Drawing::together(charts, columns, "Curves of training");
    let png = out.join("curves.png");
    page.write(&png)?;
    page.write(&png.with_extension("svg"))?;
    Ok(Some(png))
}

/// Draws one number of all runs as PNG and SVG; returns the PNG file.
fn draw(runs: &[Summary], over: Over, kind: Kind, name: &str, path: &Path) -> Result<PathBuf> {
    let drawing = chart(runs, over, kind, name);
    let png = path.with_extension("png");
    drawing.write(&png)?;
    drawing.write(&path.with_extension("svg"))?;
    Ok(png)
}

/// One number of all runs.
fn chart(runs: &[Summary], over: Over, kind: Kind, name: &str) -> Drawing {
    let splits: Vec<(&str, SplitBy)> =
        runs.iter().map(|run| (run.name.as_str(), run.config.split.or(SplitBy::Objects))).collect();
    let (held_out, names) = run_names::held_out(&splits);
    let where_from = if kind == Kind::HeldOut { held_out } else { "training" };
    let mut series: Vec<Series> = runs
        .iter()
        .zip(names)
        .map(|(run, held_out_name)| {
            let label = if kind == Kind::HeldOut { held_out_name } else { run.name.clone() };
            let curve = Series::new(label, metrics::curve(&run.records, over, kind, name));
            if curve.points.len() < 40 { curve.with_dots() } else { curve }
        })
        .collect();
    let floor = floor_of(name);
    let last_floor = |run: &Summary| run.last(kind, floor.as_ref()?);
    let floors: Vec<(&str, Option<f64>)> =
        runs.iter().map(|run| (run.name.as_str(), last_floor(run))).collect();
    let references = with_floors(&mut series, &floors);
    let (title, label) = words(name);
    let chart = LineChart {
        title: format!("{title} ({where_from})"),
        x: Axis::new(over.word()),
        y: axis(name, &label),
        series,
        references,
    };
    chart.draw(720.0, 420.0)
}

/// Gives each of `series` the floor of its run, where they differ; the line of all of them, where they do not. `floors` are
/// the names and floors of the runs, in the order of `series`.
pub(crate) fn with_floors(series: &mut [Series], floors: &[(&str, Option<f64>)]) -> Vec<figures::Floor> {
    let known = floors.iter().filter_map(|(name, floor)| Some((*name, (*floor)?)));
    let mut lines = figures::floors(known);
    if lines.len() > 1 {
        // A line that several share has the colour of the first of them.
        lines.retain(|line| {
            let own = floors.iter().position(|(_, floor)| *floor == Some(line.0));
            let Some(series) = own.and_then(|index| series.get_mut(index)) else { return true };
            series.floor = Some(line.clone());
            false
        });
    }
    lines
}

/// The vertical axis of the number `name`.
pub(crate) fn axis(name: &str, label: &str) -> Axis {
    match name.split('/').collect::<Vec<_>>()[..] {
        ["probe", task, _] if task.ends_with("_r2") => Axis::of_r2(label),
        ["probe", task, _] if task.ends_with("_accuracy") => Axis::of_share(label),
        _ => Axis::new(label),
    }
}

/// What people call the number `name`: a title, and the axis.
fn words(name: &str) -> (String, String) {
    let plain = |text: &str| text.replace("_r2", " R2").replace("knn_", "kNN ").replace('_', " ");
    let (title, axis) = match name.split('/').collect::<Vec<_>>()[..] {
        ["probe", task, place] => (format!("{}, {}", plain(task), plain(place)), plain(task)),
        ["health", what] => (plain(what), plain(what)),
        // Terms have the names of the published code.
        ["loss", term] => (format!("loss, {term}"), term.to_owned()),
        _ => (plain(name), plain(name)),
    };
    let mut letters = title.chars();
    let title = letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect());
    (title, axis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_that_differ_belong_to_their_runs() {
        let series = || ["a", "b", "c"].map(|name| Series::new(name, Vec::new()));
        let values = |series: &[Series]| -> Vec<Option<f64>> {
            series.iter().map(|one| one.floor.as_ref().map(|floor| floor.0)).collect()
        };
        let mut same = series();
        let references = with_floors(&mut same, &[("a", Some(0.24)), ("b", Some(0.2409)), ("c", None)]);
        assert_eq!((references.len(), values(&same)), (1, vec![None; 3]));
        let mut other = series();
        let references = with_floors(&mut other, &[("a", Some(0.25)), ("b", Some(0.22)), ("c", Some(0.25))]);
        assert_eq!((references, values(&other)), (vec![], vec![Some(0.25), Some(0.22), None]));
        assert!(other[1].floor.as_ref().unwrap().1.ends_with("b"));
        assert!(with_floors(&mut series(), &["a", "b", "c"].map(|name| (name, None))).is_empty());
    }

    #[test]
    fn shares_and_r2_end_at_one() {
        for name in ["probe/class_accuracy/representation", "probe/rotation_r2/poses"] {
            assert_eq!(axis(name, "").fit([0.714].into_iter()).high, 1.0, "{name}");
        }
        assert!(axis("loss", "").fit([0.714].into_iter()).high > 1.0);
    }

    #[test]
    fn curves_are_labelled_for_people() {
        let pair = |title: &str, axis: &str| (title.to_owned(), axis.to_owned());
        let rotation = pair("Rotation R2, representation", "rotation R2");
        assert_eq!(words("probe/rotation_r2/representation"), rotation);
        assert_eq!(words("probe/class_accuracy/invariant_half").0, "Class accuracy, invariant half");
        assert_eq!(words("probe/knn_accuracy/representation").1, "kNN accuracy");
        assert_eq!(words("health/effective_rank"), pair("Effective rank", "effective rank"));
        assert_eq!(words("loss/cov_loss"), pair("Loss, cov_loss", "cov_loss"));
        assert_eq!(words("bad_samples").0, "Bad samples");
    }
}
