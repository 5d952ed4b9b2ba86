//! How many views each object has, which of them are held out, and where they lie in tables: [`ViewIndex`]. Rendered
//! datasets have as many views of every object; imported ones have as many as there are images.

use std::ops::Range;

use crate::object::Split;

/// The views of all objects. Those of an object are numbered from 0; where views are held out, they are its last ones.
///
/// Two orders of all views are in use. In their natural order, that of the tables of latents, they follow one another
/// object by object ([`ViewIndex::row`]). By sides, as features and checksums have them, all that are trained on come
/// before all that are held out ([`ViewIndex::place`]). Without held-out views both are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewIndex {
    /// Views before each object that are not held out, and all of them at the end.
    kept: Vec<usize>,
    /// Views before each object that are held out, and all of them at the end.
    held_out: Vec<usize>,
    most: usize,
    most_held_out: usize,
}

impl ViewIndex {
    /// For every object: its views, and how many of them are held out, at most all of them.
    pub fn new(objects: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut index = Self { kept: vec![0], held_out: vec![0], ..Self::default() };
        let (mut kept, mut held_out) = (0, 0);
        for (views, last) in objects {
            kept += views - last.min(views);
            held_out += last.min(views);
            index.kept.push(kept);
            index.held_out.push(held_out);
            index.most = index.most.max(views);
            index.most_held_out = index.most_held_out.max(last.min(views));
        }
        index
    }

    /// `views` views of each of `objects` objects, `held_out` of them held out.
    pub fn equal(objects: usize, views: usize, held_out: usize) -> Self {
        Self::new(std::iter::repeat_n((views, held_out), objects))
    }

    /// The same views, with others of them held out: `held_out` says how many of so many.
    pub fn holding_out(&self, held_out: impl Fn(usize) -> usize) -> Self {
        Self::new((0..self.objects()).map(|object| (self.views(object), held_out(self.views(object)))))
    }

    /// Number of objects.
    pub fn objects(&self) -> usize {
        self.kept.len().saturating_sub(1)
    }

    /// Number of views of all objects.
    pub fn total(&self) -> usize {
        let last = |sums: &[usize]| sums.last().copied().unwrap_or(0);
        last(&self.kept) + last(&self.held_out)
    }

    /// The largest number of views of an object.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Whether all objects have the same number of views, on each side.
    pub fn is_equal(&self) -> bool {
        let is_even = |sums: &[usize]| sums.windows(2).all(|pair| pair[1] - pair[0] == sums[1] - sums[0]);
        is_even(&self.kept) && is_even(&self.held_out)
    }

    /// Number of views of an object.
    pub fn views(&self, object: usize) -> usize {
        self.kept_of(object) + self.held_out_of(object)
    }

    fn kept_of(&self, object: usize) -> usize {
        self.kept[object + 1] - self.kept[object]
    }

    /// How many of an object's views are held out.
    pub fn held_out_of(&self, object: usize) -> usize {
        self.held_out[object + 1] - self.held_out[object]
    }

    /// The largest number of held-out views of an object; 0 where the split is one of objects.
    pub fn most_held_out(&self) -> usize {
        self.most_held_out
    }

    /// Which views of `object` one side of the split has; all of them where none is held out.
    pub fn views_of(&self, split: Split, object: usize) -> Range<usize> {
        let (kept, views) = (self.kept_of(object), self.views(object));
        match split {
            _ if self.held_out.last() == Some(&0) => 0..views,
            Split::Train => 0..kept,
            Split::Val => kept..views,
        }
    }

    /// The place of a view in the natural order; `object` may be the number of objects, for the end.
    pub fn row(&self, object: usize, view: usize) -> usize {
        self.kept[object] + self.held_out[object] + view
    }

    /// The place of a view by sides; `object` may be the number of objects, for the end of what is not held out.
    pub fn place(&self, object: usize, view: usize) -> usize {
        if object == self.objects() {
            return self.kept[object] + view;
        }
        match view.checked_sub(self.kept_of(object)) {
            Some(view) if self.held_out_of(object) > 0 => {
                self.kept[self.objects()] + self.held_out[object] + view
            }
            _ => self.kept[object] + view,
        }
    }

    /// The object and the view at a place by sides.
    pub fn item(&self, place: usize) -> (usize, usize) {
        let kept = self.kept[self.objects()];
        let (sums, at) = if place < kept { (&self.kept, place) } else { (&self.held_out, place - kept) };
        let object = sums.partition_point(|&before| before <= at) - 1;
        let view = at - sums[object];
        (object, if place < kept { view } else { self.kept_of(object) + view })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_numbers_are_rows_of_a_table() {
        let index = ViewIndex::equal(3, 5, 0);
        assert_eq!((index.objects(), index.total(), index.most(), index.is_equal()), (3, 15, 5, true));
        assert_eq!((index.row(2, 4), index.place(2, 4), index.item(14)), (14, 14, (2, 4)));
        assert_eq!(index.views_of(Split::Val, 1), 0..5);
        let by_views = index.holding_out(|_| 2);
        assert_eq!(by_views, ViewIndex::equal(3, 5, 2));
        assert_eq!((by_views.place(1, 2), by_views.place(1, 3), by_views.place(3, 0)), (5, 11, 9));
        assert_eq!(Split::ALL.map(|split| by_views.views_of(split, 2)), [0..3, 3..5]);
    }

    proptest! {
        #[test]
        fn every_view_has_one_place_in_each_order(
            objects in prop::collection::vec((1_usize..7, 0_usize..4), 1..12)
        ) {
            let index = ViewIndex::new(objects.iter().map(|&(views, last)| (views, last.min(views))));
            let total: usize = objects.iter().map(|object| object.0).sum();
            prop_assert_eq!(index.total(), total);
            let mut rows = vec![false; total];
            let mut places = vec![false; total];
            for object in 0..objects.len() {
                prop_assert_eq!(index.views(object), objects[object].0);
                for view in 0..objects[object].0 {
                    rows[index.row(object, view)] = true;
                    let place = index.place(object, view);
                    prop_assert!(!std::mem::replace(&mut places[place], true));
                    prop_assert_eq!(index.item(place), (object, view));
                }
            }
            prop_assert!(rows.into_iter().chain(places).all(|is_taken| is_taken));
            let even = objects.iter().all(|&(v, l)| (v, l.min(v)) == (objects[0].0, objects[0].1.min(objects[0].0)));
            prop_assert_eq!(index.is_equal(), even);
        }
    }
}
