//! What the backward pass of an operation works with: where its gradients go.

use std::sync::Arc;

use super::{GradientId, Node, Tape};
use crate::collective::Collective;
use crate::device::Device;
use crate::error::Result;
use crate::ops;
use crate::tensor::Tensor;

/// What an operation's backward pass works with.
pub struct Backward<'a, 's> {
    pub(super) tape: &'a mut Tape<'s>,
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
}

impl Backward<'_, '_> {
    /// The device of all values.
    pub fn device(&self) -> Device {
        self.tape.device()
    }

    /// The ranks that share the batch.
    pub fn collective(&self) -> &Arc<dyn Collective> {
        &self.tape.collective
    }

    /// As [`Tape::prepared`].
    pub fn prepared(
        &mut self,
        source: &Tensor,
        form: &'static str,
        prepare: impl FnOnce(&Device, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        self.tape.prepared(source, form, prepare)
    }

    /// The gradient at `id` for writing; `None` where it is not wanted.
    pub fn target(&mut self, id: GradientId) -> Result<Option<Target>> {
        let Some(node) = id.0 else { return Ok(None) };
        let (tensor, accumulate) = match &mut self.tape.nodes[node] {
            Node::Parameter(parameter) => self.tape.store.take_gradient(*parameter),
            Node::Activation { shape, dtype, gradient } => match gradient.take() {
                Some(mut first) => {
                    // A gradient may be shared, where an operation passed it on unchanged.
                    if !first.is_unique() {
                        let mut own = Tensor::empty(self.tape.store.device(), *shape, *dtype)?;
                        own.copy_from(&first)?;
                        first = own;
                    }
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
