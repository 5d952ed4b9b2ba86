//! Directions and lobes at sixteen points at a time: the arithmetic of [`super`], lane by lane.

// Loops over lanes stay plain, so that they become one instruction an operation.
#![allow(clippy::needless_range_loop)]

use std::f32::consts::FRAC_1_PI;

use glam::Vec3;
use simd::{Floats, Mask, WIDTH, multiversion};

use crate::bsdf;
use crate::lights::{WORLD_RADIANCE, sun_radiance};

/// Sixteen vectors, by axis.
pub(super) type Vectors = [Floats; 3];

pub(super) const ZERO: Floats = Floats::splat(0.0);

/// Points, lane by lane, as loops over lanes want them.
pub(super) struct PointLanes {
    pub position: Vectors,
    pub normal: Vectors,
    pub face: Vectors,
    pub view: Vectors,
    pub n_dot_v: Floats,
    pub roughness: Floats,
    /// Normal reflectance of the lobe; 0 without one.
    pub reflectance: Floats,
    /// Refractive index that goes with it.
    pub eta: Floats,
    pub alpha: Floats,
    /// Share that is metal.
    pub metallic: Floats,
    /// Chance that a path of Cycles goes on along the lobe, times what its density has in common for all directions.
    pub lobe_chance: Floats,
    /// Chance that it goes on along the diffuse part.
    pub diffuse_chance: Floats,
}

/// One direction's terms.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// Positive part of `n.l`.
    pub cosine: Floats,
    /// Burley diffuse times `n.l`.
    pub diffuse: Floats,
}

impl Terms {
    pub const NONE: Self = Self { cosine: ZERO, diffuse: ZERO };
}

/// Sums over directions.
pub(super) struct Sums {
    pub cosine: Floats,
    pub visible_cosine: Floats,
    pub diffuse: Floats,
    pub specular: Floats,
    pub metal: Floats,
}

impl Sums {
    pub const NONE: Self =
        Self { cosine: ZERO, visible_cosine: ZERO, diffuse: ZERO, specular: ZERO, metal: ZERO };
}

pub(super) fn set(vectors: &mut Vectors, lane: usize, value: Vec3) {
    for axis in 0..3 {
        vectors[axis].0[lane] = value[axis];
    }
}

#[inline(always)]
fn at(vectors: &Vectors, lane: usize) -> Vec3 {
    Vec3::new(vectors[0].0[lane], vectors[1].0[lane], vectors[2].0[lane])
}

#[inline(always)]
fn dot(a: &Vectors, b: &Vectors, lane: usize) -> f32 {
    a[0].0[lane] * b[0].0[lane] + a[1].0[lane] * b[1].0[lane] + a[2].0[lane] * b[2].0[lane]
}

/// `clamp(1 - x)^5`.
#[inline(always)]
fn schlick(x: f32) -> f32 {
    let m = (1.0 - x).clamp(0.0, 1.0);
    m * m * (m * m) * m
}

multiversion! {
    /// The diffuse terms of a direction, and the lanes it can light.
    pub(super) fn evaluate(points: &PointLanes, direction: &Vectors, terms: &mut Terms) -> Mask {
        let mut lit = [0_u16; WIDTH];
        for lane in 0..WIDTH {
            let n_dot_l = dot(&points.normal, direction, lane);
            let face_dot_l = dot(&points.face, direction, lane);
            let l_dot_v = dot(&points.view, direction, lane);
            let (fl, fv) = (schlick(n_dot_l), schlick(points.n_dot_v.0[lane]));
            let retro = points.roughness.0[lane] * (1.0 + l_dot_v);
            let burley = (1.0 - 0.5 * fl) * (1.0 - 0.5 * fv) + retro * (fl + fv + fl * fv * (retro - 1.0));
            let cosine = n_dot_l.max(0.0);
            terms.cosine.0[lane] = cosine;
            terms.diffuse.0[lane] = FRAC_1_PI * cosine * burley;
            lit[lane] = u16::from(n_dot_l > 0.0) & u16::from(face_dot_l > 0.0);
        }
        let mut mask = 0;
        for lane in 0..WIDTH {
            mask |= lit[lane] << lane;
        }
        mask
    }
}

/// The parts of the GGX lobe in a direction; see [`crate::bsdf::Surface::specular`].
struct Lobe {
    distribution: f32,
    g_l: f32,
    g_v: f32,
    /// How far Fresnel's reflection has risen from head-on (0) to grazing (1).
    rise: f32,
    n_dot_v: f32,
    /// Whether light and eye are on its side.
    is_seen: bool,
}

impl Lobe {
    #[inline(always)]
    fn new(points: &PointLanes, direction: &Vectors, alpha: f32, lane: usize) -> Self {
        let (n_dot_l, n_dot_v) = (dot(&points.normal, direction, lane), points.n_dot_v.0[lane]);
        let l_dot_v = dot(&points.view, direction, lane);
        // |l + v|^2 = 2 + 2 l.v; the half-vector's cosines follow without it.
        let scale = 1.0 / (2.0 + 2.0 * l_dot_v).max(1e-6).sqrt();
        let n_dot_h = (n_dot_l + n_dot_v) * scale;
        let l_dot_h = (1.0 + l_dot_v) * scale;
        let a2 = alpha * alpha;
        let d = n_dot_h * n_dot_h * (a2 - 1.0) + 1.0;
        let (l2, v2) = (n_dot_l * n_dot_l, n_dot_v * n_dot_v);
        let (eta, c) = (points.eta.0[lane], l_dot_h.abs());
        let g = (eta * eta - 1.0 + c * c).max(0.0).sqrt();
        let p = (g - c) / (g + c).max(1e-6);
        let q = ((g + c) * c - 1.0) / ((g - c) * c + 1.0);
        let base = (eta - 1.0) / (eta + 1.0) * ((eta - 1.0) / (eta + 1.0));
        Self {
            distribution: a2 * FRAC_1_PI / (d * d),
            g_l: 2.0 / (1.0 + (1.0 + a2 * (1.0 - l2).max(0.0) / l2.max(1e-8)).sqrt()),
            g_v: 2.0 / (1.0 + (1.0 + a2 * (1.0 - v2).max(0.0) / v2.max(1e-8)).sqrt()),
            rise: ((0.5 * p * p * (1.0 + q * q) - base) / (1.0 - base)).clamp(0.0, 1.0),
            n_dot_v,
            is_seen: n_dot_l > 0.0 && n_dot_v > 0.0,
        }
    }

    /// The lobe times `n.l`.
    #[inline(always)]
    fn times(&self, fresnel: f32) -> f32 {
        fresnel * self.distribution * self.g_l * self.g_v * 0.25 / self.n_dot_v.max(1e-6)
    }
}

multiversion! {
    /// The GGX lobe times `n.l` for a direction, in white.
    pub(super) fn lobe(points: &PointLanes, direction: &Vectors, alpha: &Floats, values: &mut Floats) {
        for lane in 0..WIDTH {
            let lobe = Lobe::new(points, direction, alpha.0[lane], lane);
            let value = lobe.times(points.reflectance.0[lane] * (1.0 - lobe.rise) + lobe.rise);
            let counts = lobe.is_seen && points.eta.0[lane] > 1.0;
            values.0[lane] = if counts { value } else { 0.0 };
        }
    }
}

multiversion! {
    /// What [`lobe`] has per unit albedo: the reflection of metals.
    pub(super) fn metal_lobe(points: &PointLanes, direction: &Vectors, alpha: &Floats, values: &mut Floats) {
        for lane in 0..WIDTH {
            let lobe = Lobe::new(points, direction, alpha.0[lane], lane);
            let value = lobe.times(points.metallic.0[lane] * (1.0 - lobe.rise));
            values.0[lane] = if lobe.is_seen { value } else { 0.0 };
        }
    }
}

/// What lobes reflect: in white, and per unit albedo.
pub(super) struct ReflectedLanes {
    pub white: Floats,
    pub albedo: Floats,
}

multiversion! {
    /// Adds what the lobes reflect of the world and of the sun, `sun_share` of it, in the direction of a sample.
    pub(super) fn add_reflected(
        points: &PointLanes,
        sample: [f32; 3],
        sun_share: &Floats,
        sums: &mut ReflectedLanes,
    ) {
        for lane in 0..WIDTH {
            let (n, v) = (at(&points.normal, lane), at(&points.view, lane));
            let lobe = bsdf::Lobe {
                reflectance: points.reflectance.0[lane],
                eta: points.eta.0[lane],
                metallic: points.metallic.0[lane],
                alpha: points.alpha.0[lane],
            };
            let l = bsdf::sample_reflection(n, v, lobe.alpha, sample);
            let light = WORLD_RADIANCE + sun_share.0[lane] * sun_radiance(l);
            let weight = lobe.reflection_weight(n, l, v) * light;
            let is_open = (l.z > 0.0) & (l.dot(at(&points.face, lane)) > 0.0);
            sums.white.0[lane] += if is_open { weight.white } else { 0.0 };
            sums.albedo.0[lane] += if is_open { weight.albedo } else { 0.0 };
        }
    }
}

multiversion! {
    /// Adds a direction's terms, weighted by the share of light that arrives.
    pub(super) fn accumulate(sums: &mut Sums, terms: &Terms, open: &Floats) {
        for lane in 0..WIDTH {
            sums.cosine.0[lane] += terms.cosine.0[lane];
            sums.visible_cosine.0[lane] += open.0[lane] * terms.cosine.0[lane];
            sums.diffuse.0[lane] += open.0[lane] * terms.diffuse.0[lane];
        }
    }
}

multiversion! {
    /// Unit directions from `positions` to `target`.
    pub(super) fn directions_to(positions: &Vectors, target: Vec3, directions: &mut Vectors) {
        for lane in 0..WIDTH {
            let x = target.x - positions[0].0[lane];
            let y = target.y - positions[1].0[lane];
            let z = target.z - positions[2].0[lane];
            let inverse = 1.0 / (x * x + y * y + z * z).max(1e-12).sqrt();
            directions[0].0[lane] = x * inverse;
            directions[1].0[lane] = y * inverse;
            directions[2].0[lane] = z * inverse;
        }
    }
}

multiversion! {
    /// The share of the light from a surface in a direction that Cycles counts without glossy bounces: paths that go on
    /// along the lobe end there.
    pub(super) fn counted_share(points: &PointLanes, direction: &Vectors, terms: &Terms, shares: &mut Floats) {
        for lane in 0..WIDTH {
            let l_dot_v = dot(&points.view, direction, lane);
            let n_dot_h = dot(&points.normal, direction, lane) + points.n_dot_v.0[lane];
            let a2 = points.alpha.0[lane] * points.alpha.0[lane];
            let d = n_dot_h * n_dot_h / (2.0 + 2.0 * l_dot_v).max(1e-6) * (a2 - 1.0) + 1.0;
            let diffuse = points.diffuse_chance.0[lane] * terms.cosine.0[lane];
            shares.0[lane] = diffuse / (diffuse + points.lobe_chance.0[lane] * a2 / (d * d)).max(1e-12);
        }
    }
}
