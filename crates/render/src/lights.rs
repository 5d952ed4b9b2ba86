//! The three lights of the scene: the constant world, the 90-degree sun and the spot.
//!
//! The sun's radiance `1.5 / (pi cos^3 theta)` within 45 degrees of +Z is that of a uniform disc of radius 1 at unit
//! height: a uniformly chosen disc point `(x, y)` gives the direction `(x, y, 1)`, and every such direction carries
//! the same irradiance 1.5 on a surface facing it.

use std::f32::consts::PI;
use std::sync::OnceLock;

use glam::{Vec2, Vec3};
use scene::Latents;

use crate::colour;
use crate::sampling;

/// Height of the floor.
pub const FLOOR_Z: f32 = scene::FLOOR_HEIGHT as f32;
/// Radiance of the world in every direction.
pub const WORLD_RADIANCE: f32 = 0.05;
/// Irradiance of the sun on a surface that faces a sampled direction.
pub const SUN_STRENGTH: f32 = 1.5;
/// Sun irradiance of the open floor: `1.5 * 2 (sqrt 2 - 1)`.
pub const SUN_FLOOR_IRRADIANCE: f32 = SUN_STRENGTH * 2.0 * (std::f32::consts::SQRT_2 - 1.0);
/// Radius of the spot's lamp.
pub const LAMP_RADIUS: f32 = 0.25;
/// Distance of the spot from the origin.
const SPOT_DISTANCE: f32 = 4.0;
/// 500 W over the sphere.
const SPOT_INTENSITY: f32 = 500.0 / (4.0 * PI);
/// cos of the cone's half-angle, 11.25 degrees.
const SPOT_COS: f32 = 0.980_785_3;
/// Width of the cone's soft edge in the cosine: blend 0.15.
const SPOT_SMOOTH: f32 = 0.15 * (1.0 - SPOT_COS);

/// Direction towards the sun for a point of the unit disc.
#[inline]
pub fn sun_direction(point: Vec2) -> Vec3 {
    Vec3::new(point.x, point.y, 1.0).normalize()
}

/// Radiance of the sun in the unit direction `direction`.
#[inline(always)]
pub fn sun_radiance(direction: Vec3) -> f32 {
    let cos = direction.z;
    if cos > std::f32::consts::FRAC_1_SQRT_2 { SUN_STRENGTH / (PI * cos * cos * cos) } else { 0.0 }
}

/// Steps of [`sun_table`].
const SUN_STEPS: usize = 256;

/// Irradiance of the unobstructed sun at equally spaced heights of the normal, from -1 to 1, and the last once more.
pub fn sun_table() -> &'static [f32] {
    static TABLE: OnceLock<Vec<f32>> = OnceLock::new();
    TABLE.get_or_init(|| {
        const POINTS: usize = 4096;
        let directions: Vec<Vec3> =
            (0..POINTS).map(|i| sun_direction(sampling::disc(i, POINTS, 0.0))).collect();
        (0..=SUN_STEPS + 1)
            .map(|i| {
                let z = (2.0 * i as f32 / SUN_STEPS as f32 - 1.0).min(1.0);
                let normal = Vec3::new((1.0 - z * z).max(0.0).sqrt(), 0.0, z);
                let sum: f64 = directions.iter().map(|d| f64::from(normal.dot(*d).max(0.0))).sum();
                SUN_STRENGTH * (sum / POINTS as f64) as f32
            })
            .collect()
    })
}

/// Irradiance of the unobstructed sun on a surface whose normal has the z component `normal_z`.
pub fn sun_irradiance(normal_z: f32) -> f32 {
    let table = sun_table();
    let x = (normal_z.clamp(-1.0, 1.0) + 1.0) * 0.5 * SUN_STEPS as f32;
    let i = x as usize;
    table[i] + (table[i + 1] - table[i]) * (x - i as f32)
}

/// The spot light of one view.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Centre of the lamp.
    pub position: Vec3,
    /// Unit direction of the beam, towards the origin.
    pub axis: Vec3,
    /// Intensity on the axis, per channel.
    pub intensity: Vec3,
}

/// Light from one point of the lamp.
#[derive(Clone, Copy, Debug)]
pub struct SpotSample {
    /// Unit direction from the shaded point to the lamp point.
    pub direction: Vec3,
    /// Distance to the lamp point.
    pub distance: f32,
    /// Irradiance per unit intensity on a surface that faces the lamp point.
    pub weight: f32,
}

impl Spot {
    /// The spot of a view.
    pub fn new(latents: &Latents) -> Self {
        let (sin, cos) = latents.spot_theta.sin_cos();
        let (sin_phi, cos_phi) = latents.spot_phi.sin_cos();
        let towards = Vec3::new((sin * cos_phi) as f32, (sin * sin_phi) as f32, cos as f32);
        Self {
            position: SPOT_DISTANCE * towards,
            axis: -towards,
            intensity: SPOT_INTENSITY * colour::spot_colour(latents.spot_hue),
        }
    }

    /// The light that reaches `point` from the lamp point `disc` (of the unit disc): the lamp is a disc that faces
    /// the point.
    #[inline]
    pub fn sample(&self, point: Vec3, disc: Vec2) -> SpotSample {
        let to_lamp = self.position - point;
        let facing = to_lamp.normalize_or(Vec3::Z);
        let (s, t) = sampling::frame(facing);
        let offset = to_lamp + LAMP_RADIUS * (disc.x * s + disc.y * t);
        let distance_squared = offset.length_squared().max(1e-12);
        let distance = distance_squared.sqrt();
        let direction = offset / distance;
        let weight = attenuation(-direction.dot(self.axis)) * direction.dot(facing) / distance_squared;
        SpotSample { direction, distance, weight }
    }

    /// Irradiance per unit intensity on a surface at `point` that faces the lamp, nothing in between.
    #[inline]
    pub fn facing_irradiance(&self, point: Vec3) -> f32 {
        let to_lamp = self.position - point;
        let distance_squared = to_lamp.length_squared().max(1e-12);
        let distance = distance_squared.sqrt();
        BlurredCone::get().lookup(-to_lamp.dot(self.axis) / distance, distance)[0] / distance_squared
    }

    /// Whether no part of the lamp sees `point` outside the beam or in its soft edge.
    #[inline]
    pub fn is_inside(&self, point: Vec3) -> bool {
        let from_lamp = point - self.position;
        let along = from_lamp.dot(self.axis);
        let across = (from_lamp - along * self.axis).length() + LAMP_RADIUS;
        along > (SPOT_COS + SPOT_SMOOTH) * (along * along + across * across).sqrt()
    }

    /// What the beam's edge leaves of the light of the lamp point `lamp` at `point`, of 1.
    #[inline]
    pub fn edge(&self, point: Vec3, lamp: Vec3) -> f32 {
        let from_lamp = point - lamp;
        let cos = from_lamp.dot(self.axis) / from_lamp.length().max(1e-6);
        let x = ((cos - SPOT_COS) / SPOT_SMOOTH).clamp(0.0, 1.0);
        x * x * (3.0 - 2.0 * x)
    }

    /// Radiance per unit intensity that a lobe of the width `alpha`, too narrow for lamp points, reflects of the lamp from
    /// the mirrored direction `l`, nothing in between: the disc, blurred by the lobe.
    pub fn mirrored(&self, point: Vec3, l: Vec3, alpha: f32) -> f32 {
        let to_lamp = self.position - point;
        let square = to_lamp.length_squared();
        let along = to_lamp.dot(l);
        if along <= 0.0 {
            return 0.0;
        }
        let distance = square.sqrt();
        let offset = (l * (square / along) - to_lamp).length() * (1.0 / LAMP_RADIUS);
        let blur = (2.0 * alpha * distance * (1.0 / LAMP_RADIUS)).max(0.1);
        let half = 0.5 * LAMP_RADIUS / distance;
        let share = half * half / (half * half + alpha * alpha);
        let covered = ((1.0 + blur - offset) / (2.0 * blur)).clamp(0.0, 1.0) * share;
        self.facing_irradiance(point) * covered * square * (1.0 / (PI * LAMP_RADIUS * LAMP_RADIUS))
    }

    /// Irradiance per unit intensity at `point` with the unit normal `normal`, nothing in between and the whole
    /// lamp above the surface's horizon.
    #[inline]
    pub fn irradiance(&self, point: Vec3, normal: Vec3) -> f32 {
        let to_lamp = self.position - point;
        let distance_squared = to_lamp.length_squared().max(1e-12);
        let distance = distance_squared.sqrt();
        let facing = to_lamp / distance;
        let cos_axis = -facing.dot(self.axis);
        let [mean, moment] = BlurredCone::get().lookup(cos_axis, distance);
        if mean == 0.0 {
            return 0.0;
        }
        // The lamp's points nearer to the axis count more; they lie along `outward`, away from the axis seen from p.
        let across = self.axis + cos_axis * facing;
        let outward = across.normalize_or_zero();
        (mean * normal.dot(facing) + moment * normal.dot(outward)).max(0.0) / distance_squared
    }
}

/// Falloff of the beam for the cosine between the axis and the ray.
#[inline]
fn attenuation(cos: f32) -> f32 {
    let x = ((cos - SPOT_COS) / SPOT_SMOOTH).clamp(0.0, 1.0);
    cos * x * x * (3.0 - 2.0 * x)
}

/// The table of the beam's falloff averaged over the lamp.
pub fn cone_table() -> &'static [[f32; 2]] {
    &BlurredCone::get().table
}

/// The beam's falloff averaged over the lamp. By symmetry it depends only on the angle from the axis and on the
/// distance, not on the view, so one table serves all.
struct BlurredCone {
    /// For each (angle, inverse distance): the mean of falloff times the lamp's own cosine and `(d / t)^2`, and the
    /// same weighted by the lamp point's offset over `t`, along the direction towards the axis.
    table: Vec<[f32; 2]>,
}

impl BlurredCone {
    const ANGLES: usize = 160;
    const DISTANCES: usize = 24;
    /// sin of the largest angle at which light arrives: 11.25 degrees and the lamp's radius from [`Self::NEAREST`].
    const MAX_SIN: f32 = 0.34;
    const NEAREST: f32 = 1.8;
    const FARTHEST: f32 = 12.0;

    fn get() -> &'static Self {
        static TABLE: OnceLock<BlurredCone> = OnceLock::new();
        TABLE.get_or_init(|| {
            let lamp: Vec<Vec2> = (0..512).map(|i| LAMP_RADIUS * sampling::disc(i, 512, 0.0)).collect();
            let mut table = Vec::with_capacity(Self::ANGLES * Self::DISTANCES);
            for i in 0..Self::ANGLES {
                for j in 0..Self::DISTANCES {
                    let sin = Self::MAX_SIN * i as f32 / (Self::ANGLES - 1) as f32;
                    let u = j as f32 / (Self::DISTANCES - 1) as f32;
                    let inverse = (1.0 - u) / Self::FARTHEST + u / Self::NEAREST;
                    table.push(Self::integrate(sin, 1.0 / inverse, &lamp));
                }
            }
            Self { table }
        })
    }

    fn integrate(sin: f32, distance: f32, lamp: &[Vec2]) -> [f32; 2] {
        // The shaded point at the origin, the lamp on +Z; the axis leans towards +X.
        let axis = Vec3::new(sin, 0.0, -(1.0 - sin * sin).sqrt());
        let (mut mean, mut moment) = (0.0_f64, 0.0_f64);
        for offset in lamp {
            let to_lamp = Vec3::new(offset.x, offset.y, distance);
            let t_squared = to_lamp.length_squared();
            let direction = to_lamp / t_squared.sqrt();
            let weight = attenuation(-direction.dot(axis)) * direction.z * distance * distance / t_squared;
            mean += f64::from(weight * direction.z);
            moment += f64::from(weight * direction.x);
        }
        let count = lamp.len() as f64;
        [(mean / count) as f32, (moment / count) as f32]
    }

    #[inline]
    fn lookup(&self, cos_axis: f32, distance: f32) -> [f32; 2] {
        let sin = (1.0 - cos_axis * cos_axis).max(0.0).sqrt();
        if cos_axis <= 0.0 || sin >= Self::MAX_SIN {
            return [0.0; 2];
        }
        let x = sin * ((Self::ANGLES - 1) as f32 / Self::MAX_SIN);
        let low = 1.0 / Self::FARTHEST;
        let scale = (Self::DISTANCES - 1) as f32 / (1.0 / Self::NEAREST - low);
        let y = ((1.0 / distance - low) * scale).clamp(0.0, (Self::DISTANCES - 1) as f32 - 1e-3);
        let (i, j) = ((x as usize).min(Self::ANGLES - 2), y as usize);
        let (fx, fy) = (x - i as f32, y - j as f32);
        let at = |i: usize, j: usize| Vec2::from_array(self.table[i * Self::DISTANCES + j]);
        let near = at(i, j).lerp(at(i, j + 1), fy);
        let far = at(i + 1, j).lerp(at(i + 1, j + 1), fy);
        near.lerp(far, fx).to_array()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::Camera;

    fn latents(theta: f64, phi: f64) -> Latents {
        Latents { spot_theta: theta, spot_phi: phi, ..Latents::default() }
    }

    #[test]
    fn sun_irradiance_on_tilted_surfaces() {
        for (degrees, expected) in
            [(0.0_f32, 0.8284), (30.0, 0.7176), (60.0, 0.4320), (90.0, 0.1698), (120.0, 0.0174)]
        {
            let irradiance = sun_irradiance(degrees.to_radians().cos()) / SUN_STRENGTH;
            assert!((irradiance - expected).abs() < 8e-4, "{degrees}: {irradiance}");
        }
        assert!((sun_irradiance(1.0) - SUN_FLOOR_IRRADIANCE).abs() < 1e-4);
        assert_eq!(sun_irradiance(-1.0), 0.0);
        // What arrives from all directions is what the table has.
        let count = 100_000;
        for normal in [Vec3::Z, Vec3::new(0.8, 0.0, 0.6)] {
            let arriving = (0..count).map(|i| sampling::sphere(i, count, 0.0));
            let sum: f32 = arriving.map(|l| sun_radiance(l) * normal.dot(l).max(0.0)).sum();
            let irradiance = sum * 4.0 * PI / count as f32;
            assert!((irradiance - sun_irradiance(normal.z)).abs() < 4e-3, "{normal}: {irradiance}");
        }
    }

    /// Spot part of the floor's radiance by distance from the centre, measured in a 512-sample render.
    #[test]
    fn spot_radius_bands() {
        let spot = Spot::new(&latents(0.0, 0.0));
        let bands = [
            (0.0, 0.3, 0.24154),
            (0.3, 0.6, 0.23829),
            (0.6, 0.7, 0.23430),
            (0.7, 0.8, 0.21684),
            (0.8, 0.9, 0.16800),
            (0.9, 1.0, 0.11050),
            (1.0, 1.1, 0.05640),
            (1.1, 1.2, 0.01646),
            (1.2, 1.4, 0.00014),
        ];
        let camera = Camera::from(None);
        // The bands were averaged over pixels, so pixels it is here.
        for (inner, outer, expected) in bands {
            let (mut sum, mut count) = (0.0, 0);
            for pixel in 0..256 * 256 {
                let direction =
                    camera.direction((pixel % 256) as f32 + 0.5, (pixel / 256) as f32 + 0.5, 256.0);
                let point = camera.position + direction * ((FLOOR_Z - camera.position.z) / direction.z);
                let radius = point.truncate().length();
                if radius >= inner && radius < outer {
                    sum += 0.6 / PI * spot.intensity.x * spot.irradiance(point, Vec3::Z);
                    count += 1;
                }
            }
            let radiance = sum / count as f32;
            assert!((radiance - expected).abs() < 3e-4, "{inner}-{outer}: {radiance} against {expected}");
        }
    }

    #[test]
    fn the_table_agrees_with_sampling_the_lamp() {
        for (theta, phi) in [(0.0, 0.0), (0.5, 1.0), (std::f64::consts::FRAC_PI_4, 4.5)] {
            let spot = Spot::new(&latents(theta, phi));
            for i in 0..400 {
                let point = Vec3::new((i % 20) as f32 * 0.25 - 2.5, (i / 20) as f32 * 0.25 - 2.5, FLOOR_Z);
                let sampled: f32 = (0..512)
                    .map(|k| spot.sample(point, sampling::disc(k, 512, 0.0)))
                    .map(|sample| sample.weight * sample.direction.z.max(0.0))
                    .sum::<f32>()
                    / 512.0;
                assert!((sampled - spot.irradiance(point, Vec3::Z)).abs() < 1.5e-4, "{point}");
            }
        }
    }
}
