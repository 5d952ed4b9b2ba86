//! Values on their way through a network.

use crate::shape::Shape;
use crate::tensor::{DType, Storage, Tensor};

/// A value and its place on the tape.
#[derive(Clone, Debug)]
pub struct Var {
    pub(super) value: Tensor,
    /// Where the value is f16 and whoever wrote it could write it twice: the same in bf16.
    pub(super) rounded: Option<Tensor>,
    pub(super) gradient: GradientId,
}

impl Var {
    /// A value without a gradient: an input, a target, a detached feature.
    pub fn constant(value: Tensor) -> Self {
        Self { value, rounded: None, gradient: GradientId(None) }
    }

    /// In place of an input that is missing.
    pub(crate) fn absent() -> Self {
        Self::constant(Tensor::placeholder(Shape::new(&[0]), DType::F32))
    }

    /// The value, unless this is [`Var::absent`].
    pub(crate) fn present(&self) -> Option<&Tensor> {
        (!matches!(self.value.storage(), Storage::Nothing)).then_some(&self.value)
    }

    /// Shape and type.
    pub(crate) fn spec(&self) -> (Shape, DType) {
        (self.value.shape(), self.value.dtype())
    }

    /// Puts the value in the type of its gradient beside it, which products with gradients need.
    pub(crate) fn set_rounded(&mut self, rounded: Option<Tensor>) {
        self.rounded = rounded;
    }

    /// The value in the type of its gradient, where it is there: see [`Var::set_rounded`].
    pub(crate) fn rounded(&self) -> Option<&Tensor> {
        self.rounded.as_ref()
    }

    /// The value.
    pub fn value(&self) -> &Tensor {
        &self.value
    }

    /// The shape of the value.
    pub fn shape(&self) -> Shape {
        self.value.shape()
    }

    /// The same value, cut off from the tape.
    pub fn detach(&self) -> Self {
        Self { gradient: GradientId(None), ..self.clone() }
    }

    /// Where its gradient goes: what a recorded operation keeps when it does not need the value.
    pub fn gradient(&self) -> GradientId {
        self.gradient
    }
}

/// The place of a gradient on the tape; none for constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientId(pub(super) Option<usize>);

impl GradientId {
    /// Whether a gradient is wanted.
    pub(crate) fn is_wanted(self) -> bool {
        self.0.is_some()
    }
}
