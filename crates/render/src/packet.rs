//! Sixteen rays that share a direction ([`Parallel`]) or an origin ([`Fan`]).
//!
//! That is how the presets arrange all their rays: neighbouring points look in one direction, at one lamp point, or
//! are looked at by the camera. What is shared is computed once a box or triangle instead of once a ray.

use glam::Vec3;
use simd::{Floats, Lanes, Mask, WIDTH};

use crate::bvh::Node;
use crate::trace::Triangle;

/// Nearer hits than this are the surface the ray started from.
pub(crate) const MIN_T: f32 = 1e-6;
/// Barycentric tolerance that closes the seams between neighbouring triangles.
pub(crate) const EDGE: f32 = 1e-6;
/// Keeps reciprocal directions finite.
const TINY: f32 = 1e-12;

/// Rays with one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parallel {
    /// Where they start, by axis.
    pub origin: [Floats; 3],
    /// Need not be a unit vector.
    pub direction: Vec3,
    /// Where each ends, in units of the direction's length.
    pub limit: Floats,
    /// Rays that count.
    pub active: Mask,
}

/// Rays with one origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fan {
    /// Where they all start.
    pub origin: Vec3,
    /// Where they go, by axis; need not be unit vectors.
    pub direction: [Floats; 3],
    /// Where each ends, in units of its direction's length.
    pub limit: Floats,
    /// Rays that count.
    pub active: Mask,
}

impl Fan {
    /// Rays from `origin` to sixteen points.
    #[inline]
    pub fn to_points(origin: Vec3, points: &[Floats; 3], active: Mask) -> Self {
        let mut fan = Self { origin, direction: *points, limit: Floats::splat(1.0), active };
        for axis in 0..3 {
            for lane in 0..WIDTH {
                fan.direction[axis].0[lane] -= origin[axis];
            }
        }
        fan
    }
}

/// `1 / d`, finite.
#[inline]
pub(crate) fn reciprocal(d: f32) -> f32 {
    1.0 / if d.abs() < TINY { TINY.copysign(d) } else { d }
}

/// A packet in registers. No closures and no `array::map` in implementations: they would not be compiled with the
/// wide instructions.
pub(crate) trait Rays<L: Lanes> {
    /// Whether rays may leave the packet to go on alone.
    const MAY_LEAVE: bool = true;
    /// Rays that count, and where they end; -1 in the others.
    fn start(&self) -> (Mask, L);
    /// For each axis whether the rays run backwards, by the first active ray.
    fn backwards(&self) -> [bool; 3];
    /// Lanes whose ray meets the node's box before `limit`.
    fn enters(&self, node: &Node, limit: L) -> Mask;
    /// Lanes whose ray hits the triangle before `limit`, with distance and barycentric weights (Möller, Trumbore).
    fn hits(&self, triangle: &Triangle, limit: L) -> (Mask, L, L, L);
    /// Origin and direction of one ray.
    fn lane(&self, lane: usize) -> (Vec3, Vec3);
}

/// Three axes from memory.
#[inline(always)]
pub(crate) fn load<L: Lanes>(from: &[Floats; 3]) -> [L; 3] {
    [L::load(&from[0]), L::load(&from[1]), L::load(&from[2])]
}

#[inline(always)]
fn dot<L: Lanes>(a: &[L; 3], b: Vec3) -> L {
    a[0].mul(L::splat(b.x)).add(a[1].mul(L::splat(b.y))).add(a[2].mul(L::splat(b.z)))
}

/// Lanes whose ray hits within the triangle, between its start and `limit`.
#[inline(always)]
pub(crate) fn inside<L: Lanes>(t: L, u: L, v: L, limit: L) -> Mask {
    let low = L::splat(-EDGE);
    low.le(u) & low.le(v) & u.add(v).le(L::splat(1.0 + EDGE)) & L::splat(MIN_T).lt(t) & t.lt(limit)
}

/// A node's numbers: lower corner at 0, upper corner at 4.
#[inline(always)]
fn floats(node: &Node) -> &[f32; 8] {
    bytemuck::cast_ref(node)
}

/// [`Parallel`] in registers.
pub(crate) struct ParallelRays<'a, L> {
    packet: &'a Parallel,
    origin: [L; 3],
    /// Origins times the reciprocal direction.
    scaled: [L; 3],
    direction: Vec3,
    inverse: [f32; 3],
    /// Where in a node the planes lie that rays enter and leave by.
    near: [usize; 3],
    far: [usize; 3],
    active: Mask,
    limit: L,
}

impl<'a, L: Lanes> ParallelRays<'a, L> {
    #[inline(always)]
    pub fn new(packet: &'a Parallel) -> Self {
        let d = packet.direction;
        let inverse = [reciprocal(d.x), reciprocal(d.y), reciprocal(d.z)];
        let origin: [L; 3] = load(&packet.origin);
        let offset = [
            4 * usize::from(inverse[0] < 0.0),
            4 * usize::from(inverse[1] < 0.0),
            4 * usize::from(inverse[2] < 0.0),
        ];
        Self {
            packet,
            scaled: [
                origin[0].mul(L::splat(inverse[0])),
                origin[1].mul(L::splat(inverse[1])),
                origin[2].mul(L::splat(inverse[2])),
            ],
            origin,
            direction: d,
            inverse,
            near: [offset[0], 1 + offset[1], 2 + offset[2]],
            far: [4 - offset[0], 5 - offset[1], 6 - offset[2]],
            active: packet.active,
            limit: L::select(packet.active, L::load(&packet.limit), L::splat(-1.0)),
        }
    }
}

impl<L: Lanes> Rays<L> for ParallelRays<'_, L> {
    #[inline(always)]
    fn lane(&self, lane: usize) -> (Vec3, Vec3) {
        let origin = &self.packet.origin;
        (Vec3::new(origin[0].0[lane], origin[1].0[lane], origin[2].0[lane]), self.direction)
    }

    #[inline(always)]
    fn start(&self) -> (Mask, L) {
        (self.active, self.limit)
    }

    #[inline(always)]
    fn backwards(&self) -> [bool; 3] {
        [self.inverse[0] < 0.0, self.inverse[1] < 0.0, self.inverse[2] < 0.0]
    }

    #[inline(always)]
    fn enters(&self, node: &Node, limit: L) -> Mask {
        let planes = floats(node);
        let (mut near, mut far) = (L::splat(0.0), limit);
        for axis in 0..3 {
            let enter = L::splat(planes[self.near[axis] & 7] * self.inverse[axis]).sub(self.scaled[axis]);
            let leave = L::splat(planes[self.far[axis] & 7] * self.inverse[axis]).sub(self.scaled[axis]);
            near = near.max(enter);
            far = far.min(leave);
        }
        near.le(far)
    }

    #[inline(always)]
    fn hits(&self, triangle: &Triangle, limit: L) -> (Mask, L, L, L) {
        let (edge1, edge2) = (Vec3::from(triangle.edge1), Vec3::from(triangle.edge2));
        let normal = Vec3::from(triangle.normal);
        let inverse = L::splat(-1.0 / self.direction.dot(normal));
        let s = [
            self.origin[0].sub(L::splat(triangle.corner[0])),
            self.origin[1].sub(L::splat(triangle.corner[1])),
            self.origin[2].sub(L::splat(triangle.corner[2])),
        ];
        let u = dot(&s, self.direction.cross(edge2)).mul(inverse);
        let v = dot(&s, edge1.cross(self.direction)).mul(inverse);
        let t = dot(&s, normal).mul(inverse);
        (inside(t, u, v, limit), t, u, v)
    }
}

/// [`Fan`] in registers.
pub(crate) struct FanRays<'a, L> {
    packet: &'a Fan,
    origin: Vec3,
    direction: [L; 3],
    inverse: [L; 3],
    backwards: [bool; 3],
    /// Whether all active rays run the same way along every axis.
    uniform: bool,
    active: Mask,
    limit: L,
}

#[inline(always)]
pub(crate) fn reciprocals<L: Lanes>(d: L) -> L {
    let (tiny, zero) = (L::splat(TINY), L::splat(0.0));
    let size = d.max(zero.sub(d));
    let least = L::select(d.lt(zero), zero.sub(tiny), tiny);
    L::splat(1.0).div(L::select(size.lt(tiny), least, d))
}

/// What is left of the way from `near` to `far` between two planes, which rays meet at `a` and `b`, in either order.
#[inline(always)]
pub(crate) fn within<L: Lanes>(near: L, far: L, a: L, b: L) -> (L, L) {
    (near.max(a.min(b)), far.min(a.max(b)))
}

#[inline(always)]
fn same_sign<L: Lanes>(d: L, active: Mask) -> bool {
    let negative = d.lt(L::splat(0.0)) & active;
    negative == 0 || negative == active
}

impl<'a, L: Lanes> FanRays<'a, L> {
    #[inline(always)]
    pub fn new(packet: &'a Fan) -> Self {
        let direction: [L; 3] = load(&packet.direction);
        let lead = (packet.active.trailing_zeros() as usize).min(WIDTH - 1);
        let leading = [packet.direction[0].0[lead], packet.direction[1].0[lead], packet.direction[2].0[lead]];
        Self {
            packet,
            origin: packet.origin,
            inverse: [reciprocals(direction[0]), reciprocals(direction[1]), reciprocals(direction[2])],
            uniform: same_sign(direction[0], packet.active)
                && same_sign(direction[1], packet.active)
                && same_sign(direction[2], packet.active),
            direction,
            backwards: [leading[0] < 0.0, leading[1] < 0.0, leading[2] < 0.0],
            active: packet.active,
            limit: L::select(packet.active, L::load(&packet.limit), L::splat(-1.0)),
        }
    }
}

impl<L: Lanes> Rays<L> for FanRays<'_, L> {
    #[inline(always)]
    fn lane(&self, lane: usize) -> (Vec3, Vec3) {
        let direction = &self.packet.direction;
        (self.origin, Vec3::new(direction[0].0[lane], direction[1].0[lane], direction[2].0[lane]))
    }

    #[inline(always)]
    fn start(&self) -> (Mask, L) {
        (self.active, self.limit)
    }

    #[inline(always)]
    fn backwards(&self) -> [bool; 3] {
        self.backwards
    }

    #[inline(always)]
    fn enters(&self, node: &Node, limit: L) -> Mask {
        let (mut near, mut far) = (L::splat(0.0), limit);
        if self.uniform {
            let planes = floats(node);
            for axis in 0..3 {
                let back = 4 * usize::from(self.backwards[axis]);
                let (enter, leave) = (planes[axis + back], planes[axis + 4 - back]);
                near = near.max(L::splat(enter - self.origin[axis]).mul(self.inverse[axis]));
                far = far.min(L::splat(leave - self.origin[axis]).mul(self.inverse[axis]));
            }
            return near.le(far);
        }
        for axis in 0..3 {
            let a = L::splat(node.min[axis] - self.origin[axis]).mul(self.inverse[axis]);
            let b = L::splat(node.max[axis] - self.origin[axis]).mul(self.inverse[axis]);
            (near, far) = within(near, far, a, b);
        }
        near.le(far)
    }

    #[inline(always)]
    fn hits(&self, triangle: &Triangle, limit: L) -> (Mask, L, L, L) {
        let (edge1, edge2) = (Vec3::from(triangle.edge1), Vec3::from(triangle.edge2));
        let s = self.origin - Vec3::from(triangle.corner);
        let q = s.cross(edge1);
        let inverse = L::splat(-1.0).div(dot(&self.direction, Vec3::from(triangle.normal)));
        let u = dot(&self.direction, edge2.cross(s)).mul(inverse);
        let v = dot(&self.direction, q).mul(inverse);
        let t = L::splat(edge2.dot(q)).mul(inverse);
        (inside(t, u, v, limit), t, u, v)
    }
}
