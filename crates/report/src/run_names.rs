//! Names of runs in tables and charts, and which of their evaluations stand there.

use dataset::SplitBy;
use evaluate::Results;
use train::summary::Summary;

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
pub fn named(runs: &[RunMaterial]) -> Vec<Vec<Results>> {
    let plain = |results: &Results| results.subject.name.split(" @ ").next().unwrap_or_default().to_owned();
    let is_shared = |name: &str| {
        let has = |run: &&RunMaterial| run.evaluations.iter().any(|(_, results)| plain(results) == name);
        runs.iter().filter(has).count() > 1
    };
    let rename = |run: &RunMaterial, results: &Results| {
        let mut results = results.clone();
        let name = plain(&results);
        let own = if is_shared(&name) { format!("{name} ({})", run.name) } else { name };
        results.subject.name = own;
        results
    };
    runs.iter().map(|run| run.evaluations.iter().map(|(_, results)| rename(run, results)).collect()).collect()
}

/// The last evaluation of every run, and the untrained networks.
pub fn latest(named: &[Vec<Results>]) -> Vec<Results> {
    let mut untrained: Vec<Results> = Vec::new();
    let mut trained: Vec<Results> = Vec::new();
    for all in named {
        let is_untrained = |results: &&Results| results.subject.method == "untrained";
        if let Some(results) = all.iter().find(is_untrained) {
            // Untrained networks with the same backbone and data say the same thing.
            let same = untrained.iter().any(|other| {
                other.subject.backbone == results.subject.backbone
                    && other.data.data_key == results.data.data_key
                    && other.data.split == results.data.split
            });
            if !same {
                untrained.push(results.clone());
            }
        }
        let newest = all.iter().filter(|r| !is_untrained(r)).max_by_key(|results| results.subject.epochs);
        let Some(results) = newest else { continue };
        // Supervised networks, one a task, are one row as in the paper.
        let partner = trained.iter_mut().find(|other| {
            !results.subject.task.is_empty()
                && other.subject.method == results.subject.method
                && other.subject.backbone == results.subject.backbone
                && other.data.data_key == results.data.data_key
                && other.data.split == results.data.split
                && results.representations.keys().all(|task| !other.representations.contains_key(task))
        });
        match partner {
            Some(partner) => {
                partner.subject.name = "Supervised".to_owned();
                partner.representations.extend(results.representations.clone());
            }
            None => trained.push(results.clone()),
        }
    }
    untrained.into_iter().chain(trained).collect()
}
