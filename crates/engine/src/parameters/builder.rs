//! Declares what a store will hold, then lays it out.

use super::{Buffer, BufferId, BufferValue, Entry, Layout, ParameterId, ParameterStore, State};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::flat::FlatBuffer;
use crate::host_memory;
use crate::initialise::Initialise;
use crate::muon::Muon;
use crate::shape::Shape;
use crate::tensor::{DType, Tensor};

/// Values, gradients and Adam's two moments.
const FLAT_BUFFERS: usize = 4;

/// Collects the entries of a store before its memory is laid out.
#[derive(Debug, Default)]
pub struct StoreBuilder {
    entries: Vec<Entry>,
    buffers: Vec<(String, Option<(Shape, f32)>)>,
}

impl StoreBuilder {
    /// No entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the parameter `name` with its published shape.
    pub fn parameter(
        &mut self,
        name: impl Into<String>,
        shape: impl Into<Shape>,
        layout: Layout,
        initialise: Initialise,
    ) -> ParameterId {
        self.entries.push(Entry { name: name.into(), shape: shape.into(), layout, initialise });
        ParameterId(self.entries.len() - 1)
    }

    /// The parameters declared so far: published names and shapes.
    pub fn declared(&self) -> impl Iterator<Item = (&str, Shape)> {
        self.entries.iter().map(|entry| (entry.name.as_str(), entry.shape))
    }

    /// Adds a buffer of floats, all `start`.
    pub fn buffer(&mut self, name: impl Into<String>, shape: impl Into<Shape>, start: f32) -> BufferId {
        self.buffers.push((name.into(), Some((shape.into(), start))));
        BufferId(self.buffers.len() - 1)
    }

    /// Adds a count, 0 at first.
    pub fn count(&mut self, name: impl Into<String>) -> BufferId {
        self.buffers.push((name.into(), None));
        BufferId(self.buffers.len() - 1)
    }

    /// Lays out the memory on `device` and draws the initial values by `seed`.
    pub fn build(self, device: &Device, seed: u64) -> Result<ParameterStore> {
        let inner: Vec<Shape> =
            self.entries.iter().map(|entry| entry.layout.inner_shape(entry.shape)).collect();
        // Said before values are drawn, which takes a while for many of them.
        let bytes =
            inner.iter().map(Shape::len).fold(0, usize::saturating_add).saturating_mul(FLAT_BUFFERS * 4);
        let free = match device {
            Device::Cpu(_) => host_memory::available(),
            Device::Cuda(_) => None,
        };
        if free.is_some_and(|free| free < bytes as u64) {
            return Err(Error::OutOfMemory {
                device: "cpu".into(),
                needed: bytes,
                in_use: device.memory().in_use,
            });
        }
        let flat = |what| FlatBuffer::zeros(what, device, &inner, DType::F32);
        let buffers = self
            .buffers
            .into_iter()
            .map(|(name, kind)| {
                let value = match kind {
                    None => BufferValue::Count(0),
                    Some((shape, start)) => {
                        BufferValue::Tensor(Tensor::from_slice(device, shape, &vec![start; shape.len()])?)
                    }
                };
                Ok(Buffer { name, value })
            })
            .collect::<Result<Vec<_>>>()?;
        let mut store = ParameterStore {
            device: device.clone(),
            by_name: self.entries.iter().enumerate().map(|(i, e)| (e.name.clone(), ParameterId(i))).collect(),
            buffers_by_name: buffers.iter().enumerate().map(|(i, b)| (b.name.clone(), BufferId(i))).collect(),
            written: vec![false; self.entries.len()],
            slow: (1.0, vec![false; self.entries.len()]),
            muon: Muon::default(),
            entries: self.entries,
            values: flat("parameters")?,
            gradients: flat("gradients")?,
            first_moments: flat("first moments")?,
            second_moments: flat("second moments")?,
            buffers,
            steps: 0,
        };
        if store.by_name.len() != store.entries.len() {
            return Err(Error::parameter("names", "two parameters have the same name"));
        }
        for index in 0..store.entries.len() {
            let entry = &store.entries[index];
            if entry.initialise == Initialise::Constant(0.0) {
                continue;
            }
            let values = entry.initialise.values(seed, &entry.name, entry.shape.len());
            store.import(State::Value, ParameterId(index), &values)?;
        }
        Ok(store)
    }
}
