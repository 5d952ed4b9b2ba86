//! Views without those that cannot be read: [`Readable`]. The others keep their order and their side of the split, so whoever
//! uses them sees a smaller dataset; an object of which nothing is left, on one side where the split is one of views, is gone.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pose::{Part, Space, ViewPose};
use rayon::prelude::*;
use scene::Latents;

use crate::counted::counted;
use crate::error::{Error, Result};
use crate::object::{Class, Object, Split};
use crate::views::Views;

/// Some of the views of others.
pub struct Readable {
    views: Arc<dyn Views>,
    objects: Vec<Object>,
    /// Of every object that is left: its number, its views that are left, and how many of these are held out.
    kept: Vec<(usize, Vec<usize>, usize)>,
    left_out: usize,
    without_pose: Option<String>,
}

/// Reads all images of `views`, and returns those that can be read (the same ones where all can) and what is wrong with each
/// of the others. Of views that are made of one thing, such as warps of a photograph, the first one is tried. `advance` gets
/// how many more objects are done; `stop` is somebody else's wish to stop.
pub fn readable(
    views: Arc<dyn Views>,
    stop: &AtomicBool,
    advance: &(dyn Fn(u64) + Sync),
) -> Result<(Arc<dyn Views>, Vec<String>)> {
    let look = |object: usize| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let found = good_views(&*views, object);
        advance(1);
        Ok(found)
    };
    let found: Vec<(Vec<usize>, Vec<String>)> =
        (0..views.objects().len()).into_par_iter().map(look).collect::<Result<_>>()?;
    let (good, problems): (Vec<Vec<usize>>, Vec<Vec<String>>) = found.into_iter().unzip();
    let problems = problems.concat();
    if problems.is_empty() {
        return Ok((views, problems));
    }
    let readable = Readable::new(views, good);
    if readable.objects.is_empty() {
        let first = problems.first().map(|first| format!(": {first}")).unwrap_or_default();
        return Err(Error::Request(format!("none of the objects has images that can be used{first}")));
    }
    Ok((Arc::new(readable), problems))
}

/// The views of an object that can be read, and what is wrong with the others.
fn good_views(views: &dyn Views, object: usize) -> (Vec<usize>, Vec<String>) {
    let (all, side) = (0..views.views_in(object), views.side());
    let mut pixels = vec![0; side * side * 3];
    if views.has_more_views() {
        return match views.image(object, 0, side, &mut pixels) {
            Ok(()) => (all.collect(), Vec::new()),
            Err(error) => (Vec::new(), vec![error.to_string()]),
        };
    }
    let (mut good, mut problems) = (Vec::new(), Vec::new());
    for view in all {
        match views.image(object, view, side, &mut pixels) {
            Ok(()) => good.push(view),
            Err(error) => problems.push(error.to_string()),
        }
    }
    (good, problems)
}

impl Readable {
    /// Of `views` only the `good` ones of every object.
    fn new(views: Arc<dyn Views>, good: Vec<Vec<usize>>) -> Self {
        let sides = |object: usize| Split::ALL.map(|split| views.views_of(split, object));
        let has_both = |(object, good): &(usize, Vec<usize>)| {
            let is_left =
                |side: &Range<usize>| side.is_empty() || good.iter().any(|view| side.contains(view));
            sides(*object).iter().all(is_left)
        };
        let all: usize = good.iter().enumerate().map(|(object, _)| views.views_in(object)).sum();
        let held_out = |object: usize, good: &[usize]| {
            let first = views.views_in(object) - views.held_out_in(object);
            good.iter().filter(|&&view| view >= first).count()
        };
        let kept: Vec<(usize, Vec<usize>, usize)> = good
            .into_iter()
            .enumerate()
            .filter(has_both)
            .map(|(object, good)| {
                let held_out = held_out(object, &good);
                (object, good, held_out)
            })
            .collect();
        let objects = kept.iter().map(|(object, ..)| views.objects()[*object].clone()).collect();
        let left_out = match views.has_more_views() {
            // Of one picture any number of views can be made.
            true => views.objects().len() - kept.len(),
            false => all - kept.iter().map(|(_, good, _)| good.len()).sum::<usize>(),
        };
        let without_pose = views.without_pose().filter(|_| {
            let items = |(object, good, _): &(usize, Vec<usize>, usize)| {
                good.iter().map(|&view| (*object, view)).collect::<Vec<_>>()
            };
            kept.iter().flat_map(items).any(|(object, view)| may_lack_pose(&views.latents(object, view)))
        });
        let without_pose = without_pose.map(|text| format!("{text} (those that are left out among them)"));
        Self { views, objects, kept, left_out, without_pose }
    }

    /// What is left out, in words.
    fn left_out_in_words(&self) -> String {
        let one = match (self.views.has_more_views(), self.views.space()) {
            (false, _) => "view",
            (true, Space::Image) => "photograph",
            (true, Space::Object) => "object",
        };
        counted(self.left_out, one)
    }

    /// The numbers of a view among all.
    fn item(&self, object: usize, view: usize) -> (usize, usize) {
        let (number, views, _) = &self.kept[object];
        (*number, views[view])
    }
}

impl Views for Readable {
    fn objects(&self) -> &[Object] {
        &self.objects
    }
    fn classes(&self) -> &[Class] {
        self.views.classes()
    }
    fn views(&self) -> usize {
        self.kept.iter().map(|(_, views, _)| views.len()).max().unwrap_or(0)
    }
    fn views_in(&self, object: usize) -> usize {
        self.kept[object].1.len()
    }
    fn held_out_views(&self) -> usize {
        self.kept.iter().map(|(_, _, held_out)| *held_out).max().unwrap_or(0)
    }
    fn held_out_in(&self, object: usize) -> usize {
        self.kept[object].2
    }
    fn stored(&self, object: usize, view: usize) -> (usize, usize) {
        let (object, view) = self.item(object, view);
        self.views.stored(object, view)
    }
    fn has_light(&self) -> bool {
        self.views.has_light()
    }
    fn without_pose(&self) -> Option<String> {
        self.without_pose.clone()
    }
    fn images_digest(&self) -> Option<u64> {
        // Which ones are left tells sets apart whose latents are the same.
        let mut hash = random::Fnv1a::new();
        self.views.images_digest().iter().for_each(|digest| hash.add(&digest.to_le_bytes()));
        for (object, views, _) in &self.kept {
            hash.add(&(*object as u64).to_le_bytes());
            views.iter().for_each(|view| hash.add(&(*view as u64).to_le_bytes()));
        }
        Some(hash.value())
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
        if self.views.without_pose().is_none() || self.without_pose.is_some() {
            return self.views.has(part);
        }
        // All that had no pose are left out: the others have all that imported data may have.
        match part {
            Part::Rotation => true,
            Part::Translation => self.has_translation(),
            Part::Scale | Part::Shear | Part::Perspective => false,
        }
    }
    fn latents(&self, object: usize, view: usize) -> Latents {
        let (object, view) = self.item(object, view);
        self.views.latents(object, view)
    }
    fn pose(&self, object: usize, view: usize) -> ViewPose {
        let (object, view) = self.item(object, view);
        self.views.pose(object, view)
    }
    fn image(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()> {
        let (object, view) = self.item(object, view);
        self.views.image(object, view, side, pixels)
    }
    fn images(&self, object: usize, views: &[usize], side: usize, pixels: &mut [u8]) -> Result<()> {
        let (number, all, _) = &self.kept[object];
        let views: Vec<usize> = views.iter().map(|&view| all[view]).collect();
        self.views.images(*number, &views, side, pixels)
    }
    fn at_once(&self) -> usize {
        self.views.at_once()
    }
    fn prepare(&self, object: usize) -> Result<()> {
        self.views.prepare(self.kept[object].0)
    }
    fn left_out(&self) -> usize {
        self.left_out
    }
    fn description(&self) -> String {
        format!("{}; {} left out", self.views.description(), self.left_out_in_words())
    }
}

/// Whether the pose of a view may be one that is not known, which is all zeros.
fn may_lack_pose(latents: &Latents) -> bool {
    let translation = latents.translation.unwrap_or_default();
    latents.rotation.iter().chain(&translation).all(|value| *value == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::SplitBy;

    /// Four objects of five views, the last one held out, whose pixels and latents tell which they are.
    struct Fake {
        objects: Vec<Object>,
        held_out: usize,
        bad: fn(usize, usize) -> bool,
        /// An object whose poses are not known.
        unposed: Option<usize>,
        is_warped: bool,
    }

    fn fake(held_out: usize, bad: fn(usize, usize) -> bool) -> Arc<dyn Views> {
        Arc::new(plain(held_out, bad))
    }

    fn plain(held_out: usize, bad: fn(usize, usize) -> bool) -> Fake {
        let object = |number: usize| {
            let split = if number == 3 && held_out == 0 { Split::Val } else { Split::Train };
            Object { synset: "cup".to_owned(), name: number.to_string(), label: 0, split }
        };
        Fake { objects: (0..4).map(object).collect(), held_out, bad, unposed: None, is_warped: false }
    }

    impl Views for Fake {
        fn objects(&self) -> &[Object] {
            &self.objects
        }
        fn classes(&self) -> &[Class] {
            &[]
        }
        fn views(&self) -> usize {
            5
        }
        fn held_out_views(&self) -> usize {
            self.held_out
        }
        fn side(&self) -> usize {
            2
        }
        fn has_translation(&self) -> bool {
            false
        }
        fn latents(&self, object: usize, view: usize) -> Latents {
            let rotation = if self.unposed == Some(object) { [0.0; 3] } else { [0.0, 0.1, 0.2] };
            Latents { rotation, floor_hue: (object * 5 + view) as f64, ..Latents::default() }
        }
        fn image(&self, object: usize, view: usize, _side: usize, pixels: &mut [u8]) -> Result<()> {
            if (self.bad)(object, view) {
                return Err(Error::Request(format!("view {view} of {object} is damaged")));
            }
            pixels.fill((object * 5 + view) as u8);
            Ok(())
        }
        fn without_pose(&self) -> Option<String> {
            self.unposed.map(|object| format!("object {object} has no poses"))
        }
        fn has_more_views(&self) -> bool {
            self.is_warped
        }
        fn space(&self) -> Space {
            if self.is_warped { Space::Image } else { Space::Object }
        }
        fn description(&self) -> String {
            "fake".to_owned()
        }
    }

    fn read(views: Arc<dyn Views>) -> Result<(Arc<dyn Views>, Vec<String>)> {
        readable(views, &AtomicBool::new(false), &|_| ())
    }

    /// Numbers of all views on one side, as their images, their latents and [`Views::stored`] have them.
    fn numbers(views: &dyn Views, side: Split) -> Vec<usize> {
        let mut found = Vec::new();
        for object in views.split(side) {
            for view in views.views_of(side, object) {
                let (mut pixels, mut two) = ([0; 12], [0; 24]);
                views.image(object, view, 2, &mut pixels).unwrap();
                views.images(object, &[view, view], 2, &mut two).unwrap();
                let stored = views.stored(object, view);
                let number = usize::from(pixels[0]);
                assert_eq!((two[0], two[23]), (pixels[0], pixels[0]));
                assert_eq!(
                    (number, number as f64),
                    (stored.0 * 5 + stored.1, views.latents(object, view).floor_hue)
                );
                assert_eq!(views.objects()[object].name, stored.0.to_string());
                found.push(number);
            }
        }
        found
    }

    #[test]
    fn views_that_cannot_be_read_are_left_out_and_the_others_stay_on_their_side() {
        let whole = fake(0, |_, _| false);
        let (same, problems) = read(Arc::clone(&whole)).unwrap();
        assert!(Arc::ptr_eq(&same, &whole) && problems.is_empty() && same.left_out() == 0);
        // Views 1 and 3 of object 0, all of object 2.
        let (views, problems) =
            read(fake(0, |object, view| object == 2 || (object == 0 && view % 2 == 1))).unwrap();
        assert_eq!((problems.len(), problems[0].as_str()), (7, "view 1 of 0 is damaged"));
        assert_eq!(
            (views.left_out(), views.views(), views.views_in(0), views.split_by()),
            (7, 5, 3, SplitBy::Objects)
        );
        assert_eq!(numbers(&*views, Split::Train), [0, 2, 4, 5, 6, 7, 8, 9]);
        assert_eq!(numbers(&*views, Split::Val), [15, 16, 17, 18, 19]);
        assert_eq!(views.description(), "fake; 7 views left out");
    }

    #[test]
    fn where_views_are_held_out_an_object_needs_both_sides() {
        // Object 0 loses a view on each side, object 1 all of those held out, object 2 all others.
        let bad = |object: usize, view: usize| match object {
            0 => view == 1 || view == 3,
            1 => view >= 3,
            2 => view < 3,
            _ => false,
        };
        let (views, _) = read(fake(2, bad)).unwrap();
        assert_eq!(Split::ALL.map(|side| numbers(&*views, side)), [vec![0, 2, 15, 16, 17], vec![4, 18, 19]]);
        assert_eq!((views.left_out(), views.split_by(), views.held_out_in(0)), (12, SplitBy::Views, 1));
        // Sets with the same latents are told apart by what is left out.
        let [a, b] = [bad, |object, _| object == 1].map(|bad| read(fake(2, bad)).unwrap().0.images_digest());
        assert!(a.is_some() && a != b);
    }

    #[test]
    fn what_is_left_is_said_of_what_is_left() {
        let bad = |object: usize, view: usize| object == 2 && view != 1;
        let some = read(Arc::new(Fake { unposed: Some(2), ..plain(0, bad) })).unwrap().0;
        let said = some.without_pose().unwrap();
        assert_eq!(said, "object 2 has no poses (those that are left out among them)");
        assert!(!some.has(Part::Rotation));
        let none = read(Arc::new(Fake { unposed: Some(2), ..plain(0, |object, _| object == 2) })).unwrap().0;
        assert_eq!((none.without_pose(), none.has(Part::Rotation)), (None, true));
        // Three views of one picture are one picture.
        let warped = read(Arc::new(Fake { is_warped: true, ..plain(0, |object, _| object == 1) })).unwrap().0;
        assert_eq!((warped.left_out(), warped.description().as_str()), (1, "fake; 1 photograph left out"));
    }

    #[test]
    fn nothing_left_and_an_interruption_are_errors() {
        let message = read(fake(0, |_, _| true)).err().unwrap().to_string();
        assert_eq!(message, "none of the objects has images that can be used: view 0 of 0 is damaged");
        let stopped = readable(fake(0, |_, _| false), &AtomicBool::new(true), &|_| ());
        assert!(matches!(stopped, Err(Error::Interrupted)));
    }
}
