//! Which pieces of device memory are free. The pool takes large segments from the driver and hands out pieces of them: the
//! smallest free piece that is large enough, split where much is left, joined with free neighbours when it comes back.

use std::collections::{BTreeMap, BTreeSet};

use crate::driver::{DevicePointer, Driver};

/// Every piece starts at, and is, a multiple of this: enough for any vector access and for cuDNN.
const GRANULE: usize = 512;
/// Pieces up to this size live in segments of their own, so that they do not break up the large ones.
const SMALL: usize = 1 << 20;
/// Segments of small pieces.
const SMALL_SEGMENT: usize = 16 << 20;
/// Segments of large pieces are at least this large, and a multiple of it.
const LARGE_SEGMENT: usize = 64 << 20;

/// How much device memory is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MemoryUse {
    /// Bytes in buffers now.
    pub current_bytes: usize,
    /// Most bytes in buffers at any time since the last reset.
    pub peak_bytes: usize,
    /// Bytes taken from the driver.
    pub reserved_bytes: usize,
    /// How often the driver was asked for memory.
    pub driver_allocations: usize,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: usize,
    is_free: bool,
    /// First piece of its segment: never joined with the piece before it.
    starts_segment: bool,
    is_small: bool,
}

/// Bookkeeping of the device memory of one context; knows addresses only.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pieces: BTreeMap<DevicePointer, Piece>,
    /// Free pieces by (small, size, address).
    free: BTreeSet<(bool, usize, DevicePointer)>,
    pub(super) usage: MemoryUse,
}

fn round_up(bytes: usize, multiple: usize) -> usize {
    bytes.div_ceil(multiple).max(1).saturating_mul(multiple)
}

impl Pool {
    /// A free piece of at least `bytes`, if the pool has one.
    pub(super) fn take(&mut self, bytes: usize) -> Option<DevicePointer> {
        let bytes = round_up(bytes, GRANULE);
        let is_small = bytes <= SMALL;
        let &(_, size, address) =
            self.free.range((is_small, bytes, 0)..).next().filter(|piece| piece.0 == is_small)?;
        self.free.remove(&(is_small, size, address));
        let piece = self.pieces.get_mut(&address)?;
        piece.is_free = false;
        piece.bytes = bytes;
        if size > bytes {
            let rest = address + bytes as u64;
            self.pieces
                .insert(rest, Piece { bytes: size - bytes, is_free: true, starts_segment: false, is_small });
            self.free.insert((is_small, size - bytes, rest));
        }
        self.usage.current_bytes += bytes;
        self.usage.peak_bytes = self.usage.peak_bytes.max(self.usage.current_bytes);
        Some(address)
    }

    /// Bytes to ask the driver for when no free piece of `bytes` is left.
    pub(super) fn segment_for(bytes: usize) -> usize {
        let bytes = round_up(bytes, GRANULE);
        if bytes <= SMALL { SMALL_SEGMENT } else { round_up(bytes, LARGE_SEGMENT) }
    }

    pub(super) fn add_segment(&mut self, address: DevicePointer, bytes: usize) {
        let is_small = bytes == SMALL_SEGMENT;
        self.pieces.insert(address, Piece { bytes, is_free: true, starts_segment: true, is_small });
        self.free.insert((is_small, bytes, address));
        self.usage.reserved_bytes += bytes;
        self.usage.driver_allocations += 1;
    }

    /// Takes a piece back.
    pub(super) fn give_back(&mut self, address: DevicePointer) {
        let Some(mut piece) = self.pieces.remove(&address) else { return };
        self.usage.current_bytes -= piece.bytes;
        let mut start = address;
        if !piece.starts_segment
            && let Some((&before, &left)) = self.pieces.range(..address).next_back()
            && left.is_free
            && before + left.bytes as u64 == address
        {
            self.pieces.remove(&before);
            self.free.remove(&(left.is_small, left.bytes, before));
            piece = Piece { bytes: left.bytes + piece.bytes, ..left };
            start = before;
        }
        let end = start + piece.bytes as u64;
        if let Some(&right) = self.pieces.get(&end)
            && right.is_free
            && !right.starts_segment
        {
            self.pieces.remove(&end);
            self.free.remove(&(right.is_small, right.bytes, end));
            piece.bytes += right.bytes;
        }
        piece.is_free = true;
        self.pieces.insert(start, piece);
        self.free.insert((piece.is_small, piece.bytes, start));
    }

    /// Removes segments that are wholly free; returns their addresses.
    pub(super) fn remove_free_segments(&mut self) -> Vec<DevicePointer> {
        let mut removed = Vec::new();
        for (&address, piece) in &self.pieces {
            let end = address + piece.bytes as u64;
            let is_whole =
                piece.starts_segment && self.pieces.get(&end).is_none_or(|next| next.starts_segment);
            if piece.is_free && is_whole {
                removed.push(address);
            }
        }
        for address in &removed {
            if let Some(piece) = self.pieces.remove(address) {
                self.free.remove(&(piece.is_small, piece.bytes, *address));
                self.usage.reserved_bytes -= piece.bytes;
            }
        }
        removed
    }

    /// Hands everything back to the driver; for the end of a context.
    pub(crate) fn release_all(&mut self, driver: &Driver) {
        for (&address, piece) in &self.pieces {
            if piece.starts_segment {
                // SAFETY: the segment came from the driver, and its context ends.
                unsafe { (driver.memory_free)(address) };
            }
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool over made-up addresses.
    fn allocate(pool: &mut Pool, next_segment: &mut u64, bytes: usize) -> u64 {
        pool.take(bytes).unwrap_or_else(|| {
            let segment = Pool::segment_for(bytes);
            pool.add_segment(*next_segment, segment);
            *next_segment += segment as u64; // adjacent segments: must not be joined
            pool.take(bytes).unwrap()
        })
    }

    #[test]
    fn a_repeated_step_asks_for_nothing_new() {
        let (mut pool, mut next) = (Pool::default(), 1 << 30);
        let sizes = [3 << 20, 100, 700 << 20, 5, 64 << 20, 65 << 20, 1 << 20];
        let mut after_first = 0;
        for step in 0..4 {
            let held: Vec<u64> = sizes.iter().map(|&bytes| allocate(&mut pool, &mut next, bytes)).collect();
            for (i, a) in held.iter().enumerate() {
                for b in &held[i + 1..] {
                    assert_ne!(a, b);
                }
            }
            for address in held.iter().rev() {
                pool.give_back(*address);
            }
            assert_eq!(pool.usage.current_bytes, 0);
            if step == 0 {
                after_first = pool.usage.driver_allocations;
            }
            assert_eq!(pool.usage.driver_allocations, after_first);
        }
        let reserved = pool.usage.reserved_bytes;
        assert!(reserved < sizes.iter().sum::<usize>() + 6 * LARGE_SEGMENT);
        assert_eq!(pool.remove_free_segments().len(), after_first, "everything joins up again");
        assert_eq!(pool.usage.reserved_bytes, 0);
    }

    #[test]
    fn pieces_never_overlap() {
        let (mut pool, mut next) = (Pool::default(), 1 << 30);
        let mut held: Vec<(u64, usize)> = Vec::new();
        let mut state = 1u64;
        for _ in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = (state >> 33) as usize;
            if held.len() > 20 || (draw.is_multiple_of(3) && !held.is_empty()) {
                let (address, _) = held.swap_remove(draw % held.len());
                pool.give_back(address);
            } else {
                let bytes = 1 + draw % (8 << 20);
                held.push((allocate(&mut pool, &mut next, bytes), bytes));
            }
            let mut sorted = held.clone();
            sorted.sort_unstable();
            assert!(sorted.windows(2).all(|pair| pair[0].0 + pair[0].1 as u64 <= pair[1].0));
            let total: usize = held.iter().map(|piece| round_up(piece.1, GRANULE)).sum();
            assert_eq!(pool.usage.current_bytes, total);
        }
    }
}
