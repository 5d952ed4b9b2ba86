//! What has to be rendered for batches that are announced but have not come: every view that the pool will not hold when
//! its batch comes, in the order in which they are needed, and in portions that are large enough for a GPU.
//!
//! The pool changes only when a batch comes, never before: what is made ahead waits outside of it. So no batch finds its
//! view replaced by one that a later batch asked for.

use std::collections::VecDeque;

use crate::batches::Item;

/// A batch that was announced.
#[derive(Debug)]
pub struct Announced {
    /// Its items, as planned.
    pub items: Vec<Item>,
    /// Which of them are made for it, in the order in which they are made.
    pub fresh: Vec<usize>,
    /// Views made for all batches up to this one.
    until: u64,
}

/// The batches to come, and what is still to be made for them.
#[derive(Debug)]
pub struct Ahead {
    views: usize,
    /// The view in each place of the pool after the last announced batch, plus one; 0: none.
    planned: Vec<usize>,
    batches: VecDeque<Announced>,
    /// What is to be made but not ordered yet.
    pending: VecDeque<Item>,
    ordered: u64,
    /// Views in an order at most.
    at_once: usize,
}

/// Batches before the one that needs a view, when it is ordered at the latest, however few there are.
const LEAD: usize = 8;

impl Ahead {
    /// An empty pool of `places`, `views` of each object, and nothing announced.
    pub fn new(views: usize, places: usize, at_once: usize) -> Self {
        let (batches, pending) = (VecDeque::new(), VecDeque::new());
        Self { views, planned: vec![0; places], batches, pending, ordered: 0, at_once }
    }

    /// The place of `item` in the pool, if there is one for it.
    pub fn place_of(&self, (object, view): Item) -> Option<usize> {
        let place = object * self.views + view % self.views;
        (place < self.planned.len()).then_some(place)
    }

    /// The pool will hold `item` before the first batch comes.
    pub fn will_hold(&mut self, item: Item) {
        if let Some(place) = self.place_of(item) {
            self.planned[place] = item.1 + 1;
        }
    }

    /// Views that are made at once, at most.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// From now on up to `views` are made at once.
    pub fn order_at_once(&mut self, views: usize) {
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
            self.pending.push_back(item);
        }
        let until = self.ordered + self.pending.len() as u64;
        self.batches.push_back(Announced { items: items.to_vec(), fresh, until });
    }

    /// The next portion to be made, if there is enough for one or it is high time.
    pub fn next_order(&mut self) -> Option<Vec<Item>> {
        let near = self.batches.get(LEAD - 1).or(self.batches.back());
        let is_due = near.is_some_and(|batch| batch.until > self.ordered);
        (is_due || self.pending.len() >= self.at_once).then(|| self.order()).flatten()
    }

    /// The next portion to be made, however small.
    pub fn order(&mut self) -> Option<Vec<Item>> {
        let count = self.pending.len().min(self.at_once);
        self.ordered += count as u64;
        (count > 0).then(|| self.pending.drain(..count).collect())
    }

    /// The batch that comes now; none where none was announced.
    pub fn next_batch(&mut self) -> Option<Announced> {
        self.batches.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataset::TrainingPlan;

    /// Walks a run as training does: the sizes of all orders, and the images shown. Checks that every view is there when
    /// its batch comes.
    fn walk(plan: TrainingPlan, places: usize, at_once: usize, look_ahead: usize) -> (Vec<usize>, usize) {
        let mut ahead = Ahead::new(plan.views, places, at_once);
        let mut held = vec![None; places];
        let (mut orders, mut made, mut shown) = (Vec::new(), VecDeque::new(), 0);
        let mut coming = plan.steps_from(0, 0);
        let mut announced = 0;
        for (step, items) in plan.steps_from(0, 0).enumerate() {
            while announced <= step + look_ahead
                && let Some(items) = coming.next()
            {
                ahead.announce(&items);
                announced += 1;
            }
            let batch = ahead.next_batch().unwrap();
            assert_eq!(batch.items, items);
            while let Some(order) = ahead.next_order() {
                orders.push(order.len());
                made.extend(order);
            }
            for &index in &batch.fresh {
                let item = made.pop_front().or_else(|| {
                    made.extend(ahead.order()?);
                    made.pop_front()
                });
                assert_eq!(item, Some(items[index]));
                if let Some(place) = ahead.place_of(items[index]) {
                    held[place] = Some(items[index]);
                }
            }
            for (index, &item) in items.iter().enumerate() {
                let is_held = ahead.place_of(item).is_some_and(|place| held[place] == Some(item));
                assert!(is_held || batch.fresh.contains(&index));
            }
            shown += items.len();
        }
        assert!(made.is_empty());
        (orders, shown)
    }

    const PLAN: TrainingPlan =
        TrainingPlan { seed: 5, objects: 300, views: 10, batch: 32, epochs: 60, refresh: 0.1 };

    #[test]
    fn every_view_is_there_and_none_is_made_twice() {
        let (orders, shown) = walk(PLAN, 3000, 200, 32);
        // The whole pool once, and a tenth of the images.
        let made: usize = orders.iter().sum();
        let expected = 3000.0 + 0.1 * shown as f64;
        assert!((made as f64 / expected - 1.0).abs() < 0.05, "{made} of {expected}");
        // Once the pool is full, portions are as large as the batches ahead allow.
        let late = &orders[orders.len() / 2..orders.len() - 2];
        assert!(late.iter().sum::<usize>() / late.len() > 140, "{orders:?}");
    }

    #[test]
    fn small_batches_are_announced_as_far_ahead_as_large_ones() {
        let images = |pairs: usize| 2 * pairs * crate::device_views::look_ahead(pairs) as usize;
        assert!((1..2000).all(|pairs| images(pairs) >= 100_000 && images(pairs) < 140_000));
        let plan = TrainingPlan { batch: 4, epochs: 10, ..PLAN };
        let (orders, _) = walk(plan, 3000, 200, crate::device_views::look_ahead(4) as usize);
        let late = &orders[..orders.len() - 1];
        assert!(late.iter().all(|&order| order == 200), "{orders:?}");
    }

    #[test]
    fn what_has_no_place_is_made_every_time() {
        let (orders, shown) = walk(TrainingPlan { refresh: 0.0, ..PLAN }, 0, 64, 4);
        assert_eq!(orders.iter().sum::<usize>(), shown);
        let (orders, shown) = walk(TrainingPlan { refresh: 1.0, ..PLAN }, 3000, 64, 4);
        assert_eq!(orders.iter().sum::<usize>(), shown);
    }

    #[test]
    fn a_full_pool_needs_nothing() {
        let mut ahead = Ahead::new(4, 20, 8);
        (0..5)
            .flat_map(|object| (0..4).map(move |view| (object, view)))
            .for_each(|item| ahead.will_hold(item));
        ahead.announce(&[(0, 1), (4, 3), (5, 0)]);
        assert_eq!(ahead.next_order(), Some(vec![(5, 0)]));
        assert_eq!(ahead.next_batch().map(|batch| batch.fresh), Some(vec![2]));
        assert_eq!((ahead.next_order(), ahead.next_batch().map(|_| ())), (None, None));
    }
}
