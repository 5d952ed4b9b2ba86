//! Names of runs in tables and charts, and which of their evaluations stand there.

use dataset::SplitBy;
use evaluate::Results;
use train::summary::Summary;

use crate::entry::{Entry, over_seeds};
use crate::run_material::RunMaterial;

/// Gives every run a name of its own: folders of the same name are called by their whole path.
pub fn distinguish(runs: &mut [Summary]) {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for run in runs {
        if names.iter().filter(|name| **name == run.name).count() > 1 {
            run.name = run.root.display().to_string();
        }
    }
}

/// What is held out in some runs, for the title of a chart, and the names of the runs, which say it where they differ.
pub(crate) fn held_out(runs: &[(&str, SplitBy)]) -> (&'static str, Vec<String>) {
    let has = |split| runs.iter().any(|run| run.1 == split);
    let are_mixed = has(SplitBy::Objects) && has(SplitBy::Views);
    let name = |(name, split): &(&str, SplitBy)| match split {
        SplitBy::Views if are_mixed => format!("{name}, new views"),
        _ => (*name).to_owned(),
    };
    let what = match (are_mixed, has(SplitBy::Views)) {
        (true, _) => "held-out data",
        (false, true) => "held-out views",
        (false, false) => "held-out objects",
    };
    (what, runs.iter().map(name).collect())
}

/// All evaluations under names that tell runs apart: the method's, with the folder's where several runs share it.
pub fn named(runs: &[RunMaterial]) -> Vec<Vec<Entry>> {
    let plain = |results: &Results| results.subject.name.split(" @ ").next().unwrap_or_default().to_owned();
    let is_shared = |name: &str| {
        let has = |run: &&RunMaterial| run.evaluations.iter().any(|(_, results)| plain(results) == name);
        runs.iter().filter(has).count() > 1
    };
    let rename = |run: &RunMaterial, results: &Results| {
        let mut results = results.clone();
        let name = plain(&results);
        results.subject.name = if is_shared(&name) { format!("{name} ({})", run.name) } else { name };
        let conditions = run.conditions(results.subject.epochs);
        Entry { results, retrieval_spread: None, conditions, runs: vec![run.name.clone()] }
    };
    runs.iter().map(|run| run.evaluations.iter().map(|(_, results)| rename(run, results)).collect()).collect()
}

/// The last evaluation of every run, and the untrained networks; runs that differ in their seeds are one entry.
pub fn latest(named: &[Vec<Entry>]) -> Vec<Entry> {
    let mut untrained: Vec<Entry> = Vec::new();
    let mut newest: Vec<Entry> = Vec::new();
    for all in named {
        let is_untrained = |entry: &&Entry| entry.results.subject.method == "untrained";
        if let Some(entry) = all.iter().find(is_untrained) {
            // Untrained networks with the same backbone and data say the same thing.
            let same = untrained.iter().any(|other| is_same_data(&other.results, &entry.results));
            if !same {
                untrained.push(entry.clone());
            }
        }
        newest.extend(
            all.iter()
                .filter(|entry| !is_untrained(entry))
                .max_by_key(|entry| entry.results.subject.epochs)
                .cloned(),
        );
    }
    let mut trained: Vec<Entry> = Vec::new();
    for mut entry in over_seeds(&newest) {
        rename_seeds(&mut entry);
        let results = &entry.results;
        // Supervised networks, one a task, are one row as in the paper.
        let partner = trained.iter_mut().find(|other| {
            !results.subject.task.is_empty()
                && other.results.subject.method == results.subject.method
                && is_same_data(&other.results, results)
                && other.conditions.steps == entry.conditions.steps
                && results
                    .representations
                    .keys()
                    .all(|task| !other.results.representations.contains_key(task))
        });
        match partner {
            Some(partner) => {
                partner.results.subject.name = "Supervised".to_owned();
                partner.results.representations.extend(results.representations.clone());
                partner.runs.append(&mut entry.runs);
            }
            None => trained.push(entry),
        }
    }
    untrained.into_iter().chain(trained).collect()
}

fn is_same_data(a: &Results, b: &Results) -> bool {
    a.subject.backbone == b.subject.backbone
        && a.data.data_key == b.data.data_key
        && a.data.split == b.data.split
}

/// Names several runs by what their names have in common: `EquiCaps (T-equicaps)`.
fn rename_seeds(entry: &mut Entry) {
    let [first, others @ ..] = &entry.runs[..] else { return };
    if others.is_empty() {
        return;
    }
    let common = |end: usize| others.iter().all(|other| other.get(..end) == first.get(..end));
    let end = (0..=first.len()).rev().filter(|&end| first.is_char_boundary(end)).find(|&end| common(end));
    let start = first[..end.unwrap_or(0)].trim_end_matches(['-', '_', ' ', '.']);
    let start =
        start.strip_suffix("-s").or(start.strip_suffix("seed")).unwrap_or(start).trim_end_matches('-');
    let title = entry.results.subject.name.split(" (").next().unwrap_or_default().to_owned();
    entry.results.subject.name = if start.is_empty() { title } else { format!("{title} ({start})") };
}
