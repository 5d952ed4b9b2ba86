//! What the backward pass of an operation works with: where its gradients go.

use super::{GradientId, Node, Tape};
use crate::cuda::view_mut;
use crate::device::Device;
use crate::error::Result;
use crate::ops;
use crate::tensor::Tensor;

/// What an operation's backward pass works with.
pub struct Backward<'a, 's> {
    pub(crate) tape: &'a mut Tape<'s>,
}

/// A gradient to be written by an operation's backward pass; give it back by [`Backward::put`].
#[derive(Debug)]
pub struct Target {
    /// The gradient, of the value's shape.
    pub tensor: Tensor,
    /// Add to what is there (true), or overwrite it, as it is unspecified (false).
    pub accumulate: bool,
    node: usize,
}

impl Target {
    /// A target that is no gradient on the tape: what an operation adds up on the way to one. It must not be put.
    pub(crate) fn unplaced(tensor: Tensor) -> Self {
        Self { tensor, accumulate: false, node: usize::MAX }
    }

    /// Writes (or adds) `gradient(element)` to every element, on the CPU.
    pub(crate) fn write(&mut self, gradient: impl Fn(usize) -> f32) -> Result<()> {
        let accumulate = self.accumulate;
        for (index, value) in self.tensor.as_mut_slice::<f32>()?.iter_mut().enumerate() {
            *value = if accumulate { *value + gradient(index) } else { gradient(index) };
        }
        Ok(())
    }

    /// The gradient for adding to it: zeros where it was unspecified.
    pub(crate) fn zeroed(&mut self) -> Result<&mut Tensor> {
        if !self.accumulate {
            self.tensor.fill_zero()?;
        }
        Ok(&mut self.tensor)
    }

    /// Where the gradient lies on the GPU and whether to add to it, as arguments of a kernel.
    pub(crate) fn arguments(&mut self) -> Result<[gpu::Argument; 2]> {
        Ok([view_mut(&mut self.tensor)?.into(), i32::from(self.accumulate).into()])
    }

    /// As [`Target::arguments`]; nothing where the gradient is not wanted.
    pub(crate) fn arguments_of(target: Option<&mut Self>) -> Result<[gpu::Argument; 2]> {
        target.map_or(Ok([gpu::Argument::Address(0), 0.into()]), Self::arguments)
    }

    /// 1 where a matrix product adds to the gradient, else 0.
    pub(crate) fn beta(&self) -> f32 {
        if self.accumulate { 1.0 } else { 0.0 }
    }
}

impl Backward<'_, '_> {
    /// The device of all values.
    pub fn device(&self) -> Device {
        self.tape.device()
    }

    /// The gradient at `id` for writing; `None` where it is not wanted.
    pub fn target(&mut self, id: GradientId) -> Result<Option<Target>> {
        let Some(node) = id.0 else { return Ok(None) };
        let (tensor, accumulate) = match &mut self.tape.nodes[node] {
            Node::Parameter(parameter) => self.tape.store.take_gradient(*parameter),
            Node::Activation { shape, dtype, gradient } => match gradient.take() {
                Some(mut first) => {
                    // A gradient may be shared, where an operation passed it on unchanged.
                    first.make_unique(self.tape.store.device())?;
                    (first, true)
                }
                None => (Tensor::empty(self.tape.store.device(), *shape, *dtype)?, false),
            },
        };
        Ok(Some(Target { tensor, accumulate, node }))
    }

    /// Gives a written gradient back.
    pub fn put(&mut self, target: Target) {
        match &mut self.tape.nodes[target.node] {
            Node::Parameter(parameter) => self.tape.store.return_gradient(*parameter, target.tensor),
            Node::Activation { gradient, .. } => *gradient = Some(target.tensor),
        }
    }

    /// Adds a whole gradient; free where it is the first.
    pub fn add(&mut self, id: GradientId, gradient: Tensor) -> Result<()> {
        let Some(node) = id.0 else { return Ok(()) };
        if let Node::Activation { gradient: slot @ None, .. } = &mut self.tape.nodes[node] {
            *slot = Some(gradient);
            return Ok(());
        }
        let Some(mut target) = self.target(id)? else { return Ok(()) };
        ops::accumulate(&self.device(), &gradient, &mut target)?;
        self.put(target);
        Ok(())
    }
}
