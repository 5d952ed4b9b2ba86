//! What a step sees: pairs of views of the same objects, and the plan of which pairs come when.

use dataset::order;
use dataset::{Batch, Split, TrainingPlan, Views};

use pose::ViewPose;

use crate::bad_samples::Resolve;
use crate::config::Config;
use crate::error::{Error, Result};

pub use dataset::Item;

/// Pairs of views, ready for a network.
#[derive(Debug)]
pub struct PairBatch<'a> {
    /// Side of the pictures in pixels; 0 where there are none, and whoever takes the batch makes them.
    pub side: usize,
    /// `[pairs, side, side, 3]` bytes, RGB: the first views.
    pub first: &'a [u8],
    /// The second views.
    pub second: &'a [u8],
    /// Which pictures they are: all first views, then all second ones.
    pub items: Vec<Item>,
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
        let resolved: Vec<Item> = batch.items.iter().map(|&item| resolve.resolve(item)).collect();
        for pair in 0..pairs {
            let items = [resolved[pair], resolved[pairs + pair]];
            let latents = items.map(|(object, view)| views.latents(object, view));
            labels.push(views.objects()[items[0].0].label as i32);
            poses.push(
                latents.map(|l| ViewPose::published_precision(l.rotation, l.translation.unwrap_or_default())),
            );
            hues.push(latents.map(|l| [l.floor_hue, l.spot_hue]));
        }
        Self { side: batch.side, first, second, items: resolved, labels, poses, hues }
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

/// The plan of a run over `views`, which must have objects to train on.
pub fn training_plan(config: &Config, views: &dyn Views) -> Result<TrainingPlan> {
    let objects = views.split(Split::Train).len();
    if objects < 2 {
        let what = views.description();
        return Err(Error::Request(format!(
            "a step needs two training objects, but of {what}, {objects} are for training"
        )));
    }
    Ok(TrainingPlan {
        seed: config.seed,
        objects,
        views: views.views(),
        batch: config.batch,
        epochs: config.epochs,
        refresh: config.refresh,
    })
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

    #[test]
    fn poses_hues_and_labels_are_those_of_the_pictures_they_stand_beside() {
        let views = crate::testing::FakeViews::new(2, 3).with_translation();
        let items = vec![(1, 4), (5, 0), (1, 2), (5, 3)];
        let plan = vec![items.clone()];
        let options = dataset::LoaderOptions { side: Some(4), workers: 1, queue: 1 };
        let shared: std::sync::Arc<dyn Views> = std::sync::Arc::new(views);
        let mut loader = dataset::Loader::start(std::sync::Arc::clone(&shared), plan, options).unwrap();
        let batch = loader.next().unwrap().unwrap();
        let pairs = PairBatch::new(&*shared, &crate::bad_samples::AsPlanned, &batch);
        assert_eq!((pairs.len(), &pairs.items), (2, &items));
        for (place, &(object, view)) in items.iter().enumerate() {
            let (pair, side) = (place % 2, place / 2);
            let latents = shared.latents(object, view);
            let pose = ViewPose::published_precision(latents.rotation, latents.translation.unwrap());
            assert_eq!(pairs.poses[pair][side], pose);
            assert_eq!(pairs.hues[pair][side], [latents.floor_hue, latents.spot_hue]);
            assert_eq!(pairs.labels[pair] as u32, shared.objects()[object].label);
            let mut picture = vec![0; 4 * 4 * 3];
            shared.image(object, view, 4, &mut picture).unwrap();
            let half = [pairs.first, pairs.second][side];
            assert_eq!(half[pair * picture.len()..][..picture.len()], picture);
        }
    }
}
