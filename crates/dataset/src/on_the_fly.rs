//! Views that are rendered when somebody asks for them: the same interface as a dataset on disk, without the disk.
//!
//! Latents, split and images are those that `equicaps render` would write (up to JPEG). An object has as many places
//! for images as it has views; view `place + n * views`, for any `n`, is one more view of the object, and takes the
//! place of the one before it. Images are kept within a memory budget, so that a small set is rendered once; prepared
//! objects are kept within another, the ones used last.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pose::Part;
use rayon::prelude::*;
use scene::{LatentRanges, Latents};

use crate::counted::counted;
use crate::error::{Error, Result};
use crate::object::{Class, Object, SplitBy};
use crate::plan::classes;
use crate::source::CpuRenderer;
use crate::split;
use crate::views::Views;
use crate::work::ViewSource;

/// How views are made on the fly.
#[derive(Clone, Debug)]
pub struct OnTheFlyOptions {
    /// Views of each object; with a split by views, those for training.
    pub views: usize,
    /// Views of each object that are held out, besides; 0 for a split by objects.
    pub held_out_views: usize,
    /// Side of the images where nobody asks for another.
    pub side: usize,
    /// Seed of latents and split.
    pub seed: u64,
    /// Ranges of the latents.
    pub ranges: LatentRanges,
    /// Bytes of images to keep.
    pub memory: usize,
    /// Prepared objects to keep.
    pub prepared: usize,
    /// Whether [`Views::prepare`] gets the object ready every time, or only finds out once that it can be.
    pub ready: bool,
}

/// Views made when asked for.
pub struct OnTheFly<S: ViewSource> {
    source: S,
    options: OnTheFlyOptions,
    objects: Vec<Object>,
    classes: Vec<Class>,
    prepared: Mutex<Prepared<S::Prepared>>,
    /// Whether each object could be prepared before.
    is_good: Vec<AtomicBool>,
    /// Held while an object is being prepared, so that nobody else does the same meanwhile.
    turns: Vec<Mutex<()>>,
    images: Mutex<Images>,
}

/// Prepared objects, and when each was used last.
struct Prepared<P> {
    kept: HashMap<usize, (Arc<P>, u64)>,
    uses: u64,
}

impl<P> Default for Prepared<P> {
    fn default() -> Self {
        Self { kept: HashMap::new(), uses: 0 }
    }
}

impl<P> Prepared<P> {
    fn get(&mut self, object: usize) -> Option<Arc<P>> {
        self.uses += 1;
        let (prepared, used) = self.kept.get_mut(&object)?;
        *used = self.uses;
        Some(Arc::clone(prepared))
    }

    /// Keeps one more; where there are more than `most`, an eighth leaves, those used longest ago.
    fn put(&mut self, object: usize, prepared: Arc<P>, most: usize) {
        self.kept.insert(object, (prepared, self.uses));
        if self.kept.len() > most.max(1) {
            let mut ages: Vec<u64> = self.kept.values().map(|(_, used)| *used).collect();
            ages.sort_unstable();
            let oldest = ages[ages.len() / 8];
            self.kept.retain(|_, (_, used)| *used > oldest);
        }
    }
}

/// An image and the number of its view.
type Kept = (usize, Arc<[u8]>);

#[derive(Default)]
struct Images {
    /// By object, place and side.
    kept: HashMap<(usize, usize, usize), Kept>,
    bytes: usize,
}

impl<S: ViewSource> OnTheFly<S> {
    /// Views of the objects `ids` (synset, name).
    pub fn new(source: S, ids: &[(String, String)], options: OnTheFlyOptions) -> Self {
        let by = if options.held_out_views > 0 { SplitBy::Views } else { SplitBy::Objects };
        let objects = split::assign_by(by, options.seed, ids);
        let classes = classes(&objects);
        let is_good = objects.iter().map(|_| AtomicBool::new(false)).collect();
        let turns = objects.iter().map(|_| Mutex::default()).collect();
        let (prepared, images) = (Mutex::default(), Mutex::default());
        Self { source, options, objects, classes, prepared, is_good, turns, images }
    }

    /// The same without the objects that cannot be loaded, and why each of them cannot. All objects are loaded for that.
    pub fn without_unusable(mut self) -> (Self, Vec<String>)
    where
        S: Send,
    {
        let problem = |object| self.prepared_once(object).err().map(|error| error.to_string());
        let problems: Vec<Option<String>> = (0..self.objects.len()).into_par_iter().map(problem).collect();
        let mut is_usable = problems.iter().map(Option::is_none);
        self.objects.retain(|_| is_usable.next().unwrap_or(true));
        self.is_good = self.objects.iter().map(|_| AtomicBool::new(true)).collect();
        self.turns = self.objects.iter().map(|_| Mutex::default()).collect();
        (self, problems.into_iter().flatten().collect())
    }

    /// The source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The object of this number, ready to be rendered.
    pub fn prepared(&self, object: usize) -> Result<Arc<S::Prepared>> {
        let known = || lock(&self.prepared).get(object);
        if let Some(prepared) = known() {
            return Ok(prepared);
        }
        let _turn = lock(&self.turns[object]);
        if let Some(prepared) = known() {
            return Ok(prepared);
        }
        let prepared = Arc::new(self.prepared_once(object)?);
        lock(&self.prepared).put(object, Arc::clone(&prepared), self.options.prepared);
        Ok(prepared)
    }

    /// As [`Self::prepared`], for somebody who needs the object only now.
    pub(crate) fn prepared_once(&self, object: usize) -> Result<S::Prepared> {
        let prepared = self.source.prepare(&self.objects[object]).map_err(|reason| {
            // Most reasons name the mesh's file.
            let id = self.objects[object].id();
            let reason = if reason.starts_with(&id) { reason } else { format!("{id}: {reason}") };
            Error::Request(match self.source.root() {
                Some(root) => root.join(reason).display().to_string(),
                None => reason,
            })
        })?;
        self.is_good[object].store(true, Ordering::Relaxed);
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
        self.options.views + self.options.held_out_views
    }

    fn held_out_views(&self) -> usize {
        self.options.held_out_views
    }

    fn side(&self) -> usize {
        self.options.side
    }

    fn has_translation(&self) -> bool {
        self.options.ranges.translation.is_some()
    }

    fn has(&self, part: Part) -> bool {
        let ranges = &self.options.ranges;
        match part {
            Part::Rotation => true,
            Part::Translation => ranges.translation.is_some(),
            Part::Scale => ranges.scale.is_some(),
            Part::Shear => ranges.shear.is_some(),
            Part::Perspective => false,
        }
    }

    fn has_more_views(&self) -> bool {
        true
    }

    fn latents(&self, object: usize, view: usize) -> Latents {
        self.options.ranges.sample(self.options.seed, &self.objects[object].id(), view as u64)
    }

    fn image(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()> {
        self.images(object, &[view], side, pixels)
    }

    fn images(&self, object: usize, views: &[usize], side: usize, pixels: &mut [u8]) -> Result<()> {
        let bytes = (side * side * 3).max(1);
        let key = |view: usize| (object, view % self.views().max(1), side);
        let mut missing = Vec::new();
        for (&view, pixels) in views.iter().zip(pixels.chunks_exact_mut(bytes)) {
            let known = lock(&self.images).kept.get(&key(view)).cloned();
            match known.filter(|(known, _)| *known == view) {
                Some((_, known)) => pixels.copy_from_slice(&known),
                None => missing.push((view, pixels)),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let prepared = self.prepared(object)?;
        let latents: Vec<Latents> = missing.iter().map(|(view, _)| self.latents(object, *view)).collect();
        let rendered = self
            .source
            .render(&prepared, &latents, side)
            .map_err(|failure| Error::Request(format!("{}: {failure}", self.objects[object].id())))?;
        for ((view, pixels), image) in missing.into_iter().zip(rendered.chunks_exact(bytes)) {
            pixels.copy_from_slice(image);
            let mut images = lock(&self.images);
            let (new, old) = (image.len(), images.kept.get(&key(view)).map_or(0, |(_, image)| image.len()));
            if images.bytes - old + new <= self.options.memory {
                images.kept.insert(key(view), (view, image.into()));
                images.bytes = images.bytes - old + new;
            }
        }
        Ok(())
    }

    fn at_once(&self) -> usize {
        self.source.batch()
    }

    fn prepare(&self, object: usize) -> Result<()> {
        let is_enough = !self.options.ready && self.is_good[object].load(Ordering::Relaxed);
        if is_enough { Ok(()) } else { self.prepared(object).map(|_| ()) }
    }

    fn unused(&self) -> Vec<String> {
        self.source.objects().map(|objects| objects.set.unused().to_vec()).unwrap_or_default()
    }

    fn warnings(&self) -> Vec<String> {
        self.source.objects().map(CpuRenderer::warnings).unwrap_or_default()
    }

    fn description(&self) -> String {
        let held_out = match self.options.held_out_views {
            0 => String::new(),
            views => format!(" for training and {views} held out"),
        };
        format!(
            "{} of {}, {} each{held_out}, rendered on the fly at {side}x{side}",
            counted(self.objects.len(), "object"),
            counted(self.classes.len(), "class"),
            counted(self.options.views, "view"),
            side = self.options.side
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Failure;
    use std::sync::atomic::AtomicUsize;

    fn options(memory: usize, prepared: usize) -> OnTheFlyOptions {
        let ranges = LatentRanges::BENCH;
        OnTheFlyOptions {
            views: 4,
            held_out_views: 0,
            side: 8,
            seed: 3,
            ranges,
            memory,
            prepared,
            ready: false,
        }
    }

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
            let image =
                |latents: &Latents| [*prepared, (latents.floor_hue * 255.0) as u8, 0].repeat(side * side);
            Ok(latents.iter().flat_map(image).collect())
        }
    }

    #[test]
    fn objects_that_cannot_be_loaded_are_left_out_and_the_others_keep_their_sides() {
        let mut ids: Vec<_> = (0..10).map(|k| ("c".to_owned(), k.to_string())).collect();
        ids.extend(["x", "y"].map(|name| ("c".to_owned(), name.to_owned())));
        let all = OnTheFly::new(Counting::default(), &ids, options(0, 3));
        let expected: Vec<Object> =
            all.objects().iter().filter(|object| object.name.parse::<u8>().is_ok()).cloned().collect();
        let (good, mut problems) = all.without_unusable();
        problems.sort();
        assert_eq!(
            (good.objects(), problems.as_slice()),
            (expected.as_slice(), ["c/x: no number".to_owned(), "c/y: no number".to_owned()].as_slice())
        );
        let mut pixels = vec![0; 8 * 8 * 3];
        for (number, object) in expected.iter().enumerate() {
            good.image(number, 1, 8, &mut pixels).unwrap();
            assert_eq!(pixels[0], object.name.parse::<u8>().unwrap());
        }
    }

    #[test]
    fn of_several_views_those_that_are_not_kept_are_rendered_together() {
        let ids = [("c".to_owned(), "7".to_owned())];
        let views = OnTheFly::new(Counting::default(), &ids, options(8 * 8 * 3 * 2, 3));
        let (bytes, wanted) = (8 * 8 * 3, [3, 0, 2, 0]);
        let mut alone = vec![0; wanted.len() * bytes];
        for (&view, pixels) in wanted.iter().zip(alone.chunks_exact_mut(bytes)) {
            views.image(0, view, 8, pixels).unwrap();
        }
        // Two of the three have found room.
        assert_eq!(views.source.0.load(Ordering::Relaxed), 3);
        let mut together = vec![0; wanted.len() * bytes];
        views.images(0, &wanted, 8, &mut together).unwrap();
        assert!(together == alone && together[..bytes] != together[bytes..2 * bytes]);
        assert_eq!(views.source.0.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn images_are_rendered_once_while_they_fit() {
        let mut ids: Vec<_> = (0..10).map(|k| ("c".to_owned(), k.to_string())).collect();
        ids.push(("c".to_owned(), "x".to_owned()));
        let views = OnTheFly::new(Counting::default(), &ids, options(8 * 8 * 3 * 20, 3));
        let mut pixels = vec![0; 8 * 8 * 3];
        for _ in 0..2 {
            for object in 0..11 {
                for view in 0..4 {
                    let name = &views.objects()[object].name;
                    let made = views.image(object, view, 8, &mut pixels);
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

    #[test]
    fn a_fresh_view_takes_the_place_of_the_one_before_it() {
        let ids: Vec<_> = (0..5).map(|k| ("c".to_owned(), k.to_string())).collect();
        let views = OnTheFly::new(Counting::default(), &ids, options(8 * 8 * 3, 9));
        let mut pixels = vec![0; 8 * 8 * 3];
        // View 9 is the third for place 1; two of them do not fit together, nor does another place.
        for (view, renders) in [(1, 1), (1, 1), (9, 2), (9, 2), (1, 3), (2, 4), (1, 4)] {
            views.image(0, view, 8, &mut pixels).unwrap();
            assert_eq!(views.source.0.load(Ordering::Relaxed), renders, "view {view}");
            assert_eq!(pixels[1], (views.latents(0, view).floor_hue * 255.0) as u8);
        }
        assert_eq!(lock(&views.images).bytes, 8 * 8 * 3);
        // An object that is prepared is not rendered.
        views.prepare(1).unwrap();
        assert_eq!(views.source.0.load(Ordering::Relaxed), 4);
    }

    /// Counts how often objects are prepared, which takes a while.
    struct Slow(AtomicUsize);

    impl ViewSource for Slow {
        type Prepared = ();

        fn prepare(&self, _: &Object) -> std::result::Result<(), String> {
            self.0.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(20));
            Ok(())
        }

        fn render(&self, (): &(), _: &[Latents], _: usize) -> std::result::Result<Vec<u8>, Failure> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn an_object_is_prepared_once_however_many_ask_for_it() {
        let ids: Vec<_> = (0..2).map(|k| ("c".to_owned(), k.to_string())).collect();
        let views = OnTheFly::new(Slow(AtomicUsize::new(0)), &ids, options(0, 9));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let views = &views;
                scope.spawn(move || views.prepared(thread % 2).unwrap());
            }
        });
        assert_eq!(views.source.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_objects_used_last_are_kept() {
        let mut prepared = Prepared::default();
        for object in 0..20 {
            prepared.put(object, Arc::new(object), 8);
            prepared.get(0);
        }
        assert!(prepared.kept.len() <= 9);
        assert!(prepared.get(0).is_some() && prepared.get(19).is_some() && prepared.get(1).is_none());
    }
}
