//! Which objects are in device memory: those used last, up to a number of bytes.

use std::collections::HashMap;

use gpu::{Buffer, Context, Result};

use super::object::Object;

#[derive(Debug)]
struct Resident {
    buffer: Buffer,
    /// Number of the batch that used it last.
    used: u64,
}

/// The objects in device memory.
#[derive(Debug)]
pub(super) struct Cache {
    residents: HashMap<u64, Resident>,
    bytes: usize,
    capacity: usize,
    batch: u64,
}

impl Cache {
    /// An empty cache for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self { residents: HashMap::new(), bytes: 0, capacity, batch: 0 }
    }

    /// Bytes it may hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Begins a batch: objects used from now on stay until the next one begins.
    pub fn begin(&mut self) {
        self.batch += 1;
    }

    /// The device address of an object, copied there if need be.
    pub fn address(&mut self, context: &Context, object: &Object) -> Result<u64> {
        if let Some(resident) = self.residents.get_mut(&object.id) {
            resident.used = self.batch;
            return Ok(resident.buffer.address());
        }
        self.make_room(object.device_bytes());
        let buffer = context.upload(&object.bytes)?;
        let address = buffer.address();
        self.bytes += object.device_bytes();
        self.residents.insert(object.id, Resident { buffer, used: self.batch });
        Ok(address)
    }

    /// Lets go of the least recently used objects that the current batch does not use, until `needed` bytes fit.
    fn make_room(&mut self, needed: usize) {
        if self.bytes + needed <= self.capacity {
            return;
        }
        let mut old: Vec<(u64, u64)> = self
            .residents
            .iter()
            .filter(|(_, resident)| resident.used < self.batch)
            .map(|(&id, resident)| (resident.used, id))
            .collect();
        old.sort_unstable();
        for (_, id) in old {
            if self.bytes + needed <= self.capacity {
                return;
            }
            if let Some(resident) = self.residents.remove(&id) {
                self.bytes -= resident.buffer.bytes();
            }
        }
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.residents.clear();
        self.bytes = 0;
    }
}
