//! The images of a report: nearest neighbours of several runs side by side, and rotations in pose space.

use std::path::Path;
use std::sync::Arc;

use dataset::Views;
use evaluate::Results;
use evaluate::neighbours::NeighbourQuery;
use evaluate::pose_space::SweepStep;
use train::Config;

use crate::Result;
use crate::entry::{Entry, is_untrained};
use crate::evaluation_folder::NEIGHBOURS;
use crate::neighbour_grid::{NeighbourGrid, Network};
use crate::page::Page;
use crate::pose_sweep::{IMAGES, SWEEP, Sweep};
use crate::run_material::RunMaterial;
use crate::run_page::Files;

/// Queries that are shown, and networks beside each.
const SHOWN: usize = 4;
const MOST_NETWORKS: usize = 8;
/// Drawings that stand side by side.
const NARROW: f64 = 480.0;
/// Rotations in pose space that are shown, and that are not folded away.
const MOST_SWEEPS: usize = 24;
const UNFOLDED: usize = 2;

/// Adds the sections of images. Returns a warning where one had to be left out.
pub fn section(
    page: &mut Page,
    runs: &[RunMaterial],
    latest: &[Entry],
    files: &mut Files,
) -> Result<Option<String>> {
    page.section("Nearest neighbours");
    let warning = neighbours(page, runs, latest, files)?;
    page.section("Rotation in pose space");
    sweeps(page, runs);
    Ok(warning)
}

/// Rotations in pose space of the runs that have poses; those of several are folded away behind their errors.
fn sweeps(page: &mut Page, runs: &[RunMaterial]) {
    let found: Vec<(&str, &Path, Sweep)> = runs
        .iter()
        .filter_map(|run| {
            let (folder, _) = run.evaluations.last()?;
            Some((run.name.as_str(), folder.as_path(), read(&folder.join(SWEEP))?))
        })
        .collect();
    let Some((_, _, first)) = found.first() else { return };
    // Runs on other data may have turned other objects.
    let object = first.object_in_words();
    let is_same = found.iter().all(|(_, _, sweep)| sweep.object_in_words() == object);
    let what = if is_same { object } else { "an object".to_owned() };
    page.paragraph(&format!(
        "Shown is {what}, turned about z from 0 to 90 degrees in steps of 5, rendered by the built-in renderer, encoded, and moved \
         in pose space. The angles are the mean errors of the neighbour found."
    ));
    let show = |page: &mut Page, folder: &Path| {
        let captions = [
            "Each view's embedding times the inverse of its rotation: the nearest view should be the source, 0\u{b0}.",
            "The source's embedding times each rotation: the nearest view should be the one above.",
            "",
        ];
        for (name, caption) in IMAGES.iter().zip(captions) {
            if let Ok(svg) = std::fs::read_to_string(folder.join(format!("{name}.svg"))) {
                page.svg_file(&svg, caption);
            }
        }
    };
    let mean = |sweep: &Sweep, error: fn(&SweepStep) -> f64| {
        sweep.steps.iter().map(error).sum::<f64>() / sweep.steps.len().max(1) as f64
    };
    for (index, (name, folder, sweep)) in found.iter().enumerate() {
        let of = if is_same { String::new() } else { format!(" ({})", sweep.object_in_words()) };
        let said = format!(
            "{name}{of}: {:.1} degrees inverse, {:.1} degrees forward",
            mean(sweep, SweepStep::inverse_error),
            mean(sweep, SweepStep::forward_error)
        );
        if index >= MOST_SWEEPS {
            page.paragraph(&format!("{said}; drawn in {}.", folder.display()));
        } else if found.len() > UNFOLDED {
            page.fold(&said, |page| show(page, folder));
        } else {
            page.paragraph(&format!("{said}."));
            show(page, folder);
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// The views that were evaluated: stored ones, or rendered again as the run says.
fn open(run: &RunMaterial, results: &Results) -> Result<Arc<dyn Views>> {
    let text = run.config_text.as_deref().unwrap_or_default();
    let mut config = Config::resolve(Config::settings_of("config.toml", text)?)?;
    if config.data != results.data.path {
        config.data.clone_from(&results.data.path);
        config.lists.clear();
    }
    config.split = results.data.split.into();
    Ok(train::data::open_views(&config, &mut |_| ())?)
}

/// The runs, the first of every method before all others: there may be more than are shown.
fn one_of_each_method_first(runs: &[RunMaterial]) -> Vec<&RunMaterial> {
    let method =
        |run: &RunMaterial| run.evaluations.last().map(|(_, results)| results.subject.method.clone());
    let is_first = |index: usize| runs[..index].iter().all(|other| method(other) != method(&runs[index]));
    let (first, others): (Vec<usize>, Vec<usize>) = (0..runs.len()).partition(|&index| is_first(index));
    first.into_iter().chain(others).map(|index| &runs[index]).collect()
}

/// The row of a run's network: where it is one of several seeds, theirs. The network before training has a row of its own.
fn entry_of<'a>(latest: &'a [Entry], run: &RunMaterial, results: &Results) -> Option<&'a Entry> {
    latest.iter().find(|other| {
        other.is_untrained() == is_untrained(results)
            && (other.results.subject.weights_key == results.subject.weights_key
                || other.runs.contains(&run.name))
    })
}

fn neighbours(
    page: &mut Page,
    runs: &[RunMaterial],
    latest: &[Entry],
    files: &mut Files,
) -> Result<Option<String>> {
    // Only evaluations on the same data can stand side by side.
    let mut columns: Vec<Network> = Vec::new();
    let mut data: Option<(String, Arc<dyn Views>)> = None;
    let mut unreadable = None;
    for run in one_of_each_method_first(runs) {
        let untrained = run.evaluations.iter().find(|(_, r)| is_untrained(r) && columns.is_empty());
        let newest = run.evaluations.iter().rev().find(|(_, r)| !is_untrained(r));
        for (folder, results) in untrained.into_iter().chain(newest) {
            let Some(found) = read::<Vec<NeighbourQuery>>(&folder.join(NEIGHBOURS)) else { continue };
            let Some(named) = entry_of(latest, run, results).filter(|_| columns.len() < MOST_NETWORKS) else {
                continue;
            };
            // Seeds of one row have one column.
            if columns.iter().any(|(name, _)| *name == named.results.subject.name) {
                continue;
            }
            if data.is_none() {
                match open(run, results) {
                    Ok(views) => data = Some((results.data.data_key.clone(), views)),
                    Err(error) => unreadable = unreadable.or(Some(error)),
                }
            }
            if data.as_ref().is_some_and(|(key, _)| *key == results.data.data_key) {
                columns.push((named.results.subject.name.clone(), found));
            }
        }
    }
    let Some((_, dataset)) = data else {
        return Ok(unreadable.map(|error| format!("no images of nearest neighbours: {error}")));
    };
    let mut grid = NeighbourGrid::new(&*dataset);
    let shown = columns.iter().map(|(_, found)| found.len()).min().unwrap_or(0).min(SHOWN);
    let drawings = match &columns[..] {
        [one] => vec![grid.of_one(one, shown)],
        several => (0..shown).map(|index| grid.side_by_side(several, index)).collect(),
    };
    for (index, drawing) in drawings.iter().enumerate() {
        files.keep(&format!("neighbours_{}", index + 1), drawing)?;
    }
    if drawings.iter().all(|drawing| drawing.width <= NARROW) {
        page.drawings(&drawings);
    } else {
        drawings.iter().for_each(|drawing| page.drawing(drawing, ""));
    }
    let frames =
        if grid.has_classes() { " Green frame: an object of the same class; red: of another." } else { "" };
    page.paragraph(&format!(
        "Held-out views nearest to a query in the space of representations (cosine similarity, the query itself excluded).{frames} \
         The number is 1 - <q, q'>\u{b2}, 0 for the same rotation."
    ));
    Ok(None)
}
