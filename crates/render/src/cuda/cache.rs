//! Which objects are in device memory: those used last, up to a number of bytes.
//!
//! Objects live in slabs of their own, apart from memory that the context's stream uses for anything else, and are copied
//! there on a second stream: while the device works on one batch, the objects of the next replace those that the batches
//! before have left.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use gpu::{Buffer, Context, CopyStream, Event, Result};

use super::object::Object;
use super::upload::Uploads;

/// Bytes of a slab, unless an object needs more.
const SLAB: usize = 256 << 20;
/// Every object starts at a multiple of this.
const GRANULE: usize = 512;
/// Ends of batches that are remembered.
const REMEMBERED: usize = 16;

#[derive(Debug)]
struct Resident {
    slab: usize,
    start: usize,
    bytes: usize,
    /// Number of the batch that used it last.
    used: u64,
}

/// A free part of a slab.
#[derive(Clone, Copy, Debug)]
struct Hole {
    bytes: usize,
    /// The batch after which nothing uses it any more.
    free_after: u64,
}

#[derive(Debug)]
struct Slab {
    buffer: Buffer,
    /// By their starts.
    holes: BTreeMap<usize, Hole>,
}

/// The objects in device memory.
#[derive(Debug)]
pub(super) struct Cache {
    context: Context,
    copies: CopyStream,
    /// Copies of the current batch.
    uploads: Uploads,
    /// By number; those that were given back leave a gap.
    slabs: BTreeMap<usize, Slab>,
    residents: HashMap<u64, Resident>,
    /// The batches that used the residents last, and the residents.
    by_use: BTreeSet<(u64, u64)>,
    capacity: usize,
    has_evicted: bool,
    batch: u64,
    /// Ends of the last batches, oldest first.
    ends: VecDeque<(u64, Event)>,
}

impl Cache {
    /// An empty cache for `capacity` bytes.
    pub fn new(context: &Context, capacity: usize) -> Result<Self> {
        Ok(Self {
            context: context.clone(),
            copies: CopyStream::new(context)?,
            uploads: Uploads::default(),
            slabs: BTreeMap::new(),
            residents: HashMap::new(),
            by_use: BTreeSet::new(),
            capacity,
            has_evicted: false,
            batch: 0,
            ends: VecDeque::new(),
        })
    }

    /// Bytes it may hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether an object had to make room for another one so far.
    pub fn has_evicted(&self) -> bool {
        self.has_evicted
    }

    /// Begins a batch: objects used from now on stay until the next one begins.
    pub fn begin(&mut self) {
        self.batch += 1;
    }

    /// All objects of the batch are asked for: work issued from now on finds them.
    pub fn release(&mut self) -> Result<()> {
        if self.uploads.issue(&self.context, &self.copies)? { self.copies.release() } else { Ok(()) }
    }

    /// All work of the batch is issued.
    pub fn end(&mut self) -> Result<()> {
        let end = Event::new(&self.context)?;
        end.record()?;
        self.ends.push_back((self.batch, end));
        if self.ends.len() > REMEMBERED {
            self.ends.pop_front();
        }
        Ok(())
    }

    /// The device address of an object, which is copied there by [`Self::release`] if need be.
    pub fn address(&mut self, object: &Arc<Object>) -> Result<u64> {
        if let Some(resident) = self.residents.get_mut(&object.id) {
            self.by_use.remove(&(resident.used, object.id));
            self.by_use.insert((self.batch, object.id));
            resident.used = self.batch;
            return Ok(self.slabs[&resident.slab].buffer.address() + resident.start as u64);
        }
        let bytes = object.bytes.len().next_multiple_of(GRANULE);
        let (slab, start, free_after) = self.place(bytes)?;
        if free_after > 0 {
            match self.ends.iter().find(|(batch, _)| *batch >= free_after) {
                Some((_, end)) => self.copies.wait_for(end)?,
                None => self.context.synchronize()?,
            }
        }
        let target = self.slabs[&slab].buffer.view().part(start, bytes)?;
        self.uploads.add(Arc::clone(object), target);
        self.by_use.insert((self.batch, object.id));
        self.residents.insert(object.id, Resident { slab, start, bytes, used: self.batch });
        Ok(target.address)
    }

    /// Takes a free part of `bytes`: slab, start, and the batch after which it may be written.
    fn place(&mut self, bytes: usize) -> Result<(usize, usize, u64)> {
        loop {
            for (&slab, Slab { holes, .. }) in &mut self.slabs {
                if let Some((start, free_after)) = take(holes, bytes) {
                    return Ok((slab, start, free_after));
                }
            }
            let held: usize = self.slabs.values().map(|slab| slab.buffer.bytes()).sum();
            let wanted = bytes.max(SLAB.min(self.capacity));
            if held + wanted <= self.capacity {
                self.add_slab(wanted)?;
            } else if !self.evict() {
                // What is left is in use, or too small.
                self.slabs
                    .retain(|_, slab| slab.holes.get(&0).is_none_or(|hole| hole.bytes < slab.buffer.bytes()));
                self.add_slab(wanted)?;
            }
        }
    }

    fn add_slab(&mut self, bytes: usize) -> Result<()> {
        let buffer = self.context.allocate(bytes)?;
        // Memory of the pool may be in use until the device has caught up.
        self.context.synchronize()?;
        let number = self.slabs.last_key_value().map_or(0, |(last, _)| last + 1);
        let holes = BTreeMap::from([(0, Hole { bytes, free_after: 0 })]);
        self.slabs.insert(number, Slab { buffer, holes });
        Ok(())
    }

    /// Lets go of the least recently used object that the current batch does not use; false where there is none.
    fn evict(&mut self) -> bool {
        let Some(&(used, id)) = self.by_use.first().filter(|(used, _)| *used < self.batch) else {
            return false;
        };
        self.by_use.remove(&(used, id));
        self.has_evicted = true;
        if let Some(gone) = self.residents.remove(&id)
            && let Some(slab) = self.slabs.get_mut(&gone.slab)
        {
            give_back(&mut slab.holes, gone.start, gone.bytes, gone.used);
        }
        true
    }

    /// Lets go of everything.
    pub fn clear(&mut self) -> Result<()> {
        self.release()?;
        self.residents.clear();
        self.by_use.clear();
        self.slabs.clear();
        Ok(())
    }
}

/// Takes `bytes` from the first hole that is large enough: their start, and when they may be written.
fn take(holes: &mut BTreeMap<usize, Hole>, bytes: usize) -> Option<(usize, u64)> {
    let (&start, &hole) = holes.iter().find(|(_, hole)| hole.bytes >= bytes)?;
    holes.remove(&start);
    if hole.bytes > bytes {
        holes.insert(start + bytes, Hole { bytes: hole.bytes - bytes, ..hole });
    }
    Some((start, hole.free_after))
}

/// Makes a hole, joined with its neighbours.
fn give_back(holes: &mut BTreeMap<usize, Hole>, start: usize, bytes: usize, free_after: u64) {
    let (mut start, mut hole) = (start, Hole { bytes, free_after });
    if let Some((&before, &other)) = holes.range(..start).next_back()
        && before + other.bytes == start
    {
        holes.remove(&before);
        hole = Hole { bytes: other.bytes + hole.bytes, free_after: hole.free_after.max(other.free_after) };
        start = before;
    }
    if let Some(other) = holes.remove(&(start + hole.bytes)) {
        hole = Hole { bytes: hole.bytes + other.bytes, free_after: hole.free_after.max(other.free_after) };
    }
    holes.insert(start, hole);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_join_and_remember_their_last_use() {
        let mut holes = BTreeMap::from([(0, Hole { bytes: 100, free_after: 0 })]);
        assert_eq!(take(&mut holes, 40), Some((0, 0)));
        assert_eq!(take(&mut holes, 40), Some((40, 0)));
        assert_eq!(take(&mut holes, 40), None);
        give_back(&mut holes, 0, 40, 3);
        assert_eq!(take(&mut holes, 50), None);
        give_back(&mut holes, 40, 40, 2);
        assert_eq!(holes.len(), 1);
        assert_eq!(take(&mut holes, 100), Some((0, 3)));
        assert!(holes.is_empty());
    }
}
