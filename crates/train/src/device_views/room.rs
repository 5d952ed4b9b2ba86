//! Device memory for the pictures of one batch.

use std::sync::Arc;

use engine::Tensor;
use engine::cuda::{CudaDevice, Pictures, Place};

use crate::error::Result;

/// Room for the pictures of a batch.
#[derive(Debug)]
pub struct Room {
    halves: [Pictures; 2],
    pairs: usize,
}

impl Room {
    /// For `items` of `side` x `side` pixels.
    pub fn new(device: &Arc<CudaDevice>, side: usize, items: usize) -> Result<Self> {
        let pairs = items / 2;
        let half = || Pictures::new(device, pairs, side);
        Ok(Self { halves: [half()?, half()?], pairs })
    }

    /// The place of the item at `index`.
    pub fn place(&self, index: usize) -> Result<Place> {
        Ok(self.halves[index / self.pairs].place(index % self.pairs)?)
    }

    /// First views and then second ones: (pairs, side, side, 3) each.
    pub fn into_tensors(self) -> [Tensor; 2] {
        self.halves.map(Pictures::into_tensor)
    }
}
