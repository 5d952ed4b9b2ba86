//! Reflection of the object's surface: Burley diffuse and a GGX lobe, as the Principled BSDF of the reference
//! renders has them (no energy is taken from the diffuse part by the specular one).

use std::f32::consts::FRAC_1_PI;

use glam::{Vec2, Vec3};

/// The roughness below which the lobe is not made any narrower.
const MIN_ALPHA: f32 = 1e-3;

/// The scalar parameters of a surface.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// Burley's and the lobe's roughness.
    pub roughness: f32,
    /// Principled `specular`: normal reflectance over 0.08.
    pub specular: f32,
    /// Share of the surface that is metal: no diffuse light, and a lobe in the colour of the albedo.
    pub metallic: f32,
}

/// `(1 - x)^5`.
#[inline]
fn schlick(x: f32) -> f32 {
    let m = (1.0 - x).clamp(0.0, 1.0);
    let m2 = m * m;
    m2 * m2 * m
}

/// Unpolarised reflectance of a dielectric of relative index `eta` for the cosine `cos`.
#[inline(always)]
fn fresnel_dielectric(cos: f32, eta: f32) -> f32 {
    let c = cos.abs();
    let g = eta * eta - 1.0 + c * c;
    if g <= 0.0 {
        return 1.0;
    }
    let g = g.sqrt();
    let a = (g - c) / (g + c);
    let b = ((g + c) * c - 1.0) / ((g - c) * c + 1.0);
    0.5 * a * a * (1.0 + b * b)
}

/// Smith's masking of GGX for one direction.
#[inline(always)]
fn smith_g1(cos: f32, alpha_squared: f32) -> f32 {
    let cos_squared = cos * cos;
    let tan_squared = (1.0 - cos_squared).max(0.0) / cos_squared.max(1e-8);
    2.0 / (1.0 + (1.0 + alpha_squared * tan_squared).sqrt())
}

impl Surface {
    /// Whether there is a lobe at all.
    pub fn has_specular(&self) -> bool {
        self.specular > 0.0 || self.metallic > 0.0
    }

    /// Width parameter of the lobe.
    pub fn alpha(&self) -> f32 {
        (self.roughness * self.roughness).max(MIN_ALPHA)
    }

    /// Burley diffuse over the albedo, times `n.l`.
    #[inline]
    pub fn diffuse(&self, n_dot_l: f32, n_dot_v: f32, l_dot_v: f32) -> f32 {
        if n_dot_l <= 0.0 {
            return 0.0;
        }
        let (fl, fv) = (schlick(n_dot_l), schlick(n_dot_v));
        let retro = self.roughness * (1.0 + l_dot_v);
        let f = (1.0 - 0.5 * fl) * (1.0 - 0.5 * fv) + retro * (fl + fv + fl * fv * (retro - 1.0));
        FRAC_1_PI * n_dot_l * f
    }

    /// White reflectance of the lobe at normal incidence.
    pub fn normal_reflectance(&self) -> f32 {
        0.08 * self.specular * (1.0 - self.metallic)
    }

    /// The refractive index of the dielectric, which gives the rise towards grazing angles, of metals too.
    pub fn eta(&self) -> f32 {
        2.0 / (1.0 - (0.08 * self.specular).clamp(0.0, 0.99).sqrt()) - 1.0
    }

    /// The lobe.
    fn lobe(&self) -> Lobe {
        let (reflectance, eta) = (self.normal_reflectance(), self.eta());
        Lobe { reflectance, eta, metallic: self.metallic, alpha: self.alpha() }
    }

    /// Fresnel reflectance of the lobe for the cosine between light and half-vector: in white, and per unit albedo.
    pub fn fresnel(&self, cos: f32) -> Reflected {
        self.lobe().fresnel(cos)
    }

    /// The GGX lobe times `n.l`; `alpha` as from [`Self::alpha`] or wider.
    #[inline]
    pub fn specular(&self, n: Vec3, l: Vec3, v: Vec3, alpha: f32) -> Reflected {
        let (n_dot_l, n_dot_v) = (n.dot(l), n.dot(v));
        if !self.has_specular() || n_dot_l <= 0.0 || n_dot_v <= 0.0 {
            return Reflected::default();
        }
        let half = (l + v).normalize_or(n);
        let alpha_squared = alpha * alpha;
        let cos_squared = n.dot(half) * n.dot(half);
        let d = cos_squared * (alpha_squared - 1.0) + 1.0;
        let distribution = alpha_squared * FRAC_1_PI / (d * d);
        let masking = smith_g1(n_dot_l, alpha_squared) * smith_g1(n_dot_v, alpha_squared);
        self.fresnel(l.dot(half)) * (distribution * masking * 0.25 / n_dot_v)
    }

    /// How likely Cycles is to continue a path along the lobe instead of the diffuse part, seen at the cosine `n_dot_v`.
    pub fn lobe_chance(&self, n_dot_v: f32, albedo: Vec3) -> f32 {
        if !self.has_specular() || n_dot_v <= 0.0 {
            return 0.0;
        }
        let mean = albedo.element_sum() * (1.0 / 3.0);
        let Reflected { white, albedo } = self.fresnel(n_dot_v);
        let lobe = white + albedo * mean;
        lobe / (lobe + mean * (1.0 - self.metallic)).max(1e-6)
    }

    /// Smith's masking of the lobe towards the viewer.
    pub fn masking(&self, cos: f32) -> f32 {
        let alpha = self.alpha();
        smith_g1(cos, alpha * alpha)
    }
}

/// What a lobe reflects: in white, and per unit albedo (metals).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reflected {
    /// Whatever the albedo.
    pub white: f32,
    /// Per unit albedo.
    pub albedo: f32,
}

impl std::ops::Mul<f32> for Reflected {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: f32) -> Self {
        Self { white: self.white * factor, albedo: self.albedo * factor }
    }
}

impl std::ops::AddAssign for Reflected {
    fn add_assign(&mut self, other: Self) {
        self.white += other.white;
        self.albedo += other.albedo;
    }
}

/// The shading normal `n` turned towards the face's normal `face` just so far that what it reflects of `v` leaves the
/// surface, as Cycles does before it shades. All are unit vectors, `v` and `face` on one side.
#[inline]
pub fn valid_normal(face: Vec3, v: Vec3, n: Vec3) -> Vec3 {
    let v_z = v.dot(face);
    let reflected = 2.0 * n.dot(v) * n - v;
    let threshold = (0.9 * v_z).min(0.01);
    if face.dot(reflected) >= threshold {
        return n;
    }
    turned_normal(face, v, n, threshold)
}

/// The normal in the plane of `face` and `n` whose reflection of `v` has the height `threshold` above the face.
fn turned_normal(face: Vec3, v: Vec3, n: Vec3, threshold: f32) -> Vec3 {
    let across = (n - n.dot(face) * face).normalize_or_zero();
    let (x, z) = (v.dot(across), v.dot(face));
    let square = x * x + z * z;
    let a = (x * x * (square - threshold * threshold)).max(0.0).sqrt();
    let b = z * threshold + square;
    let factor = 0.5 / square.max(1e-12);
    let solution = |z_squared: f32| {
        let is_valid = z_squared > 1e-5 && z_squared <= 1.0 + 1e-5;
        let new = Vec2::new((1.0 - z_squared).max(0.0).sqrt(), z_squared.max(0.0).sqrt());
        (is_valid, new, 2.0 * (new.x * x + new.y * z) * new.y - z)
    };
    let (first, second) = (solution(factor * (b + a)), solution(factor * (b - a)));
    let new = match (first.0, second.0) {
        (true, true) => {
            // Of two that reflect upwards, the lower; of one, that one.
            let both = first.2 >= 1e-5 && second.2 >= 1e-5;
            if (first.2 < second.2) == both { first.1 } else { second.1 }
        }
        (true, false) => first.1,
        (false, true) => second.1,
        (false, false) => return face,
    };
    (new.x * across + new.y * face).normalize_or(face)
}

/// What [`sample_reflection`] takes of a point of the unit square: a radius, and cosine and sine of an angle.
pub fn lobe_sample(u: [f32; 2]) -> [f32; 3] {
    let angle = std::f32::consts::TAU * u[1];
    [u[0].sqrt(), angle.cos(), angle.sin()]
}

/// Sample `i` of `count` that cover the lobe evenly.
pub fn even_lobe_sample(i: usize, count: usize) -> [f32; 3] {
    lobe_sample([(i as f32 + 0.5) / count as f32, (i as f32 * 0.618_034).fract()])
}

/// Samples a visible normal of GGX for the view direction `v` about `n` (Heitz, 2018), and returns the light
/// direction it reflects to.
#[inline(always)]
pub fn sample_reflection(n: Vec3, v: Vec3, alpha: f32, [radius, cos, sin]: [f32; 3]) -> Vec3 {
    let (s, t) = crate::sampling::frame(n);
    let view = Vec3::new(alpha * v.dot(s), alpha * v.dot(t), v.dot(n)).normalize_or(Vec3::Z);
    let (a, b) = crate::sampling::frame(view);
    let x = radius * cos;
    let blend = 0.5 * (1.0 + view.z);
    let y = (1.0 - blend) * (1.0 - x * x).max(0.0).sqrt() + blend * radius * sin;
    let z = (1.0 - x * x - y * y).max(0.0).sqrt();
    let local = x * a + y * b + z * view;
    let half = Vec3::new(alpha * local.x, alpha * local.y, local.z.max(0.0)).normalize_or(Vec3::Z);
    let half = half.x * s + half.y * t + half.z * n;
    (2.0 * v.dot(half) * half - v).normalize_or(n)
}

/// The lobe of a surface.
#[derive(Clone, Copy, Debug)]
pub struct Lobe {
    /// [`Surface::normal_reflectance`].
    pub reflectance: f32,
    /// [`Surface::eta`].
    pub eta: f32,
    /// [`Surface::metallic`].
    pub metallic: f32,
    /// [`Surface::alpha`].
    pub alpha: f32,
}

impl Lobe {
    #[inline(always)]
    fn fresnel(&self, cos: f32) -> Reflected {
        let base = fresnel_dielectric(1.0, self.eta);
        let rise = ((fresnel_dielectric(cos, self.eta) - base) / (1.0 - base)).clamp(0.0, 1.0);
        Reflected { white: self.reflectance * (1.0 - rise) + rise, albedo: self.metallic * (1.0 - rise) }
    }

    /// What a direction from [`sample_reflection`] contributes per unit radiance.
    #[inline(always)]
    pub fn reflection_weight(&self, n: Vec3, l: Vec3, v: Vec3) -> Reflected {
        if n.dot(l) <= 0.0 || n.dot(v) <= 0.0 {
            return Reflected::default();
        }
        let half = (l + v).normalize_or(n);
        self.fresnel(l.dot(half)) * smith_g1(n.dot(l), self.alpha * self.alpha)
    }
}

impl Surface {
    /// [`Lobe::reflection_weight`].
    pub fn reflection_weight(&self, n: Vec3, l: Vec3, v: Vec3) -> Reflected {
        self.lobe().reflection_weight(n, l, v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling;

    #[test]
    fn the_two_estimates_of_the_lobe_agree() {
        let surface = Surface { roughness: 0.6, specular: 0.7, metallic: 0.3 };
        let (n, v) = (Vec3::Z, Vec3::new(0.5, 0.2, 0.7).normalize());
        let count = 40_000;
        let (mut by_area, mut by_lobe) = (Reflected::default(), Reflected::default());
        for i in 0..count {
            let l = sampling::sphere(i, count, 0.0);
            by_area +=
                surface.specular(n, l, v, surface.alpha()) * (4.0 * std::f32::consts::PI / count as f32);
            let sample = lobe_sample(sampling::sobol(i as u32, 0, 9));
            let l = sample_reflection(n, v, surface.alpha(), sample);
            by_lobe += surface.reflection_weight(n, l, v) * (1.0 / count as f32);
        }
        for (area, lobe) in [(by_area.white, by_lobe.white), (by_area.albedo, by_lobe.albedo)] {
            assert!((area - lobe).abs() < 0.01 * area, "{area} {lobe}");
        }
        assert!(by_area.white > 0.03 && by_area.white < 0.2);
        assert!(by_area.albedo > 0.2 && by_area.albedo < 0.3, "{by_area:?}");
    }

    #[test]
    fn normals_are_turned_until_they_reflect_upwards() {
        let face = Vec3::Z;
        let v = Vec3::new(0.95, 0.1, 0.2).normalize();
        // Nothing happens to a normal that reflects upwards.
        let good = Vec3::new(0.1, 0.0, 1.0).normalize();
        assert_eq!(valid_normal(face, v, good), good);
        for bad in [Vec3::new(-0.8, 0.1, 0.6), Vec3::new(-0.3, 0.5, 0.4)] {
            let n = valid_normal(face, v, bad.normalize());
            let reflected = 2.0 * n.dot(v) * n - v;
            assert!((reflected.z - 0.01).abs() < 1e-4, "{n} reflects to {reflected}");
            assert!(n.dot(v) > 0.0 && n.dot(bad.cross(face)).abs() < 1e-5);
        }
    }

    #[test]
    fn burley_is_lambert_at_normal_incidence() {
        let surface = Surface { roughness: 0.5, specular: 0.0, metallic: 0.0 };
        assert!((surface.diffuse(1.0, 1.0, 1.0) - FRAC_1_PI).abs() < 1e-6);
        assert_eq!(surface.diffuse(-0.1, 1.0, 0.0), 0.0);
        // Grazing: (1 - FL / 2)(1 - FV / 2) + R (FL + FV + FL FV (R - 1)) with R = roughness (1 + l.v).
        let smooth = Surface { roughness: 0.0, specular: 0.0, metallic: 0.0 };
        let (fl, fv) = (0.5_f32.powi(5), 0.8_f32.powi(5));
        let expected = FRAC_1_PI * 0.5 * (1.0 - 0.5 * fl) * (1.0 - 0.5 * fv);
        assert!((smooth.diffuse(0.5, 0.2, 0.3) - expected).abs() < 1e-6);
        let rough = Surface { roughness: 0.7, specular: 0.0, metallic: 0.0 };
        let retro = 0.7 * 1.3;
        let more = FRAC_1_PI * 0.5 * retro * (fl + fv + fl * fv * (retro - 1.0));
        assert!((rough.diffuse(0.5, 0.2, 0.3) - expected - more).abs() < 1e-6);
    }

    #[test]
    fn fresnel_starts_at_the_normal_reflectance_and_ends_at_one() {
        let surface = Surface { roughness: 0.5, specular: 0.5, metallic: 0.0 };
        assert!(
            (surface.fresnel(1.0).white - 0.04).abs() < 1e-5
                && (surface.fresnel(0.0).white - 1.0).abs() < 1e-3
        );
        // An index of 1.5 at 60 degrees: 0.1766 and 0.0018 of the two polarisations, to four digits.
        assert!((surface.eta() - 1.5).abs() < 1e-4);
        let (towards, inside) = (0.5_f32, (1.0 - 0.75_f32 / 2.25).sqrt());
        let across = ((towards - 1.5 * inside) / (towards + 1.5 * inside)).powi(2);
        let along = ((inside - 1.5 * towards) / (inside + 1.5 * towards)).powi(2);
        let found = surface.fresnel(0.5).white;
        assert!((found - 0.5 * (across + along)).abs() < 1e-4, "{found}");
    }
}
