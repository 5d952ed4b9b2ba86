//! `equicaps runs plot`: curves of runs as PNG and SVG.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use report::axis::Axis;
use report::{LineChart, Series, SvgUse};
use serde_json::json;
use train::metrics::Kind;
use train::summary::Summary;

use crate::UsageError;
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps runs plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps runs plot runs/equicaps runs/vicreg --metric rotation_r2/representation --out curves")]
pub struct Arguments {
    /// The runs' folders; each becomes a curve
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Folder for the pictures
    #[arg(long, value_name = "DIR", default_value = "curves")]
    out: PathBuf,
    /// Only numbers whose name contains this; may be given several times
    #[arg(long, value_name = "TEXT")]
    metric: Vec<String>,
}

/// The level of rotation R2 that needs no pose information: the best constant guess.
const ROTATION_FLOOR: f64 = 0.23;

/// Draws the curves.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<()> {
    let runs = super::summaries(&arguments.runs)?;
    let wanted =
        |name: &str| arguments.metric.is_empty() || arguments.metric.iter().any(|text| name.contains(text));
    let mut files = Vec::new();
    for (folder, kind) in [("train", Kind::Epoch), ("step", Kind::Step), ("held_out", Kind::HeldOut)] {
        let names: BTreeSet<String> = runs.iter().flat_map(|run| run.names(kind)).collect();
        for name in names.into_iter().filter(|name| wanted(name)) {
            // Steps repeat what epochs say, except for what only some steps have.
            if kind == Kind::Step && runs.iter().any(|run| run.last(Kind::Epoch, &name).is_some()) {
                continue;
            }
            let stem = format!("{folder}_{}", name.replace('/', "_"));
            files.push(draw(&runs, kind, &name, &arguments.out.join(stem))?);
        }
    }
    if files.is_empty() {
        return Err(UsageError(
            "there is nothing to draw: no number of these runs has such a name".to_owned(),
        )
        .into());
    }
    let text = format!("{} curves in {}", files.len(), arguments.out.display());
    terminal.result(text, &json!({ "files": files.iter().map(shown).collect::<Vec<_>>() }));
    Ok(())
}

fn draw(runs: &[Summary], kind: Kind, name: &str, path: &std::path::Path) -> anyhow::Result<PathBuf> {
    let where_from = if kind == Kind::HeldOut { "held-out objects" } else { "training" };
    let series = runs.iter().map(|run| {
        let curve = Series::new(run.name.clone(), run.curve(kind, name));
        if curve.points.len() < 40 { curve.with_dots() } else { curve }
    });
    let references = if name.contains("rotation_r2") {
        vec![(ROTATION_FLOOR, "no pose information".to_owned())]
    } else {
        Vec::new()
    };
    let (title, axis) = words(name);
    let chart = LineChart {
        title: format!("{title} ({where_from})"),
        x: Axis::new("epoch"),
        y: Axis::new(axis),
        series: series.collect(),
        references,
    };
    let drawing = chart.draw(720.0, 420.0);
    let folder = path.parent().unwrap_or(std::path::Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let png = path.with_extension("png");
    dataset::durable::write(&png, &drawing.to_png(2.0)?)?;
    dataset::durable::write(&path.with_extension("svg"), drawing.to_svg(SvgUse::File).as_bytes())?;
    Ok(png)
}

/// What people call the number `name`: a title, and the axis.
fn words(name: &str) -> (String, String) {
    let plain = |text: &str| text.replace("_r2", " R2").replace('_', " ");
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
    use super::words;

    #[test]
    fn curves_are_labelled_for_people() {
        let pair = |title: &str, axis: &str| (title.to_owned(), axis.to_owned());
        let rotation = pair("Rotation R2, representation", "rotation R2");
        assert_eq!(words("probe/rotation_r2/representation"), rotation);
        assert_eq!(words("probe/class_accuracy/invariant_half").0, "Class accuracy, invariant half");
        assert_eq!(words("health/effective_rank"), pair("Effective rank", "effective rank"));
        assert_eq!(words("loss/cov_loss"), pair("Loss, cov_loss", "cov_loss"));
        assert_eq!(words("bad_samples").0, "Bad samples");
    }
}
