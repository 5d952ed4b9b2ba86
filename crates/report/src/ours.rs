//! Tables of our results alone: probes, retrieval, and studies over several runs.

use std::collections::{BTreeMap, BTreeSet};

use dataset::SplitBy;
use evaluate::protocol::{Protocol, Task};
use evaluate::results::{Measured, ProbeResult, Ranking, Retrieval, RetrievalError};

use crate::baseline::{self, Baseline};
use crate::compare::tells_something;
use crate::entry::{Entry, Rivals, grouped};
use crate::table::{About, Better, Cell, Column, Row, Table};

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
pub fn held_out(all: &[Entry]) -> &'static str {
    let has = |split| all.iter().any(|entry| entry.results.data.split == split);
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
    protocol: &'a Protocol,
    representations: &'a BTreeMap<Task, ProbeResult>,
    embeddings: &'a BTreeMap<Task, ProbeResult>,
    retrieval: Option<&'a Retrieval>,
    /// Standard deviations over seeds.
    spread: Option<&'a Retrieval>,
    about: About,
}

/// The rows of some results: each on its data, then on further datasets.
fn rows_of(all: &[Entry]) -> Vec<Shown<'_>> {
    let is_mixed = all.iter().any(|entry| entry.results.data.split != all[0].results.data.split);
    let mut rows = Vec::new();
    for entry in all {
        let results = &entry.results;
        let mut names = vec![results.subject.name.clone()];
        // A run's curves are not those of its network before training.
        if !entry.is_untrained() {
            names.extend(entry.runs.iter().cloned());
        }
        let about = About { rivals: entry.rivals(), conditions: entry.words(), names };
        let name = results.subject.name.as_str();
        let views = if is_mixed && results.data.split == SplitBy::Views { ", new views" } else { "" };
        rows.push(Shown {
            name,
            end: views.to_owned(),
            protocol: &results.protocol,
            representations: &results.representations,
            embeddings: &results.embeddings,
            retrieval: results.retrieval.as_ref(),
            spread: entry.retrieval_spread.as_ref(),
            about: about.clone(),
        });
        rows.extend(results.also.iter().enumerate().map(|(index, also)| Shown {
            name,
            end: format!("{views}, on {}", also.data.path),
            protocol: &results.protocol,
            representations: &also.representations,
            embeddings: &also.embeddings,
            retrieval: also.retrieval.as_ref(),
            spread: entry.also_spread.get(index).and_then(Option::as_ref),
            about: About {
                rivals: about.rivals.clone().map(|rivals| Rivals {
                    conditions: format!(
                        "{} on {} {}",
                        rivals.conditions, also.data.data_key, also.data.split
                    ),
                    ..rivals
                }),
                ..about.clone()
            },
        }));
    }
    rows
}

impl Shown<'_> {
    /// What is reached without any information where this row has its numbers.
    fn baseline(&self, cells: Vec<Cell>) -> Baseline<'_> {
        Baseline { network: self.name, end: &self.end, protocol: self.protocol, cells }
    }
}

/// Probes of all results, one row each and for each further dataset, with the floor (no information at all) as the last row,
/// or rows where it differs; nothing where no result has any.
pub fn probes(name: &str, caption: &str, all: &[Entry], of_embeddings: bool) -> Option<Table> {
    let shown = rows_of(all);
    let table = |row: &Shown<'_>| {
        if of_embeddings { row.embeddings.clone() } else { row.representations.clone() }
    };
    let has = |task: Task| {
        let mut found = shown.iter().filter_map(|row| table(row).get(&task).cloned());
        found.any(|probe| task != Task::Classification || tells_something(&probe))
    };
    let tasks: Vec<(Task, &str, f64)> = PROBES.into_iter().filter(|(task, ..)| has(*task)).collect();
    let mut columns = vec![Column::new("")];
    columns.extend(tasks.iter().map(|(task, heading, _)| {
        Column::new(*heading).with_better(if *task == Task::Colour {
            Better::Neither
        } else {
            Better::Higher
        })
    }));
    let with: Vec<&Shown<'_>> = shown.iter().filter(|row| !table(row).is_empty()).collect();
    if with.is_empty() {
        return None;
    }
    let mut about: Vec<About> = with.iter().map(|row| row.about.clone()).collect();
    let mut rows: Vec<Vec<Cell>> = with
        .iter()
        .map(|row| {
            let found = table(row);
            let numbers =
                tasks.iter().map(|(task, _, factor)| cell(found.get(task).map(|p| p.value), *factor));
            std::iter::once(format!("{}{}", row.name, row.end).into()).chain(numbers).collect()
        })
        .collect();
    let floors = with.iter().map(|row| {
        let found = table(row);
        let floor = |(task, _, factor): &(Task, &str, f64)| {
            Cell::number(found.get(task).map(|probe| probe.floor * factor), 2)
        };
        row.baseline(tasks.iter().map(floor).collect())
    });
    rows.extend(baseline::rows("no information (floor)", &floors.collect::<Vec<_>>()));
    // Nothing is a rival of a floor, so that none is marked as the best number.
    about.resize(rows.len(), About::default());
    let numbers = |of: &dyn Fn(&Entry) -> u32| {
        let numbers: BTreeSet<u32> = all.iter().map(of).collect();
        numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
    };
    let passes = numbers(&|entry| entry.results.protocol.passes);
    let seeds = if all.iter().any(|entry| entry.conditions.seeds.len() > 1) {
        ", or over seeds where a row has several"
    } else {
        ""
    };
    let also = if all.iter().any(|entry| !entry.results.also.is_empty()) {
        " Rows on other data are of the same probes, tested on what is held out there."
    } else {
        ""
    };
    let note = format!(
        "Held out: {}; mean \u{b1} standard deviation over {passes} validation passes with fresh random views{seeds}. \
         Bold: the best of several rows of the same conditions, by more than the larger standard deviation. The floor is \
         the majority class, or the R\u{b2} of the best constant prediction (above 0 for rotations in space, as the published R\u{b2} \
         has one mean over all four components).{also}",
        held_out(all)
    );
    // Said once: tables of embeddings stand below those of representations.
    let is_said = of_embeddings && shown.iter().any(|row| !row.representations.is_empty());
    let notes = if is_said { Vec::new() } else { vec![note] };
    Some(Table { name: name.to_owned(), caption: caption.to_owned(), columns, rows, notes, about })
}

/// Retrieval metrics of all results that have them, with chance as the last row, or rows where it differs: ranks, then
/// errors.
pub fn retrieval(all: &[Entry]) -> Vec<Table> {
    let shown = rows_of(all);
    let with: Vec<(String, &Retrieval, &Shown<'_>)> = shown
        .iter()
        .filter_map(|row| Some((format!("{}{}", row.name, row.end), row.retrieval?, row)))
        .collect();
    if with.is_empty() {
        return Vec::new();
    }
    let about = |rows: &[Row]| {
        let mut about: Vec<About> = with.iter().map(|(.., row)| row.about.clone()).collect();
        about.resize(rows.len(), About::default());
        about
    };
    let chances = |cells: &dyn Fn(&Retrieval) -> Vec<Cell>| {
        let chances: Vec<Baseline<'_>> = with.iter().map(|(_, r, row)| row.baseline(cells(r))).collect();
        baseline::rows("chance", &chances)
    };
    let number = |value: f64, spread: Option<f64>| Cell::Number { value, decimals: 2, spread };
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
        .map(|(name, r, shown)| {
            let spread = shown.spread.map(|spread| ranks([&spread.train, &spread.val]));
            let values = ranks([&r.train, &r.val]).into_iter().enumerate();
            row(
                name,
                values.map(|(index, value)| number(value, spread.map(|spread| spread[index]))).collect(),
            )
        })
        .collect();
    rows.extend(chances(&|r| {
        let chance = [r.chance_train.as_ref().unwrap_or(&r.chance), &r.chance];
        ranks(chance).map(|value| number(value, None)).to_vec()
    }));
    let by_views = if all.iter().any(|entry| entry.results.data.split == SplitBy::Views) {
        " Of new views of known objects, the first one of its side is the source, and all views of that side are targets."
    } else {
        ""
    };
    let queries: BTreeSet<String> = with
        .iter()
        .map(|(_, r, _)| {
            let [train, val] = [r.train.queries, r.val.queries].map(|count| grouped(count as u64));
            format!("{train} training and {val} held-out queries")
        })
        .collect();
    let queries = queries.into_iter().collect::<Vec<_>>().join("; other rows: ");
    let note = format!(
        "The source is view 0 of an object, the targets are all its views; the target is ranked among the views of its \
         object. {queries}. Held out: {}.{by_views} Bold: the best of several rows of the same \
         conditions, by more than the standard deviation over seeds; rows of one seed have none, and their lead may be chance.",
        held_out(all)
    );
    let ranks = Table {
        name: "ranks-ours".to_owned(),
        caption: "Equivariance of embeddings: ranks of the target view".to_owned(),
        columns,
        about: about(&rows),
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
    // What any row has, as rows of further data may have more than the others.
    let has = |value: fn(&RetrievalError) -> Option<f64>| {
        with.iter().any(|(_, r, _)| r.pre.values().any(|error| value(error).is_some()))
    };
    let parts: Vec<Part> = PARTS.into_iter().filter(|(_, value)| has(*value)).collect();
    let sets: BTreeSet<&str> = with.iter().flat_map(|(_, r, _)| r.pre.keys()).map(String::as_str).collect();
    let mut columns = vec![Column::new("")];
    for set in &sets {
        let half = |heading: &str| Column::new(heading).in_group(*set).with_better(Better::Lower);
        columns.extend(parts.iter().map(|(name, _)| half(name)));
    }
    type Errors = BTreeMap<String, RetrievalError>;
    let errors = |pre: &Errors, spread: Option<&Errors>| {
        let mut cells = Vec::new();
        for set in &sets {
            let (error, spread) = (pre.get(*set), spread.and_then(|spread| spread.get(*set)));
            cells.extend(parts.iter().map(|(_, value)| {
                error.and_then(value).map_or(Cell::Missing, |found| number(found, spread.and_then(value)))
            }));
        }
        cells
    };
    let mut rows: Vec<Vec<Cell>> = with
        .iter()
        .map(|(name, r, shown)| row(name, errors(&r.pre, shown.spread.map(|spread| &spread.pre))))
        .collect();
    rows.extend(chances(&|r| errors(&r.pre_chance, None)));
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
        about: about(&rows),
        rows,
        notes: vec![note],
    };
    vec![ranks, errors]
}

/// EquiCaps by its number of capsules: a table for each group of runs that differ in nothing else.
pub fn capsule_counts(latest: &[Entry]) -> Vec<Table> {
    let caption = "Number of capsules, EquiCaps, our runs";
    ablations(latest, &["network.capsules"], "capsules-ours", caption, |entry| {
        let count = entry.results.subject.capsules?;
        Some((count, format!("{count} capsules")))
    })
}

/// EquiCaps trained for rotations by the size of its poses: a table for each group of runs that differ in nothing else.
pub fn pose_sizes(latest: &[Entry]) -> Vec<Table> {
    ablations(latest, &["transform"], "poses-ours", "Size of EquiCaps' poses, our runs", |entry| {
        let side = match entry.results.subject.trained_for.as_str() {
            "rotation" => 3,
            "rotation-4x4" => 4,
            _ => return None,
        };
        Some((side, format!("{side}x{side} poses")))
    })
}

/// EquiCaps by the terms of its loss: a table for each group of runs that differ in nothing else.
pub fn loss_terms(latest: &[Entry]) -> Vec<Table> {
    const NAMES: [(&str, &str); 7] = [
        ("only-equivariance", "only equivariance"),
        ("no-mean-entropy-no-invariance", "without ME-MAX and invariance"),
        ("only-equivariance-with-mean-entropy", "only equivariance, with ME-MAX"),
        ("no-invariance", "without invariance"),
        ("no-mean-entropy", "without ME-MAX"),
        ("regularised-poses", "regularised on poses only"),
        ("", "full EquiCaps"),
    ];
    let keys = ["loss.invariance", "loss.mean_entropy", "loss.regularise"];
    ablations(latest, &keys, "loss-terms-ours", "Terms of EquiCaps' loss, our runs", |entry| {
        let place = NAMES.iter().position(|(ablation, _)| *ablation == entry.results.subject.ablation)?;
        // A term with another weight than the published one is not left out, but not the same either.
        let weighed = keys
            .iter()
            .filter_map(|key| Some((key, entry.conditions.changed.get(*key)?.parse::<f64>().ok()?)));
        let weighed: Vec<String> = weighed
            .filter(|(_, weight)| *weight != 0.0)
            .map(|(key, weight)| format!("{key} {weight}"))
            .collect();
        let end = if weighed.is_empty() { String::new() } else { format!(" ({})", weighed.join(", ")) };
        Some((place, format!("{}{end}", NAMES[place].1)))
    })
}

/// Runs of EquiCaps that differ in the settings `keys` and in nothing else, a table a group; `variant` says where in its
/// table a run stands, and under which name.
fn ablations(
    latest: &[Entry],
    keys: &[&str],
    name: &str,
    caption: &str,
    variant: impl Fn(&Entry) -> Option<(usize, String)>,
) -> Vec<Table> {
    let mut groups: Vec<Vec<(usize, String, &Entry)>> = Vec::new();
    for entry in latest.iter().filter(|entry| entry.results.subject.method == "equicaps") {
        let Some((place, row)) = variant(entry) else { continue };
        match groups.iter_mut().find(|group| group[0].2.differs_only_in(entry, keys)) {
            Some(group) => group.push((place, row, entry)),
            None => groups.push(vec![(place, row, entry)]),
        }
    }
    groups.retain(|group| group.iter().any(|(place, ..)| *place != group[0].0));
    let several = groups.len() > 1;
    let mut tables = Vec::new();
    for (index, mut group) in groups.into_iter().enumerate() {
        group.sort_by_key(|(place, ..)| *place);
        let first = &group[0].2.results;
        let on = format!("{caption}: {}, trained for {}", first.data.kind, first.subject.trained_for);
        let renamed = |(_, row, entry): &(usize, String, &Entry)| {
            let mut entry = (*entry).clone();
            entry.results.subject.name.clone_from(row);
            entry
        };
        let renamed: Vec<Entry> = group.iter().map(renamed).collect();
        let name = if several { format!("{name}-{}", index + 1) } else { name.to_owned() };
        let Some(mut table) = probes(&name, &on, &renamed, false) else { continue };
        // They differ in what the table is about, and in nothing else.
        for about in table.about.iter_mut().filter(|about| about.rivals.is_some()) {
            about.rivals = Some(Rivals { conditions: String::new(), objective: None });
        }
        table.notes.clear();
        tables.push(table);
    }
    tables
}
