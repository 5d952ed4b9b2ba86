//! What evaluation needs of a trained network: images in, frozen features out.

use crate::error::{Error, Result};
use crate::prediction::Transformation;
use crate::protocol::Task;

/// Widths of the features of one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Of `h`, the globally pooled output of the backbone.
    pub representation: usize,
    /// Of the equivariant embedding: the flattened raw poses of capsules, or the projector's (equivariant) output.
    pub equivariant: Option<usize>,
    /// Of the invariant embedding: activations of capsules, or the projector's invariant output.
    pub invariant: Option<usize>,
}

/// Features of a batch, row after row; empty where the network has none of the kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Encoded {
    /// `[count, representation]`.
    pub representation: Vec<f32>,
    /// `[count, equivariant]`.
    pub equivariant: Vec<f32>,
    /// `[count, invariant]`.
    pub invariant: Vec<f32>,
}

/// A network in evaluation mode.
pub trait Encoder {
    /// Side of the images it takes, in pixels.
    fn side(&self) -> usize;

    /// What comes out for each image.
    fn widths(&self) -> Widths;

    /// Features of `count` images, `[count, side, side, 3]` bytes, RGB.
    fn encode(&mut self, pixels: &[u8], count: usize) -> Result<Encoded>;

    /// How equivariant embeddings follow a change of view; `None` for methods without.
    fn transformation(&self) -> Option<Transformation>;

    /// The predictor of methods that have one: embeddings `[count, equivariant]` and parameters `[count, z]` to
    /// predicted embeddings. Called only where [`Encoder::transformation`] is [`Transformation::Predictor`].
    fn predict(&mut self, embeddings: &[f32], parameters: &[f32], count: usize) -> Result<Vec<f32>>;

    /// The task that the network was trained for end to end, with a head of its own; `None` for all but supervised ones.
    fn own_task(&self) -> Option<Task> {
        None
    }

    /// The outputs of the network's own head for representations of one view (classification) or two: `[count, inputs]`
    /// to `[count, outputs]`. Called only where there is an [`Encoder::own_task`].
    fn answer(&mut self, _inputs: &[f32], _count: usize) -> Result<Vec<f32>> {
        Err(Error::Request("this network has no head".to_owned()))
    }
}
