//! Which pairs of views training sees when: a pure function of (seed, epoch), which can start at any step.
//!
//! An epoch of several pairs of every object is that many rounds over all objects, each in an order of its own and with
//! pairs of its own, one after the other, and then cut into batches: how often two objects are in one step
//! differs by two at most.

use crate::loader::Item;
use crate::order::{self, Cut};

/// Which objects are trained on, and how they are cut into steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingPlan {
    /// The seed of order and pairs.
    pub seed: u64,
    /// Training objects are `0..objects`.
    pub objects: usize,
    /// Views of each that are trained on: `0..views`; where their numbers differ, the largest.
    pub views: usize,
    /// Views of each, those that are held out included: from one fresh view of a place to the next.
    pub stride: usize,
    /// Pairs of every object in an epoch.
    pub pairs: usize,
    /// Pairs in a step.
    pub batch: usize,
    /// How an epoch is cut into steps.
    pub cut: Cut,
    /// Epochs.
    pub epochs: u64,
    /// The share of an epoch's images that are rendered anew; 0 for views on disk.
    pub refresh: f64,
    /// How pairs begin with small changes.
    pub curriculum: Curriculum,
}

/// Small changes first: the second view of a pair is, of several candidates, the nearest to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curriculum {
    /// Candidates at the start; 1 takes the pairs as they come.
    pub candidates: usize,
    /// Epochs over which they become one.
    pub epochs: u64,
}

impl Curriculum {
    /// Pairs as they come.
    pub const NONE: Self = Self { candidates: 1, epochs: 0 };

    /// Candidates in `round` of rounds of which an epoch has `pairs`.
    fn candidates_in(self, round: u64, pairs: usize) -> usize {
        let rounds = self.epochs * pairs as u64;
        match rounds.checked_sub(round) {
            None | Some(0) => 1,
            Some(left) => 1 + (self.candidates.saturating_sub(1) as u64 * left).div_ceil(rounds) as usize,
        }
    }
}

/// How far apart two views of an object are: `(object, first, second)`.
pub type Distance = dyn Fn(usize, usize, usize) -> f64 + Send;

/// How often each view of the pool has been replaced by a fresh one.
///
/// An object has a pool of [`TrainingPlan::views`] views. A round takes two of them, and each of these two is, with
/// probability [`TrainingPlan::refresh`], first replaced. The view that was replaced `n` times is view
/// `place + n * stride` of its object, and so never one that is held out: what the pool holds is a function of (seed,
/// round, object) alone.
struct Pool {
    plan: TrainingPlan,
    distance: Box<Distance>,
    /// Views of each object, where their numbers differ.
    counts: Option<Vec<u32>>,
    /// By object and place; empty where nothing is ever replaced.
    replaced: Vec<u32>,
}

impl Pool {
    /// The pool before the first round.
    fn new(plan: TrainingPlan, distance: Box<Distance>, counts: Option<Vec<u32>>) -> Self {
        let places = if plan.refresh > 0.0 { plan.objects * plan.views } else { 0 };
        Self { plan, distance, counts, replaced: vec![0; places] }
    }

    /// The pool before `epoch`.
    fn before(plan: TrainingPlan, epoch: u64, distance: Box<Distance>, counts: Option<Vec<u32>>) -> Self {
        let mut pool = Self::new(plan, distance, counts);
        if plan.refresh > 0.0 {
            (0..epoch * plan.pairs as u64).for_each(|round| {
                (0..plan.objects).for_each(|object| {
                    pool.take(round, object);
                });
            });
        }
        pool
    }

    /// Views of `object` that are trained on.
    fn views_of(&self, object: usize) -> usize {
        let count = self.counts.as_ref().and_then(|counts| counts.get(object));
        count.map_or(self.plan.views, |&count| count as usize)
    }

    /// The two views of `object` in `round`, which is the next one.
    fn take(&mut self, round: u64, object: usize) -> [usize; 2] {
        let TrainingPlan { seed, views, stride, refresh, .. } = self.plan;
        let (first, second) = order::pair(seed, round, object, self.views_of(object));
        let second = self.nearest(round, object, first, second);
        if refresh <= 0.0 {
            return [first, second];
        }
        let fresh = order::refreshed(seed, round, object, refresh);
        std::array::from_fn(|k| {
            let place = [first, second][k];
            let replaced = &mut self.replaced[object * views + place];
            *replaced += u32::from(fresh[k]);
            place + *replaced as usize * stride
        })
    }

    /// What view the pool has of `object` at `place`.
    fn view(&self, object: usize, place: usize) -> usize {
        let TrainingPlan { views, stride, .. } = self.plan;
        place + self.replaced.get(object * views + place).map_or(0, |&count| count as usize * stride)
    }

    /// The nearest to `first` of `second` and as many other candidates as `round` has.
    fn nearest(&self, round: u64, object: usize, first: usize, second: usize) -> usize {
        let TrainingPlan { seed, pairs, curriculum, .. } = self.plan;
        let views = self.views_of(object);
        let others = curriculum.candidates_in(round, pairs) - 1;
        if others == 0 || views < 3 {
            return second;
        }
        let from = self.view(object, first);
        let distance = |place: usize| (self.distance)(object, from, self.view(object, place));
        let candidates = order::other_seconds(seed, round, object, views, first).take(others);
        let nearer = |(best, at): (usize, f64), place: usize| match distance(place) {
            nearer if nearer < at => (place, nearer),
            _ => (best, at),
        };
        candidates.fold((second, distance(second)), nearer).0
    }

    /// The items of all steps of `epoch`, which is the next one.
    fn steps(&mut self, epoch: u64) -> Vec<Vec<Item>> {
        let TrainingPlan { seed, objects, pairs, batch, cut, .. } = self.plan;
        let mut shown: Vec<(usize, [usize; 2])> = Vec::with_capacity(objects * pairs);
        for round in epoch * pairs as u64..(epoch + 1) * pairs as u64 {
            for object in order::epoch_order(seed, round, objects) {
                shown.push((object as usize, self.take(round, object as usize)));
            }
        }
        let mut shown = shown.into_iter();
        let step = |size: usize| {
            let pairs: Vec<_> = shown.by_ref().take(size).collect();
            let view = |k: usize| pairs.iter().map(move |(object, views)| (*object, views[k]));
            view(0).chain(view(1)).collect()
        };
        order::batch_sizes(objects * pairs, batch, cut).into_iter().map(step).collect()
    }
}

impl TrainingPlan {
    /// Steps in every epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        order::batch_count(self.objects * self.pairs, self.batch, self.cut) as u64
    }

    /// Pairs in each step of an epoch.
    pub fn batch_sizes(&self) -> Vec<usize> {
        order::batch_sizes(self.objects * self.pairs, self.batch, self.cut)
    }

    /// Images in a step, in the mean over an epoch.
    pub fn images_per_step(&self) -> f64 {
        2.0 * (self.objects * self.pairs) as f64 / self.steps_per_epoch().max(1) as f64
    }

    /// Steps of the whole run.
    pub fn steps(&self) -> u64 {
        self.steps_per_epoch() * self.epochs
    }

    /// The items of all steps from step `step` of epoch `first` on, both counted from 0, to the end. A curriculum chooses
    /// by `distance`.
    pub fn steps_from(
        self,
        first: u64,
        step: u64,
        distance: Box<Distance>,
    ) -> impl Iterator<Item = Vec<Item>> + Send + 'static {
        self.steps_with(first, step, distance, None)
    }

    /// As [`Self::steps_from`], where objects have different numbers of views: `counts` are those to be trained on.
    pub fn steps_with(
        self,
        first: u64,
        step: u64,
        distance: Box<Distance>,
        counts: Option<Vec<u32>>,
    ) -> impl Iterator<Item = Vec<Item>> + Send + 'static {
        let mut pool = Pool::before(self, first, distance, counts);
        (first..self.epochs).flat_map(move |epoch| {
            let skip = if epoch == first { step } else { 0 };
            pool.steps(epoch).into_iter().skip(skip as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAN: TrainingPlan = TrainingPlan {
        seed: 0,
        objects: 0,
        views: 0,
        stride: 0,
        pairs: 1,
        batch: 0,
        cut: Cut::Published,
        epochs: 0,
        refresh: 0.0,
        curriculum: Curriculum::NONE,
    };

    /// Views by their numbers.
    fn plain() -> Box<Distance> {
        Box::new(|_, first, second| first.abs_diff(second) as f64)
    }

    proptest! {
        #[test]
        fn a_plan_can_start_anywhere(
            seed: u64, objects in 2_usize..40, batch in 2_usize..12, epochs in 1_u64..6, at in 0.0..1.0_f64,
            refresh in prop::sample::select(vec![0.0, 0.1, 0.7, 1.0]), pairs in 1_usize..5,
            cut in prop::sample::select(vec![Cut::Whole, Cut::Published]),
            curriculum in (1_usize..4, 0_u64..4).prop_map(|(candidates, epochs)| Curriculum { candidates, epochs }),
        ) {
            let plan = TrainingPlan { seed, objects, views: 7, stride: 7, pairs, batch, cut, epochs, refresh, curriculum };
            let whole: Vec<_> = plan.steps_from(0, 0, plain()).collect();
            let per_epoch = plan.steps_per_epoch();
            prop_assert_eq!(whole.len() as u64, per_epoch * epochs);
            let step = (at * whole.len() as f64) as u64;
            let rest: Vec<_> = plan.steps_from(step / per_epoch, step % per_epoch, plain()).collect();
            prop_assert_eq!(&whole[step as usize..], &rest[..]);
            let sizes = plan.batch_sizes();
            prop_assert!(whole.iter().zip(sizes.iter().cycle()).all(|(items, size)| items.len() == 2 * size));
            for items in &whole {
                let mut counts = vec![0; objects];
                items[..items.len() / 2].iter().for_each(|item| counts[item.0] += 1);
                let most = counts.iter().max().unwrap() - counts.iter().min().unwrap();
                prop_assert!(most <= if pairs == 1 { 1 } else { 2 }, "{:?}", counts);
            }
        }
    }

    #[test]
    fn items_are_first_views_then_second_views_of_the_same_objects() {
        let plan = TrainingPlan { seed: 3, objects: 9, views: 5, batch: 4, epochs: 1, ..PLAN };
        let steps: Vec<_> = plan.steps_from(0, 0, plain()).collect();
        assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), [8, 10]);
        for items in steps {
            let (first, second) = items.split_at(items.len() / 2);
            assert!(first.iter().zip(second).all(|(a, b)| a.0 == b.0 && a.1 != b.1));
        }
    }

    #[test]
    fn objects_may_have_different_numbers_of_views() {
        let plan = TrainingPlan { seed: 3, objects: 3, views: 9, pairs: 200, batch: 600, epochs: 1, ..PLAN };
        let curriculum = Curriculum { candidates: 3, epochs: 5 };
        for plan in [plan, TrainingPlan { curriculum, ..plan }] {
            let counts = [2_u32, 9, 1];
            let items: Vec<Item> = plan.steps_with(0, 0, plain(), Some(counts.to_vec())).flatten().collect();
            for (object, &count) in counts.iter().enumerate() {
                let mut seen: Vec<usize> =
                    items.iter().filter(|item| item.0 == object).map(|item| item.1).collect();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen, (0..count as usize).collect::<Vec<_>>());
            }
        }
        let equal: Vec<_> = plan.steps_with(0, 0, plain(), Some(vec![9; 3])).collect();
        assert_eq!(equal, plan.steps_from(0, 0, plain()).collect::<Vec<_>>());
    }

    #[test]
    fn five_objects_fill_a_batch_and_pairs_of_one_object_differ() {
        let plan = TrainingPlan { objects: 5, views: 50, pairs: 102, batch: 512, epochs: 1, ..PLAN };
        let steps: Vec<_> = plan.steps_from(0, 0, plain()).collect();
        assert_eq!(steps.len(), 1);
        let (first, second) = steps[0].split_at(510);
        let different: std::collections::HashSet<_> = first.iter().zip(second).collect();
        assert!(different.len() > 450, "{}", different.len());
    }

    #[test]
    fn every_epoch_has_its_own_order_and_its_own_pairs() {
        let plan = TrainingPlan { seed: 3, objects: 12, views: 9, batch: 12, epochs: 2, ..PLAN };
        let steps: Vec<_> = plan.steps_from(0, 0, plain()).collect();
        let order = |items: &[Item]| items[..12].iter().map(|item| item.0).collect::<Vec<_>>();
        assert_ne!(order(&steps[0]), order(&steps[1]));
        let pairs = |items: &[Item]| {
            let mut pairs: Vec<_> = (0..12).map(|k| (items[k], items[12 + k])).collect();
            pairs.sort_unstable();
            pairs
        };
        assert_ne!(pairs(&steps[0]), pairs(&steps[1]));
    }

    #[test]
    fn fresh_views_are_never_held_out_ones() {
        let plan = TrainingPlan {
            seed: 1,
            objects: 6,
            views: 5,
            stride: 8,
            batch: 3,
            epochs: 40,
            refresh: 0.7,
            ..PLAN
        };
        let views: Vec<usize> = plan.steps_from(0, 0, plain()).flatten().map(|(_, view)| view).collect();
        assert!(views.iter().all(|view| view % 8 < 5) && views.iter().any(|view| *view > 40));
    }

    #[test]
    fn a_share_of_the_images_is_fresh_and_the_rest_comes_from_the_pool() {
        let seen_before = |refresh: f64| {
            let plan = TrainingPlan {
                seed: 1,
                objects: 40,
                views: 5,
                stride: 5,
                batch: 8,
                epochs: 60,
                refresh,
                ..PLAN
            };
            let (mut seen, mut fresh) = (std::collections::HashSet::new(), Vec::new());
            for (step, items) in plan.steps_from(0, 0, plain()).enumerate() {
                // The pool is filled in the first epochs.
                let new = items.into_iter().filter(|item| seen.insert(*item)).count();
                if step >= 20 * 5 {
                    fresh.push(new as f64 / 16.0);
                }
            }
            fresh.iter().sum::<f64>() / fresh.len() as f64
        };
        assert_eq!(seen_before(0.0), 0.0);
        assert_eq!(seen_before(1.0), 1.0);
        assert!((seen_before(0.25) - 0.25).abs() < 0.03, "{}", seen_before(0.25));
    }

    #[test]
    fn a_curriculum_begins_with_small_changes_and_ends_with_the_pairs_as_they_come() {
        let plan = TrainingPlan { objects: 200, views: 50, batch: 200, epochs: 12, ..PLAN };
        let near = TrainingPlan { curriculum: Curriculum { candidates: 16, epochs: 10 }, ..plan };
        let mean = |items: &Vec<Item>| {
            let (first, second) = items.split_at(200);
            first.iter().zip(second).map(|(a, b)| a.1.abs_diff(b.1)).sum::<usize>() as f64 / 200.0
        };
        let usual: Vec<_> = plan.steps_from(0, 0, plain()).collect();
        let steps: Vec<_> = near.steps_from(0, 0, plain()).collect();
        let means: Vec<f64> = steps.iter().map(mean).collect();
        assert!((14.0..20.0).contains(&mean(&usual[0])) && means[0] < 3.0, "{means:?}");
        assert!(means[0] < means[5] && means[5] < means[9], "{means:?}");
        assert_eq!(steps[10..], usual[10..]);
        assert!(
            steps.iter().flat_map(|items| items[..200].iter().zip(&items[200..])).all(|(a, b)| a.1 != b.1)
        );
    }
}
