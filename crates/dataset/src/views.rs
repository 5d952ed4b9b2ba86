//! What training and evaluation see of a dataset, wherever its pictures come from: [`Views`].

use std::ops::Range;
use std::sync::Arc;

use scene::Latents;

use crate::error::Result;
use crate::object::{Class, Object, Split};

/// Objects with a fixed number of views each, their latents, and their pictures.
///
/// Objects are numbered from 0, training objects first, in the order of the split lists.
pub trait Views: Send + Sync {
    /// All objects.
    fn objects(&self) -> &[Object];

    /// All classes, by label.
    fn classes(&self) -> &[Class];

    /// Number of views of every object.
    fn views(&self) -> usize;

    /// Side in pixels of the pictures as they are stored (or rendered); they are square.
    fn side(&self) -> usize;

    /// Whether the latents hold a translation (3DIEBench-T).
    fn has_translation(&self) -> bool;

    /// The scene parameters of one view.
    fn latents(&self, object: usize, view: usize) -> Latents;

    /// Whether every view `place + n * views` of an object exists, too: one more, for any `n`.
    fn has_more_views(&self) -> bool {
        false
    }

    /// The picture of one view at `side * side` pixels, into `pixels`: `[side, side, 3]`, RGB, row 0 on top. With side
    /// 0 there is no picture; views made on the fly then get the object ready.
    fn picture(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()>;

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

impl<T: Views + ?Sized> Views for Arc<T> {
    fn objects(&self) -> &[Object] {
        (**self).objects()
    }
    fn classes(&self) -> &[Class] {
        (**self).classes()
    }
    fn views(&self) -> usize {
        (**self).views()
    }
    fn side(&self) -> usize {
        (**self).side()
    }
    fn has_translation(&self) -> bool {
        (**self).has_translation()
    }
    fn has_more_views(&self) -> bool {
        (**self).has_more_views()
    }
    fn latents(&self, object: usize, view: usize) -> Latents {
        (**self).latents(object, view)
    }
    fn picture(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()> {
        (**self).picture(object, view, side, pixels)
    }
    fn description(&self) -> String {
        (**self).description()
    }
}
