//! Names of runs in tables and charts, and which of their evaluations stand there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dataset::SplitBy;
use evaluate::{Protocol, Results};

use crate::entry::Entry;
use crate::over_seeds::over_seeds;
use crate::run_material::RunMaterial;
use crate::training_data;

/// Gives every run a name of its own, by its name and its folder: folders of the same name are called by their whole path.
pub fn distinguish<'a>(runs: impl IntoIterator<Item = (&'a mut String, &'a Path)>) {
    let runs: Vec<(&mut String, &Path)> = runs.into_iter().collect();
    let names: Vec<String> = runs.iter().map(|(name, _)| (*name).clone()).collect();
    for (run, root) in runs {
        if names.iter().filter(|name| *name == run).count() > 1 {
            *run = root.display().to_string();
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

/// All evaluations under names that tell runs apart: the method's, and where several runs share it, what is special in the
/// name of the folder.
pub fn named(runs: &[RunMaterial]) -> Vec<Vec<Entry>> {
    let plain = |results: &Results| results.subject.name.split(" @ ").next().unwrap_or_default().to_owned();
    let mut folders: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for run in runs {
        let names: BTreeSet<String> = run.evaluations.iter().map(|(_, results)| plain(results)).collect();
        names.into_iter().for_each(|name| folders.entry(name).or_default().push(&run.name));
    }
    let rename = |run: &RunMaterial, results: &Results| {
        let name = plain(results);
        let special = special(&run.name, folders.get(&name).map_or(&[][..], Vec::as_slice));
        let conditions = run.conditions(&results.subject);
        let mut entry = Entry { conditions, runs: vec![run.name.clone()], ..Entry::plain(results) };
        entry.call(&name, &special);
        entry
    };
    let renamed =
        |run: &RunMaterial| run.evaluations.iter().map(|(_, results)| rename(run, results)).collect();
    let mut named: Vec<Vec<Entry>> = runs.iter().map(renamed).collect();
    training_data::tell(&mut named.iter_mut().flatten().collect::<Vec<_>>());
    named
}

/// What tells `name` from the others of `all`, which has it: without the words between dashes that all of them have. The
/// whole name where that would not tell it from each of them, nothing where it is the only one.
fn special(name: &str, all: &[&str]) -> String {
    if all.len() <= 1 {
        return String::new();
    }
    let rest = |name: &str| {
        let is_common = |word: &str| all.iter().all(|other| other.split('-').any(|part| part == word));
        name.split('-').filter(|word| !is_common(word)).collect::<Vec<_>>().join("-")
    };
    let own = rest(name);
    let is_unique = all.iter().filter(|other| rest(other) == own).count() == 1;
    if is_unique { own } else { name.to_owned() }
}

/// The last evaluation of every run, and the untrained networks; runs that differ in their seeds are one entry.
pub fn latest(named: &[Vec<Entry>]) -> Vec<Entry> {
    let mut untrained: Vec<Entry> = Vec::new();
    let mut newest: Vec<Entry> = Vec::new();
    for all in named {
        if let Some(entry) = all.iter().find(|entry| entry.is_untrained()) {
            // Untrained networks with the same backbone and data say the same thing.
            let is_same = |other: &Entry| {
                let protocol = |entry: &Entry| Protocol { seed: 0, ..entry.results.protocol };
                is_same_data(&other.results, &entry.results)
                    && other.conditions.width == entry.conditions.width
                    && protocol(other) == protocol(entry)
            };
            let same = untrained.iter().any(is_same);
            if !same {
                untrained.push(entry.clone());
            }
        }
        newest.extend(
            all.iter()
                .filter(|entry| !entry.is_untrained())
                .max_by_key(|entry| (entry.results.subject.epochs, entry.results.subject.steps))
                .cloned(),
        );
    }
    let labels: BTreeMap<&str, &str> = newest
        .iter()
        .filter_map(|entry| Some((entry.runs.first()?.as_str(), entry.label.as_str())))
        .collect();
    let mut trained: Vec<Entry> = Vec::new();
    for mut entry in over_seeds(&newest) {
        rename_seeds(&mut entry, &labels);
        let results = &entry.results;
        // Supervised networks, one a task, are one row as in the paper.
        let partner = trained.iter_mut().find(|other| {
            !results.subject.task.is_empty()
                && other.results.subject.method == results.subject.method
                && other.differs_only_in_task(&entry)
                && results
                    .representations
                    .keys()
                    .all(|task| !other.results.representations.contains_key(task))
        });
        match partner {
            Some(partner) => {
                partner.call("Supervised", "");
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
        && a.data.side == b.data.side
}

/// Names several runs by what their labels have in common: `EquiCaps (T)` for `T-s0` and `T-s1`.
fn rename_seeds(entry: &mut Entry, labels: &BTreeMap<&str, &str>) {
    if entry.runs.len() <= 1 {
        return;
    }
    let names: Vec<&str> = entry.runs.iter().filter_map(|run| labels.get(run.as_str()).copied()).collect();
    let Some((first, others)) = names.split_first() else { return };
    let common = |end: usize| others.iter().all(|other| other.get(..end) == first.get(..end));
    let end = (0..=first.len()).rev().filter(|&end| first.is_char_boundary(end)).find(|&end| common(end));
    let start = first[..end.unwrap_or(0)].trim_end_matches(['-', '_', ' ', '.']);
    let is_seed = |text: &&str| ["s", "seed"].contains(text);
    let start = match start.rsplit_once('-') {
        Some((before, last)) if is_seed(&last) => before,
        None if is_seed(&start) => "",
        _ => start.strip_suffix("seed").unwrap_or(start).trim_end_matches(['-', '_']),
    };
    let title = entry.title().to_owned();
    entry.call(&title, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_the_same_name_are_called_by_their_folders() {
        let mut names = ["a", "b", "a"].map(str::to_owned);
        let roots = ["x/a", "x/b", "y/a"].map(Path::new);
        distinguish(names.iter_mut().zip(roots));
        assert_eq!(names, ["x/a", "b", "y/a"]);
    }

    #[test]
    fn runs_are_called_by_what_is_special() {
        let all = ["T-equicaps-s0", "T-equicaps-capsules16-s0", "T-equicaps-rotation+base-s0"];
        assert_eq!(all.map(|name| special(name, &all)), ["", "capsules16", "rotation+base"]);
        let two = ["T-equicaps-s0", "B-equicaps-s1", "B-equicaps-no-invariance-s1"];
        assert_eq!(two.map(|name| special(name, &two)), ["T-s0", "B-s1", "B-no-invariance-s1"]);
        let own = ["first", "second"];
        assert_eq!(own.map(|name| special(name, &own)), own);
        assert_eq!(special("alone", &["alone"]), "");
        // Where words alone do not tell them apart.
        let turned = ["a-b", "b-a"];
        assert_eq!(turned.map(|name| special(name, &turned)), turned);
    }
}
