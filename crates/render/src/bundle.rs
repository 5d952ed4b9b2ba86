//! Rays from sixteen points in many directions, and how they are put into packets.
//!
//! Sixteen rays of one direction share their way as long as the points are close together compared with the triangles;
//! sixteen rays of one point share it through the triangles around the point, however fine they are, which is where
//! rays that leave a surface spend their time. What is found is the same.

use glam::Vec3;
use simd::{Floats, Mask, WIDTH};

use crate::packet::{Fan, Parallel};
use crate::trace::{Geometry, Hits, Traceable};

const ZERO: Floats = Floats::splat(0.0);

/// Rays of sixteen points.
pub(crate) struct Bundle<'a> {
    pub geometry: &'a Geometry,
    /// Where they start, by axis, object frame.
    pub origin: &'a [Floats; 3],
    /// For every direction (or target) the points that send a ray.
    pub wanted: &'a [Mask],
    /// Whether packets are made of the rays of one point, or else of one direction.
    pub by_point: bool,
}

impl Bundle<'_> {
    /// Share of the light that arrives from far away along `directions`, by direction and point; 0 where no ray is
    /// wanted.
    pub fn open_along(&self, directions: impl Fn(usize) -> Vec3) -> Vec<Floats> {
        if self.by_point {
            return self.open(|direction, _| (directions(direction), f32::INFINITY));
        }
        let mut packet = Parallel {
            origin: *self.origin,
            direction: Vec3::Z,
            limit: Floats::splat(f32::INFINITY),
            active: 0,
        };
        let share = |(index, &wanted): (usize, &Mask)| {
            (packet.direction, packet.active) = (directions(index), wanted);
            if wanted == 0 { ZERO } else { packet.transmitted(self.geometry) }
        };
        self.wanted.iter().enumerate().map(share).collect()
    }

    /// Share of the light that arrives from the points `targets`.
    pub fn open_from(&self, targets: impl Fn(usize) -> Vec3) -> Vec<Floats> {
        if self.by_point {
            return self.open(|target, origin| (targets(target) - origin, 1.0));
        }
        let share = |(index, &wanted): (usize, &Mask)| {
            if wanted == 0 {
                return ZERO;
            }
            Fan::to_points(targets(index), self.origin, wanted).transmitted(self.geometry)
        };
        self.wanted.iter().enumerate().map(share).collect()
    }

    fn open(&self, ray: impl Fn(usize, Vec3) -> (Vec3, f32)) -> Vec<Floats> {
        let mut open = vec![ZERO; self.wanted.len()];
        self.each_fan(
            |index, origin, _| ray(index, origin),
            |fan, lane, used| {
                let share = fan.transmitted(self.geometry);
                for (slot, &index) in used.iter().enumerate() {
                    open[index as usize].0[lane] = share.0[slot];
                }
            },
        );
        open
    }

    /// Nearest hits along `directions` up to `limits`, by direction and point.
    pub fn nearest(&self, directions: impl Fn(usize) -> Vec3, limits: &[Floats]) -> Vec<Hits> {
        let mut hits = vec![Hits::NONE; self.wanted.len()];
        if !self.by_point {
            let mut packet = Parallel { origin: *self.origin, direction: Vec3::Z, limit: ZERO, active: 0 };
            for (index, hits) in hits.iter_mut().enumerate().filter(|(index, _)| self.wanted[*index] != 0) {
                (packet.direction, packet.active) = (directions(index), self.wanted[index]);
                packet.limit = limits[index];
                packet.nearest(self.geometry, hits);
            }
            return hits;
        }
        let mut found = Hits::NONE;
        self.each_fan(
            |direction, _, lane| (directions(direction), limits[direction].0[lane]),
            |fan, lane, used| {
                fan.nearest(self.geometry, &mut found);
                for (slot, &direction) in used.iter().enumerate() {
                    if found.mask >> slot & 1 != 0 {
                        let to = &mut hits[direction as usize];
                        to.t.0[lane] = found.t.0[slot];
                        to.u.0[lane] = found.u.0[slot];
                        to.v.0[lane] = found.v.0[slot];
                        to.triangle[lane] = found.triangle[slot];
                        to.mask |= 1 << lane;
                    }
                }
            },
        );
        hits
    }

    /// Calls `trace` with the rays of one point at a time, sixteen or fewer, its lane, and the directions they have.
    /// `ray` makes a direction and its limit from a direction's index, a point and its lane.
    fn each_fan(
        &self,
        ray: impl Fn(usize, Vec3, usize) -> (Vec3, f32),
        mut trace: impl FnMut(&Fan, usize, &[u16]),
    ) {
        let mut used = [0_u16; WIDTH];
        for lane in 0..WIDTH {
            let origin = Vec3::from(self.origin.each_ref().map(|axis| axis.0[lane]));
            let mut fan = Fan { origin, direction: [ZERO; 3], limit: ZERO, active: 0 };
            let mut count = 0;
            for (index, wanted) in self.wanted.iter().enumerate() {
                if wanted >> lane & 1 != 0 {
                    let (direction, limit) = ray(index, origin, lane);
                    for axis in 0..3 {
                        fan.direction[axis].0[count] = direction[axis];
                    }
                    fan.limit.0[count] = limit;
                    used[count] = index as u16;
                    count += 1;
                }
                if count == WIDTH || (count > 0 && index + 1 == self.wanted.len()) {
                    fan.active = ((1_u32 << count) - 1) as Mask;
                    trace(&fan, lane, &used[..count]);
                    count = 0;
                }
            }
        }
    }
}
