//! What training and evaluation see of a dataset, wherever its images come from: [`Views`].

use std::ops::Range;

use pose::{Part, Space, ViewPose};
use scene::Latents;

use crate::error::Result;
use crate::object::{Class, Object, Split, SplitBy};

/// Objects with views, their latents, and their images.
///
/// Objects are numbered from 0, training objects first, in the order of the split lists. Where views are held out, both
/// sides have all objects, and the held-out views are the last ones of each. Rendered data have as many views of every
/// object and know everything about them; imported ones may not.
pub trait Views: Send + Sync {
    /// All objects.
    fn objects(&self) -> &[Object];

    /// All classes, by label.
    fn classes(&self) -> &[Class];

    /// Number of views of every object; where they differ, the largest.
    fn views(&self) -> usize;

    /// Number of views of one object.
    fn views_in(&self, _object: usize) -> usize {
        self.views()
    }

    /// Side in pixels of the images as they are stored (or rendered); they are square.
    fn side(&self) -> usize;

    /// Whether the latents hold a translation (3DIEBench-T).
    fn has_translation(&self) -> bool;

    /// What the views are of: objects in space, or pictures in their plane.
    fn space(&self) -> Space {
        Space::Object
    }

    /// Whether views differ in a part of their poses, and it is known how.
    fn has(&self, part: Part) -> bool {
        match part {
            Part::Rotation => self.without_pose().is_none(),
            Part::Translation => self.without_pose().is_none() && self.has_translation(),
            Part::Scale | Part::Shear | Part::Perspective => false,
        }
    }

    /// Whether hues of floor and spot, and the direction of the spot, are known.
    fn has_light(&self) -> bool {
        true
    }

    /// What to say of views whose pose is not known, where there are any: how many, and which.
    fn without_pose(&self) -> Option<String> {
        None
    }

    /// The scene parameters of one view; zero where they are not known.
    fn latents(&self, object: usize, view: usize) -> Latents;

    /// The pose of one view, angles in the published precision.
    fn pose(&self, object: usize, view: usize) -> ViewPose {
        self.latents(object, view).published_pose()
    }

    /// A number for the bytes of all images, where latents do not tell them apart.
    fn images_digest(&self) -> Option<u64> {
        None
    }

    /// Whether every view `place + n * views` of an object exists, too: one more, for any `n`, on the side of `place`.
    fn has_more_views(&self) -> bool {
        false
    }

    /// The image of one view at `side * side` pixels, into `pixels`: `[side, side, 3]`, RGB, row 0 on top.
    fn image(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()>;

    /// Images of several views of an object, one after the other.
    fn images(&self, object: usize, views: &[usize], side: usize, pixels: &mut [u8]) -> Result<()> {
        let slots = pixels.chunks_exact_mut((side * side * 3).max(1));
        views.iter().zip(slots).try_for_each(|(&view, pixels)| self.image(object, view, side, pixels))
    }

    /// How many views of an object are best asked for at once; others may be working on the rest.
    fn at_once(&self) -> usize {
        1
    }

    /// Says that views of `object` will be wanted, where somebody else makes their images: views that are rendered on
    /// the fly load it.
    fn prepare(&self, _object: usize) -> Result<()> {
        Ok(())
    }

    /// The numbers of a view (object, view) in the data that these views are of: others, where some are left out.
    fn stored(&self, object: usize, view: usize) -> (usize, usize) {
        (object, view)
    }

    /// How many views are left out of the data, because they cannot be read; of views that are made of pictures, how many
    /// pictures.
    fn left_out(&self) -> usize {
        0
    }

    /// Files beside the objects that are not used, in sentences.
    fn unused(&self) -> Vec<String> {
        Vec::new()
    }

    /// What was noticed of objects that have been loaded so far, in sentences; the most important first.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// One sentence on what this is, for logs.
    fn description(&self) -> String;

    /// Views at the end of every object that are held out, where the split is one of views (the most of an object, where
    /// numbers differ); 0 where it is one of objects.
    fn held_out_views(&self) -> usize {
        0
    }

    /// How many views at the end of one object are held out.
    fn held_out_in(&self, _object: usize) -> usize {
        self.held_out_views()
    }

    /// What the split holds out.
    fn split_by(&self) -> SplitBy {
        if self.held_out_views() > 0 { SplitBy::Views } else { SplitBy::Objects }
    }

    /// Which views of `object` one side of the split has. Training views come first.
    fn views_of(&self, split: Split, object: usize) -> Range<usize> {
        let (views, held_out) = (self.views_in(object), self.held_out_in(object));
        match (self.split_by(), split) {
            (SplitBy::Objects, _) => 0..views,
            (SplitBy::Views, Split::Train) => 0..views - held_out,
            (SplitBy::Views, Split::Val) => views - held_out..views,
        }
    }

    /// The numbers of the objects on one side of the split.
    fn split(&self, split: Split) -> Range<usize> {
        if self.split_by() == SplitBy::Views {
            return 0..self.objects().len();
        }
        let train = self.objects().iter().position(|o| o.split == Split::Val).unwrap_or(self.objects().len());
        match split {
            Split::Train => 0..train,
            Split::Val => train..self.objects().len(),
        }
    }
}
