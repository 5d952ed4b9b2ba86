//! What training and evaluation see of a dataset, wherever its images come from: [`Views`].

use std::ops::Range;

use scene::Latents;

use crate::error::Result;
use crate::object::{Class, Object, Split, SplitBy};

/// Objects with a fixed number of views each, their latents, and their images.
///
/// Objects are numbered from 0, training objects first, in the order of the split lists. Where views are held out, both
/// sides have all objects, and the held-out views are the last ones of each.
pub trait Views: Send + Sync {
    /// All objects.
    fn objects(&self) -> &[Object];

    /// All classes, by label.
    fn classes(&self) -> &[Class];

    /// Number of views of every object.
    fn views(&self) -> usize;

    /// Side in pixels of the images as they are stored (or rendered); they are square.
    fn side(&self) -> usize;

    /// Whether the latents hold a translation (3DIEBench-T).
    fn has_translation(&self) -> bool;

    /// The scene parameters of one view.
    fn latents(&self, object: usize, view: usize) -> Latents;

    /// Whether every view `place + n * views` of an object exists, too: one more, for any `n`, on the side of `place`.
    fn has_more_views(&self) -> bool {
        false
    }

    /// The image of one view at `side * side` pixels, into `pixels`: `[side, side, 3]`, RGB, row 0 on top.
    fn image(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()>;

    /// Says that views of `object` will be wanted, where somebody else makes their images: views that are rendered on
    /// the fly load it.
    fn prepare(&self, _object: usize) -> Result<()> {
        Ok(())
    }

    /// One sentence on what this is, for logs.
    fn description(&self) -> String;

    /// Views at the end of every object that are held out, where the split is one of views; 0 where it is one of objects.
    fn held_out_views(&self) -> usize {
        0
    }

    /// What the split holds out.
    fn split_by(&self) -> SplitBy {
        if self.held_out_views() > 0 { SplitBy::Views } else { SplitBy::Objects }
    }

    /// Which views of its objects one side of the split has. Training views come first.
    fn views_of(&self, split: Split) -> Range<usize> {
        let (views, held_out) = (self.views(), self.held_out_views());
        match (held_out, split) {
            (0, _) => 0..views,
            (_, Split::Train) => 0..views - held_out,
            (_, Split::Val) => views - held_out..views,
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
