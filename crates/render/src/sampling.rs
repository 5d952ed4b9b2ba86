//! Well-spread point sets: fixed ones (spirals) for the presets, a scrambled Sobol sequence for the path tracer.

use glam::{Vec2, Vec3};

/// The golden angle in radians.
const GOLDEN_ANGLE: f32 = 2.399_963_2;

/// Point `i` of `n` equal-area points of the unit disc (Vogel's spiral), turned by `turn` radians.
#[inline]
pub fn disc(i: usize, n: usize, turn: f32) -> Vec2 {
    let radius = ((i as f32 + 0.5) / n as f32).sqrt();
    let (sin, cos) = (i as f32 * GOLDEN_ANGLE + turn).sin_cos();
    Vec2::new(radius * cos, radius * sin)
}

/// Direction `i` of `n` equal-area directions of the sphere, turned by `turn` radians about z.
#[inline]
pub fn sphere(i: usize, n: usize, turn: f32) -> Vec3 {
    let z = 1.0 - (2.0 * i as f32 + 1.0) / n as f32;
    let (sin, cos) = (i as f32 * GOLDEN_ANGLE + turn).sin_cos();
    let radius = (1.0 - z * z).max(0.0).sqrt();
    Vec3::new(radius * cos, radius * sin, z)
}

/// Maps the unit square to the unit disc, area preserved (Shirley and Chiu).
pub fn square_to_disc(u: [f32; 2]) -> Vec2 {
    let (a, b) = (2.0 * u[0] - 1.0, 2.0 * u[1] - 1.0);
    if a == 0.0 && b == 0.0 {
        return Vec2::ZERO;
    }
    let quarter = std::f32::consts::FRAC_PI_4;
    let (radius, angle) =
        if a.abs() > b.abs() { (a, quarter * (b / a)) } else { (b, 2.0 * quarter - quarter * (a / b)) };
    Vec2::new(radius * angle.cos(), radius * angle.sin())
}

/// Two unit vectors that complete the unit vector `n` to a right-handed frame (Duff et al., 2017).
#[inline(always)]
pub fn frame(n: Vec3) -> (Vec3, Vec3) {
    let sign = 1.0_f32.copysign(n.z);
    let a = -1.0 / (sign + n.z);
    let b = n.x * n.y * a;
    (Vec3::new(1.0 + sign * n.x * n.x * a, sign * b, -sign * n.x), Vec3::new(b, sign + n.y * n.y * a, -n.y))
}

/// Cosine-distributed direction about the unit vector `n`.
pub fn cosine_hemisphere(n: Vec3, u: [f32; 2]) -> Vec3 {
    let point = square_to_disc(u);
    let (s, t) = frame(n);
    let height = (1.0 - point.length_squared()).max(0.0).sqrt();
    (point.x * s + point.y * t + height * n).normalize()
}

/// Mixes 32 bits (the "lowbias32" finaliser of Wellons).
pub fn hash(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// Hash-based nested uniform (Owen) scrambling of the bits of `x` (Burley, 2020).
fn owen_scramble(x: u32, seed: u32) -> u32 {
    let mut x = x.reverse_bits();
    x = x.wrapping_add(seed);
    x ^= x.wrapping_mul(0x6c50_b47c);
    x ^= x.wrapping_mul(0xb82f_1e52);
    x ^= x.wrapping_mul(0xc7af_e638);
    x ^= x.wrapping_mul(0x8d22_f6e6);
    x.reverse_bits()
}

/// The second Sobol dimension; the first is the reversal of the index's bits.
fn sobol_second(mut index: u32) -> u32 {
    let mut direction = 1_u32 << 31;
    let mut result = 0;
    while index != 0 {
        if index & 1 != 0 {
            result ^= direction;
        }
        index >>= 1;
        direction ^= direction >> 1;
    }
    result
}

/// Point `index` of the scrambled 2D Sobol sequence number `pair` of the pixel `seed`; different pairs are
/// shuffled independently, so that they can be combined into higher dimensions.
pub fn sobol(index: u32, pair: u32, seed: u32) -> [f32; 2] {
    let seed = hash(seed ^ hash(pair.wrapping_add(0x9e37_79b9)));
    let shuffled = owen_scramble(index, seed);
    let x = owen_scramble(shuffled.reverse_bits(), hash(seed ^ 0x51));
    let y = owen_scramble(sobol_second(shuffled), hash(seed ^ 0xa7));
    [x, y].map(|bits| (bits >> 8) as f32 / (1 << 24) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sobol_points_fill_the_strata() {
        for pair in 0..3 {
            let (mut rows, mut columns, mut cells) = ([0; 64], [0; 64], [0; 64]);
            for index in 0..64 {
                let [x, y] = sobol(index, pair, 1234);
                rows[(y * 64.0) as usize] += 1;
                columns[(x * 64.0) as usize] += 1;
                cells[(y * 8.0) as usize * 8 + (x * 8.0) as usize] += 1;
            }
            assert_eq!((rows, columns, cells), ([1; 64], [1; 64], [1; 64]));
        }
    }

    #[test]
    fn spirals_have_the_moments_of_their_shapes() {
        let n = 500;
        let disc_square: f32 = (0..n).map(|i| disc(i, n, 0.3).length_squared()).sum::<f32>() / n as f32;
        let sphere_mean: Vec3 = (0..n).map(|i| sphere(i, n, 0.3)).sum::<Vec3>() / n as f32;
        assert!((disc_square - 0.5).abs() < 1e-3 && sphere_mean.length() < 1e-2);
    }

    #[test]
    fn frames_are_orthonormal() {
        for i in 0..50 {
            let n = sphere(i, 50, 0.1);
            let (s, t) = frame(n);
            assert!(s.dot(t).abs() < 1e-5 && s.dot(n).abs() < 1e-5 && (s.cross(t) - n).length() < 1e-5);
            let d = cosine_hemisphere(n, [0.3, 0.8]);
            assert!(d.dot(n) > 0.0 && (d.length() - 1.0).abs() < 1e-5);
        }
    }
}
