//! Rays against the hierarchy: sixteen at a time, and one at a time for the path tracer.
//!
//! A packet walks the tree once for all its rays, so it pays where neighbouring rays go the same way.

use bytemuck::{Pod, Zeroable};
use glam::Vec3;
use simd::{Floats, Lanes, Mask, WIDTH, multiversion, prefetch};

use crate::bvh::{MAX_DEPTH, Nodes};
use crate::masks::Masks;
use crate::packet::{EDGE, Fan, FanRays, MIN_T, Parallel, ParallelRays, Rays, reciprocal};
use crate::scattered::{Scattered, ScatteredRays};
use crate::wide::Wide;

mod search;
use search::{Leaf, blocked, filtered, nearest};

/// What intersection needs of a triangle, in the order of the leaves.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Triangle {
    /// First corner.
    pub corner: [f32; 3],
    /// 1 - opacity: what a shadow ray keeps.
    pub transparency: f32,
    /// Second corner less the first.
    pub edge1: [f32; 3],
    /// Index in the mesh.
    pub index: u32,
    /// Third corner less the first.
    pub edge2: [f32; 3],
    /// Its number in [`Geometry::masks`], which has its transparency then; or 0.
    pub mask: u32,
    /// `edge1 x edge2`.
    pub normal: [f32; 3],
    /// Unused; keeps triangles at 64 bytes.
    pub more_padding: u32,
}

impl Triangle {
    /// Triangle `index` of the mesh.
    pub fn new([a, b, c]: [Vec3; 3], index: u32, transparency: f32) -> Self {
        Self {
            corner: a.to_array(),
            transparency,
            edge1: (b - a).to_array(),
            index,
            edge2: (c - a).to_array(),
            mask: 0,
            normal: (b - a).cross(c - a).to_array(),
            more_padding: 0,
        }
    }
}

/// The hierarchy and its triangles.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    /// Root first.
    pub nodes: Nodes,
    /// In leaf order.
    pub triangles: Vec<Triangle>,
    /// Whether any triangle lets light through.
    pub has_transparency: bool,
    /// Triangles with holes.
    pub(crate) masks: Masks,
    /// The same for single rays.
    pub wide: Wide,
}

/// `Hit::triangle` where nothing was hit.
pub const MISS: u32 = u32::MAX;

/// Nearest hits of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Hits {
    /// Distance in units of the direction's length.
    pub t: Floats,
    /// Weight of the triangle's second corner.
    pub u: Floats,
    /// Weight of the triangle's third corner.
    pub v: Floats,
    /// Position in leaf order, or [`MISS`].
    pub triangle: [u32; WIDTH],
    /// Lanes that hit.
    pub mask: Mask,
}

impl Hits {
    /// Nothing hit.
    pub const NONE: Self = Self {
        t: Floats::splat(0.0),
        u: Floats::splat(0.0),
        v: Floats::splat(0.0),
        triangle: [MISS; WIDTH],
        mask: 0,
    };
}

/// Nearest hit of one ray.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Distance in units of the direction's length.
    pub t: f32,
    /// Weight of the triangle's second corner.
    pub u: f32,
    /// Weight of the triangle's third corner.
    pub v: f32,
    /// Position in leaf order, or [`MISS`].
    pub triangle: u32,
}

impl Hits {
    /// Hit of one lane.
    #[inline]
    pub fn lane(&self, lane: usize) -> Hit {
        Hit { t: self.t.0[lane], u: self.u.0[lane], v: self.v.0[lane], triangle: self.triangle[lane] }
    }
}

/// As many rays of a packet, or fewer, go on alone when the others have left.
const ALONE: u32 = 3;
/// The same among the triangles of [`LARGE`] meshes.
const ALONE_LARGE: u32 = 6;
/// Meshes with more triangles than this do not fit the nearest memory, which is asked for ahead.
const LARGE: usize = 50_000;
/// Leaves with as many triangles, or fewer, are left to packets.
const SMALL_LEAF: u32 = 4;

/// Walks the nodes that rays enter before their limits, nearest first, calling `leaf` with the triangles of leaves and
/// the limits. `leaf` returns the limits from there on, or `None` to stop. Rays that are left alone go on through the
/// wide hierarchy.
#[inline(always)]
fn walk_packet<L: Lanes, R: Rays<L>>(geometry: &Geometry, rays: &R, limit: L, leaf: &mut impl Leaf<L>) {
    let Some(root) = geometry.nodes.first() else { return };
    let mut limit = limit;
    let mut mask = rays.enters(root, limit);
    if mask == 0 {
        return;
    }
    let large = geometry.triangles.len() > LARGE;
    let backwards = rays.backwards();
    let alone = if !R::MAY_LEAVE || !geometry.wide.is_usable() {
        0
    } else if large {
        ALONE_LARGE
    } else {
        ALONE
    };
    let mut stack = [(0_u32, 0 as Mask); MAX_DEPTH + 4];
    let mut height = 0;
    let mut at = 0_u32;
    loop {
        let node = &geometry.nodes[at as usize];
        if (node.count() == 0 || node.count() > SMALL_LEAF) && mask.count_ones() <= alone {
            match leaf.alone(geometry, rays, (at, mask), limit) {
                Some(next) => limit = next,
                None => return,
            }
        } else if node.count() == 0 {
            // Both children at once: the processor overlaps the two tests.
            let near = node.first + u32::from(backwards[(node.axis() as usize).min(2)]);
            let far = near ^ 1;
            let (near_node, far_node) = (&geometry.nodes[near as usize], &geometry.nodes[far as usize]);
            if large {
                geometry.wide.prefetch_entry(node.first);
                for child in [near_node, far_node] {
                    if let Some(next) = geometry.nodes.get(child.first as usize) {
                        prefetch(next);
                    }
                }
            }
            let (near_mask, far_mask) = (rays.enters(near_node, limit), rays.enters(far_node, limit));
            if near_mask != 0 {
                stack[height] = (far, far_mask);
                height += usize::from(far_mask != 0);
                (at, mask) = (near, near_mask);
                continue;
            }
            if far_mask != 0 {
                (at, mask) = (far, far_mask);
                continue;
            }
        } else {
            let triangles = &geometry.triangles[node.first as usize..][..node.count() as usize];
            match leaf.visit(rays, triangles, node.first, limit) {
                Some(next) => limit = next,
                None => return,
            }
        }
        if height == 0 {
            return;
        }
        height -= 1;
        (at, mask) = stack[height];
    }
}

/// Declares a walk for one kind of packet: compiled once a level, and called through the one for this processor.
macro_rules! walk {
    ($name:ident = $walk:ident($packet:ty as $rays:ident $(, $argument:ident: $type:ty)?) $(-> $result:ty)?) => {
        multiversion! {
            fn $name<S>(geometry: &Geometry, packet: &$packet $(, $argument: $type)?) $(-> $result)? {
                $walk::<S::Sixteen>(geometry, &$rays::new(packet) $(, $argument)?)
            }
        }
    };
}

walk!(nearest_parallel = nearest(Parallel as ParallelRays, hits: &mut Hits));
walk!(nearest_fan = nearest(Fan as FanRays, hits: &mut Hits));
walk!(nearest_scattered = nearest(Scattered as ScatteredRays, hits: &mut Hits));
walk!(blocked_parallel = blocked(Parallel as ParallelRays) -> Mask);
walk!(blocked_fan = blocked(Fan as FanRays) -> Mask);
walk!(filtered_parallel = filtered(Parallel as ParallelRays, left: &mut Floats));
walk!(filtered_fan = filtered(Fan as FanRays, left: &mut Floats));

/// Packets that can be traced.
pub(crate) trait Traceable {
    /// Nearest hits of the active rays; the others miss.
    fn nearest(&self, geometry: &Geometry, hits: &mut Hits);
    /// Active rays that meet any triangle, transparent or not.
    fn blocked(&self, geometry: &Geometry) -> Mask;
    /// What is left of the light along each active ray.
    fn filtered(&self, geometry: &Geometry, left: &mut Floats);
    /// Rays that count.
    fn active(&self) -> Mask;

    /// Share of the light that arrives along each active ray; 0 in the other lanes.
    #[inline]
    fn transmitted(&self, geometry: &Geometry) -> Floats {
        let active = self.active();
        let mut open = Floats::splat(0.0);
        if geometry.has_transparency {
            self.filtered(geometry, &mut open);
            for lane in 0..WIDTH {
                open.0[lane] *= f32::from(active >> lane & 1);
            }
        } else {
            let mask = active & !self.blocked(geometry);
            for lane in 0..WIDTH {
                open.0[lane] = f32::from(mask >> lane & 1);
            }
        }
        open
    }
}

macro_rules! traceable {
    ($packet:ty, $nearest:ident, $blocked:ident, $filtered:ident) => {
        impl Traceable for $packet {
            fn nearest(&self, geometry: &Geometry, hits: &mut Hits) {
                $nearest(geometry, self, hits);
            }
            fn blocked(&self, geometry: &Geometry) -> Mask {
                $blocked(geometry, self)
            }
            fn filtered(&self, geometry: &Geometry, left: &mut Floats) {
                $filtered(geometry, self, left);
            }
            fn active(&self) -> Mask {
                self.active
            }
        }
    };
}
traceable!(Parallel, nearest_parallel, blocked_parallel, filtered_parallel);
traceable!(Fan, nearest_fan, blocked_fan, filtered_fan);

impl Geometry {
    /// About `count` nodes that together contain all triangles: the hierarchy, cut off level by level.
    pub fn cut(&self, count: usize) -> Vec<u32> {
        let mut cut = if self.nodes.is_empty() { Vec::new() } else { vec![0] };
        loop {
            let before = cut.len();
            for position in 0..before {
                let node = &self.nodes[cut[position] as usize];
                if node.count() == 0 && cut.len() < count {
                    cut[position] = node.first;
                    cut.push(node.first + 1);
                }
            }
            if cut.len() == before {
                return cut;
            }
        }
    }

    /// Share of the light that passes a triangle where the weights of its second and third corner are `u`, `v`.
    #[inline(always)]
    pub fn transparency(&self, slot: u32, u: f32, v: f32) -> f32 {
        let triangle = &self.triangles[slot as usize];
        match triangle.mask {
            0 => triangle.transparency,
            mask => self.masks.transparency(mask, u, v),
        }
    }

    /// Nearest hits of rays on their own ways: those of [`Self::nearest_one`].
    pub(crate) fn nearest_of(&self, packet: &Scattered, hits: &mut Hits) {
        nearest_scattered(self, packet, hits);
    }

    /// Nearest hit of one ray.
    pub fn nearest_one(&self, origin: Vec3, direction: Vec3, limit: f32) -> Hit {
        let mut hit = Hit { t: limit, u: 0.0, v: 0.0, triangle: MISS };
        self.walk(origin, direction, limit, |slot, t, u, v| {
            hit = Hit { t, u, v, triangle: slot };
            t
        });
        hit
    }

    /// Share of the light that arrives along one ray.
    pub fn transmitted_one(&self, origin: Vec3, direction: Vec3, limit: f32) -> f32 {
        let mut left = 1.0;
        self.walk(origin, direction, limit, |slot, _, u, v| {
            left *= self.transparency(slot, u, v);
            if left == 0.0 { -1.0 } else { limit }
        });
        left
    }

    /// Calls `found` for triangles along the ray that lie before the limit it last returned.
    fn walk(
        &self,
        origin: Vec3,
        direction: Vec3,
        limit: f32,
        mut found: impl FnMut(u32, f32, f32, f32) -> f32,
    ) {
        let inverse = Vec3::new(reciprocal(direction.x), reciprocal(direction.y), reciprocal(direction.z));
        let mut limit = limit;
        let mut stack = [0_u32; MAX_DEPTH + 4];
        let mut height = usize::from(!self.nodes.is_empty());
        while height > 0 {
            height -= 1;
            let node = &self.nodes[stack[height] as usize];
            let a = (Vec3::from(node.min) - origin) * inverse;
            let b = (Vec3::from(node.max) - origin) * inverse;
            let near = a.min(b).max_element().max(0.0);
            let far = a.max(b).min_element().min(limit);
            if near > far {
                continue;
            }
            if node.count() == 0 {
                let swap = u32::from(direction[(node.axis() as usize).min(2)] < 0.0);
                stack[height] = node.first + (1 - swap);
                stack[height + 1] = node.first + swap;
                height += 2;
                continue;
            }
            for slot in node.first..node.first + node.count() {
                let triangle = &self.triangles[slot as usize];
                let (edge1, edge2) = (Vec3::from(triangle.edge1), Vec3::from(triangle.edge2));
                let p = direction.cross(edge2);
                let inverse = 1.0 / edge1.dot(p);
                let s = origin - Vec3::from(triangle.corner);
                let u = s.dot(p) * inverse;
                let q = s.cross(edge1);
                let v = direction.dot(q) * inverse;
                let t = edge2.dot(q) * inverse;
                if u >= -EDGE && v >= -EDGE && u + v <= 1.0 + EDGE && t > MIN_T && t < limit {
                    limit = found(slot, t, u, v);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
