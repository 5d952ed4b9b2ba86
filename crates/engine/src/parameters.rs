//! All parameters of a network in one flat float32 buffer, and likewise their gradients and Adam's two moments: an
//! update is one sweep, a checkpoint a few buffers, an all-reduce one call. Each entry knows its published name and
//! shape and the layout it has inside. Buffers (batch-norm statistics) are kept beside them.

mod builder;
mod layout;

use std::collections::HashMap;
use std::ops::Range;

use crate::adam::AdamConfig;
use crate::collective::{Collective, Memory};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::flat::FlatBuffer;
use crate::initialise::Initialise;
use crate::muon::{Muon, MuonConfig};
use crate::shape::Shape;
use crate::tensor::Tensor;

pub use builder::StoreBuilder;
pub use layout::Layout;

/// A parameter of a [`ParameterStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParameterId(usize);

impl ParameterId {
    /// Its place in the order of definition.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// A buffer of a [`ParameterStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(usize);

/// One of the flat buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The parameters themselves.
    Value,
    /// Their gradients.
    Gradient,
    /// Adam's running mean of gradients.
    FirstMoment,
    /// Adam's running mean of squared gradients.
    SecondMoment,
}

/// What a buffer holds.
#[derive(Clone, Debug)]
pub enum BufferValue {
    /// float32 numbers on the device.
    Tensor(Tensor),
    /// A count (`num_batches_tracked`), kept on the host.
    Count(u64),
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    shape: Shape,
    layout: Layout,
    initialise: Initialise,
}

#[derive(Clone, Debug)]
struct Buffer {
    name: String,
    value: BufferValue,
}

/// The parameters, gradients, optimiser state and buffers of a network, on one device.
#[derive(Debug)]
pub struct ParameterStore {
    device: Device,
    entries: Vec<Entry>,
    by_name: HashMap<String, ParameterId>,
    buffers: Vec<Buffer>,
    buffers_by_name: HashMap<String, BufferId>,
    values: FlatBuffer,
    gradients: FlatBuffer,
    first_moments: FlatBuffer,
    second_moments: FlatBuffer,
    /// Whether a gradient was written since [`Self::clear_gradients`]; the others are stale.
    written: Vec<bool>,
    /// What Muon updates instead of Adam.
    muon: Muon,
    /// The parameters that Adam updates more slowly than the others, and at which share of its learning rate.
    slow: (f64, Vec<bool>),
    /// Updates done.
    steps: u64,
}

impl ParameterStore {
    /// The device of all tensors in the store.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// All parameters, in order of their definition.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = ParameterId> + use<> {
        (0..self.entries.len()).map(ParameterId)
    }

    /// All buffers, in order of their definition.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = BufferId> + use<> {
        (0..self.buffers.len()).map(BufferId)
    }

    /// The published name.
    pub fn name(&self, id: ParameterId) -> &str {
        &self.entries[id.0].name
    }

    /// The published shape.
    pub fn shape(&self, id: ParameterId) -> Shape {
        self.entries[id.0].shape
    }

    /// The parameter of this published name.
    pub fn find(&self, name: &str) -> Option<ParameterId> {
        self.by_name.get(name).copied()
    }

    /// Number of scalars in all parameters.
    pub fn parameter_count(&self) -> usize {
        self.entries.iter().map(|entry| entry.shape.len()).sum()
    }

    /// The parameter in its inner layout; a clone of it keeps the store from being updated.
    pub fn value(&self, id: ParameterId) -> &Tensor {
        self.values.part(id.0)
    }

    fn flat(&self, state: State) -> &FlatBuffer {
        match state {
            State::Value => &self.values,
            State::Gradient => &self.gradients,
            State::FirstMoment => &self.first_moments,
            State::SecondMoment => &self.second_moments,
        }
    }

    fn flat_mut(&mut self, state: State) -> &mut FlatBuffer {
        match state {
            State::Value => &mut self.values,
            State::Gradient => &mut self.gradients,
            State::FirstMoment => &mut self.first_moments,
            State::SecondMoment => &mut self.second_moments,
        }
    }

    /// A copy of one tensor on the host, in the published order. A gradient that no backward pass wrote is zero.
    pub fn export(&self, state: State, id: ParameterId) -> Result<Vec<f32>> {
        let entry = &self.entries[id.0];
        if state == State::Gradient && !self.written[id.0] {
            return Ok(vec![0.0; entry.shape.len()]);
        }
        let inner = self.flat(state).part(id.0).to_vec::<f32>()?;
        if entry.layout == Layout::Published {
            return Ok(inner);
        }
        let mut published = vec![0.0; inner.len()];
        entry.layout.for_each(entry.shape, |to, from| published[to] = inner[from]);
        Ok(published)
    }

    /// Overwrites one tensor by `values`, which are in the published order.
    pub fn import(&mut self, state: State, id: ParameterId, values: &[f32]) -> Result<()> {
        let entry = &self.entries[id.0];
        if values.len() != entry.shape.len() {
            let detail = format!("{} numbers were given for shape {}", values.len(), entry.shape);
            return Err(Error::parameter(&entry.name, detail));
        }
        let mut inner = vec![0.0; values.len()];
        entry.layout.for_each(entry.shape, |from, to| inner[to] = values[from]);
        if state == State::Gradient {
            self.written[id.0] = true;
        }
        self.flat_mut(state).part_mut(id.0).write(&inner)
    }

    /// The name of a buffer.
    pub fn buffer_name(&self, id: BufferId) -> &str {
        &self.buffers[id.0].name
    }

    /// The buffer of this name.
    pub fn find_buffer(&self, name: &str) -> Option<BufferId> {
        self.buffers_by_name.get(name).copied()
    }

    /// A buffer.
    pub fn buffer(&self, id: BufferId) -> &BufferValue {
        &self.buffers[id.0].value
    }

    /// A buffer, for writing.
    pub fn buffer_mut(&mut self, id: BufferId) -> &mut BufferValue {
        &mut self.buffers[id.0].value
    }

    /// The float tensor of a buffer.
    pub fn buffer_tensor(&self, id: BufferId) -> Result<&Tensor> {
        match self.buffer(id) {
            BufferValue::Tensor(tensor) => Ok(tensor),
            BufferValue::Count(_) => Err(Error::parameter(self.buffer_name(id), "is a count, not a tensor")),
        }
    }

    /// The float tensor of a buffer, for writing.
    pub(crate) fn buffer_tensor_mut(&mut self, id: BufferId) -> Result<&mut Tensor> {
        let buffer = &mut self.buffers[id.0];
        match &mut buffer.value {
            BufferValue::Tensor(tensor) => Ok(tensor),
            BufferValue::Count(_) => Err(Error::parameter(&buffer.name, "is a count, not a tensor")),
        }
    }

    /// Number of updates done so far (Adam's step count).
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Sets the number of updates, when a run is resumed.
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// Forgets all gradients: the next backward pass starts from zero. Costs nothing.
    pub fn clear_gradients(&mut self) {
        self.written.fill(false);
    }

    /// Which gradients the last backward pass wrote.
    pub fn written(&self) -> &[bool] {
        &self.written
    }

    /// Says which gradients were written, by a backward pass that the store did not see.
    pub(crate) fn set_written(&mut self, written: &[bool]) {
        self.written.copy_from_slice(written);
    }

    /// All counts, in order.
    pub fn counts(&self) -> Vec<u64> {
        let count = |buffer: &Buffer| match buffer.value {
            BufferValue::Count(count) => Some(count),
            BufferValue::Tensor(_) => None,
        };
        self.buffers.iter().filter_map(count).collect()
    }

    /// Sets all counts, in order.
    pub(crate) fn set_counts(&mut self, counts: &[u64]) {
        let slots = self.buffers.iter_mut().filter_map(|buffer| match &mut buffer.value {
            BufferValue::Count(count) => Some(count),
            BufferValue::Tensor(_) => None,
        });
        slots.zip(counts).for_each(|(slot, count)| *slot = *count);
    }

    /// Lends out the gradient of `id` for writing, and whether it must be added to (or else overwritten).
    pub(crate) fn take_gradient(&mut self, id: ParameterId) -> (Tensor, bool) {
        let accumulate = std::mem::replace(&mut self.written[id.0], true);
        let shape = Shape::new(&[0]);
        let part = self.gradients.part_mut(id.0);
        let placeholder = Tensor::placeholder(shape, part.dtype());
        (std::mem::replace(part, placeholder), accumulate)
    }

    /// Takes a gradient back.
    pub(crate) fn return_gradient(&mut self, id: ParameterId, gradient: Tensor) {
        *self.gradients.part_mut(id.0) = gradient;
    }

    /// From now on Muon updates the parameters that `choose` picks by name and shape, and Adam the others.
    pub fn orthogonalise(&mut self, config: MuonConfig, choose: impl Fn(&str, Shape) -> bool) {
        self.muon =
            Muon::new(config, self.entries.iter().map(|entry| choose(&entry.name, entry.shape)).collect());
    }

    /// From now on Adam updates the parameters that `choose` picks by name with this share of its learning rate.
    pub fn slow_down(&mut self, share: f64, choose: impl Fn(&str) -> bool) {
        self.slow = (share, self.entries.iter().map(|entry| choose(&entry.name)).collect());
    }

    /// What Adam updates, at its learning rate or slowly: ranges of elements of the flat buffers.
    fn adam_ranges(&self, slowly: bool) -> Vec<Range<usize>> {
        let offsets = self.values.offsets();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let is_one = |index: &usize| !self.muon.takes(*index) && self.slow.1[*index] == slowly;
        for index in (0..self.entries.len()).filter(is_one) {
            let (start, end) = (offsets[index], offsets[index + 1]);
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }

    /// The gradients of the parameters in `range`, to be added up over all ranks: zero where none was written, or where
    /// this rank is `silent`.
    pub(crate) fn gradients_to_sum(
        &mut self,
        range: Range<usize>,
        silent: impl Fn(usize) -> bool,
    ) -> Result<Memory<'_>> {
        for index in range.clone() {
            if silent(index) || !self.written[index] {
                self.gradients.part_mut(index).fill_zero()?;
            }
        }
        self.gradients.span_mut(range)
    }

    /// Overwrites everything by what rank 0 has: values, moments, buffers, counts and the number of updates.
    pub fn take_from_first(&mut self, ranks: &dyn Collective) -> Result<()> {
        let all = 0..self.entries.len();
        for state in [State::Value, State::FirstMoment, State::SecondMoment] {
            ranks.broadcast(self.flat_mut(state).span_mut(all.clone())?)?;
        }
        for buffer in &mut self.buffers {
            if let BufferValue::Tensor(tensor) = &mut buffer.value {
                ranks.broadcast_tensor(tensor)?;
            }
        }
        let own: Vec<u64> = std::iter::once(self.steps).chain(self.counts()).collect();
        let all = ranks.exchange(bytemuck::cast_slice(&own))?;
        let numbers: Vec<u64> =
            all[0].as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
        if numbers.len() != own.len() {
            return Err(Error::Ranks("rank 0 has a network of another kind than this rank".to_owned()));
        }
        self.steps = numbers[0];
        self.set_counts(&numbers[1..]);
        Ok(())
    }

    /// One update of all parameters with the gradients at hand, which are cleared.
    pub fn update(&mut self, config: &AdamConfig) -> Result<()> {
        for index in 0..self.entries.len() {
            if !self.written[index] {
                self.gradients.part_mut(index).fill_zero()?;
            }
        }
        self.steps += 1;
        let Self { device, values, gradients, first_moments, .. } = self;
        self.muon.update(device, config, values, gradients, first_moments)?;
        let device = self.device.clone();
        let slow = AdamConfig { learning_rate: self.slow.0 * config.learning_rate, ..*config };
        for (config, ranges) in [(config, self.adam_ranges(false)), (&slow, self.adam_ranges(true))] {
            config.update(
                &device,
                self.steps,
                &ranges,
                [
                    &mut self.values.whole_mut()?,
                    &mut self.gradients.whole_mut()?,
                    &mut self.first_moments.whole_mut()?,
                    &mut self.second_moments.whole_mut()?,
                ],
            )?;
        }
        self.clear_gradients();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
