//! What training and evaluation see of a dataset, wherever its images come from: [`Views`].

use std::ops::Range;

use scene::Latents;

use crate::error::Result;
use crate::object::{Class, Object, Split};

/// Objects with a fixed number of views each, their latents, and their images.
///
/// Objects are numbered from 0, training objects first, in the order of the split lists.
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

    /// Whether every view `place + n * views` of an object exists, too: one more, for any `n`.
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

    /// The numbers of the objects on one side of the split.
    fn split(&self, split: Split) -> Range<usize> {
        let train = self.objects().iter().position(|o| o.split == Split::Val).unwrap_or(self.objects().len());
        match split {
            Split::Train => 0..train,
            Split::Val => train..self.objects().len(),
        }
    }
}
