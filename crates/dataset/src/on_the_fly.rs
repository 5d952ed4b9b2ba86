//! Views that are rendered when somebody asks for them: the same interface as a dataset on disk, without the disk.
//!
//! Latents, split and pictures are those that `equicaps render` would write (up to JPEG). Pictures are kept within a
//! memory budget, so that a small set is rendered once; prepared objects are kept while they last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scene::{LatentRanges, Latents};

use crate::error::{Error, Result};
use crate::object::{Class, Object};
use crate::plan::classes;
use crate::split;
use crate::views::Views;
use crate::work::ViewSource;

/// How views are made on the fly.
#[derive(Clone, Debug)]
pub struct OnTheFlyOptions {
    /// Views of each object.
    pub views: usize,
    /// Side of the pictures where nobody asks for another.
    pub side: usize,
    /// Seed of latents and split.
    pub seed: u64,
    /// Ranges of the latents.
    pub ranges: LatentRanges,
    /// Bytes of pictures to keep.
    pub memory: usize,
}

/// Objects ready to be rendered are kept up to this many.
const PREPARED: usize = 128;

/// Views made when asked for.
pub struct OnTheFly<S: ViewSource> {
    source: S,
    options: OnTheFlyOptions,
    objects: Vec<Object>,
    classes: Vec<Class>,
    prepared: Mutex<HashMap<usize, Arc<S::Prepared>>>,
    pictures: Mutex<Pictures>,
}

#[derive(Default)]
struct Pictures {
    /// By object, view and side.
    kept: HashMap<(usize, usize, usize), Arc<[u8]>>,
    bytes: usize,
}

impl<S: ViewSource> OnTheFly<S> {
    /// Views of the objects `ids` (synset, name).
    pub fn new(source: S, ids: &[(String, String)], options: OnTheFlyOptions) -> Self {
        let objects = split::assign(options.seed, ids);
        let classes = classes(&objects);
        Self { source, options, objects, classes, prepared: Mutex::default(), pictures: Mutex::default() }
    }

    fn prepare(&self, object: usize) -> Result<Arc<S::Prepared>> {
        if let Some(prepared) = lock(&self.prepared).get(&object) {
            return Ok(Arc::clone(prepared));
        }
        let prepared = self
            .source
            .prepare(&self.objects[object])
            .map_err(|reason| Error::Request(format!("{}: {reason}", self.objects[object].id())))?;
        let prepared = Arc::new(prepared);
        let mut all = lock(&self.prepared);
        if all.len() >= PREPARED {
            all.clear();
        }
        all.insert(object, Arc::clone(&prepared));
        Ok(prepared)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: ViewSource + Send> Views for OnTheFly<S> {
    fn objects(&self) -> &[Object] {
        &self.objects
    }

    fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn views(&self) -> usize {
        self.options.views
    }

    fn side(&self) -> usize {
        self.options.side
    }

    fn has_translation(&self) -> bool {
        self.options.ranges.translation.is_some()
    }

    fn latents(&self, object: usize, view: usize) -> Latents {
        self.options.ranges.sample(self.options.seed, &self.objects[object].id(), view as u64)
    }

    fn picture(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()> {
        let key = (object, view, side);
        let known = lock(&self.pictures).kept.get(&key).cloned();
        if let Some(known) = known {
            pixels.copy_from_slice(&known);
            return Ok(());
        }
        let prepared = self.prepare(object)?;
        let picture = self
            .source
            .render(&prepared, &[self.latents(object, view)], side)
            .map_err(|failure| Error::Request(format!("{}: {failure}", self.objects[object].id())))?;
        pixels.copy_from_slice(&picture);
        let mut pictures = lock(&self.pictures);
        if pictures.bytes + picture.len() <= self.options.memory {
            let added = picture.len();
            if pictures.kept.insert(key, picture.into()).is_none() {
                pictures.bytes += added;
            }
        }
        Ok(())
    }

    fn description(&self) -> String {
        format!(
            "{} objects of {} classes, {} views each, rendered on the fly at {side}x{side}",
            self.objects.len(),
            self.classes.len(),
            self.options.views,
            side = self.options.side
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Failure;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl ViewSource for Counting {
        type Prepared = u8;

        fn prepare(&self, object: &Object) -> std::result::Result<u8, String> {
            object.name.parse().map_err(|_| "no number".to_owned())
        }

        fn render(
            &self,
            prepared: &u8,
            latents: &[Latents],
            side: usize,
        ) -> std::result::Result<Vec<u8>, Failure> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok([*prepared, (latents[0].floor_hue * 255.0) as u8, 0].repeat(side * side))
        }
    }

    #[test]
    fn pictures_are_rendered_once_while_they_fit() {
        let mut ids: Vec<_> = (0..10).map(|k| ("c".to_owned(), k.to_string())).collect();
        ids.push(("c".to_owned(), "x".to_owned()));
        let options = OnTheFlyOptions {
            views: 4,
            side: 8,
            seed: 3,
            ranges: LatentRanges::BENCH,
            memory: 8 * 8 * 3 * 20,
        };
        let views = OnTheFly::new(Counting::default(), &ids, options);
        let mut pixels = vec![0; 8 * 8 * 3];
        for _ in 0..2 {
            for object in 0..11 {
                for view in 0..4 {
                    let name = &views.objects()[object].name;
                    let made = views.picture(object, view, 8, &mut pixels);
                    if name == "x" {
                        assert_eq!(made.unwrap_err().to_string(), "c/x: no number");
                        continue;
                    }
                    made.unwrap();
                    let hue = (views.latents(object, view).floor_hue * 255.0) as u8;
                    assert_eq!(pixels[..2], [name.parse().unwrap(), hue]);
                }
            }
        }
        assert_eq!(views.source.0.load(Ordering::Relaxed), 40 + 20);
        assert!(!views.has_translation());
    }
}
