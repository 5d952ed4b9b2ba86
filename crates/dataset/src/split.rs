//! Labels and the 80/20 split, from the full list of objects: whoever holds the list gets the same answer, whatever
//! is rendered or skipped later.

use std::collections::BTreeSet;

use random::{Random, Stream, fnv1a};

use crate::object::{Object, Split};

const SPLIT: Stream = Stream::new("split");

/// Gives every `(synset, name)` its label and its side of the split, and puts the objects in split order: all of
/// training, then all of validation, each side shuffled.
///
/// A label is the rank of the synset among all those listed. One object in five (rounded to the nearest, at least one
/// of two) is held out; each class gives its share, up to rounding. Both depend on `seed` and the ids only.
pub fn assign(seed: u64, ids: &[(String, String)]) -> Vec<Object> {
    let synsets: Vec<&str> =
        ids.iter().map(|(synset, _)| synset.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
    let mut keyed: Vec<(u32, u64, &(String, String))> = ids
        .iter()
        .map(|id| {
            let label = synsets.binary_search(&id.0.as_str()).unwrap_or_default() as u32;
            let position = fnv1a(format!("{}/{}", id.0, id.1).as_bytes());
            (label, Random::new(seed, SPLIT, position).next_u64(), id)
        })
        .collect();
    keyed.sort_unstable();
    let held_out = held_out(keyed.len());
    let total = keyed.len().max(1);
    let mut objects: Vec<(Split, u64, Object)> = keyed
        .iter()
        .enumerate()
        .map(|(rank, &(label, key, (synset, name)))| {
            // Systematic sampling over the list sorted by class: exactly `held_out` ranks are chosen.
            let chosen = (rank + 1) * held_out / total > rank * held_out / total;
            let split = if chosen { Split::Val } else { Split::Train };
            (split, key, Object { synset: synset.clone(), name: name.clone(), label, split })
        })
        .collect();
    objects.sort_by(|a, b| (a.0, a.1, &a.2.synset, &a.2.name).cmp(&(b.0, b.1, &b.2.synset, &b.2.name)));
    objects.into_iter().map(|(_, _, object)| object).collect()
}

/// How many of `objects` are held out.
fn held_out(objects: usize) -> usize {
    if objects < 2 { 0 } else { ((objects + 2) / 5).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(classes: usize, objects: usize) -> Vec<(String, String)> {
        (0..classes * objects).map(|k| (format!("{:08}", k / objects), format!("o{}", k % objects))).collect()
    }

    #[test]
    fn every_class_gives_a_fifth() {
        let objects = assign(1, &ids(7, 10));
        for label in 0..7 {
            let of = |split| objects.iter().filter(|o| o.label == label && o.split == split).count();
            assert_eq!((of(Split::Train), of(Split::Val)), (8, 2));
        }
        assert_ne!(assign(1, &ids(7, 10)), assign(2, &ids(7, 10)));
    }

    #[test]
    fn small_lists_have_both_sides_where_they_can() {
        let count = |n| assign(0, &ids(1, n)).iter().filter(|o| o.split == Split::Val).count();
        assert_eq!([1, 2, 3, 4, 5, 7, 8, 10].map(count), [0, 1, 1, 1, 1, 1, 2, 2]);
        assert!(assign(0, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn the_split_does_not_depend_on_the_order_of_the_list(
            seed: u64, classes in 1_usize..6, objects in 1_usize..20, shuffle: u64,
        ) {
            let mut list = ids(classes, objects);
            let expected = assign(seed, &list);
            Random::new(shuffle, Stream::new("test"), 0).shuffle(&mut list);
            prop_assert_eq!(&assign(seed, &list), &expected);
            prop_assert_eq!(expected.len(), classes * objects);
            let first_val = expected.iter().position(|o| o.split == Split::Val).unwrap_or(expected.len());
            prop_assert!(expected[first_val..].iter().all(|o| o.split == Split::Val));
            let ranked = expected.iter().all(|o| o.synset.parse() == Ok(o.label));
            prop_assert!(ranked);
        }
    }
}
