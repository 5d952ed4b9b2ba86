//! Light at sixteen surface points at a time.
//!
//! All points of an image share one set of directions, so a packet's rays run side by side. What is known without
//! the object (the irradiance of the open sun and of the open spot) is not sampled: rays only find which share of it
//! arrives.

// Loops over lanes stay plain, so that they become one instruction an operation.
#![allow(clippy::needless_range_loop)]

use std::f32::consts::{FRAC_1_PI, PI};

use glam::Vec3;
use simd::{Floats, Mask, WIDTH, multiversion};

use crate::bsdf;
use crate::bundle::Bundle;
use crate::lights::{self, LAMP_RADIUS, SUN_STRENGTH, WORLD_RADIANCE};
use crate::lit_scene::{LitScene, object_radiance};
use crate::view::{SurfacePoint, floor_distance};

/// Sixteen vectors, by axis.
type Vectors = [Floats; 3];

const ZERO: Floats = Floats::splat(0.0);

/// Width of the lobe below which the sun's gleam is sampled by reflection instead of by direction.
const NARROW_LOBE: f32 = 0.2;
/// The lamp as seen from the origin widens any lobe to this.
const LAMP_LOBE: f32 = 0.5 * LAMP_RADIUS / 4.0;

/// Triangles of the object times the area of a shaded point in pixels above which rays are traced by point.
const DENSE: f32 = 20_000.0;

/// Points to be shaded and the parameters of their surfaces; lanes from `count` on repeat the first point.
pub(crate) struct PointPacket {
    count: usize,
    points: [SurfacePoint; WIDTH],
    views: [Vec3; WIDTH],
    lanes: PointLanes,
    has_specular: bool,
    /// Starts of rays, object frame.
    origin: Vectors,
}

/// The same, lane by lane, as loops over lanes want it.
struct PointLanes {
    position: Vectors,
    normal: Vectors,
    face: Vectors,
    view: Vectors,
    n_dot_v: Floats,
    roughness: Floats,
    /// Normal reflectance of the lobe; 0 without one.
    reflectance: Floats,
    /// Refractive index that goes with it.
    eta: Floats,
    alpha: Floats,
}

/// What leaves a shaded point towards the viewer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shade {
    /// Per unit albedo.
    pub diffuse: Vec3,
    /// Added to it.
    pub specular: Vec3,
}

/// One direction's terms.
#[derive(Clone, Copy)]
struct Terms {
    /// Positive part of `n.l`.
    cosine: Floats,
    /// Burley diffuse times `n.l`.
    diffuse: Floats,
}

impl Terms {
    const NONE: Self = Self { cosine: ZERO, diffuse: ZERO };
}

/// Sums over directions.
struct Sums {
    cosine: Floats,
    visible_cosine: Floats,
    diffuse: Floats,
    specular: Floats,
}

impl Sums {
    const NONE: Self = Self { cosine: ZERO, visible_cosine: ZERO, diffuse: ZERO, specular: ZERO };
}

fn set(vectors: &mut Vectors, lane: usize, value: Vec3) {
    for axis in 0..3 {
        vectors[axis].0[lane] = value[axis];
    }
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
    fn evaluate(points: &PointLanes, direction: &Vectors, terms: &mut Terms) -> Mask {
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

multiversion! {
    /// The GGX lobe times `n.l` for a direction; see [`bsdf::Surface::specular`].
    fn lobe(points: &PointLanes, direction: &Vectors, alpha: &Floats, values: &mut Floats) {
        for lane in 0..WIDTH {
            let (n_dot_l, n_dot_v) = (dot(&points.normal, direction, lane), points.n_dot_v.0[lane]);
            let l_dot_v = dot(&points.view, direction, lane);
            // |l + v|^2 = 2 + 2 l.v; the half-vector's cosines follow without it.
            let scale = 1.0 / (2.0 + 2.0 * l_dot_v).max(1e-6).sqrt();
            let n_dot_h = (n_dot_l + n_dot_v) * scale;
            let l_dot_h = (1.0 + l_dot_v) * scale;
            let a2 = alpha.0[lane] * alpha.0[lane];
            let d = n_dot_h * n_dot_h * (a2 - 1.0) + 1.0;
            let distribution = a2 * FRAC_1_PI / (d * d);
            let (l2, v2) = (n_dot_l * n_dot_l, n_dot_v * n_dot_v);
            let g_l = 2.0 / (1.0 + (1.0 + a2 * (1.0 - l2).max(0.0) / l2.max(1e-8)).sqrt());
            let g_v = 2.0 / (1.0 + (1.0 + a2 * (1.0 - v2).max(0.0) / v2.max(1e-8)).sqrt());
            let (eta, c) = (points.eta.0[lane], l_dot_h.abs());
            let g = (eta * eta - 1.0 + c * c).max(0.0).sqrt();
            let p = (g - c) / (g + c).max(1e-6);
            let q = ((g + c) * c - 1.0) / ((g - c) * c + 1.0);
            let base = (eta - 1.0) / (eta + 1.0) * ((eta - 1.0) / (eta + 1.0));
            let rise = ((0.5 * p * p * (1.0 + q * q) - base) / (1.0 - base)).clamp(0.0, 1.0);
            let fresnel = points.reflectance.0[lane] * (1.0 - rise) + rise;
            let value = fresnel * distribution * g_l * g_v * 0.25 / n_dot_v.max(1e-6);
            let counts = n_dot_l > 0.0 && n_dot_v > 0.0 && points.reflectance.0[lane] > 0.0;
            values.0[lane] = if counts { value } else { 0.0 };
        }
    }
}

multiversion! {
    /// Adds a direction's terms, weighted by the share of light that arrives.
    fn accumulate(sums: &mut Sums, terms: &Terms, open: &Floats) {
        for lane in 0..WIDTH {
            sums.cosine.0[lane] += terms.cosine.0[lane];
            sums.visible_cosine.0[lane] += open.0[lane] * terms.cosine.0[lane];
            sums.diffuse.0[lane] += open.0[lane] * terms.diffuse.0[lane];
        }
    }
}

multiversion! {
    /// Unit directions from `positions` to `target`.
    fn directions_to(positions: &Vectors, target: Vec3, directions: &mut Vectors) {
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

impl PointPacket {
    /// Up to sixteen points with the unit directions from them to the viewer; at least one.
    pub fn new(scene: &LitScene<'_>, points: &[(SurfacePoint, Vec3)]) -> Self {
        let pick = |lane: usize| points[if lane < points.len() { lane } else { 0 }];
        let vectors = |value: &dyn Fn(usize) -> Vec3| {
            let mut vectors = [ZERO; 3];
            (0..WIDTH).for_each(|lane| set(&mut vectors, lane, value(lane)));
            vectors
        };
        let floats = |value: &dyn Fn(usize) -> f32| Floats(std::array::from_fn(value));
        let points_of: [SurfacePoint; WIDTH] = std::array::from_fn(|lane| pick(lane).0);
        let views: [Vec3; WIDTH] = std::array::from_fn(|lane| pick(lane).1);
        let surfaces = points_of.map(|point| scene.view.surface(&point));
        let lanes = PointLanes {
            position: vectors(&|lane| points_of[lane].position),
            normal: vectors(&|lane| points_of[lane].normal),
            face: vectors(&|lane| points_of[lane].face_normal),
            view: vectors(&|lane| views[lane]),
            n_dot_v: floats(&|lane| points_of[lane].normal.dot(views[lane])),
            roughness: floats(&|lane| surfaces[lane].roughness),
            reflectance: floats(&|lane| surfaces[lane].normal_reflectance()),
            eta: floats(&|lane| surfaces[lane].eta()),
            alpha: floats(&|lane| surfaces[lane].alpha()),
        };
        Self {
            count: points.len().min(WIDTH),
            points: points_of,
            views,
            lanes,
            has_specular: surfaces.iter().any(bsdf::Surface::has_specular),
            origin: vectors(&|lane| scene.view.to_object(points_of[lane].lifted(scene.view.lift()))),
        }
    }

    fn used(&self) -> Mask {
        ((1_u32 << self.count) - 1) as Mask
    }

    /// Shades the points.
    pub fn shade(&self, scene: &LitScene<'_>, rays: &mut u64) -> [Shade; WIDTH] {
        let mut shades = [Shade::default(); WIDTH];
        let sun_share = self.add_sun(scene, &mut shades, rays);
        self.add_spot(scene, &mut shades, rays);
        self.add_indirect(scene, &mut shades, rays);
        if self.has_specular {
            for lane in 0..self.count {
                shades[lane].specular += Vec3::splat(self.gleam(scene, lane, sun_share[lane]));
            }
        }
        shades
    }

    /// Adds the sun; returns which share of it reaches each point.
    fn add_sun(&self, scene: &LitScene<'_>, shades: &mut [Shade; WIDTH], rays: &mut u64) -> [f32; WIDTH] {
        let sun = &scene.directions.sun;
        let mut terms = vec![Terms::NONE; sun.len()];
        let mut wanted = vec![0; sun.len()];
        for (i, towards) in sun.iter().enumerate() {
            let direction = towards.world.to_array().map(Floats::splat);
            wanted[i] = self.used() & evaluate(&self.lanes, &direction, &mut terms[i]);
            *rays += u64::from(wanted[i].count_ones());
        }
        let open = self.bundle(scene, &wanted).open_along(|i| sun[i].object);
        let mut sums = Sums::NONE;
        let mut gleam = ZERO;
        for (i, towards) in sun.iter().enumerate() {
            if self.has_specular && open[i] != ZERO {
                let direction = towards.world.to_array().map(Floats::splat);
                lobe(&self.lanes, &direction, &self.lanes.alpha, &mut gleam);
                add_products(&mut sums.specular, &open[i], &gleam);
            }
            accumulate(&mut sums, &terms[i], &open[i]);
        }
        let weight = SUN_STRENGTH / sun.len() as f32;
        let mut share = [0.0; WIDTH];
        for lane in 0..self.count {
            let total = sums.cosine.0[lane];
            if total > 0.0 {
                let irradiance = lights::sun_irradiance(self.points[lane].normal.z);
                shades[lane].diffuse += Vec3::splat(irradiance * sums.diffuse.0[lane] / total);
                share[lane] = sums.visible_cosine.0[lane] / total;
            }
            // A lobe narrower than the spacing of the directions would sparkle: `gleam` has it.
            if self.lanes.alpha.0[lane] >= NARROW_LOBE {
                shades[lane].specular += Vec3::splat(weight * sums.specular.0[lane]);
            }
        }
        share
    }

    fn add_spot(&self, scene: &LitScene<'_>, shades: &mut [Shade; WIDTH], rays: &mut u64) {
        let spot = &scene.view.spot;
        let irradiance = self.points.map(|point| spot.irradiance(point.position, point.normal));
        let lit =
            (0..self.count).filter(|&lane| irradiance[lane] > 0.0).fold(0, |mask, lane| mask | 1 << lane);
        if lit == 0 {
            return;
        }
        let lamp = &scene.directions.lamp;
        let mut terms = vec![Terms::NONE; lamp.len()];
        let mut wanted = vec![0; lamp.len()];
        let mut directions = vec![[ZERO; 3]; lamp.len()];
        for (i, point) in lamp.iter().enumerate() {
            directions_to(&self.lanes.position, point.world, &mut directions[i]);
            wanted[i] = lit & evaluate(&self.lanes, &directions[i], &mut terms[i]);
            *rays += u64::from(wanted[i].count_ones());
        }
        let open = self.bundle(scene, &wanted).open_from(|i| lamp[i].object);
        let mut sums = Sums::NONE;
        let mut gleam = ZERO;
        let alpha = Floats(self.lanes.alpha.0.map(|alpha| alpha.max(LAMP_LOBE)));
        for i in 0..lamp.len() {
            if self.has_specular && open[i] != ZERO {
                lobe(&self.lanes, &directions[i], &alpha, &mut gleam);
                add_products(&mut sums.specular, &open[i], &gleam);
            }
            accumulate(&mut sums, &terms[i], &open[i]);
        }
        for lane in lanes_of(lit) {
            let total = sums.cosine.0[lane];
            if total > 0.0 {
                shades[lane].diffuse += spot.intensity * (irradiance[lane] * sums.diffuse.0[lane] / total);
            }
            if self.has_specular {
                let facing = spot.facing_irradiance(self.points[lane].position);
                let mean = sums.specular.0[lane] / lamp.len() as f32;
                shades[lane].specular += spot.intensity * (facing * mean);
            }
        }
    }

    /// Adds what the world, the floor and the object itself send from every direction.
    fn add_indirect(&self, scene: &LitScene<'_>, shades: &mut [Shade; WIDTH], rays: &mut u64) {
        let Some(floor) = &scene.floor.coarse else { return };
        let sphere = &scene.directions.sphere;
        let mut terms = vec![Terms::NONE; sphere.len()];
        let mut wanted = vec![0; sphere.len()];
        let mut limits = vec![ZERO; sphere.len()];
        let mut sums = Sums::NONE;
        for (i, towards) in sphere.iter().enumerate() {
            let direction = towards.world.to_array().map(Floats::splat);
            wanted[i] = self.used() & evaluate(&self.lanes, &direction, &mut terms[i]);
            accumulate(&mut sums, &terms[i], &ZERO);
            *rays += u64::from(wanted[i].count_ones());
            if wanted[i] != 0 {
                let limit = |lane: usize| floor_distance(self.points[lane].position, towards.world);
                limits[i] = Floats(std::array::from_fn(limit));
            }
        }
        let hits = self.bundle(scene, &wanted).nearest(|i| sphere[i].object, &limits);
        let mut light = [Vec3::ZERO; WIDTH];
        for (turn, towards) in sphere.iter().enumerate().filter(|&(turn, _)| wanted[turn] != 0) {
            let mut incoming = [Vec3::splat(WORLD_RADIANCE); WIDTH];
            if towards.world.z < 0.0 {
                for lane in lanes_of(wanted[turn] & !hits[turn].mask) {
                    let point = self.points[lane].position + limits[turn].0[lane] * towards.world;
                    incoming[lane] = floor.radiance(point.truncate());
                }
            }
            let surroundings = (&scene.directions, floor);
            object_radiance(scene.view, surroundings, &hits[turn], towards.world, turn, &mut incoming, rays);
            for lane in lanes_of(wanted[turn]) {
                light[lane] += incoming[lane] * terms[turn].diffuse.0[lane];
            }
        }
        for lane in 0..self.count {
            let total = sums.cosine.0[lane];
            if total > 0.0 {
                shades[lane].diffuse += PI * light[lane] / total;
            }
        }
    }

    fn bundle<'a>(&'a self, scene: &'a LitScene<'_>, wanted: &'a [Mask]) -> Bundle<'a> {
        let geometry = scene.view.light_shape().geometry;
        let by_point = geometry.triangles.len() as f32 * scene.settings.point_spacing().powi(2) > DENSE;
        Bundle { geometry, origin: &self.origin, wanted, by_point }
    }

    /// The world, and, in a narrow lobe, the sun, as the lobe reflects them.
    fn gleam(&self, scene: &LitScene<'_>, lane: usize, sun_share: f32) -> f32 {
        let (point, view) = (&self.points[lane], self.views[lane]);
        let surface = scene.view.surface(point);
        if !surface.has_specular() {
            return 0.0;
        }
        let narrow = surface.alpha() < NARROW_LOBE;
        let count = scene.settings.lobe_samples;
        let mut sum = 0.0;
        for i in 0..count {
            let u = [(i as f32 + 0.5) / count as f32, (i as f32 * 0.618_034).fract()];
            let l = bsdf::sample_reflection(point.normal, view, surface.alpha(), u);
            if l.z > 0.0 && l.dot(point.face_normal) > 0.0 {
                let sun = if narrow { sun_share * lights::sun_radiance(l) } else { 0.0 };
                sum += (WORLD_RADIANCE + sun) * surface.reflection_weight(point.normal, l, view);
            }
        }
        sum / count as f32
    }
}

/// The lanes whose bits are set.
fn lanes_of(mask: Mask) -> impl Iterator<Item = usize> {
    (0..WIDTH).filter(move |&lane| mask >> lane & 1 != 0)
}

fn add_products(sums: &mut Floats, a: &Floats, b: &Floats) {
    for lane in 0..WIDTH {
        sums.0[lane] += a.0[lane] * b.0[lane];
    }
}

#[cfg(test)]
mod tests;
