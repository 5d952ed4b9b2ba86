//! Rays against the hierarchy: sixteen at a time ([`Packet`]), and one at a time for the path tracer.
//!
//! A packet walks the tree once for all its rays, so it pays where neighbouring rays go the same way: camera rays,
//! and rays of neighbouring points in one direction or to one lamp point, which is how the presets arrange them.

use bytemuck::{Pod, Zeroable};
use glam::Vec3;

use crate::bvh::{MAX_DEPTH, Node};
use crate::lanes::{Floats, Lanes, Level, Mask, Portable, WIDTH, level};

/// What intersection needs of a triangle, in the order of the leaves.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
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
    /// Unused; keeps triangles at 48 bytes.
    pub padding: u32,
}

/// The hierarchy and its triangles.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    /// Root first.
    pub nodes: Vec<Node>,
    /// In leaf order.
    pub triangles: Vec<Triangle>,
    /// Whether any triangle lets light through.
    pub has_transparency: bool,
}

/// `Hit::triangle` where nothing was hit.
pub const MISS: u32 = u32::MAX;

/// Sixteen rays in the object frame. Directions need not be unit vectors; `limit` is in units of their length.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// Origins, by axis.
    pub origin: [Floats; 3],
    /// Directions, by axis.
    pub direction: [Floats; 3],
    /// Where each ray ends.
    pub limit: Floats,
    /// Rays that count.
    pub active: Mask,
}

impl Default for Packet {
    fn default() -> Self {
        Self {
            origin: [Floats::splat(0.0); 3],
            direction: [Floats::splat(0.0), Floats::splat(0.0), Floats::splat(1.0)],
            limit: Floats::splat(0.0),
            active: 0,
        }
    }
}

impl Packet {
    /// Sets ray `lane`.
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

/// Nearer hits than this are the surface the ray started from.
const MIN_T: f32 = 1e-6;
/// Barycentric tolerance that closes the seams between neighbouring triangles.
const EDGE: f32 = 1e-6;
/// Keeps reciprocal directions finite.
const TINY: f32 = 1e-12;

#[inline]
fn reciprocal(d: f32) -> f32 {
    1.0 / if d.abs() < TINY { TINY.copysign(d) } else { d }
}

#[inline(always)]
fn reciprocals<L: Lanes>(d: L) -> L {
    let (tiny, zero) = (L::splat(TINY), L::splat(0.0));
    let size = d.max(zero.sub(d));
    let least = L::select(d.lt(zero), zero.sub(tiny), tiny);
    L::splat(1.0).div(L::select(size.lt(tiny), least, d))
}

#[inline(always)]
fn load<L: Lanes>(from: &[Floats; 3]) -> [L; 3] {
    [L::load(&from[0]), L::load(&from[1]), L::load(&from[2])]
}

#[inline(always)]
fn splat<L: Lanes>(values: &[f32; 3]) -> [L; 3] {
    [L::splat(values[0]), L::splat(values[1]), L::splat(values[2])]
}

struct Rays<L> {
    origin: [L; 3],
    direction: [L; 3],
    inverse: [L; 3],
}

impl<L: Lanes> Rays<L> {
    #[inline(always)]
    fn new(packet: &Packet) -> Self {
        // No closures and no `array::map` here: they would not be compiled with the wide instructions.
        let (origin, direction) = (load(&packet.origin), load(&packet.direction));
        let inverse = [reciprocals(direction[0]), reciprocals(direction[1]), reciprocals(direction[2])];
        Self { origin, direction, inverse }
    }

    /// Lanes whose ray meets the node's box before `limit`.
    #[inline(always)]
    fn enters(&self, node: &Node, limit: L) -> Mask {
        let (mut near, mut far) = (L::splat(0.0), limit);
        for axis in 0..3 {
            let a = L::splat(node.min[axis]).sub(self.origin[axis]).mul(self.inverse[axis]);
            let b = L::splat(node.max[axis]).sub(self.origin[axis]).mul(self.inverse[axis]);
            near = near.max(a.min(b));
            far = far.min(a.max(b));
        }
        // Rounding may close a box that a ray only grazes.
        near.le(far.mul(L::splat(1.000_001)))
    }

    /// Möller and Trumbore's test: lanes that hit before `limit`, with distance and barycentric weights.
    #[inline(always)]
    fn hits(&self, triangle: &Triangle, limit: L) -> (Mask, L, L, L) {
        let (edge1, edge2) = (splat(&triangle.edge1), splat(&triangle.edge2));
        let p = cross(&self.direction, &edge2);
        let determinant = dot(&edge1, &p);
        let inverse = L::splat(1.0).div(determinant);
        let corner: [L; 3] = splat(&triangle.corner);
        let s = [self.origin[0].sub(corner[0]), self.origin[1].sub(corner[1]), self.origin[2].sub(corner[2])];
        let u = dot(&s, &p).mul(inverse);
        let q = cross(&s, &edge1);
        let v = dot(&self.direction, &q).mul(inverse);
        let t = dot(&edge2, &q).mul(inverse);
        let low = L::splat(-EDGE);
        let inside = low.le(u) & low.le(v) & u.add(v).le(L::splat(1.0 + EDGE));
        (inside & L::splat(MIN_T).lt(t) & t.lt(limit), t, u, v)
    }
}

#[inline(always)]
fn dot<L: Lanes>(a: &[L; 3], b: &[L; 3]) -> L {
    a[0].mul(b[0]).add(a[1].mul(b[1])).add(a[2].mul(b[2]))
}

#[inline(always)]
fn cross<L: Lanes>(a: &[L; 3], b: &[L; 3]) -> [L; 3] {
    [
        a[1].mul(b[2]).sub(a[2].mul(b[1])),
        a[2].mul(b[0]).sub(a[0].mul(b[2])),
        a[0].mul(b[1]).sub(a[1].mul(b[0])),
    ]
}

#[inline(always)]
fn nearest<L: Lanes>(geometry: &Geometry, packet: &Packet, hits: &mut Hits) {
    let rays = Rays::<L>::new(packet);
    let active = packet.active;
    let zero = L::splat(0.0);
    let (mut t, mut u, mut v) = (L::select(active, L::load(&packet.limit), L::splat(-1.0)), zero, zero);
    let mut index = L::splat(f32::from_bits(MISS));
    let lead = (active.trailing_zeros() as usize).min(WIDTH - 1);
    let directions = &packet.direction;
    let backwards = [directions[0].0[lead] < 0.0, directions[1].0[lead] < 0.0, directions[2].0[lead] < 0.0];
    let mut stack = [0_u32; MAX_DEPTH + 4];
    let mut height = usize::from(active != 0 && !geometry.nodes.is_empty());
    while height > 0 {
        height -= 1;
        let node = &geometry.nodes[stack[height] as usize];
        if rays.enters(node, t) == 0 {
            continue;
        }
        if node.count() == 0 {
            let swap = u32::from(backwards[(node.axis() as usize).min(2)]);
            stack[height] = node.first + (1 - swap);
            stack[height + 1] = node.first + swap;
            height += 2;
        } else {
            for slot in node.first..node.first + node.count() {
                let (mask, hit_t, hit_u, hit_v) = rays.hits(&geometry.triangles[slot as usize], t);
                if mask != 0 {
                    t = L::select(mask, hit_t, t);
                    u = L::select(mask, hit_u, u);
                    v = L::select(mask, hit_v, v);
                    index = L::select(mask, L::splat(f32::from_bits(slot)), index);
                }
            }
        }
    }
    t.store(&mut hits.t);
    u.store(&mut hits.u);
    v.store(&mut hits.v);
    let mut bits = Floats::splat(0.0);
    index.store(&mut bits);
    for lane in 0..WIDTH {
        hits.triangle[lane] = bits.0[lane].to_bits();
    }
}

/// Rays that meet an opaque triangle.
#[inline(always)]
fn blocked<L: Lanes>(geometry: &Geometry, packet: &Packet) -> Mask {
    let rays = Rays::<L>::new(packet);
    let mut open = packet.active;
    let mut limit = L::select(open, L::load(&packet.limit), L::splat(-1.0));
    let mut stack = [0_u32; MAX_DEPTH + 4];
    let mut height = usize::from(open != 0 && !geometry.nodes.is_empty());
    while height > 0 {
        height -= 1;
        let node = &geometry.nodes[stack[height] as usize];
        if rays.enters(node, limit) == 0 {
            continue;
        }
        if node.count() == 0 {
            stack[height] = node.first + 1;
            stack[height + 1] = node.first;
            height += 2;
        } else {
            for slot in node.first..node.first + node.count() {
                open &= !rays.hits(&geometry.triangles[slot as usize], limit).0;
            }
            if open == 0 {
                break;
            }
            limit = L::select(open, limit, L::splat(-1.0));
        }
    }
    packet.active & !open
}

/// What is left of the light along each ray: the product of the transparencies it passes.
#[inline(always)]
fn filtered<L: Lanes>(geometry: &Geometry, packet: &Packet, left: &mut Floats) {
    let rays = Rays::<L>::new(packet);
    let limit = L::select(packet.active, L::load(&packet.limit), L::splat(-1.0));
    let mut light = L::splat(1.0);
    let mut stack = [0_u32; MAX_DEPTH + 4];
    let mut height = usize::from(packet.active != 0 && !geometry.nodes.is_empty());
    while height > 0 {
        height -= 1;
        let node = &geometry.nodes[stack[height] as usize];
        if rays.enters(node, limit) == 0 {
            continue;
        }
        if node.count() == 0 {
            stack[height] = node.first + 1;
            stack[height + 1] = node.first;
            height += 2;
        } else {
            for slot in node.first..node.first + node.count() {
                let triangle = &geometry.triangles[slot as usize];
                let mask = rays.hits(triangle, limit).0;
                light = L::select(mask, light.mul(L::splat(triangle.transparency)), light);
            }
        }
    }
    light.store(left);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Floats, Geometry, Hits, Mask, Packet};
    use crate::lanes::x86::{Avx2, Avx512};

    macro_rules! versions {
        ($module:ident, $lanes:ty, $features:literal) => {
            pub mod $module {
                use super::*;
                #[target_feature(enable = $features)]
                pub fn nearest(geometry: &Geometry, packet: &Packet, hits: &mut Hits) {
                    super::super::nearest::<$lanes>(geometry, packet, hits);
                }
                #[target_feature(enable = $features)]
                pub fn blocked(geometry: &Geometry, packet: &Packet) -> Mask {
                    super::super::blocked::<$lanes>(geometry, packet)
                }
                #[target_feature(enable = $features)]
                pub fn filtered(geometry: &Geometry, packet: &Packet, left: &mut Floats) {
                    super::super::filtered::<$lanes>(geometry, packet, left);
                }
            }
        };
    }
    versions!(wide, Avx512, "avx512f,avx512vl,avx512dq,avx512bw");
    versions!(narrow, Avx2, "avx2");
}

/// Picks the version for this processor.
macro_rules! dispatch {
    ($name:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            match level() {
                // Safety: the level says that the processor has the features.
                Level::Wide => return unsafe { x86::wide::$name($($argument),*) },
                Level::Narrow => return unsafe { x86::narrow::$name($($argument),*) },
                Level::Least => {}
            }
        }
        $name::<Portable>($($argument),*)
    }};
}

impl Geometry {
    /// Nearest hits of the active rays; the others miss.
    pub fn nearest(&self, packet: &Packet, hits: &mut Hits) {
        dispatch!(nearest(self, packet, hits))
    }

    /// Active rays that meet any triangle, transparent or not.
    pub fn blocked(&self, packet: &Packet) -> Mask {
        dispatch!(blocked(self, packet))
    }

    fn filtered(&self, packet: &Packet, left: &mut Floats) {
        dispatch!(filtered(self, packet, left))
    }

    /// Share of the light that arrives along each active ray.
    #[inline]
    pub fn transmitted(&self, packet: &Packet) -> [f32; WIDTH] {
        if self.has_transparency {
            let mut left = Floats::splat(1.0);
            self.filtered(packet, &mut left);
            left.0
        } else {
            let blocked = self.blocked(packet);
            std::array::from_fn(|lane| if blocked >> lane & 1 != 0 { 0.0 } else { 1.0 })
        }
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
        self.walk(origin, direction, limit, |slot, _, _, _| {
            left *= self.triangles[slot as usize].transparency;
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
            if near > far * 1.000_001 {
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
