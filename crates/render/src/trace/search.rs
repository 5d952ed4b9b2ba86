//! What packets look for: the nearest triangle, any triangle, or what transparent triangles let through; by packet at
//! the leaves, and ray by ray where rays go on alone.

use glam::Vec3;
use simd::{Floats, Lanes, Mask, WIDTH};

use super::{Geometry, Hits, MISS, Triangle, walk_packet};
use crate::alone::{Visitor, walk};
use crate::packet::{Rays, reciprocal};
use crate::wide::SingleRay;

/// Lets some rays go on alone from a node; returns where they end afterwards.
#[inline(always)]
fn go_on<L: Lanes>(
    geometry: &Geometry,
    rays: &impl Rays<L>,
    (at, mask): (u32, Mask),
    limit: L,
    visitor: &mut impl Visitor<L>,
) -> L {
    let entry = geometry.wide.entry(at);
    let mut limits = Floats::splat(0.0);
    limit.store(&mut limits);
    let mut left = mask;
    while left != 0 {
        let lane = left.trailing_zeros() as usize & (WIDTH - 1);
        left &= left - 1;
        if limits.0[lane] >= 0.0 {
            let (origin, d) = rays.lane(lane);
            let inverse = Vec3::new(reciprocal(d.x), reciprocal(d.y), reciprocal(d.z));
            let ray = SingleRay::new(origin, d, inverse);
            limits.0[lane] = walk(&geometry.wide, &ray, entry, (lane, limits.0[lane]), visitor);
        }
    }
    L::load(&limits)
}

/// What a walk does at a leaf. A trait, not a closure: closures would not be compiled with the wide instructions.
pub(super) trait Leaf<L: Lanes> {
    fn visit(&mut self, rays: &impl Rays<L>, triangles: &[Triangle], first: u32, limit: L) -> Option<L>;
    /// The same for single rays and all leaves below them.
    fn alone(&mut self, geometry: &Geometry, rays: &impl Rays<L>, at: (u32, Mask), limit: L) -> Option<L>;
}

struct Nearest<L> {
    u: L,
    v: L,
    /// Bits of the triangles' positions.
    index: L,
    t: L,
    any: Mask,
}

impl<L: Lanes> Leaf<L> for Nearest<L> {
    #[inline(always)]
    fn visit(&mut self, rays: &impl Rays<L>, triangles: &[Triangle], first: u32, limit: L) -> Option<L> {
        let mut limit = limit;
        for (slot, triangle) in triangles.iter().enumerate() {
            let (mask, t, u, v) = rays.hits(triangle, limit);
            if mask != 0 {
                self.any |= mask;
                limit = L::select(mask, t, limit);
                self.u = L::select(mask, u, self.u);
                self.v = L::select(mask, v, self.v);
                self.index = L::select(mask, L::splat(f32::from_bits(first + slot as u32)), self.index);
            }
        }
        self.t = limit;
        Some(limit)
    }

    #[inline(always)]
    fn alone(&mut self, geometry: &Geometry, rays: &impl Rays<L>, at: (u32, Mask), limit: L) -> Option<L> {
        let zero = Floats::splat(0.0);
        let mut found = NearestAlone { u: zero, v: zero, index: zero, mask: 0 };
        let limit = go_on(geometry, rays, at, limit, &mut found);
        self.any |= found.mask;
        self.u = L::select(found.mask, L::load(&found.u), self.u);
        self.v = L::select(found.mask, L::load(&found.v), self.v);
        self.index = L::select(found.mask, L::load(&found.index), self.index);
        self.t = limit;
        Some(self.t)
    }
}

struct NearestAlone {
    u: Floats,
    v: Floats,
    index: Floats,
    mask: Mask,
}

impl<L: Lanes> Visitor<L> for NearestAlone {
    const ORDERED: bool = true;

    #[inline(always)]
    fn found(&mut self, lane: usize, mask: Mask, hits: [L; 3], first: u32, limit: f32) -> f32 {
        let [mut t, mut u, mut v] = [Floats::splat(0.0); 3];
        hits[0].store(&mut t);
        hits[1].store(&mut u);
        hits[2].store(&mut v);
        let mut limit = limit;
        let mut left = mask;
        while left != 0 {
            let place = left.trailing_zeros() as usize & (WIDTH - 1);
            left &= left - 1;
            if t.0[place] < limit {
                limit = t.0[place];
                self.u.0[lane] = u.0[place];
                self.v.0[lane] = v.0[place];
                self.index.0[lane] = f32::from_bits(first + place as u32);
                self.mask |= 1 << lane;
            }
        }
        limit
    }
}

/// Nearest hits.
#[inline(always)]
pub(super) fn nearest<L: Lanes>(geometry: &Geometry, rays: &impl Rays<L>, hits: &mut Hits) {
    let (_, limit) = rays.start();
    let zero = L::splat(0.0);
    let mut found = Nearest { u: zero, v: zero, index: L::splat(f32::from_bits(MISS)), t: limit, any: 0 };
    walk_packet(geometry, rays, limit, &mut found);
    hits.mask = found.any;
    if found.any == 0 {
        hits.triangle = [MISS; WIDTH];
        return;
    }
    found.t.store(&mut hits.t);
    found.u.store(&mut hits.u);
    found.v.store(&mut hits.v);
    let mut bits = Floats::splat(0.0);
    found.index.store(&mut bits);
    for lane in 0..WIDTH {
        hits.triangle[lane] = bits.0[lane].to_bits();
    }
}

struct Blocked {
    open: Mask,
}

impl<L: Lanes> Leaf<L> for Blocked {
    #[inline(always)]
    fn visit(&mut self, rays: &impl Rays<L>, triangles: &[Triangle], _: u32, limit: L) -> Option<L> {
        let mut hit = 0;
        for triangle in triangles {
            hit |= rays.hits(triangle, limit).0;
        }
        self.open &= !hit;
        if self.open == 0 { None } else { Some(L::select(hit, L::splat(-1.0), limit)) }
    }

    #[inline(always)]
    fn alone(&mut self, geometry: &Geometry, rays: &impl Rays<L>, at: (u32, Mask), limit: L) -> Option<L> {
        let mut found = BlockedAlone { mask: 0 };
        let limit = go_on(geometry, rays, at, limit, &mut found);
        self.open &= !found.mask;
        if self.open == 0 { None } else { Some(limit) }
    }
}

struct BlockedAlone {
    mask: Mask,
}

impl<L: Lanes> Visitor<L> for BlockedAlone {
    const ORDERED: bool = false;

    #[inline(always)]
    fn found(&mut self, lane: usize, _: Mask, _: [L; 3], _: u32, _: f32) -> f32 {
        self.mask |= 1 << lane;
        -1.0
    }
}

/// Rays that meet a triangle, transparent or not.
#[inline(always)]
pub(super) fn blocked<L: Lanes>(geometry: &Geometry, rays: &impl Rays<L>) -> Mask {
    let (active, limit) = rays.start();
    let mut blocked = Blocked { open: active };
    walk_packet(geometry, rays, limit, &mut blocked);
    active & !blocked.open
}

/// Share of a ray's light that is as good as none: a step of 8 bits.
const LEAST_LIGHT: f32 = 1.0 / 256.0;

struct Filtered<'a, L> {
    geometry: &'a Geometry,
    light: L,
}

impl<L: Lanes> Leaf<L> for Filtered<'_, L> {
    #[inline(always)]
    fn visit(&mut self, rays: &impl Rays<L>, triangles: &[Triangle], _: u32, limit: L) -> Option<L> {
        for triangle in triangles {
            let (mask, _, u, v) = rays.hits(triangle, limit);
            if triangle.mask == 0 {
                self.light = L::select(mask, self.light.mul(L::splat(triangle.transparency)), self.light);
            } else if mask != 0 {
                let [mut us, mut vs] = [Floats::splat(0.0); 2];
                u.store(&mut us);
                v.store(&mut vs);
                let left = self.geometry.masks.transparencies(triangle.mask, mask, &us, &vs);
                self.light = self.light.mul(L::load(&left));
            }
        }
        // Rays without light are done.
        let dark = self.light.lt(L::splat(LEAST_LIGHT));
        if dark == Mask::MAX { None } else { Some(L::select(dark, L::splat(-1.0), limit)) }
    }

    #[inline(always)]
    fn alone(&mut self, geometry: &Geometry, rays: &impl Rays<L>, at: (u32, Mask), limit: L) -> Option<L> {
        let mut found = FilteredAlone { geometry, left: Floats::splat(1.0) };
        let limit = go_on(geometry, rays, at, limit, &mut found);
        self.light = self.light.mul(L::load(&found.left));
        Some(limit)
    }
}

struct FilteredAlone<'a> {
    geometry: &'a Geometry,
    left: Floats,
}

impl<L: Lanes> Visitor<L> for FilteredAlone<'_> {
    const ORDERED: bool = false;

    #[inline(always)]
    fn found(&mut self, lane: usize, mask: Mask, hits: [L; 3], first: u32, limit: f32) -> f32 {
        let [mut us, mut vs] = [Floats::splat(0.0); 2];
        hits[1].store(&mut us);
        hits[2].store(&mut vs);
        let mut rest = mask;
        while rest != 0 {
            let place = rest.trailing_zeros() as usize & (WIDTH - 1);
            rest &= rest - 1;
            self.left.0[lane] *= self.geometry.transparency(first + place as u32, us.0[place], vs.0[place]);
            if self.left.0[lane] < LEAST_LIGHT {
                return -1.0;
            }
        }
        limit
    }
}

/// What is left of the light along each ray: the product of the transparencies it passes.
#[inline(always)]
pub(super) fn filtered<L: Lanes>(geometry: &Geometry, rays: &impl Rays<L>, left: &mut Floats) {
    let mut filtered = Filtered { geometry, light: L::splat(1.0) };
    walk_packet(geometry, rays, rays.start().1, &mut filtered);
    let dark = filtered.light.lt(L::splat(LEAST_LIGHT));
    L::select(dark, L::splat(0.0), filtered.light).store(left);
}
