//! Labels and the 80/20 split, from the full list of objects: whoever holds the list gets the same answer, whatever
//! is rendered or skipped later. And how many views of an object are held out, where the split is one of views.

use std::collections::{BTreeMap, BTreeSet};

use random::{Random, Stream, fnv1a};

use crate::object::{Object, Split, SplitBy};

/// Views that an object needs for the split by views: a pair to train on, and a pair held out.
pub const FEWEST_VIEWS: usize = 4;

/// How many of the `views` stored views of every object the split by views holds out, the last ones: a fifth, rounded to
/// the nearest, at least two; none where there are fewer than [`FEWEST_VIEWS`].
pub fn held_out_views(views: usize) -> usize {
    if views < FEWEST_VIEWS { 0 } else { ((views + 2) / 5).max(2) }
}

/// [`assign`], or, for a split by views, the same objects in the same order, all of them for training.
pub fn assign_by(split: SplitBy, seed: u64, ids: &[(String, String)]) -> Vec<Object> {
    let mut objects = assign(seed, ids);
    if split == SplitBy::Views {
        all_for_training(&mut objects);
    }
    objects
}

/// Puts all objects on the training side, as the split by views has them.
pub fn all_for_training(objects: &mut [Object]) {
    objects.iter_mut().for_each(|object| object.split = Split::Train);
}

const SPLIT: Stream = Stream::new("split");
const SHARE: Stream = Stream::new("split-share");
const ORDER: Stream = Stream::new("split-order");

/// Gives every `(synset, name)` its label and its side of the split, and puts the objects in split order: all of
/// training, then all of validation, each side shuffled.
///
/// A label is the rank of the synset among all those listed. One object in five (rounded to the nearest, at least one
/// of two) is held out; each class gives its share, up to rounding, and a class of one object gives it last. Both
/// depend on `seed` and the ids only.
pub fn assign(seed: u64, ids: &[(String, String)]) -> Vec<Object> {
    let mut classes: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
    for (synset, name) in ids {
        let position = fnv1a(format!("{synset}/{name}").as_bytes());
        let key = Random::new(seed, SPLIT, position).next_u64();
        classes.entry(synset).or_default().push((key, name));
    }
    for objects in classes.values_mut() {
        objects.sort_unstable();
    }
    let sizes: Vec<usize> = classes.values().map(Vec::len).collect();
    let mut objects: Vec<Object> = Vec::with_capacity(ids.len());
    for (label, ((synset, members), held_out)) in classes.iter().zip(held_out(seed, &sizes)).enumerate() {
        for (rank, &(_, name)) in members.iter().enumerate() {
            let split = if rank < held_out { Split::Val } else { Split::Train };
            objects.push(Object {
                synset: (*synset).to_owned(),
                name: name.to_owned(),
                label: label as u32,
                split,
            });
        }
    }
    in_order(seed, objects)
}

/// The objects `(synset, name)` whose sides are given, with their labels, in the order of the lists.
pub(crate) fn as_given(seed: u64, sides: impl Iterator<Item = ((String, String), Split)>) -> Vec<Object> {
    let given: Vec<_> = sides.collect();
    let classes: BTreeSet<&str> = given.iter().map(|((synset, _), _)| synset.as_str()).collect();
    let labels: BTreeMap<&str, u32> = classes.into_iter().zip(0..).collect();
    let object = |((synset, name), split): &((String, String), Split)| Object {
        synset: synset.clone(),
        name: name.clone(),
        label: labels[synset.as_str()],
        split: *split,
    };
    in_order(seed, given.iter().map(object).collect())
}

/// The objects in the order of the lists: all of training, then all of validation, each side shuffled by `seed`.
fn in_order(seed: u64, objects: Vec<Object>) -> Vec<Object> {
    // A key of its own for the order, or the smallest keys of every class would come first in validation.
    let order = |object: &Object| Random::new(seed, ORDER, fnv1a(object.id().as_bytes())).next_u64();
    let mut keyed: Vec<(u64, Object)> = objects.into_iter().map(|object| (order(&object), object)).collect();
    keyed.sort_by(|(a, x), (b, y)| (x.split, a, &x.synset, &x.name).cmp(&(y.split, b, &y.synset, &y.name)));
    keyed.into_iter().map(|(_, object)| object).collect()
}

/// How many objects of each class are held out: a fifth of all, shared out by the largest remainders.
fn held_out(seed: u64, sizes: &[usize]) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    let wanted = if total < 2 { 0 } else { ((total + 2) / 5).max(1) };
    let mut shares: Vec<usize> = sizes.iter().map(|size| size / 5).collect();
    let mut classes: Vec<usize> = (0..sizes.len()).collect();
    classes.sort_by_cached_key(|&class| {
        let lot = Random::new(seed, SHARE, class as u64).next_u64();
        (sizes[class] < 2, std::cmp::Reverse(sizes[class] % 5), lot)
    });
    let missing = wanted - shares.iter().sum::<usize>();
    classes.iter().take(missing).for_each(|&class| shares[class] += 1);
    shares
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
    fn both_sides_are_in_an_order_that_tells_nothing() {
        let objects = assign(1, &ids(4, 50));
        for split in [Split::Train, Split::Val] {
            let side: Vec<_> = objects.iter().filter(|object| object.split == split).collect();
            // Of neighbours, about one in four pairs is of one class; sorted by class, nearly all would be.
            let alike = side.windows(2).filter(|pair| pair[0].label == pair[1].label).count();
            assert!(alike * 2 < side.len(), "{split}: {alike} of {}", side.len());
            let mut sorted = side.clone();
            sorted.sort_by_key(|object| (&object.synset, &object.name));
            assert_ne!(side, sorted);
        }
    }

    #[test]
    fn the_last_fifth_of_the_views_is_held_out_and_pairs_are_left_on_both_sides() {
        assert_eq!([0, 3, 4, 5, 8, 12, 13, 20, 50].map(held_out_views), [0, 0, 2, 2, 2, 2, 3, 4, 10]);
        let (by_objects, by_views) = (assign(1, &ids(3, 5)), assign_by(SplitBy::Views, 1, &ids(3, 5)));
        assert!(by_views.iter().all(|object| object.split == Split::Train));
        assert!(by_views.iter().map(Object::id).eq(by_objects.iter().map(Object::id)));
    }

    #[test]
    fn a_class_of_one_object_is_held_out_last() {
        let mut list = ids(5, 2);
        list.extend((0..20).map(|k| (format!("single{k}"), "o".to_owned())));
        let objects = assign(3, &list);
        let of = |split, single: bool| {
            objects.iter().filter(|o| o.split == split && o.synset.starts_with("single") == single).count()
        };
        assert_eq!((of(Split::Val, false), of(Split::Val, true)), (5, 1));
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
