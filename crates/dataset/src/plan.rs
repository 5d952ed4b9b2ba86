//! The plan of a dataset: its settings and its full list of objects with labels and sides of the split, all of it known
//! before the first image is made, and the same for everybody who works on it.

use std::collections::{BTreeMap, HashMap};

use random::fnv1a;
use scene::{LatentRanges, Latents};

use crate::card::Settings;
use crate::lists::class_name;
use crate::object::{Class, Object};
use crate::split;

/// What is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Everything that determines the bytes.
    pub settings: Settings,
    /// All objects, training first, in the order of the lists.
    pub objects: Vec<Object>,
}

impl Plan {
    /// Plans a dataset of the objects `ids` (synset, name), or of as many of them as the settings allow: fills in
    /// their number and digest.
    pub fn new(mut settings: Settings, ids: &[(String, String)]) -> Self {
        let objects = match settings.limit {
            Some(limit) => split::assign_by(settings.split, settings.seed, &spread(ids, limit)),
            None => split::assign_by(settings.split, settings.seed, ids),
        };
        settings.objects = objects.len();
        settings.objects_digest = digest(&objects);
        Self { settings, objects }
    }

    /// The latents of one view.
    pub fn latents(&self, object: &Object, view: usize) -> Latents {
        let ranges = self.settings.ranges.unwrap_or(LatentRanges::BENCH);
        ranges.sample(self.settings.seed, &object.id(), view as u64)
    }
}

/// At most `limit` objects: the first of every class, then the second of every class, and so on.
fn spread(ids: &[(String, String)], limit: usize) -> Vec<(String, String)> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut ranked: Vec<(usize, &(String, String))> = ids
        .iter()
        .map(|id| {
            let rank = seen.entry(&id.0).or_default();
            *rank += 1;
            (*rank, id)
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().take(limit).map(|(_, id)| id.clone()).collect()
}

/// One number for the whole list: ids, labels and sides, in order.
pub fn digest(objects: &[Object]) -> String {
    let lines: Vec<String> =
        objects.iter().map(|o| format!("{}/{}\t{}\t{}\n", o.synset, o.name, o.label, o.split)).collect();
    format!("{:016x}", fnv1a(lines.concat().as_bytes()))
}

/// The classes of the planned objects.
pub fn classes(objects: &[Object]) -> Vec<Class> {
    let by_label: BTreeMap<u32, &str> = objects.iter().map(|o| (o.label, o.synset.as_str())).collect();
    by_label
        .into_iter()
        .map(|(label, synset)| Class { label, synset: synset.to_owned(), name: class_name(synset) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_takes_from_every_class() {
        let id = |text: &str| text.split_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        let ids = ["a/1", "a/2", "a/3", "b/1", "c/1", "c/2"].map(id);
        assert_eq!(spread(&ids, 5), ["a/1", "b/1", "c/1", "a/2", "c/2"].map(id));
        assert_eq!(spread(&ids, 9).len(), 6);
    }
}
