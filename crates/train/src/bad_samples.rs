//! Pictures that cannot be read. By default the first one ends the run, by name. With `on_bad_sample = "skip"` another
//! view stands in: the next view of the same object that can be read, or else of the next object. Which one that is
//! depends on (object, view) alone, so it does not matter when, or in which session, it is found out.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dataset::error::FileError;
use dataset::{Class, Object, Split, Views};
use scene::Latents;

use crate::batches::Item;

/// Says which picture really stands for an item.
pub trait Resolve {
    /// The item itself, or the one that stands in for it.
    fn resolve(&self, item: Item) -> Item;
}

/// Every item stands for itself.
#[derive(Clone, Copy, Debug)]
pub struct AsPlanned;

impl Resolve for AsPlanned {
    fn resolve(&self, item: Item) -> Item {
        item
    }
}

/// Views among which stand-ins are found for those that cannot be read.
pub struct Skipping {
    views: Arc<dyn Views>,
    skip: bool,
    stand_ins: Mutex<HashMap<Item, (Item, String)>>,
    /// Whether there are any stand-ins: usually not, and then nobody need look.
    is_any: AtomicBool,
}

impl Skipping {
    /// Looks for stand-ins if `skip`; otherwise passes failures on.
    pub fn new(views: Arc<dyn Views>, skip: bool) -> Self {
        Self { views, skip, stand_ins: Mutex::default(), is_any: AtomicBool::new(false) }
    }

    /// The bad pictures found so far, sorted, each with what was wrong.
    pub fn found(&self) -> Vec<(Item, String)> {
        let stand_ins = self.stand_ins.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut found: Vec<_> = stand_ins.iter().map(|(item, (_, what))| (*item, what.clone())).collect();
        found.sort();
        found
    }

    /// How many of `items` have a stand-in.
    pub fn count(&self, items: &[Item]) -> usize {
        items.iter().filter(|item| self.resolve(**item) != **item).count()
    }

    /// The views after `item` of its object, then those of the objects after it on the same side of the split.
    fn candidates(&self, (object, view): Item) -> impl Iterator<Item = Item> + use<> {
        let sides: [Range<usize>; 2] = Split::ALL.map(|split| self.views.split(split));
        let side = sides.into_iter().find(|side| side.contains(&object)).unwrap_or(object..object + 1);
        let views = self.views.views();
        let own = (1..views).map(move |k| (object, (view + k) % views));
        let others = (1..side.len().min(100))
            .map(move |k| side.start + (object - side.start + k) % side.len())
            .flat_map(move |other| (0..views).map(move |k| (other, (view + k) % views)));
        own.chain(others)
    }
}

impl Resolve for Skipping {
    fn resolve(&self, item: Item) -> Item {
        if !self.is_any.load(Ordering::Acquire) {
            return item;
        }
        let stand_ins = self.stand_ins.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        stand_ins.get(&item).map_or(item, |(stand_in, _)| *stand_in)
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
    fn side(&self) -> usize {
        self.views.side()
    }
    fn has_translation(&self) -> bool {
        self.views.has_translation()
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

    fn picture(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> dataset::Result<()> {
        let item = self.resolve((object, view));
        let error = match self.views.picture(item.0, item.1, side, pixels) {
            Ok(()) => return Ok(()),
            // Files that are gone are hardly to be passed over: more often all of them are.
            Err(error @ (dataset::Error::File(FileError::Read { .. }) | dataset::Error::Interrupted))
                if !self.skip =>
            {
                return Err(error);
            }
            Err(error) if !self.skip => {
                let text = format!("{error} (--on-bad-sample skip would show another view instead)");
                return Err(dataset::Error::Request(text));
            }
            Err(error) => error,
        };
        for candidate in self.candidates((object, view)) {
            if self.views.picture(candidate.0, candidate.1, side, pixels).is_ok() {
                let mut stand_ins = self.stand_ins.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                stand_ins.insert((object, view), (candidate, error.to_string()));
                self.is_any.store(true, Ordering::Release);
                return Ok(());
            }
        }
        Err(error)
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
            skipping.picture(item.0, item.1, 32, &mut pixels).unwrap();
            assert_eq!(skipping.resolve(item), stand_in);
        }
        assert_eq!(skipping.count(&[(0, 1), (0, 1), (0, 4), (2, 1)]), 3);
        assert_eq!(skipping.found().len(), 3);
        assert!(skipping.found()[0].1.contains("object 0, view 0"));
        let failing = Skipping::new(views, false);
        assert!(failing.picture(0, 1, 32, &mut pixels).unwrap_err().to_string().contains("object 0, view 1"));
    }
}
