//! Rows of networks that differ in nothing but the seed as one row: means, and standard deviations over seeds.

use std::collections::BTreeMap;

use evaluate::Results;
use evaluate::protocol::Task;
use evaluate::results::{Measured, ProbeResult, Ranking, Retrieval, RetrievalError};

use crate::entry::Entry;

/// Whether the same was measured of both: a mean over seeds is one of all of them.
fn has_same_measures(a: &Results, b: &Results) -> bool {
    type Measures<'a> =
        (&'a BTreeMap<Task, ProbeResult>, &'a BTreeMap<Task, ProbeResult>, &'a Option<Retrieval>);
    let are_alike = |a: Measures<'_>, b: Measures<'_>| {
        a.0.keys().eq(b.0.keys()) && a.1.keys().eq(b.1.keys()) && a.2.is_some() == b.2.is_some()
    };
    are_alike(
        (&a.representations, &a.embeddings, &a.retrieval),
        (&b.representations, &b.embeddings, &b.retrieval),
    ) && a.also.len() == b.also.len()
        && a.also.iter().zip(&b.also).all(|(a, b)| {
            (&a.data.data_key, a.data.split) == (&b.data.data_key, b.data.split)
                && are_alike(
                    (&a.representations, &a.embeddings, &a.retrieval),
                    (&b.representations, &b.embeddings, &b.retrieval),
                )
        })
}

/// One entry for each group of entries that differ in nothing but the seed, in the order of the first of each.
pub fn over_seeds(entries: &[Entry]) -> Vec<Entry> {
    let mut groups: Vec<Vec<&Entry>> = Vec::new();
    for entry in entries {
        let fits = |group: &&mut Vec<&Entry>| {
            let first = group[0];
            first.differs_only_in(entry, &[])
                && has_same_measures(&first.results, &entry.results)
                && group.iter().all(|other| other.conditions.seeds != entry.conditions.seeds)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups.iter().map(|group| mean(group)).collect()
}

/// The mean over `group`, which is not empty.
fn mean(group: &[&Entry]) -> Entry {
    let mut all = group[0].clone();
    if group.len() < 2 {
        return all;
    }
    let of = |value: &dyn Fn(&Results) -> &BTreeMap<Task, ProbeResult>| {
        mean_probes(&group.iter().map(|entry| value(&entry.results)).collect::<Vec<_>>())
    };
    all.results.representations = of(&|results| &results.representations);
    all.results.embeddings = of(&|results| &results.embeddings);
    let retrieval = |value: &dyn Fn(&Results) -> Option<&Retrieval>| {
        mean_retrieval(&group.iter().filter_map(|entry| value(&entry.results)).collect::<Vec<_>>())
    };
    (all.results.retrieval, all.retrieval_spread) = retrieval(&|results| results.retrieval.as_ref());
    all.also_spread = Vec::new();
    for (index, also) in all.results.also.iter_mut().enumerate() {
        also.representations = of(&|results| &results.also[index].representations);
        also.embeddings = of(&|results| &results.also[index].embeddings);
        let (mean, spread) = retrieval(&|results| results.also[index].retrieval.as_ref());
        also.retrieval = mean;
        all.also_spread.push(spread);
    }
    all.conditions.seeds = group.iter().flat_map(|entry| entry.conditions.seeds.clone()).collect();
    all.runs = group.iter().flat_map(|entry| entry.runs.clone()).collect();
    all
}

/// The means of the same probes of several networks; spreads are those over networks.
fn mean_probes(all: &[&BTreeMap<Task, ProbeResult>]) -> BTreeMap<Task, ProbeResult> {
    let mut means = all[0].clone();
    for (task, probe) in &mut means {
        let found: Vec<&ProbeResult> = all.iter().filter_map(|table| table.get(task)).collect();
        let over = |value: &dyn Fn(&ProbeResult) -> Option<f64>| {
            Measured::over(&found.iter().filter_map(|probe| value(probe)).collect::<Vec<_>>())
        };
        probe.value = over(&|probe| Some(probe.value.value));
        probe.top5 = probe.top5.map(|_| over(&|probe| probe.top5.map(|top5| top5.value)));
        probe.floor = over(&|probe| Some(probe.floor)).value;
    }
    means
}

/// The mean and the standard deviation of retrieval over several networks, where there is any.
fn mean_retrieval(all: &[&Retrieval]) -> (Option<Retrieval>, Option<Retrieval>) {
    if all.is_empty() {
        return (None, None);
    }
    let combined = |of: fn(Measured) -> f64| combined(all, &|values| of(Measured::over(values)));
    (Some(combined(|over| over.value)), Some(combined(|over| over.spread)))
}

/// All numbers of several retrievals, combined one by one.
fn combined(all: &[&Retrieval], combine: &dyn Fn(&[f64]) -> f64) -> Retrieval {
    let ranking = |side: &dyn Fn(&Retrieval) -> Ranking| {
        let of = |value: &dyn Fn(&Ranking) -> f64| {
            combine(&all.iter().map(|retrieval| value(&side(retrieval))).collect::<Vec<_>>())
        };
        Ranking {
            mrr: of(&|r| r.mrr),
            h1: of(&|r| r.h1),
            h2: of(&|r| r.h2),
            h5: of(&|r| r.h5),
            h10: of(&|r| r.h10),
            ..side(all[0])
        }
    };
    let errors = |set: &String, first: &RetrievalError| {
        let found: Vec<&RetrievalError> = all.iter().filter_map(|retrieval| retrieval.pre.get(set)).collect();
        let of = |part: fn(&RetrievalError) -> Option<f64>| {
            let values: Vec<f64> = found.iter().filter_map(|error| part(error)).collect();
            part(first).map(|_| combine(&values))
        };
        RetrievalError {
            rotation: combine(&found.iter().map(|error| error.rotation).collect::<Vec<_>>()),
            translation: of(|error| error.translation),
            scale: of(|error| error.scale),
            shear: of(|error| error.shear),
            perspective: of(|error| error.perspective),
            ..*first
        }
    };
    Retrieval {
        train: ranking(&|retrieval| retrieval.train),
        val: ranking(&|retrieval| retrieval.val),
        pre: all[0].pre.iter().map(|(set, first)| (set.clone(), errors(set, first))).collect(),
        ..all[0].clone()
    }
}
