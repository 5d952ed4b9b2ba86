//! Our results beside the published numbers.

use std::collections::BTreeMap;

use dataset::SplitBy;
use evaluate::Results;
use evaluate::protocol::Task;
use evaluate::results::ProbeResult;

use crate::entry::{Entry, grouped};
use crate::paper::{Kind, Metric, Published, PublishedColumn, PublishedRow, Trained};
use crate::table::{Better, Cell, Column, Table};

/// The quantity in published units (top-1 in percent), with the spread where it was measured.
pub fn measured(results: &Results, metric: Metric) -> Option<(f64, Option<f64>)> {
    let probe = |probe: Option<&ProbeResult>, factor: f64| {
        probe.map(|p| (p.value.value * factor, Some(p.value.spread * factor)))
    };
    let on_h = |task| results.representations.get(&task);
    let on_e = |task| results.embeddings.get(&task);
    let retrieval = results.retrieval.as_ref();
    let rank = |train: bool, value: fn(&evaluate::results::Ranking) -> f64| {
        retrieval.map(|r| (value(if train { &r.train } else { &r.val }), None))
    };
    let pre = |set: &str| retrieval.and_then(|r| r.pre.get(set));
    let pre_rotation = |set| pre(set).map(|error| (error.rotation, None));
    let pre_translation = |set| pre(set).and_then(|error| error.translation).map(|value| (value, None));
    match metric {
        Metric::Top1 => probe(on_h(Task::Classification).filter(|probe| tells_something(probe)), 100.0),
        Metric::Rotation => probe(on_h(Task::Rotation), 1.0),
        Metric::TranslationObject => probe(on_h(Task::TranslationObject), 1.0),
        Metric::TranslationBase => probe(on_h(Task::TranslationBase), 1.0),
        Metric::Colour => probe(on_h(Task::Colour), 1.0),
        Metric::EmbeddingRotation => probe(on_e(Task::Rotation), 1.0),
        Metric::EmbeddingTranslation => probe(on_e(Task::TranslationObject), 1.0),
        Metric::MrrTrain => rank(true, |r| r.mrr),
        Metric::MrrVal => rank(false, |r| r.mrr),
        Metric::H1Train => rank(true, |r| r.h1),
        Metric::H1Val => rank(false, |r| r.h1),
        Metric::H5Train => rank(true, |r| r.h5),
        Metric::H5Val => rank(false, |r| r.h5),
        Metric::PreRotationTrainTrain => pre_rotation("train-train"),
        Metric::PreRotationValVal => pre_rotation("val-val"),
        Metric::PreRotationValAll => pre_rotation("val-all"),
        Metric::PreTranslationTrainTrain => pre_translation("train-train"),
        Metric::PreTranslationValVal => pre_translation("val-val"),
        Metric::PreTranslationValAll => pre_translation("val-all"),
    }
}

/// Whether an accuracy is one: where all is of one class, everything is right.
pub(crate) fn tells_something(accuracy: &ProbeResult) -> bool {
    accuracy.floor < 1.0
}

fn better(metric: Metric) -> Better {
    match metric {
        Metric::PreRotationTrainTrain
        | Metric::PreRotationValVal
        | Metric::PreRotationValAll
        | Metric::PreTranslationTrainTrain
        | Metric::PreTranslationValVal
        | Metric::PreTranslationValAll => Better::Lower,
        Metric::Colour => Better::Neither,
        _ => Better::Higher,
    }
}

/// Methods that know nothing of transformations stand in every table as they are.
fn ignores_training(method: &str) -> bool {
    matches!(method, "vicreg" | "simclr" | "supervised")
}

fn matches(entry: &Entry, row: &PublishedRow, column: &PublishedColumn) -> bool {
    let results = &entry.results;
    let subject = &results.subject;
    let kind = match column.kind {
        Kind::ThreeDie => "3DIEBench",
        Kind::ThreeDieT => "3DIEBench-T",
    };
    let trained = match column.trained {
        Trained::Rotation => "rotation",
        Trained::ObjectTranslation => "rotation+object",
        Trained::BaseTranslation => "rotation+base",
    };
    // Epochs of other data have other numbers of steps.
    let is_at = |epochs: u64| {
        let asked = (epochs * STEPS_PER_EPOCH) as f64;
        entry.conditions.steps.is_some_and(|steps| (steps as f64 / asked - 1.0).abs() < 0.01)
    };
    subject.method == row.method
        && subject.backbone == row.backbone
        && results.data.kind == kind
        && (subject.trained_for == trained || ignores_training(row.method))
        && subject.ablation == row.ablation
        && subject.capsules.is_none_or(|count| count == row.capsules.unwrap_or(CAPSULES))
        && column.epochs.is_none_or(is_at)
}

/// Capsules of the paper's networks where it does not say otherwise.
const CAPSULES: usize = 32;
/// Steps of an epoch of the paper: 41,920 objects in batches of 1,024 pairs.
const STEPS_PER_EPOCH: u64 = 41;
/// Classes of the published data, and the least side of images that may stand beside theirs.
const CLASSES: usize = 55;
const LEAST_SIDE: usize = 128;

/// Whether results can stand beside the paper's: as many classes, the same latents, objects never seen, images that are not
/// much smaller.
pub(crate) fn is_comparable(results: &Results) -> bool {
    let data = &results.data;
    data.classes == CLASSES
        && ["3DIEBench", "3DIEBench-T"].contains(&data.kind.as_str())
        && data.split == SplitBy::Objects
        && data.side >= LEAST_SIDE
}

/// The entries that may stand in the paper's tables: comparable ones, and of these those with the conditions that most have
/// (steps, batch, size, width, probes), with the full settings of their method. Checkpoints along the way count, too.
pub(crate) fn comparable(all: &[Entry]) -> Vec<Entry> {
    let conditions = |entry: &Entry| {
        let changed = entry.conditions.changed.iter();
        // What the paper's own studies change does not count: they leave terms out, and do not weigh them in another way.
        let is_studied = |key: &str, value: &str| match key {
            "network.capsules" | "loss.regularise" => true,
            "loss.invariance" | "loss.mean_entropy" => is_zero(value),
            _ => false,
        };
        let changed: Vec<_> = changed.filter(|(key, value)| !is_studied(key, value)).collect();
        let data = &entry.results.data;
        let preset = entry.results.protocol.preset;
        format!(
            "{:?} {} {:?} {preset} {changed:?}",
            entry.conditions.batch, data.side, entry.conditions.width
        )
    };
    let fits = |entry: &&Entry| !entry.is_untrained() && is_comparable(&entry.results);
    let all: Vec<&Entry> = all.iter().filter(fits).collect();
    let votes = |entry: &Entry| {
        let same = |other: &&&Entry| {
            conditions(other) == conditions(entry) && other.conditions.steps == entry.conditions.steps
        };
        all.iter().filter(same).count()
    };
    let Some(usual) = all.iter().rev().max_by_key(|entry| votes(entry)) else { return Vec::new() };
    let usual = conditions(usual);
    let most = all.iter().rev().filter(|entry| conditions(entry) == usual).max_by_key(|entry| votes(entry));
    let steps = most.and_then(|entry| entry.conditions.steps);
    let mut chosen: Vec<Entry> =
        all.into_iter().filter(|entry| conditions(entry) == usual).cloned().collect();
    // Of each kind of latents one dataset, that of most: numbers of different objects do not stand in one column.
    let data = |entry: &Entry| {
        let (data, trained_on) = (&entry.results.data, &entry.results.subject.trained_on);
        (data.kind.clone(), data.data_key.clone(), trained_on.clone(), entry.conditions.begun_from.clone())
    };
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    chosen.iter().for_each(|entry| *counts.entry(data(entry)).or_default() += 1);
    let most = |kind: &str| {
        let of_kind = counts.iter().filter(|((other, ..), _)| other == kind);
        of_kind.rev().max_by_key(|(_, count)| **count).map(|(data, _)| data.clone())
    };
    chosen.retain(|entry| most(&entry.results.data.kind) == Some(data(entry)));
    // Those with the usual number of steps first: a place is taken by the first that fits.
    chosen.sort_by_key(|entry| entry.conditions.steps != steps);
    chosen
}

/// Whether the value of a setting is nothing.
fn is_zero(value: &str) -> bool {
    value.parse() == Ok(0.0)
}

/// Our number for a place in a published table: of the usual number of steps, unless the place is for another.
fn ours(all: &[Entry], row: &PublishedRow, column: &PublishedColumn) -> Option<(f64, Option<f64>)> {
    let steps = all.first().and_then(|entry| entry.conditions.steps);
    all.iter()
        .filter(|entry| column.epochs.is_some() || entry.conditions.steps == steps)
        .filter(|entry| matches(entry, row, column))
        .find_map(|entry| measured(&entry.results, column.metric))
}

/// Whether any of our results has a place in the table.
pub(crate) fn has_ours(published: &Published, all: &[Entry]) -> bool {
    published.rows.iter().any(|(row, _)| published.columns.iter().any(|c| ours(all, row, c).is_some()))
}

/// A published table; every column with a number of ours has it beside the paper's.
pub fn beside(published: &Published, all: &[Entry]) -> Table {
    let with_ours: Vec<bool> = published
        .columns
        .iter()
        .map(|column| published.rows.iter().any(|(row, _)| ours(all, row, column).is_some()))
        .collect();
    let any = with_ours.contains(&true);
    let mut columns = vec![Column::new("")];
    for (column, both) in published.columns.iter().zip(&with_ours) {
        let plain = Column::new(column.heading).in_group(column.group).with_better(better(column.metric));
        if *both {
            let group = format!("{} {}", column.group, column.heading).trim().to_owned();
            let half = |heading| Column { heading, group: group.clone(), better: plain.better };
            columns.extend([half("paper".to_owned()), half("ours".to_owned())]);
        } else {
            columns.push(plain);
        }
    }
    let rows = published
        .rows
        .iter()
        .map(|(row, numbers)| {
            let mut cells = vec![Cell::from(row.name)];
            for ((column, number), both) in published.columns.iter().zip(*numbers).zip(&with_ours) {
                cells.push(Cell::number(*number, 2));
                if *both {
                    cells.push(match ours(all, row, column) {
                        Some((value, spread)) => Cell::Number { value, decimals: 2, spread },
                        None => Cell::Missing,
                    });
                }
            }
            cells
        })
        .collect();
    let mut notes = Vec::new();
    if !published.note.is_empty() {
        notes.push(published.note.to_owned());
    }
    if any {
        notes.push(conditions(all));
    }
    let caption = published.caption.to_owned();
    Table { name: published.name.to_owned(), caption, columns, rows, notes, about: Vec::new() }
}

/// One sentence on what our numbers were measured on, so that nobody compares them with the paper's unwarned.
pub fn conditions(all: &[Entry]) -> String {
    let classes = |count: usize| if count == 1 { "one class".to_owned() } else { format!("{count} classes") };
    let mut parts: Vec<String> = Vec::new();
    let mut steps: Vec<u64> = Vec::new();
    for entry in all {
        let (results, data) = (&entry.results, &entry.results.data);
        let objects = match data.split {
            SplitBy::Objects => {
                let [train, val] = [data.train_objects, data.val_objects].map(|count| grouped(count as u64));
                format!("{train} + {val} objects of {}, {} views", classes(data.classes), data.views)
            }
            SplitBy::Views => {
                let (objects, held_out) = (grouped(data.train_objects as u64), data.held_out_views);
                let train = data.views.saturating_sub(held_out);
                format!("{objects} known objects of {}, {train} + {held_out} views", classes(data.classes))
            }
        };
        let (side, preset) = (data.side, results.protocol.preset);
        let left_out = match data.left_out {
            0 => String::new(),
            1 => " (1 left out, which cannot be read)".to_owned(),
            several => format!(" ({several} left out, which cannot be read)"),
        };
        let part = format!("{objects}{left_out} at {side}x{side} pixels, {preset} probes");
        if !parts.contains(&part) {
            parts.push(part);
        }
        steps.extend(entry.conditions.steps.filter(|steps| *steps > 0));
    }
    let trained = match (steps.iter().min(), steps.iter().max()) {
        (Some(least), Some(most)) if least == most => format!(" after {} steps", grouped(*most)),
        (Some(least), Some(most)) => format!(" after {} to {} steps", grouped(*least), grouped(*most)),
        _ => String::new(),
    };
    format!(
        "Ours: measured on {}{trained}. The paper's numbers are for 41,920 + 10,552 ShapeNet objects of 55 classes at 256x256 \
         and 2,000 epochs (82,000 steps, with batches of 1,024 pairs); ours are comparable with them only under the same \
         conditions.",
        parts.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Conditions;
    use evaluate::results::{Data, FORMAT, Subject};
    use evaluate::{Preset, Protocol};
    use train::Config;

    fn entry(name: &str, data_key: &str, settings: &[&str]) -> Entry {
        let mut layers = Config::settings("equicaps", "paper").unwrap();
        settings.iter().for_each(|setting| layers.set(setting).unwrap());
        let config = Config::resolve(layers).unwrap();
        let data = Data {
            kind: "3DIEBench".into(),
            classes: CLASSES,
            side: LEAST_SIDE,
            data_key: data_key.into(),
            ..Data::default()
        };
        let subject = Subject { name: name.into(), method: "equicaps".into(), ..Subject::default() };
        let results = Results {
            format: FORMAT,
            subject,
            data,
            protocol: Protocol::new(Preset::Paper, 0, 100, 100),
            representations: BTreeMap::new(),
            embeddings: BTreeMap::new(),
            retrieval: None,
            by_object: Default::default(),
            by_class: Default::default(),
            also: Vec::new(),
            device: "cpu".into(),
            seconds: BTreeMap::new(),
        };
        Entry { conditions: Conditions::of(&config, Some(4100)), ..Entry::plain(&results) }
    }

    #[test]
    fn only_runs_with_the_published_settings_and_on_the_same_data_stand_beside_the_paper() {
        let all = [
            entry("half", "t", &["loss.invariance=0.5"]),
            entry("full", "t", &[]),
            entry("without", "t", &["loss.invariance=0"]),
            entry("capsules", "t", &["network.capsules=16"]),
            entry("elsewhere", "other", &[]),
        ];
        let names: Vec<String> =
            comparable(&all).into_iter().map(|entry| entry.results.subject.name).collect();
        assert_eq!(names, ["full", "without", "capsules"]);
    }
}
