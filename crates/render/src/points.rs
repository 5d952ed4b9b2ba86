//! Light at sixteen surface points at a time.
//!
//! All points of an image share one set of directions, so a packet's rays run side by side. What is known without
//! the object (the irradiance of the open sun and of the open spot) is not sampled: rays only find which share of it
//! arrives.

// Loops over lanes stay plain, so that they become one instruction an operation.
#![allow(clippy::needless_range_loop)]

use std::f32::consts::PI;

use glam::Vec3;
use simd::{Floats, Mask, WIDTH};

use crate::bsdf::{self, Reflected};
use crate::bundle::Bundle;
use crate::lights::{self, LAMP_RADIUS, SUN_STRENGTH, WORLD_RADIANCE};
use crate::lit_scene::{LitScene, object_radiance};
use crate::view::{SurfacePoint, View, floor_distance};

mod lanes;
use lanes::{
    PointLanes, ReflectedLanes, Sums, Terms, Vectors, ZERO, accumulate, add_reflected, counted_share,
    directions_to, evaluate, lobe, metal_lobe, set,
};

/// Width of the lobe below which the sun's gleam is sampled by reflection instead of by direction.
const NARROW_LOBE: f32 = 0.2;
/// Lobes narrower than this, the lamp as seen from the origin, mirror the lamp's disc: see [`lamp_mirrored`].
pub(crate) const LAMP_LOBE: f32 = 0.5 * LAMP_RADIUS / 4.0;

/// How much of the light from around is missing at what a point sees of the object, over the share of its directions that
/// meet the object.
const ENCLOSURE: f32 = 0.7;

/// Triangles of the object times the area of a shaded point in pixels above which rays are traced by point.
const DENSE: f32 = 20_000.0;

/// Points to be shaded and the parameters of their surfaces; lanes from `count` on repeat the first point.
pub(crate) struct PointPacket {
    count: usize,
    points: [SurfacePoint; WIDTH],
    lanes: PointLanes,
    /// Lanes with a lobe.
    with_lobe: Mask,
    has_metal: bool,
    /// Starts of rays, object frame.
    origin: Vectors,
}

/// What leaves a shaded point towards the viewer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shade {
    /// Per unit albedo.
    pub diffuse: Vec3,
    /// Added to it.
    pub specular: Vec3,
    /// Share of the lamp that arrives, where the lobe is so narrow that every sample mirrors the lamp by itself.
    pub lamp: f32,
}

/// Light of sixteen points, and what metals add to it per unit albedo.
type Lit<'a> = (&'a mut [Shade; WIDTH], &'a mut [Vec3; WIDTH]);

impl PointPacket {
    /// Up to sixteen points with the unit directions from them to the viewer and their albedos; at least one.
    pub fn new(scene: &LitScene<'_>, points: &[(SurfacePoint, Vec3, Vec3)]) -> Self {
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
        let n_dot_v: [f32; WIDTH] = std::array::from_fn(|lane| points_of[lane].normal.dot(views[lane]));
        let chances: [f32; WIDTH] =
            std::array::from_fn(|lane| surfaces[lane].lobe_chance(n_dot_v[lane], pick(lane).2));
        let lanes = PointLanes {
            position: vectors(&|lane| points_of[lane].position),
            normal: vectors(&|lane| points_of[lane].normal),
            face: vectors(&|lane| points_of[lane].face_normal),
            view: vectors(&|lane| views[lane]),
            n_dot_v: Floats(n_dot_v),
            roughness: floats(&|lane| surfaces[lane].roughness),
            reflectance: floats(&|lane| surfaces[lane].normal_reflectance()),
            eta: floats(&|lane| surfaces[lane].eta()),
            alpha: floats(&|lane| surfaces[lane].alpha()),
            metallic: floats(&|lane| surfaces[lane].metallic),
            lobe_chance: floats(&|lane| {
                let cos = n_dot_v[lane];
                chances[lane] * 0.25 * surfaces[lane].masking(cos) / cos.max(1e-6)
            }),
            diffuse_chance: floats(&|lane| 1.0 - chances[lane]),
        };
        Self {
            count: points.len().min(WIDTH),
            points: points_of,
            lanes,
            with_lobe: (0..WIDTH)
                .filter(|&lane| surfaces[lane].has_specular())
                .fold(0, |mask, lane| mask | 1 << lane),
            has_metal: surfaces.iter().any(|surface| surface.metallic > 0.0),
            origin: vectors(&|lane| scene.view.to_object(points_of[lane].lifted(scene.view.lift()))),
        }
    }

    fn has_lobe(&self) -> bool {
        self.with_lobe != 0
    }

    fn used(&self) -> Mask {
        ((1_u32 << self.count) - 1) as Mask
    }

    /// Shades the points.
    pub fn shade(&self, scene: &LitScene<'_>, rays: &mut u64) -> [Shade; WIDTH] {
        let mut shades = [Shade::default(); WIDTH];
        let mut metal = [Vec3::ZERO; WIDTH];
        let sun_share = self.add_sun(scene, (&mut shades, &mut metal), rays);
        self.add_spot(scene, (&mut shades, &mut metal), rays);
        self.add_indirect(scene, (&mut shades, &mut metal), rays);
        if self.has_lobe() {
            let gleam = self.gleam(scene, &sun_share);
            for lane in lanes_of(self.with_lobe & self.used()) {
                shades[lane].specular += Vec3::splat(gleam.white.0[lane]);
                metal[lane] += Vec3::splat(gleam.albedo.0[lane]);
            }
        }
        if self.has_metal {
            for lane in 0..self.count {
                let diffuse = &mut shades[lane].diffuse;
                *diffuse = *diffuse * (1.0 - self.lanes.metallic.0[lane]) + metal[lane];
            }
        }
        shades
    }

    /// Adds the sun; returns which share of it reaches each point.
    fn add_sun(&self, scene: &LitScene<'_>, (shades, metal): Lit<'_>, rays: &mut u64) -> [f32; WIDTH] {
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
            if self.has_lobe() && open[i] != ZERO {
                let direction = towards.world.to_array().map(Floats::splat);
                lobe(&self.lanes, &direction, &self.lanes.alpha, &mut gleam);
                add_products(&mut sums.specular, &open[i], &gleam);
                if self.has_metal {
                    metal_lobe(&self.lanes, &direction, &self.lanes.alpha, &mut gleam);
                    add_products(&mut sums.metal, &open[i], &gleam);
                }
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
                metal[lane] += Vec3::splat(weight * sums.metal.0[lane]);
            }
        }
        share
    }

    fn add_spot(&self, scene: &LitScene<'_>, (shades, metal): Lit<'_>, rays: &mut u64) {
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
        let mut open = self.bundle(scene, &wanted).open_from(|i| lamp[i].object);
        // Where the beam ends, only a part of the lamp shines.
        let edge = lanes_of(lit).filter(|&lane| !spot.is_inside(self.points[lane].position));
        let mut edge_cosines = [None; WIDTH];
        for lane in edge {
            let weight = |i: usize| spot.edge(self.points[lane].position, lamp[i].world);
            let total: f32 = (0..lamp.len()).map(weight).sum();
            for i in (0..lamp.len()).filter(|_| total > 0.0) {
                let weight = weight(i) * lamp.len() as f32 / total;
                open[i].0[lane] *= weight;
                *edge_cosines[lane].get_or_insert(0.0) += terms[i].cosine.0[lane] * weight;
            }
        }
        let mut sums = Sums::NONE;
        let mut gleam = ZERO;
        for i in 0..lamp.len() {
            if self.has_lobe() && open[i] != ZERO {
                lobe(&self.lanes, &directions[i], &self.lanes.alpha, &mut gleam);
                add_products(&mut sums.specular, &open[i], &gleam);
                if self.has_metal {
                    metal_lobe(&self.lanes, &directions[i], &self.lanes.alpha, &mut gleam);
                    add_products(&mut sums.metal, &open[i], &gleam);
                }
            }
            accumulate(&mut sums, &terms[i], &open[i]);
        }
        for lane in lanes_of(lit) {
            let total = edge_cosines[lane].unwrap_or(sums.cosine.0[lane]);
            if total > 0.0 {
                shades[lane].diffuse += spot.intensity * (irradiance[lane] * sums.diffuse.0[lane] / total);
            }
            if self.lanes.alpha.0[lane] < LAMP_LOBE && total > 0.0 {
                shades[lane].lamp = sums.visible_cosine.0[lane] / total;
            } else if self.has_lobe() {
                let facing = spot.facing_irradiance(self.points[lane].position);
                let mean = sums.specular.0[lane] / lamp.len() as f32;
                shades[lane].specular += spot.intensity * (facing * mean);
                metal[lane] += spot.intensity * (facing * sums.metal.0[lane] / lamp.len() as f32);
            }
        }
    }

    /// Adds what the world, the floor and the object itself send from every direction.
    fn add_indirect(&self, scene: &LitScene<'_>, (shades, metal): Lit<'_>, rays: &mut u64) {
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
        // Where a point sees much of the object, what it sees does too, and so gets less light from around.
        let mut enclosed = [0.0; WIDTH];
        for (turn, hits) in hits.iter().enumerate().filter(|(_, hits)| hits.mask != 0) {
            for lane in 0..WIDTH {
                enclosed[lane] += f32::from(hits.mask >> lane & 1) * terms[turn].cosine.0[lane];
            }
        }
        let open: [f32; WIDTH] = std::array::from_fn(|lane| {
            (1.0 - ENCLOSURE * enclosed[lane] / sums.cosine.0[lane].max(1e-6)).max(0.0)
        });
        let mut light = [Vec3::ZERO; WIDTH];
        let (mut shares, mut gleam) = (Floats::splat(1.0), ZERO);
        let (mut white, mut coloured) = ([Vec3::ZERO; WIDTH], [Vec3::ZERO; WIDTH]);
        for (turn, towards) in sphere.iter().enumerate().filter(|&(turn, _)| wanted[turn] != 0) {
            let mut incoming = [Vec3::splat(WORLD_RADIANCE); WIDTH];
            if towards.world.z < 0.0 {
                for lane in lanes_of(wanted[turn] & !hits[turn].mask) {
                    let point = self.points[lane].position + limits[turn].0[lane] * towards.world;
                    incoming[lane] = floor.radiance(point.truncate());
                }
            }
            let surroundings = (&scene.directions, floor);
            let mut indirect = [Vec3::ZERO; WIDTH];
            let found = (&mut incoming, &mut indirect);
            object_radiance(scene.view, surroundings, &hits[turn], towards.world, turn, found, rays);
            // Light of the world counts wholly, and the lobe's part of it is in `gleam`.
            let surfaces = if towards.world.z < 0.0 { wanted[turn] } else { hits[turn].mask };
            if self.has_lobe() && surfaces != 0 {
                let direction = towards.world.to_array().map(Floats::splat);
                counted_share(&self.lanes, &direction, &terms[turn], &mut shares);
                lobe(&self.lanes, &direction, &self.lanes.alpha, &mut gleam);
                for lane in lanes_of(surfaces) {
                    incoming[lane] *= shares.0[lane];
                    indirect[lane] *= shares.0[lane];
                    white[lane] += (incoming[lane] + indirect[lane]) * gleam.0[lane];
                }
                if self.has_metal {
                    metal_lobe(&self.lanes, &direction, &self.lanes.alpha, &mut gleam);
                    for lane in lanes_of(surfaces) {
                        coloured[lane] += (incoming[lane] + open[lane] * indirect[lane]) * gleam.0[lane];
                    }
                }
            }
            for lane in lanes_of(wanted[turn]) {
                light[lane] += (incoming[lane] + open[lane] * indirect[lane]) * terms[turn].diffuse.0[lane];
            }
        }
        for lane in 0..self.count {
            let total = sums.cosine.0[lane];
            if total > 0.0 {
                shades[lane].diffuse += PI * light[lane] / total;
                if self.has_lobe() {
                    shades[lane].specular += PI * white[lane] / total;
                    metal[lane] += PI * coloured[lane] / total;
                }
            }
        }
    }

    fn bundle<'a>(&'a self, scene: &'a LitScene<'_>, wanted: &'a [Mask]) -> Bundle<'a> {
        let geometry = scene.view.light_shape().geometry;
        let by_point = geometry.triangles.len() as f32 * scene.settings.point_spacing().powi(2) > DENSE;
        Bundle { geometry, origin: &self.origin, wanted, by_point }
    }

    /// The world, and, in narrow lobes, the sun, as the lobes reflect them.
    fn gleam(&self, scene: &LitScene<'_>, sun_share: &[f32; WIDTH]) -> ReflectedLanes {
        let is_narrow = |lane: usize| self.lanes.alpha.0[lane] < NARROW_LOBE;
        let sun_share =
            Floats(std::array::from_fn(|lane| if is_narrow(lane) { sun_share[lane] } else { 0.0 }));
        let mut sums = ReflectedLanes { white: ZERO, albedo: ZERO };
        let count = scene.settings.lobe_samples;
        for i in 0..count {
            add_reflected(&self.lanes, bsdf::even_lobe_sample(i, count), &sun_share, &mut sums);
        }
        let mean = |sum: Floats| Floats(sum.0.map(|sum| sum / count as f32));
        ReflectedLanes { white: mean(sums.white), albedo: mean(sums.albedo) }
    }
}

/// What a surface with a lobe narrower than [`LAMP_LOBE`] mirrors of the lamp, nothing in between.
pub(crate) fn lamp_mirrored(
    view: &View<'_>,
    point: &SurfacePoint,
    surface: &bsdf::Surface,
    albedo: Vec3,
) -> Vec3 {
    let towards = (view.camera.position - point.position).normalize_or(Vec3::Z);
    let l = 2.0 * point.normal.dot(towards) * point.normal - towards;
    let lamp = view.spot.mirrored(point.position, l, surface.alpha());
    if lamp == 0.0 {
        return Vec3::ZERO;
    }
    let Reflected { white, albedo: coloured } = surface.reflection_weight(point.normal, l, towards);
    view.spot.intensity * lamp * (Vec3::splat(white) + coloured * albedo)
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
