//! Round parts: surfaces of revolution about z, cylinders, cones, (super)ellipsoids, rods between points.

use super::loft::loft;
use crate::solid::Solid;
use glam::{Vec2, Vec3};

/// A surface of revolution about z through `(radius, z)` pairs, listed so that the outside lies to the right of
/// the direction of travel (upwards along an outer wall). Texture: u once around from +x, v along the profile.
pub fn lathe(profile: &[(f32, f32)], n: usize) -> Solid {
    lathe_arc(profile, 0.0, 360.0, n)
}

/// The part of [`lathe`] between two angles in degrees (90 is +y); open at its sides unless it is a whole turn.
pub fn lathe_arc(profile: &[(f32, f32)], from: f32, to: f32, n: usize) -> Solid {
    let whole = (to - from - 360.0).abs() < 1e-3;
    let columns = if whole { n } else { n + 1 };
    let mut s = Solid::default();
    let mut along = vec![0.0_f32];
    for w in profile.windows(2) {
        along.push(along[along.len() - 1] + Vec2::from(w[0]).distance(w[1].into()));
    }
    let length = along[along.len() - 1].max(1e-6);
    let rows: Vec<Vec<u32>> = profile
        .iter()
        .map(|&(r, z)| {
            if r.abs() < 1e-6 {
                vec![s.point(Vec3::new(0.0, 0.0, z)); columns]
            } else {
                (0..columns)
                    .map(|i| {
                        let a = (from + (to - from) * i as f32 / n as f32).to_radians();
                        s.point(Vec3::new(r * a.cos(), r * a.sin(), z))
                    })
                    .collect()
            }
        })
        .collect();
    for j in 1..rows.len() {
        let (v0, v1) = (along[j - 1] / length, along[j] / length);
        for i in 0..n {
            let k = (i + 1) % columns;
            let (u0, u1) = (i as f32 / n as f32, (i + 1) as f32 / n as f32);
            s.quad(
                [rows[j - 1][i], rows[j - 1][k], rows[j][k], rows[j][i]],
                [Vec2::new(u0, v0), Vec2::new(u1, v0), Vec2::new(u1, v1), Vec2::new(u0, v1)],
            );
        }
    }
    s
}

/// A cylinder about z.
pub fn cylinder(r: f32, h: f32, n: usize) -> Solid {
    cone(r, r, h, n)
}

/// A truncated cone about z with radii `r0` below and `r1` above; edges slightly broken.
pub fn cone(r0: f32, r1: f32, h: f32, n: usize) -> Solid {
    let b = 0.06 * r0.max(r1).min(h);
    let z = h * 0.5;
    let mut profile = vec![(0.0, -z)];
    if r0 > 2.0 * b {
        profile.extend([(r0 - b, -z), (r0, -z + b)]);
    } else if r0 > 1e-6 {
        profile.push((r0, -z));
    }
    if r1 > 2.0 * b {
        profile.extend([(r1, z - b), (r1 - b, z)]);
    } else if r1 > 1e-6 {
        profile.push((r1, z));
    }
    profile.push((0.0, z));
    lathe(&profile, n)
}

/// A cylinder of radius `r` from `a` to `b`.
pub fn rod(a: Vec3, b: Vec3, r: f32, n: usize) -> Solid {
    super::tube(&[a, b], r, n)
}

/// An ellipsoid with the given radii; `n` steps around.
pub fn ellipsoid(rx: f32, ry: f32, rz: f32, n: usize) -> Solid {
    superellipsoid(rx, ry, rz, 1.0, 1.0, n)
}

/// A superellipsoid: exponents of 1 give an ellipsoid, towards 0 a box; `upright` shapes the outline seen from the
/// side, `around` the one seen from above.
pub fn superellipsoid(rx: f32, ry: f32, rz: f32, upright: f32, around: f32, n: usize) -> Solid {
    let power = |c: f32, e: f32| c.signum() * c.abs().powf(e);
    let rows = (n / 2).max(3);
    let rings: Vec<Vec<Vec3>> = (0..=rows)
        .map(|j| {
            let a = std::f32::consts::PI * (j as f32 / rows as f32 - 0.5);
            let c = if j == 0 || j == rows { 0.0 } else { power(a.cos(), upright) };
            (0..n)
                .map(|i| {
                    let t = std::f32::consts::TAU * (i as f32 + 0.5) / n as f32;
                    Vec3::new(
                        rx * c * power(t.cos(), around),
                        ry * c * power(t.sin(), around),
                        rz * power(a.sin(), upright),
                    )
                })
                .collect()
        })
        .collect();
    loft(&rings).crease(60.0)
}

/// A tyre's profile for [`lathe`]: outer radius `r`, rim radius `rim`, width `w`, closed through the rim.
pub fn wheel_profile(r: f32, rim: f32, w: f32) -> Vec<(f32, f32)> {
    let (h, s) = (w * 0.5, (r - rim) * 0.35);
    vec![
        (rim, -h * 0.8),
        (rim + s * 0.4, -h),
        (r - s, -h),
        (r - s * 0.25, -h * 0.75),
        (r, -h * 0.35),
        (r, h * 0.35),
        (r - s * 0.25, h * 0.75),
        (r - s, h),
        (rim + s * 0.4, h),
        (rim, h * 0.8),
        (rim, -h * 0.8),
    ]
}
