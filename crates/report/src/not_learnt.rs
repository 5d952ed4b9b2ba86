//! Which of the networks of a report did not learn what they were to learn.

use methods::verdict::PoseVerdict;

use crate::entry::Entry;
use crate::page::Page;
use crate::run_material::RunMaterial;
use crate::run_page::FEW_RUNS;

/// So many complaints are written out; of more, only the names.
const MOST_WARNINGS: usize = 3;

/// Warns of the networks of `latest`, and of runs that were not evaluated by their last looks.
pub(crate) fn warn(page: &mut Page, runs: &[RunMaterial], latest: &[Entry]) {
    let evaluated = latest.iter().map(|entry| {
        let Entry { results, runs, .. } = entry;
        (results.subject.name.as_str(), runs.len(), results.pose_verdict())
    });
    let others = runs.iter().filter(|run| run.evaluations.is_empty());
    let missed = |(name, runs, verdict): (_, _, Option<PoseVerdict>)| {
        let verdict = verdict?;
        Some(Missed { name, runs, what: verdict.missed()?, message: verdict.message? })
    };
    let missed: Vec<Missed<'_>> = evaluated
        .chain(others.map(|run| (run.name.as_str(), 1, run.pose.clone())))
        .filter_map(missed)
        .collect();
    let all: Vec<String> =
        missed.iter().map(|Missed { name, message, .. }| format!("{name}: {message}.")).collect();
    if all.len() <= MOST_WARNINGS {
        all.iter().for_each(|message| page.warning(message));
        return;
    }
    page.warning(&in_one(&missed, runs.len()));
    page.folded_text("What was found, and what to try", &all.join("\n"));
}

/// A network that did not learn what it was to learn, or several that differ in their seeds.
struct Missed<'a> {
    name: &'a str,
    /// How many runs these are.
    runs: usize,
    /// What was not learnt.
    what: &'static str,
    message: String,
}

/// Which of `runs` did not learn what, in a sentence for each thing.
fn in_one(missed: &[Missed<'_>], runs: usize) -> String {
    let mut by_what: Vec<(&str, Vec<&Missed<'_>>)> = Vec::new();
    for network in missed {
        match by_what.iter_mut().find(|(what, _)| *what == network.what) {
            Some((_, networks)) => networks.push(network),
            None => by_what.push((network.what, vec![network])),
        }
    }
    let sentences = by_what.iter().map(|(what, networks)| {
        if networks.len() <= FEW_RUNS {
            let names: Vec<&str> = networks.iter().map(|network| network.name).collect();
            return format!("No {what} was learnt by {}.", names.join(", "));
        }
        let count: usize = networks.iter().map(|network| network.runs).sum();
        format!("No {what} was learnt by {count} of {runs} runs.")
    });
    sentences.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_learnt_is_said_of_those_that_did_not_learn_it() {
        let of = |name, runs, what| Missed { name, runs, what, message: String::new() };
        let few = [of("a", 1, "rotation"), of("b", 3, "pose"), of("c", 1, "rotation"), of("d", 1, "pose")];
        assert_eq!(in_one(&few, 9), "No rotation was learnt by a, c. No pose was learnt by b, d.");
        // A row of two seeds stands for two runs.
        let mut many: Vec<Missed<'_>> = (0..=FEW_RUNS).map(|_| of("a", 2, "pose")).collect();
        many.push(of("z", 1, "scale"));
        let count = 2 * (FEW_RUNS + 1);
        let sentence = format!("No pose was learnt by {count} of {count} runs. No scale was learnt by z.");
        assert_eq!(in_one(&many, count), sentence);
    }
}
