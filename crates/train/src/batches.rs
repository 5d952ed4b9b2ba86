//! What a step sees: pairs of views of the same objects, and the plan of which pairs come when.

use std::ops::Range;

use dataset::order;
use dataset::{Batch, Split, TrainingPlan, Views};
use engine::Collective;
use methods::{PairImages, TargetValues, Transform};

use crate::config::Config;
use crate::error::{Error, Result};

pub use dataset::Item;

/// Pairs of views, ready for a network.
#[derive(Debug)]
pub struct PairBatch<'a> {
    /// The first and the second views.
    pub images: PairImages<'a>,
    /// Which images they are: all first views, then all second ones.
    pub items: Vec<Item>,
    /// The targets of the pairs.
    pub targets: TargetValues,
    /// Pairs of all ranks, where these are the share of one.
    pub whole: Option<usize>,
}

impl<'a> PairBatch<'a> {
    /// The pairs of a loaded batch, whose items are all first views, then all second ones, for a method that is trained
    /// on `transform`. `resolve` says which image really stands for an item.
    pub fn new(
        views: &(impl Views + ?Sized),
        resolve: impl Fn(Item) -> Item,
        batch: &'a Batch,
        transform: Transform,
    ) -> Self {
        let (pairs, side) = (batch.items.len() / 2, batch.side);
        let (first, second) = batch.pixels.split_at(pairs * side * side * 3);
        let items: Vec<Item> = batch.items.iter().map(|&item| resolve(item)).collect();
        let (mut labels, mut objects) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
        let (mut poses, mut hues) = (Vec::with_capacity(pairs), Vec::new());
        let (has_poses, has_hues) = (views.without_pose().is_none(), views.has_light());
        for pair in 0..pairs {
            let items = [items[pair], items[pairs + pair]];
            labels.push(views.objects()[items[0].0].label as i32);
            objects.push(items[0].0 as i32);
            if !has_poses {
                continue;
            }
            poses.push(items.map(|(object, view)| views.pose(object, view)));
            if has_hues {
                let latents = items.map(|(object, view)| views.latents(object, view));
                let [first, second] = latents.map(|l| [l.floor_hue, l.spot_hue]);
                hues.extend(pose::hue_difference(first, second).map(|value| value as f32));
            }
        }
        let targets = TargetValues { hues, labels, objects, ..TargetValues::from_poses(transform, &poses) };
        Self { images: PairImages::Host { side, views: [first, second] }, items, targets, whole: None }
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.targets.labels.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.targets.labels.is_empty()
    }
}

/// The plan of a run over `views`, which must have objects to train on.
pub fn training_plan(config: &Config, views: &dyn Views) -> Result<TrainingPlan> {
    let objects = views.split(Split::Train).len();
    let most = views.split(Split::Train).map(|object| views.views_of(Split::Train, object).len()).max();
    let batch = config.method.batch;
    if config.is_automatic() {
        return Err(Error::Request("settings are still to be chosen from the data".to_owned()));
    }
    let pairs = match config.pairs_per_object {
        0 => (batch / objects.max(1)).max(1),
        pairs => pairs,
    };
    if objects * pairs < 2 {
        let what = views.description();
        return Err(Error::Request(format!(
            "a step needs two training pairs, but of {what}, {objects} are for training"
        )));
    }
    Ok(TrainingPlan {
        seed: config.seed,
        objects,
        views: most.unwrap_or(0),
        stride: views.views(),
        pairs,
        batch,
        cut: config.batches.cut(),
        epochs: config.epochs,
        // Every view of a photograph is a fresh one: it costs no more than one that was seen before.
        refresh: if views.space() == pose::Space::Image { 1.0 } else { config.refresh },
        curriculum: config.curriculum,
    })
}

/// How many views of each training object there are, where their numbers differ.
pub fn view_counts(views: &dyn Views) -> Option<Vec<u32>> {
    let counts: Vec<u32> = views
        .split(Split::Train)
        .map(|object| u32::try_from(views.views_of(Split::Train, object).len()).unwrap_or(u32::MAX))
        .collect();
    counts.iter().any(|count| *count != counts[0]).then_some(counts)
}

/// What of `items` (all first views, then all second ones) is the share of one of several ranks.
pub fn share_of(items: Vec<Item>, ranks: &dyn Collective) -> Vec<Item> {
    if !ranks.is_shared() {
        return items;
    }
    let pairs = items.len() / 2;
    let (first, second) = items.split_at(pairs);
    let share = ranks.share(pairs);
    first[share.clone()].iter().chain(&second[share]).copied().collect()
}

/// Refuses a number of ranks that cannot share the batches of `plan`.
pub fn check_ranks(plan: &TrainingPlan, ranks: usize) -> Result<()> {
    let smallest = plan.batch_sizes().into_iter().min().unwrap_or(plan.batch);
    let fits = |ranks: &usize| plan.batch.is_multiple_of(*ranks) && *ranks <= smallest;
    if fits(&ranks) {
        return Ok(());
    }
    let below = (1..ranks).rev().find(fits);
    let above = (ranks + 1..=smallest).find(fits);
    let others: Vec<String> = below.into_iter().chain(above).map(|count| count.to_string()).collect();
    let why = if plan.batch.is_multiple_of(ranks) {
        format!("an epoch has a batch of {}", dataset::counted(smallest, "pair"))
    } else {
        format!("batch is {}", plan.batch)
    };
    Err(Error::Request(format!("{ranks} ranks cannot share a batch: {why}; use {}", others.join(" or "))))
}

/// The items of pairs of `views` of `objects`: all first views, then all second ones.
pub fn pair_items(
    objects: impl Iterator<Item = usize>,
    seed: u64,
    epoch: u64,
    views: impl Fn(usize) -> Range<usize>,
) -> Vec<Item> {
    let pair = |object: usize| {
        let views = views(object);
        let (first, second) = order::pair(seed, epoch, object, views.len());
        [(object, views.start + first), (object, views.start + second)]
    };
    let pairs: Vec<[Item; 2]> = objects.map(pair).collect();
    (0..2).flat_map(|k| pairs.iter().map(move |pair| pair[k])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pose::ViewPose;

    #[test]
    fn poses_hues_and_labels_are_those_of_the_images_they_stand_beside() {
        let views = crate::testing::FakeViews::new(2, 3).with_translation();
        let items = vec![(1, 4), (5, 0), (1, 2), (5, 3)];
        let plan = vec![items.clone()];
        let options = dataset::LoaderOptions { side: Some(4), workers: 1, queue: 1 };
        let shared: std::sync::Arc<dyn Views> = std::sync::Arc::new(views);
        let mut loader = dataset::Loader::start(std::sync::Arc::clone(&shared), plan, options).unwrap();
        let batch = loader.next().unwrap().unwrap();
        let transform = Transform::ROTATION_BASE;
        let pairs = PairBatch::new(&*shared, |item| item, &batch, transform);
        assert_eq!((pairs.len(), &pairs.items), (2, &items));
        let PairImages::Host { side: 4, views: halves } = pairs.images else { panic!("images of 4 pixels") };
        let latents = |place: usize| shared.latents(items[place].0, items[place].1);
        let poses: Vec<_> = (0..2)
            .map(|pair| {
                [pair, pair + 2].map(latents).map(|latents| {
                    ViewPose::published_precision(latents.rotation, latents.translation.unwrap())
                })
            })
            .collect();
        let wanted = TargetValues::from_poses(transform, &poses);
        assert_eq!((&pairs.targets.matrices, &pairs.targets.parts), (&wanted.matrices, &wanted.parts));
        for (place, &(object, view)) in items.iter().enumerate() {
            let (pair, side) = (place % 2, place / 2);
            assert_eq!(pairs.targets.labels[pair] as u32, shared.objects()[object].label);
            let change = latents(pair + 2).spot_hue - latents(pair).spot_hue;
            assert_eq!(pairs.targets.hues[2 * pair + 1], change as f32);
            let mut image = vec![0; 4 * 4 * 3];
            shared.image(object, view, 4, &mut image).unwrap();
            assert_eq!(halves[side][pair * image.len()..][..image.len()], image);
        }
    }
}
