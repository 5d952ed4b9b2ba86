//! What has to be rendered for batches that are announced but have not come: every view that the pool will not hold when
//! its batch comes, in the order in which they are needed, and in portions that are large enough for a GPU.
//!
//! The pool changes only when a batch comes, never before: what is rendered ahead waits outside of it. So no batch finds its
//! view replaced by one that a later batch asked for.

use std::collections::VecDeque;

use crate::loader::Item;

/// A batch that was announced.
#[derive(Debug)]
pub struct Announced {
    /// Its items, as planned.
    pub items: Vec<Item>,
    /// Which of them are rendered for it, in the order in which they are requested.
    pub fresh: Vec<usize>,
    /// Views rendered for all batches up to this one.
    until: u64,
}

/// The batches to come, and what is still to be rendered for them.
#[derive(Debug)]
pub struct Prefetch {
    views: usize,
    /// Views of each object that have a place; the rest of them, at the end, are held out and never kept.
    kept: usize,
    /// The view in each place of the pool after the last announced batch, plus one; 0: none.
    planned: Vec<usize>,
    batches: VecDeque<Announced>,
    /// What is to be rendered but not requested yet.
    waiting: VecDeque<Item>,
    requested: u64,
    /// Views in a request at most.
    at_once: usize,
}

/// Batches before the one that needs a view, when it is requested at the latest, however few there are.
const LEAD: usize = 8;

impl Prefetch {
    /// An empty pool of `places`, `views` of each object, and nothing announced.
    pub fn new(views: usize, places: usize, at_once: usize) -> Self {
        let (batches, waiting) = (VecDeque::new(), VecDeque::new());
        Self { views, kept: views, planned: vec![0; places], batches, waiting, requested: 0, at_once }
    }

    /// The same, where only the first `kept` views of each object have a place.
    pub fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// The place of `item` in the pool, if there is one for it.
    pub fn place_of(&self, (object, view): Item) -> Option<usize> {
        let view = view % self.views;
        let place = object * self.kept + view;
        (view < self.kept && place < self.planned.len()).then_some(place)
    }

    /// The pool will hold `item` before the first batch comes.
    pub fn will_hold(&mut self, item: Item) {
        if let Some(place) = self.place_of(item) {
            self.planned[place] = item.1 + 1;
        }
    }

    /// Views that are rendered at once, at most.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// From now on up to `views` are rendered at once.
    pub fn set_at_once(&mut self, views: usize) {
        self.at_once = views;
    }

    /// Says what the batch after the last one announced will want.
    pub fn announce(&mut self, items: &[Item]) {
        let mut fresh = Vec::new();
        for (index, &item) in items.iter().enumerate() {
            let place = self.place_of(item);
            if place.is_some_and(|place| self.planned[place] == item.1 + 1) {
                continue;
            }
            if let Some(place) = place {
                self.planned[place] = item.1 + 1;
            }
            fresh.push(index);
            self.waiting.push_back(item);
        }
        let until = self.requested + self.waiting.len() as u64;
        self.batches.push_back(Announced { items: items.to_vec(), fresh, until });
    }

    /// The next portion to be rendered, if there is enough for one or it is high time.
    pub fn due_request(&mut self) -> Option<Vec<Item>> {
        let near = self.batches.get(LEAD - 1).or(self.batches.back());
        let is_due = near.is_some_and(|batch| batch.until > self.requested);
        (is_due || self.waiting.len() >= self.at_once).then(|| self.next_request()).flatten()
    }

    /// The next portion to be rendered, however small.
    pub fn next_request(&mut self) -> Option<Vec<Item>> {
        let count = self.waiting.len().min(self.at_once);
        self.requested += count as u64;
        (count > 0).then(|| self.waiting.drain(..count).collect())
    }

    /// The batch that comes now; none where none was announced.
    pub fn next_batch(&mut self) -> Option<Announced> {
        self.batches.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Cut;
    use crate::training_plan::{Curriculum, TrainingPlan};

    /// Walks a run as training does: the sizes of all requests, and the images shown. Checks that every view is there when
    /// its batch comes.
    fn walk(plan: TrainingPlan, places: usize, at_once: usize, look_ahead: usize) -> (Vec<usize>, usize) {
        let mut prefetch = Prefetch::new(plan.views, places, at_once);
        let mut held = vec![None; places];
        let (mut requests, mut rendered, mut shown) = (Vec::new(), VecDeque::new(), 0);
        let mut coming = plan.steps_from(0, 0, Box::new(|_, _, _| 0.0));
        let mut announced = 0;
        for (step, items) in plan.steps_from(0, 0, Box::new(|_, _, _| 0.0)).enumerate() {
            while announced <= step + look_ahead
                && let Some(items) = coming.next()
            {
                prefetch.announce(&items);
                announced += 1;
            }
            let batch = prefetch.next_batch().unwrap();
            assert_eq!(batch.items, items);
            while let Some(request) = prefetch.due_request() {
                requests.push(request.len());
                rendered.extend(request);
            }
            for &index in &batch.fresh {
                let item = rendered.pop_front().or_else(|| {
                    rendered.extend(prefetch.next_request()?);
                    rendered.pop_front()
                });
                assert_eq!(item, Some(items[index]));
                if let Some(place) = prefetch.place_of(items[index]) {
                    held[place] = Some(items[index]);
                }
            }
            for (index, &item) in items.iter().enumerate() {
                let is_held = prefetch.place_of(item).is_some_and(|place| held[place] == Some(item));
                assert!(is_held || batch.fresh.contains(&index));
            }
            shown += items.len();
        }
        assert!(rendered.is_empty());
        (requests, shown)
    }

    const PLAN: TrainingPlan = TrainingPlan {
        seed: 5,
        objects: 300,
        views: 10,
        stride: 10,
        pairs: 1,
        batch: 32,
        cut: Cut::Published,
        epochs: 60,
        refresh: 0.1,
        curriculum: Curriculum::NONE,
    };

    #[test]
    fn every_view_is_there_and_none_is_rendered_twice() {
        let (requests, shown) = walk(PLAN, 3000, 200, 32);
        // The whole pool once, and a tenth of the images.
        let rendered: usize = requests.iter().sum();
        let expected = 3000.0 + 0.1 * shown as f64;
        assert!((rendered as f64 / expected - 1.0).abs() < 0.05, "{rendered} of {expected}");
        // Once the pool is full, portions are as large as the batches ahead allow.
        let late = &requests[requests.len() / 2..requests.len() - 2];
        assert!(late.iter().sum::<usize>() / late.len() > 140, "{requests:?}");
    }

    #[test]
    fn small_batches_are_announced_as_far_ahead_as_large_ones() {
        let images = |pairs: usize| 2 * pairs * crate::cuda::look_ahead(pairs) as usize;
        assert!((1..2000).all(|pairs| images(pairs) >= 100_000 && images(pairs) < 140_000));
        let plan = TrainingPlan { batch: 4, epochs: 10, ..PLAN };
        let (requests, _) = walk(plan, 3000, 200, crate::cuda::look_ahead(4) as usize);
        let late = &requests[..requests.len() - 1];
        assert!(late.iter().all(|&request| request == 200), "{requests:?}");
    }

    #[test]
    fn what_has_no_place_is_rendered_every_time() {
        let (requests, shown) = walk(TrainingPlan { refresh: 0.0, ..PLAN }, 0, 64, 4);
        assert_eq!(requests.iter().sum::<usize>(), shown);
        let (requests, shown) = walk(TrainingPlan { refresh: 1.0, ..PLAN }, 3000, 64, 4);
        assert_eq!(requests.iter().sum::<usize>(), shown);
    }

    #[test]
    fn a_full_pool_needs_nothing() {
        let mut prefetch = Prefetch::new(4, 20, 8);
        (0..5)
            .flat_map(|object| (0..4).map(move |view| (object, view)))
            .for_each(|item| prefetch.will_hold(item));
        prefetch.announce(&[(0, 1), (4, 3), (5, 0)]);
        assert_eq!(prefetch.due_request(), Some(vec![(5, 0)]));
        assert_eq!(prefetch.next_batch().map(|batch| batch.fresh), Some(vec![2]));
        assert_eq!((prefetch.due_request(), prefetch.next_batch().map(|_| ())), (None, None));
    }
}
