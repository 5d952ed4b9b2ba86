//! Rays that have left their packet: each walks the wide hierarchy by itself.

use simd::{Floats, Lanes, Mask, WIDTH};

use crate::wide::{Entry, MAX_LEVELS, SingleRay, Wide, is_block};

/// What is done with the triangles that a ray meets. A trait, not a closure: closures would not be compiled with the
/// wide instructions.
pub trait Visitor<L: Lanes> {
    /// Whether nearer boxes come first; where not, [`Self::found`] leaves the limit as it is or ends the ray.
    const ORDERED: bool;
    /// The lane, places in a block, their distances and barycentric weights, the first triangle of the block, and
    /// where the ray ends; returns where it ends from there on, or a negative number if it is done.
    fn found(&mut self, lane: usize, mask: Mask, hits: [L; 3], first: u32, limit: f32) -> f32;
}

/// Walks everything that the ray meets from `entry` on before `limit`; returns the limit at the end, which is negative
/// where the visitor was done.
#[inline(always)]
pub fn walk<L: Lanes, V: Visitor<L>>(
    wide: &Wide,
    ray: &SingleRay<L>,
    entry: Entry,
    (lane, limit): (usize, f32),
    visitor: &mut V,
) -> f32 {
    let mut limit = limit;
    // Wide nodes with children that still wait.
    let mut levels = [(0_u32, 0 as Mask); MAX_LEVELS];
    let mut height = 0;
    let mut at = entry;
    loop {
        if is_block(at.reference) {
            let (mask, hits, first) = wide.hits(at.reference, ray, limit);
            let mask = mask & at.places;
            if mask != 0 {
                limit = visitor.found(lane, mask, hits, first, limit);
                if limit < 0.0 {
                    return limit;
                }
            }
        } else {
            // Where the order does not matter, neither does the limit of a ray that goes on: it is the same all the way.
            let entered = if V::ORDERED { Mask::MAX } else { wide.enters(at.reference, ray, limit).0 };
            levels[height] = (at.reference, at.places & entered);
            height += 1;
        }
        // On to the nearest child that still waits, at this level or above.
        loop {
            if height == 0 {
                return limit;
            }
            let (node, waiting) = levels[height - 1];
            let (left, place) = if V::ORDERED {
                let (mask, near) = wide.enters(node, ray, limit);
                let left = mask & waiting;
                (left, nearest_place(left, near))
            } else {
                (waiting, waiting.trailing_zeros() as usize & (WIDTH - 1))
            };
            if left == 0 {
                height -= 1;
                continue;
            }
            let rest = left & !(1 << place);
            levels[height - 1].1 = rest;
            height -= usize::from(rest == 0);
            at = Entry { reference: wide.child(node, place), places: Mask::MAX };
            break;
        }
    }
}

/// The lane of `mask` with the least distance.
#[inline(always)]
fn nearest_place<L: Lanes>(mask: Mask, distances: L) -> usize {
    let mut place = mask.trailing_zeros() as usize & (WIDTH - 1);
    let mut left = mask & mask.wrapping_sub(1);
    if left != 0 {
        let mut values = Floats::splat(0.0);
        distances.store(&mut values);
        while left != 0 {
            let other = left.trailing_zeros() as usize & (WIDTH - 1);
            left &= left - 1;
            if values.0[other] < values.0[place] {
                place = other;
            }
        }
    }
    place
}
