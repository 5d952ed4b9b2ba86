//! What a step sees: pairs of views of the same objects, and the plan of which pairs come when. The plan is a pure
//! function of (seed, epoch); it can start at any position.

use dataset::order;
use dataset::{Batch, Views};
use pose::ViewPose;

use crate::bad_samples::Resolve;
use crate::checkpoint::Position;

/// One picture: (object, view).
pub type Item = (usize, usize);

/// Pairs of views, ready for a network.
#[derive(Debug)]
pub struct PairBatch<'a> {
    /// Side of the pictures in pixels.
    pub side: usize,
    /// `[pairs, side, side, 3]` bytes, RGB: the first views.
    pub first: &'a [u8],
    /// The second views.
    pub second: &'a [u8],
    /// The class of each pair's object.
    pub labels: Vec<i32>,
    /// Both poses of each pair.
    pub poses: Vec<[ViewPose; 2]>,
    /// The (floor, spot) hues of both views of each pair.
    pub hues: Vec<[[f64; 2]; 2]>,
}

impl<'a> PairBatch<'a> {
    /// The pairs of a loaded batch, whose items are all first views, then all second ones.
    pub fn new(views: &(impl Views + ?Sized), resolve: &impl Resolve, batch: &'a Batch) -> Self {
        let pairs = batch.items.len() / 2;
        let (first, second) = batch.pixels.split_at(pairs * batch.side * batch.side * 3);
        let mut labels = Vec::with_capacity(pairs);
        let mut poses = Vec::with_capacity(pairs);
        let mut hues = Vec::with_capacity(pairs);
        for pair in 0..pairs {
            let items = [batch.items[pair], batch.items[pairs + pair]].map(|item| resolve.resolve(item));
            let latents = items.map(|(object, view)| views.latents(object, view));
            labels.push(views.objects()[items[0].0].label as i32);
            poses.push(
                latents.map(|l| ViewPose::published_precision(l.rotation, l.translation.unwrap_or_default())),
            );
            hues.push(latents.map(|l| [l.floor_hue, l.spot_hue]));
        }
        Self { side: batch.side, first, second, labels, poses, hues }
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// Which objects are trained on, and how they are cut into steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingPlan {
    /// The seed of order and pairs.
    pub seed: u64,
    /// Training objects are `0..objects`.
    pub objects: usize,
    /// Views of each.
    pub views: usize,
    /// Objects in a step.
    pub batch: usize,
    /// Epochs.
    pub epochs: u64,
}

impl TrainingPlan {
    /// Steps in every epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        order::batch_count(self.objects, self.batch) as u64
    }

    /// The items of all steps from `position` to the end.
    pub fn steps_from(self, position: Position) -> impl Iterator<Item = Vec<Item>> + Send + 'static {
        (position.epoch..self.epochs).flat_map(move |epoch| {
            let skip = if epoch == position.epoch { position.step_in_epoch } else { 0 };
            self.epoch_steps(epoch).into_iter().skip(skip as usize)
        })
    }

    fn epoch_steps(&self, epoch: u64) -> Vec<Vec<Item>> {
        let order = order::epoch_order(self.seed, epoch, self.objects);
        order::batches(&order, self.batch)
            .into_iter()
            .map(|objects| pair_items(objects.iter().map(|&o| o as usize), self.seed, epoch, self.views))
            .collect()
    }
}

/// The items of pairs of `objects`: all first views, then all second ones.
pub fn pair_items(
    objects: impl Iterator<Item = usize> + Clone,
    seed: u64,
    epoch: u64,
    views: usize,
) -> Vec<Item> {
    let pairs = objects.map(|object| (object, order::pair(seed, epoch, object, views)));
    let first = pairs.clone().map(|(object, (first, _))| (object, first));
    first.chain(pairs.map(|(object, (_, second))| (object, second))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_plan_can_start_anywhere(
            seed: u64, objects in 2_usize..40, batch in 2_usize..12, epochs in 1_u64..4, cut in 0.0..1.0_f64,
        ) {
            let plan = TrainingPlan { seed, objects, views: 7, batch, epochs };
            let whole: Vec<_> = plan.steps_from(Position::default()).collect();
            let per_epoch = plan.steps_per_epoch();
            prop_assert_eq!(whole.len() as u64, per_epoch * epochs);
            let step = (cut * whole.len() as f64) as u64;
            let position = Position { epoch: step / per_epoch, step, step_in_epoch: step % per_epoch };
            let rest: Vec<_> = plan.steps_from(position).collect();
            prop_assert_eq!(&whole[step as usize..], &rest[..]);
        }
    }

    #[test]
    fn items_are_first_views_then_second_views_of_the_same_objects() {
        let plan = TrainingPlan { seed: 3, objects: 9, views: 5, batch: 4, epochs: 1 };
        let steps: Vec<_> = plan.steps_from(Position::default()).collect();
        assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), [8, 10]);
        for items in steps {
            let (first, second) = items.split_at(items.len() / 2);
            assert!(first.iter().zip(second).all(|(a, b)| a.0 == b.0 && a.1 != b.1));
        }
    }
}
