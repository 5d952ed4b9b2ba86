//! Images that cannot be read or rendered. By default the first one ends the run, by name. With `on_bad_sample = "skip"` another
//! view stands in: the next view of the same object that can be read, or else of the next object. Which one that is
//! depends on (object, view) alone, so it does not matter when, or in which session, an image is found to be bad.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataset::error::FileError;
use dataset::{Class, Object, Split, Views};
use pose::{Part, Space, ViewPose};
use scene::Latents;

use crate::batches::Item;

/// Views among which stand-ins are found for those that cannot be read.
pub struct Skipping {
    views: Arc<dyn Views>,
    skip: bool,
    stand_ins: Mutex<StandIns>,
    /// Whether there are any stand-ins: usually not, and then none is looked up.
    is_any: AtomicBool,
}

/// What stands in for what, and why.
#[derive(Default)]
struct StandIns {
    views: HashMap<Item, (Item, String)>,
    /// For all views of objects that could not be prepared.
    objects: HashMap<usize, (usize, String)>,
}

impl Skipping {
    /// Looks for stand-ins if `skip`; otherwise passes failures on.
    pub fn new(views: Arc<dyn Views>, skip: bool) -> Self {
        Self { views, skip, stand_ins: Mutex::default(), is_any: AtomicBool::new(false) }
    }

    fn stand_ins(&self) -> MutexGuard<'_, StandIns> {
        self.stand_ins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bad images found so far, sorted, each with what was wrong; view 0 of objects of which all are bad.
    pub fn found(&self) -> Vec<(Item, String)> {
        let stand_ins = self.stand_ins();
        let views = stand_ins.views.iter().map(|(item, (_, what))| (*item, what.clone()));
        let objects = stand_ins.objects.iter().map(|(object, (_, what))| ((*object, 0), what.clone()));
        let mut found: Vec<_> = views.chain(objects).collect();
        found.sort();
        found
    }

    /// How many of `items` have a stand-in.
    pub fn count(&self, items: &[Item]) -> usize {
        items.iter().filter(|item| self.resolve(**item) != **item).count()
    }

    /// The objects after `object` on the same side of the split.
    fn others(&self, object: usize) -> impl Iterator<Item = usize> + use<> {
        let sides: [Range<usize>; 2] = Split::ALL.map(|split| self.views.split(split));
        let side = sides.into_iter().find(|side| side.contains(&object)).unwrap_or(object..object + 1);
        (1..side.len().min(100)).map(move |k| side.start + (object - side.start + k) % side.len())
    }

    /// The views after `item` of its object, then those of the objects after it, on the same side of the split.
    fn candidates(&self, (object, view): Item) -> impl Iterator<Item = Item> + use<> {
        let view = view % self.views.views_in(object).max(1);
        let split = Split::ALL.into_iter().find(|&split| self.views.views_of(split, object).contains(&view));
        let views = |object: usize| split.map_or(0..0, |split| self.views.views_of(split, object));
        let from = view - views(object).start.min(view);
        let after = move |views: Range<usize>, k: usize| views.start + (from + k) % views.len().max(1);
        let sides: Vec<(usize, Range<usize>)> =
            self.others(object).map(|other| (other, views(other))).collect();
        let own = views(object);
        let own = (1..own.len()).map(move |k| (object, after(own.clone(), k)));
        let of_other = move |(other, views): (usize, Range<usize>)| {
            (0..views.len()).map(move |k| (other, after(views.clone(), k)))
        };
        own.chain(sides.into_iter().flat_map(of_other))
    }

    /// A failure that a stand-in may be sought for; otherwise the error that ends the run.
    fn passed_over(&self, error: dataset::Error) -> dataset::Result<dataset::Error> {
        match error {
            error if self.skip => Ok(error),
            error => Err(with_a_way_on(error, "would show another view instead")),
        }
    }

    /// The item itself, or the one that stands in for it.
    pub fn resolve(&self, item: Item) -> Item {
        if !self.is_any.load(Ordering::Acquire) {
            return item;
        }
        let stand_ins = self.stand_ins();
        let of_object = |(other, _): &(usize, String)| (*other, item.1 % self.views.views_in(*other).max(1));
        let of_view = stand_ins.views.get(&item).map(|(stand_in, _)| *stand_in);
        of_view.or_else(|| stand_ins.objects.get(&item.0).map(of_object)).unwrap_or(item)
    }
}

/// `error`, and that `--on-bad-sample skip` would go on without the image or mesh that it names.
pub(crate) fn with_a_way_on(error: dataset::Error, skipping: &str) -> dataset::Error {
    match error {
        // Files that are gone are hardly to be passed over: more often all of them are.
        error @ (dataset::Error::File(FileError::Read { .. }) | dataset::Error::Interrupted) => error,
        error => dataset::Error::Request(format!("{error} (--on-bad-sample skip {skipping})")),
    }
}

impl Views for Skipping {
    fn objects(&self) -> &[Object] {
        self.views.objects()
    }
    fn classes(&self) -> &[Class] {
        self.views.classes()
    }
    fn views(&self) -> usize {
        self.views.views()
    }
    fn views_in(&self, object: usize) -> usize {
        self.views.views_in(object)
    }
    fn held_out_views(&self) -> usize {
        self.views.held_out_views()
    }
    fn held_out_in(&self, object: usize) -> usize {
        self.views.held_out_in(object)
    }
    fn has_light(&self) -> bool {
        self.views.has_light()
    }
    fn without_pose(&self) -> Option<String> {
        self.views.without_pose()
    }
    fn images_digest(&self) -> Option<u64> {
        self.views.images_digest()
    }
    fn unused(&self) -> Vec<String> {
        self.views.unused()
    }
    fn warnings(&self) -> Vec<String> {
        self.views.warnings()
    }
    fn side(&self) -> usize {
        self.views.side()
    }
    fn has_translation(&self) -> bool {
        self.views.has_translation()
    }
    fn space(&self) -> Space {
        self.views.space()
    }
    fn has(&self, part: Part) -> bool {
        self.views.has(part)
    }
    fn pose(&self, object: usize, view: usize) -> ViewPose {
        self.views.pose(object, view)
    }
    fn has_more_views(&self) -> bool {
        self.views.has_more_views()
    }
    fn latents(&self, object: usize, view: usize) -> Latents {
        self.views.latents(object, view)
    }
    fn description(&self) -> String {
        self.views.description()
    }

    fn image(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> dataset::Result<()> {
        let item = self.resolve((object, view));
        let Err(error) = self.views.image(item.0, item.1, side, pixels) else { return Ok(()) };
        let error = self.passed_over(error)?;
        let is_good = |candidate: &Item| self.views.image(candidate.0, candidate.1, side, pixels).is_ok();
        let Some(stand_in) = self.candidates((object, view)).find(is_good) else { return Err(error) };
        self.stand_ins().views.insert((object, view), (stand_in, error.to_string()));
        self.is_any.store(true, Ordering::Release);
        Ok(())
    }

    fn prepare(&self, object: usize) -> dataset::Result<()> {
        let stand_in = self.stand_ins().objects.get(&object).map_or(object, |(other, _)| *other);
        let Err(error) = self.views.prepare(stand_in) else { return Ok(()) };
        let error = self.passed_over(error)?;
        let is_good = |other: &usize| self.views.prepare(*other).is_ok();
        let Some(stand_in) = self.others(object).find(is_good) else { return Err(error) };
        self.stand_ins().objects.insert(object, (stand_in, error.to_string()));
        self.is_any.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeViews;

    #[test]
    fn the_same_view_stands_in_whoever_finds_out() {
        let views = FakeViews::new(2, 5).with_bad(|(object, view)| (object == 0 && view < 3) || object == 2);
        let views: Arc<dyn Views> = Arc::new(views);
        let mut pixels = vec![0; 3 * 32 * 32];
        let skipping = Skipping::new(Arc::clone(&views), true);
        for (item, stand_in) in [((0, 1), (0, 3)), ((0, 0), (0, 3)), ((0, 4), (0, 4)), ((2, 1), (3, 1))] {
            skipping.image(item.0, item.1, 32, &mut pixels).unwrap();
            assert_eq!(skipping.resolve(item), stand_in);
        }
        assert_eq!(skipping.count(&[(0, 1), (0, 1), (0, 4), (2, 1)]), 3);
        assert_eq!(skipping.found().len(), 3);
        assert!(skipping.found()[0].1.contains("object 0, view 0"));
        let failing = Skipping::new(views, false);
        assert!(failing.image(0, 1, 32, &mut pixels).unwrap_err().to_string().contains("object 0, view 1"));
    }

    #[test]
    fn a_view_that_is_held_out_never_stands_in_for_one_that_is_trained_on() {
        let views = FakeViews::new(2, 5).with_held_out_views(2);
        let bad = [(0, 2), (0, 3), (0, 5), (1, 1), (1, 0), (1, 2), (1, 3)];
        let views = views.with_bad(move |(object, view)| bad.contains(&(object, view % 6)));
        let skipping = Skipping::new(Arc::new(views), true);
        let mut pixels = vec![0; 3 * 32 * 32];
        let expected = [((0, 3), (0, 0)), ((0, 6 + 2), (0, 0)), ((0, 5), (0, 4)), ((1, 1), (2, 1))];
        for (item, stand_in) in expected {
            skipping.image(item.0, item.1, 32, &mut pixels).unwrap();
            assert_eq!(skipping.resolve(item), stand_in, "{item:?}");
        }
    }

    #[test]
    fn another_object_stands_in_for_all_views_of_one_that_cannot_be_prepared() {
        let views = FakeViews::new(2, 5).with_bad(|(object, view)| object == 2 || object == 3 || view == 0);
        let views: Arc<dyn Views> = Arc::new(views);
        let skipping = Skipping::new(Arc::clone(&views), true);
        for object in [0, 2, 2] {
            skipping.prepare(object).unwrap();
        }
        // Any further view of the object, too.
        for (item, stand_in) in [((2, 1), (4, 1)), ((2, 6 + 5), (4, 5)), ((3, 1), (3, 1)), ((0, 0), (0, 0))] {
            assert_eq!(skipping.resolve(item), stand_in);
        }
        assert_eq!(skipping.found(), [((2, 0), "object 2 is unreadable".to_owned())]);
        let text = Skipping::new(views, false).prepare(2).unwrap_err().to_string();
        assert_eq!(text, "object 2 is unreadable (--on-bad-sample skip would show another view instead)");
    }
}
