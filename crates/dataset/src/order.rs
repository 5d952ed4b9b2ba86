//! The order of training: which object comes when, and which of its views, as pure functions of (seed, epoch,
//! object). Nothing here depends on threads, workers, ranks, or on where a run was interrupted.

use random::{Random, Stream, fnv1a};

const EPOCH_ORDER: Stream = Stream::new("epoch-order");
const PAIR: Stream = Stream::new("epoch-pair");
const VIEW: Stream = Stream::new("epoch-view");
const OTHERS: Stream = Stream::new("epoch-others");
const REFRESH: Stream = Stream::new("epoch-refresh");

/// A permutation of `0..objects`: the order in which epoch `epoch` visits the objects.
pub fn epoch_order(seed: u64, epoch: u64, objects: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..objects as u32).collect();
    Random::new(seed, EPOCH_ORDER, epoch).shuffle(&mut order);
    order
}

/// Two distinct views `(first, second)` of `object` in `epoch`, uniform over the ordered pairs.
/// With a single view both are that view.
pub fn pair(seed: u64, epoch: u64, object: usize, views: usize) -> (usize, usize) {
    if views < 2 {
        return (0, 0);
    }
    let mut random = Random::new(seed, PAIR, position(epoch, object));
    let first = random.below(views as u64) as usize;
    let second = random.below(views as u64 - 1) as usize;
    (first, if second < first { second } else { second + 1 })
}

/// Other candidates for the second view of a pair whose first view is `first`.
pub(crate) fn other_seconds(
    seed: u64,
    epoch: u64,
    object: usize,
    views: usize,
    first: usize,
) -> impl Iterator<Item = usize> {
    let mut random = Random::new(seed, OTHERS, position(epoch, object));
    std::iter::from_fn(move || Some(random.below(views.max(2) as u64 - 1) as usize))
        .map(move |second| if second < first { second } else { second + 1 })
}

/// Whether each of the two images of `object` in `epoch` is one of the share that is rendered anew.
pub(crate) fn refreshed(seed: u64, epoch: u64, object: usize, share: f64) -> [bool; 2] {
    let mut random = Random::new(seed, REFRESH, position(epoch, object));
    [random.uniform() < share, random.uniform() < share]
}

/// One view of `object` in `epoch`, uniform.
pub fn single(seed: u64, epoch: u64, object: usize, views: usize) -> usize {
    Random::new(seed, VIEW, position(epoch, object)).below(views.max(1) as u64) as usize
}

/// How an epoch is cut into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// Into as few batches as `batch` allows, of nearly equal size: none is smaller than half of it, unless the whole
    /// epoch is.
    #[default]
    Whole,
    /// Into batches of exactly `batch`; the rest is a batch of its own, however small.
    Published,
}

/// The sizes of the batches of an epoch of `pairs` pairs. None has a single pair, for which variances are undefined,
/// unless there is no other or `batch` is 1.
pub fn batch_sizes(pairs: usize, batch: usize, cut: Cut) -> Vec<usize> {
    let count = batch_count(pairs, batch, cut);
    match cut {
        Cut::Whole => (0..count).map(|k| pairs / count + usize::from(k < pairs % count)).collect(),
        Cut::Published => {
            let last = pairs - (count.max(1) - 1) * batch.max(1).min(pairs);
            (0..count).map(|k| if k + 1 < count { batch.max(1) } else { last }).collect()
        }
    }
}

/// Cuts an epoch's order into batches; see [`batch_sizes`].
pub fn batches(order: &[u32], batch: usize, cut: Cut) -> Vec<&[u32]> {
    let mut rest = order;
    let mut next = |size: usize| {
        let (first, after) = rest.split_at(size);
        rest = after;
        first
    };
    batch_sizes(order.len(), batch, cut).into_iter().map(&mut next).collect()
}

/// How many batches [`batch_sizes`] has.
pub fn batch_count(pairs: usize, batch: usize, cut: Cut) -> usize {
    let batch = batch.max(1);
    let count = pairs.div_ceil(batch);
    match cut {
        // Two pairs at least in each.
        Cut::Whole if batch > 1 && pairs > 1 => count.min(pairs / 2),
        Cut::Whole => count,
        // A last batch of a single pair joins the one before it.
        Cut::Published => count - usize::from(pairs > batch && batch > 1 && pairs % batch == 1),
    }
}

/// One index for (epoch, object): a hash, because the two together exceed the generator's 64-bit index.
fn position(epoch: u64, object: usize) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&epoch.to_le_bytes());
    bytes[8..].copy_from_slice(&(object as u64).to_le_bytes());
    fnv1a(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_are_distinct_ordered_and_uniform() {
        let views = 5;
        let mut counts = vec![0_u32; views * views];
        for epoch in 0..40 {
            for object in 0..500 {
                let (i, j) = pair(3, epoch, object, views);
                counts[i * views + j] += 1;
            }
        }
        for i in 0..views {
            for j in 0..views {
                let count = counts[i * views + j];
                if i == j {
                    assert_eq!(count, 0);
                } else {
                    assert!(
                        (900..1100).contains(&count),
                        "pair ({i}, {j}) drawn {count} times, expected 1000"
                    );
                }
            }
        }
    }

    #[test]
    fn single_views_are_uniform() {
        let mut counts = [0_u32; 5];
        (0..40).for_each(|epoch| (0..250).for_each(|object| counts[single(3, epoch, object, 5)] += 1));
        assert!(counts.iter().all(|count| (1850..2150).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_share_of_fresh_images_is_the_one_asked_for() {
        let count = |share| {
            let draws = (0..20_000).flat_map(|object| refreshed(5, 3, object, share));
            draws.filter(|fresh| *fresh).count()
        };
        assert_eq!(count(0.0), 0);
        assert_eq!(count(1.0), 40_000);
        assert!((3_800..4_200).contains(&count(0.1)), "{}", count(0.1));
    }

    #[test]
    fn epochs_seeds_and_objects_differ() {
        assert_ne!(epoch_order(1, 0, 100), epoch_order(1, 1, 100));
        assert_ne!(epoch_order(1, 0, 100), epoch_order(2, 0, 100));
        let draw = |seed, epoch| (0..50).map(|object| pair(seed, epoch, object, 50)).collect::<Vec<_>>();
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_eq!(draw(1, 7), draw(1, 7));
    }

    #[test]
    fn a_last_batch_of_one_joins_the_one_before_it() {
        let order: Vec<u32> = (0..9).collect();
        let cut = |order, batch| batches(order, batch, Cut::Published);
        let sizes = |batch| cut(&order, batch).iter().map(|b| b.len()).collect::<Vec<_>>();
        assert_eq!(sizes(4), [4, 5]);
        assert_eq!(sizes(5), [5, 4]);
        assert_eq!(sizes(8), [9]);
        assert_eq!(sizes(9), [9]);
        assert_eq!(sizes(20), [9]);
        assert_eq!(sizes(1), [1; 9]);
        assert!(cut(&[], 4).is_empty());
        assert_eq!(cut(&order[..1], 4), [&order[..1]]);
    }

    #[test]
    fn the_published_cut_leaves_a_rest_and_the_other_none() {
        assert_eq!(batch_sizes(1036, 1024, Cut::Published), [1024, 12]);
        assert_eq!(batch_sizes(1036, 1024, Cut::Whole), [518, 518]);
        assert_eq!(batch_sizes(2200, 1024, Cut::Whole), [734, 733, 733]);
        assert_eq!(batch_sizes(37, 1024, Cut::Whole), [37]);
        assert_eq!(batch_sizes(3, 2, Cut::Whole), [3]);
        // The published dataset: 41,920 objects.
        let published = batch_sizes(41_920, 1024, Cut::Published);
        assert_eq!((published.len(), published[39], published[40]), (41, 1024, 960));
    }

    proptest! {
        #[test]
        fn batches_cover_an_epoch_once_and_in_order(objects in 0_usize..200, batch in 1_usize..50, seed: u64) {
            let order = epoch_order(seed, 4, objects);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..objects as u32).collect::<Vec<_>>());
            for cut in [Cut::Whole, Cut::Published] {
                let cuts = batches(&order, batch, cut);
                prop_assert_eq!(&cuts.concat(), &order);
                prop_assert_eq!(cuts.len(), batch_count(objects, batch, cut));
                prop_assert!(cuts.iter().all(|b| b.len() >= 2 || batch == 1 || objects == 1));
                let smallest = cuts.iter().map(|b| 2 * b.len()).min().unwrap_or(batch);
                prop_assert!(cut == Cut::Published || smallest >= batch.min(2 * objects));
            }
        }

        #[test]
        fn views_stay_inside(seed: u64, epoch: u64, object in 0_usize..100_000, views in 2_usize..60) {
            let (i, j) = pair(seed, epoch, object, views);
            prop_assert!(i < views && j < views && i != j);
            prop_assert!(single(seed, epoch, object, views) < views);
        }
    }
}
