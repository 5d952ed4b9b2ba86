//! Tables of our results alone: probes, retrieval, and studies over several runs.

use std::collections::{BTreeMap, BTreeSet};

use dataset::SplitBy;
use evaluate::Results;
use evaluate::protocol::Task;
use evaluate::results::{Measured, ProbeResult, Ranking, Retrieval, RetrievalError};

use crate::compare::measured;
use crate::paper::Metric;
use crate::table::{Better, Cell, Column, Table};

const PROBES: [(Task, &str, f64); 8] = [
    (Task::Classification, "Top-1 (%)", 100.0),
    (Task::Rotation, "Rotation R\u{b2}", 1.0),
    (Task::TranslationObject, "Translation R\u{b2} (object)", 1.0),
    (Task::TranslationBase, "Translation R\u{b2} (base)", 1.0),
    (Task::Colour, "Colour R\u{b2}", 1.0),
    (Task::Scale, "Scale R\u{b2}", 1.0),
    (Task::Shear, "Shear R\u{b2}", 1.0),
    (Task::Perspective, "Perspective R\u{b2}", 1.0),
];

fn cell(measured: Option<Measured>, factor: f64) -> Cell {
    measured.map_or(Cell::Missing, |m| Cell::Number {
        value: m.value * factor,
        decimals: 2,
        spread: (m.spread > 0.0).then_some(m.spread * factor),
    })
}

/// What is held out in some results, for captions; where they differ, rows say it.
pub fn held_out(all: &[Results]) -> &'static str {
    let has = |split| all.iter().any(|results| results.data.split == split);
    match (has(SplitBy::Objects), has(SplitBy::Views)) {
        (true, true) => "objects never seen, or new views of known objects where a row says so",
        (false, true) => SplitBy::Views.held_out(),
        (_, false) => SplitBy::Objects.held_out(),
    }
}

/// What one row shows: a network on a dataset.
struct Shown<'a> {
    name: &'a str,
    /// What names of rows end with that are about other data than most: every such end has a floor of its own.
    end: String,
    representations: &'a BTreeMap<Task, ProbeResult>,
    embeddings: &'a BTreeMap<Task, ProbeResult>,
    retrieval: Option<&'a Retrieval>,
}

/// The rows of some results: each on its data, then on further datasets.
fn rows_of(all: &[Results]) -> Vec<Shown<'_>> {
    let is_mixed = all.iter().any(|results| results.data.split != all[0].data.split);
    let mut rows = Vec::new();
    for results in all {
        let name = results.subject.name.as_str();
        let views = if is_mixed && results.data.split == SplitBy::Views { ", new views" } else { "" };
        rows.push(Shown {
            name,
            end: views.to_owned(),
            representations: &results.representations,
            embeddings: &results.embeddings,
            retrieval: results.retrieval.as_ref(),
        });
        rows.extend(results.also.iter().map(|also| Shown {
            name,
            end: format!("{views}, on {}", also.data.path),
            representations: &also.representations,
            embeddings: &also.embeddings,
            retrieval: also.retrieval.as_ref(),
        }));
    }
    rows
}

/// The different ends of names, in order.
fn ends<'a>(rows: &'a [Shown<'_>]) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for row in rows {
        if !found.contains(&row.end.as_str()) {
            found.push(&row.end);
        }
    }
    found
}

/// Probes of all results, one row each and for each further dataset, with the floor (no information at all) as the last row.
pub fn probes(name: &str, caption: &str, all: &[Results], of_embeddings: bool) -> Table {
    let shown = rows_of(all);
    let table = |row: &Shown<'_>| {
        if of_embeddings { row.embeddings.clone() } else { row.representations.clone() }
    };
    let tasks: Vec<(Task, &str, f64)> =
        PROBES.into_iter().filter(|(task, ..)| shown.iter().any(|r| table(r).contains_key(task))).collect();
    let mut columns = vec![Column::new("")];
    columns.extend(tasks.iter().map(|(task, heading, _)| {
        Column::new(*heading).with_better(if *task == Task::Colour {
            Better::Neither
        } else {
            Better::Higher
        })
    }));
    let mut rows: Vec<Vec<Cell>> = shown
        .iter()
        .filter(|row| !table(row).is_empty())
        .map(|row| {
            let found = table(row);
            let numbers =
                tasks.iter().map(|(task, _, factor)| cell(found.get(task).map(|p| p.value), *factor));
            std::iter::once(format!("{}{}", row.name, row.end).into()).chain(numbers).collect()
        })
        .collect();
    for end in ends(&shown) {
        let floors = tasks.iter().map(|(task, _, factor)| {
            let of_end = shown.iter().filter(|row| row.end == end);
            let floor = of_end.filter_map(|row| table(row).get(task).map(|p| p.floor * factor)).next();
            // As words, so that a floor is never marked as the best number.
            floor.map_or(Cell::Missing, |value| Cell::Text(format!("{value:.2}")))
        });
        rows.push(std::iter::once(format!("no information (floor){end}").into()).chain(floors).collect());
    }
    let passes = all.first().map_or(0, |results| results.protocol.passes);
    let also = if all.iter().any(|results| !results.also.is_empty()) {
        " Rows on other data are of the same probes, tested on what is held out there."
    } else {
        ""
    };
    let about = format!(
        "Held out: {}; mean \u{b1} standard deviation over {passes} validation passes with fresh random views. The floor is \
         the majority class, or the R\u{b2} of the best constant prediction (about 0.23 for rotation, as the published R\u{b2} has \
         one mean over all four components).{also}",
        held_out(all)
    );
    // Said once: tables of embeddings stand below those of representations.
    let notes = if of_embeddings { Vec::new() } else { vec![about] };
    Table { name: name.to_owned(), caption: caption.to_owned(), columns, rows, notes }
}

/// Retrieval metrics of all results that have them, with chance as the last row: ranks, then errors.
pub fn retrieval(all: &[Results]) -> Vec<Table> {
    let shown = rows_of(all);
    let with: Vec<(String, &Retrieval)> =
        shown.iter().filter_map(|row| Some((format!("{}{}", row.name, row.end), row.retrieval?))).collect();
    let Some((_, first)) = with.first() else { return Vec::new() };
    let chances: Vec<(String, &Retrieval)> = ends(&shown)
        .into_iter()
        .filter_map(|end| {
            let mut of_end = shown.iter().filter(|row| row.end == end);
            Some((format!("chance{end}"), of_end.find_map(|row| row.retrieval)?))
        })
        .collect();
    let words = |value: f64| Cell::Text(format!("{value:.2}"));
    let row =
        |name: &str, cells: Vec<Cell>| std::iter::once(Cell::from(name)).chain(cells).collect::<Vec<_>>();

    let mut columns = vec![Column::new("")];
    for group in ["MRR", "H@1", "H@2", "H@5", "H@10"] {
        let side = |heading: &str| Column::new(heading).in_group(group).with_better(Better::Higher);
        columns.extend([side("train"), side("val")]);
    }
    let ranks = |[a, b]: [&Ranking; 2]| [a.mrr, b.mrr, a.h1, b.h1, a.h2, b.h2, a.h5, b.h5, a.h10, b.h10];
    let mut rows: Vec<Vec<Cell>> = with
        .iter()
        .map(|(name, r)| row(name, ranks([&r.train, &r.val]).map(|value| Cell::number(value, 2)).to_vec()))
        .collect();
    for (name, r) in &chances {
        let chance = [r.chance_train.as_ref().unwrap_or(&r.chance), &r.chance];
        rows.push(row(name, ranks(chance).map(words).to_vec()));
    }
    let by_views = if all.iter().any(|results| results.data.split == SplitBy::Views) {
        " Of new views of known objects, the first one of its side is the source, and all views of that side are targets."
    } else {
        ""
    };
    let note = format!(
        "The source is view 0 of an object, the targets are all its views; the target is ranked among the views of its \
         object. {} training and {} held-out queries. Held out: {}.{by_views}",
        first.train.queries,
        first.val.queries,
        held_out(all)
    );
    let ranks = Table {
        name: "ranks-ours".to_owned(),
        caption: "Equivariance of embeddings: ranks of the target view".to_owned(),
        columns,
        rows,
        notes: vec![note],
    };

    // Rotation has no `Option` of its own.
    type Part = (&'static str, fn(&RetrievalError) -> Option<f64>);
    const PARTS: [Part; 5] = [
        ("rotation", |error| Some(error.rotation)),
        ("translation", |error| error.translation),
        ("scale", |error| error.scale),
        ("shear", |error| error.shear),
        ("perspective", |error| error.perspective),
    ];
    let parts: Vec<Part> = PARTS
        .into_iter()
        .filter(|(_, value)| first.pre.is_empty() || first.pre.values().any(|error| value(error).is_some()))
        .collect();
    let mut columns = vec![Column::new("")];
    for set in first.pre.keys() {
        let half = |heading: &str| Column::new(heading).in_group(set.as_str()).with_better(Better::Lower);
        columns.extend(parts.iter().map(|(name, _)| half(name)));
    }
    let errors = |pre: &BTreeMap<String, RetrievalError>, cell: &dyn Fn(f64) -> Cell| {
        let mut cells = Vec::new();
        for set in first.pre.keys() {
            let error = pre.get(set);
            cells.extend(parts.iter().map(|(_, value)| error.and_then(value).map_or(Cell::Missing, cell)));
        }
        cells
    };
    let mut rows: Vec<Vec<Cell>> =
        with.iter().map(|(name, r)| row(name, errors(&r.pre, &|value| Cell::number(value, 2)))).collect();
    rows.extend(chances.iter().map(|(name, r)| row(name, errors(&r.pre_chance, &words))));
    let others = if parts.len() > 2 {
        " Scales (their logarithms), shears and perspectives as translations."
    } else {
        ""
    };
    let note = format!(
        "PRE: mean distance between the target and the nearest of all views of the set, 1 - <q, q'>\u{b2} and \
         |t - t'|\u{b2}; lower is better.{others}"
    );
    let errors = Table {
        name: "pre-ours".to_owned(),
        caption: "Equivariance of embeddings: prediction retrieval error".to_owned(),
        columns,
        rows,
        notes: vec![note],
    };
    vec![ranks, errors]
}

/// A metric of every run over its evaluated checkpoints; `None` where no run has two.
pub fn convergence(name: &str, caption: &str, metric: Metric, all: &[Results]) -> Option<Table> {
    let points: Vec<(&str, u64, f64)> = all
        .iter()
        .filter(|results| results.subject.method != "untrained")
        .filter_map(|r| Some((r.subject.name.as_str(), r.subject.epochs?, measured(r, metric)?.0)))
        .collect();
    let epochs: BTreeSet<u64> = points.iter().map(|point| point.1).collect();
    let mut names: Vec<&str> = Vec::new();
    points.iter().for_each(|point| {
        if !names.contains(&point.0) {
            names.push(point.0);
        }
    });
    names.retain(|name| points.iter().filter(|point| point.0 == *name).count() > 1);
    if names.is_empty() {
        return None;
    }
    let heading = |epoch: &u64| Column::new(epoch.to_string()).in_group("epochs").with_better(Better::Higher);
    let columns = std::iter::once(Column::new("")).chain(epochs.iter().map(heading)).collect();
    let row = |name: &&str| {
        let at = |epoch: &u64| {
            let found = points.iter().find(|point| point.0 == *name && point.1 == *epoch);
            found.map_or(Cell::Missing, |point| Cell::number(point.2, 2))
        };
        std::iter::once(Cell::from(*name)).chain(epochs.iter().map(at)).collect()
    };
    let rows = names.iter().map(row).collect();
    Some(Table { name: name.to_owned(), caption: caption.to_owned(), columns, rows, notes: Vec::new() })
}

/// EquiCaps by its number of capsules; `None` where all have the same.
pub fn capsule_counts(latest: &[Results]) -> Option<Table> {
    let mut with: Vec<(usize, &Results)> = latest
        .iter()
        .filter(|results| results.subject.method == "equicaps" && results.subject.ablation.is_empty())
        .filter_map(|results| Some((results.subject.capsules?, results)))
        .collect();
    with.sort_by_key(|(count, _)| *count);
    let counts: BTreeSet<usize> = with.iter().map(|(count, _)| *count).collect();
    let rows = with.into_iter().map(|(count, results)| (format!("{count} capsules"), results)).collect();
    (counts.len() > 1).then(|| study("capsules-ours", "Number of capsules, EquiCaps, our runs", rows))
}

/// EquiCaps by the terms of its loss; `None` where all have the full loss.
pub fn loss_terms(latest: &[Results]) -> Option<Table> {
    const NAMES: [(&str, &str); 7] = [
        ("only-equivariance", "only equivariance"),
        ("no-mean-entropy-no-invariance", "without ME-MAX and invariance"),
        ("only-equivariance-with-mean-entropy", "only equivariance, with ME-MAX"),
        ("no-invariance", "without invariance"),
        ("no-mean-entropy", "without ME-MAX"),
        ("regularised-poses", "regularised on poses only"),
        ("", "full EquiCaps"),
    ];
    let ours = || latest.iter().filter(|results| results.subject.method == "equicaps");
    if ours().all(|results| results.subject.ablation.is_empty()) {
        return None;
    }
    // The full loss with as many capsules as the others.
    let capsules = ours().find(|r| !r.subject.ablation.is_empty()).and_then(|r| r.subject.capsules);
    let rows = NAMES
        .iter()
        .flat_map(|(ablation, name)| {
            let fits = move |r: &&Results| r.subject.ablation == *ablation && r.subject.capsules == capsules;
            ours().filter(fits).map(|results| ((*name).to_owned(), results))
        })
        .collect();
    Some(study("loss-terms-ours", "Terms of EquiCaps' loss, our runs", rows))
}

/// One row a result, under a name of its own.
fn study(name: &str, caption: &str, rows: Vec<(String, &Results)>) -> Table {
    let renamed: Vec<Results> = rows
        .into_iter()
        .map(|(name, results)| {
            let mut results = results.clone();
            results.subject.name = name;
            results
        })
        .collect();
    let mut table = probes(name, caption, &renamed, false);
    table.notes.clear();
    table
}
