//! The plan of a dataset: its settings and its full list of objects with labels and sides of the split, all of it known
//! before the first picture is made, and the same for everybody who works on it.

use std::collections::BTreeMap;

use random::fnv1a;
use scene::Latents;

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
    /// Plans a dataset of the objects `ids` (synset, name): fills in their number and digest.
    pub fn new(mut settings: Settings, ids: &[(String, String)]) -> Self {
        let objects = split::assign(settings.seed, ids);
        settings.objects = objects.len();
        settings.objects_digest = digest(&objects);
        Self { settings, objects }
    }

    /// The latents of one view.
    pub fn latents(&self, object: &Object, view: usize) -> Latents {
        self.settings.ranges.sample(self.settings.seed, &object.id(), view as u64)
    }
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
