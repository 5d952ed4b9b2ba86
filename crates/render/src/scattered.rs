//! Sixteen rays that share neither origin nor direction ([`Scattered`]): camera rays that go on behind a transparent
//! surface.
//!
//! They are computed as [`crate::trace::Geometry::nearest_one`] computes one ray, to the last bit, so that it does not
//! matter which of them travel together.

use glam::Vec3;
use simd::{Floats, Lanes, Mask, WIDTH};

use crate::bvh::Node;
use crate::packet::{Rays, inside, load, reciprocals, within};
use crate::trace::Triangle;
use crate::wide::{cross, dot, splat};

/// Rays on their own ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scattered {
    /// Where they start, by axis.
    pub origin: [Floats; 3],
    /// Where they go, by axis; need not be unit vectors.
    pub direction: [Floats; 3],
    /// Where each ends, in units of its direction's length.
    pub limit: Floats,
    /// Rays that count.
    pub active: Mask,
}

impl Scattered {
    /// No rays.
    pub const NONE: Self = {
        let zero = Floats::splat(0.0);
        Self { origin: [zero; 3], direction: [zero; 3], limit: zero, active: 0 }
    };

    /// Adds a ray in a lane.
    #[inline]
    pub fn set(&mut self, lane: usize, origin: Vec3, direction: Vec3, limit: f32) {
        for axis in 0..3 {
            self.origin[axis].0[lane] = origin[axis];
            self.direction[axis].0[lane] = direction[axis];
        }
        self.limit.0[lane] = limit;
        self.active |= 1 << lane;
    }
}

/// [`Scattered`] in registers.
pub(crate) struct ScatteredRays<'a, L> {
    packet: &'a Scattered,
    origin: [L; 3],
    direction: [L; 3],
    inverse: [L; 3],
    backwards: [bool; 3],
    limit: L,
}

impl<'a, L: Lanes> ScatteredRays<'a, L> {
    #[inline(always)]
    pub fn new(packet: &'a Scattered) -> Self {
        let direction: [L; 3] = load(&packet.direction);
        let lead = (packet.active.trailing_zeros() as usize).min(WIDTH - 1);
        Self {
            packet,
            origin: load(&packet.origin),
            inverse: [reciprocals(direction[0]), reciprocals(direction[1]), reciprocals(direction[2])],
            direction,
            backwards: [
                packet.direction[0].0[lead] < 0.0,
                packet.direction[1].0[lead] < 0.0,
                packet.direction[2].0[lead] < 0.0,
            ],
            limit: L::select(packet.active, L::load(&packet.limit), L::splat(-1.0)),
        }
    }
}

impl<L: Lanes> Rays<L> for ScatteredRays<'_, L> {
    const MAY_LEAVE: bool = false;

    #[inline(always)]
    fn lane(&self, lane: usize) -> (Vec3, Vec3) {
        let (origin, direction) = (&self.packet.origin, &self.packet.direction);
        (
            Vec3::new(origin[0].0[lane], origin[1].0[lane], origin[2].0[lane]),
            Vec3::new(direction[0].0[lane], direction[1].0[lane], direction[2].0[lane]),
        )
    }

    #[inline(always)]
    fn start(&self) -> (Mask, L) {
        (self.packet.active, self.limit)
    }

    #[inline(always)]
    fn backwards(&self) -> [bool; 3] {
        self.backwards
    }

    #[inline(always)]
    fn enters(&self, node: &Node, limit: L) -> Mask {
        let (mut near, mut far) = (L::splat(0.0), limit);
        for axis in 0..3 {
            let a = L::splat(node.min[axis]).sub(self.origin[axis]).mul(self.inverse[axis]);
            let b = L::splat(node.max[axis]).sub(self.origin[axis]).mul(self.inverse[axis]);
            (near, far) = within(near, far, a, b);
        }
        near.le(far)
    }

    #[inline(always)]
    fn hits(&self, triangle: &Triangle, limit: L) -> (Mask, L, L, L) {
        let edge1: [L; 3] = splat(Vec3::from(triangle.edge1));
        let edge2: [L; 3] = splat(Vec3::from(triangle.edge2));
        let p = cross(&self.direction, &edge2);
        let inverse = L::splat(1.0).div(dot(&edge1, &p));
        let corner: [L; 3] = splat(Vec3::from(triangle.corner));
        let s = [self.origin[0].sub(corner[0]), self.origin[1].sub(corner[1]), self.origin[2].sub(corner[2])];
        let u = dot(&s, &p).mul(inverse);
        let q = cross(&s, &edge1);
        let v = dot(&self.direction, &q).mul(inverse);
        let t = dot(&edge2, &q).mul(inverse);
        (inside(t, u, v, limit), t, u, v)
    }
}
