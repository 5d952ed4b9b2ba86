//! Surfaces through a row of cross-sections: lofts, tubes, and sections swept along a curve.

use crate::solid::Solid;
use glam::{Vec2, Vec3};

/// A closed section in the plane, counter-clockwise.
pub type Section = Vec<Vec2>;

/// An ellipse with `n` points.
pub fn oval(a: f32, b: f32, n: usize) -> Section {
    (0..n)
        .map(|i| {
            let t = std::f32::consts::TAU * i as f32 / n as f32;
            Vec2::new(a * t.cos(), b * t.sin())
        })
        .collect()
}

/// The surface through closed rings of equally many points, closed by fans at both ends.
/// Texture: u once around, v from the first ring to the last.
pub fn loft(rings: &[Vec<Vec3>]) -> Solid {
    skin(rings, Ends::Capped).outwards()
}

/// The surface through closed rings, left open at both ends; seen from outside, rings listed upwards run
/// counter-clockwise from above.
pub fn strip(rings: &[Vec<Vec3>]) -> Solid {
    skin(rings, Ends::Open)
}

/// What happens at the first and last ring.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Capped,
    Open,
    Joined,
}

fn skin(rings: &[Vec<Vec3>], ends: Ends) -> Solid {
    let n = rings[0].len();
    let mut s = Solid::default();
    let centre = |ring: &[Vec3]| ring.iter().sum::<Vec3>() / ring.len() as f32;
    let mut along = vec![0.0_f32];
    let mut index: Vec<Vec<u32>> = Vec::with_capacity(rings.len());
    for (j, ring) in rings.iter().enumerate() {
        if j > 0 {
            let step: f32 = ring.iter().zip(&rings[j - 1]).map(|(a, b)| a.distance(*b)).sum();
            along.push(along[j - 1] + step / n as f32);
        }
        let middle = centre(ring);
        if ring.iter().all(|p| p.distance(middle) < 1e-5) {
            let pole = s.point(middle);
            index.push(vec![pole; n]);
        } else {
            index.push(ring.iter().map(|p| s.point(*p)).collect());
        }
    }
    let length = along.last().copied().unwrap_or(1.0).max(1e-6);
    let rows = if ends == Ends::Joined { rings.len() } else { rings.len() - 1 };
    for j in 0..rows {
        let next = (j + 1) % rings.len();
        let (v0, v1) = (along[j] / length, if next == 0 { 1.0 } else { along[next] / length });
        for i in 0..n {
            let k = (i + 1) % n;
            let (u0, u1) = (i as f32 / n as f32, (i + 1) as f32 / n as f32);
            s.quad(
                [index[j][i], index[j][k], index[next][k], index[next][i]],
                [Vec2::new(u0, v0), Vec2::new(u1, v0), Vec2::new(u1, v1), Vec2::new(u0, v1)],
            );
        }
    }
    if ends == Ends::Capped {
        for (j, forward) in [(0, false), (rings.len() - 1, true)] {
            let middle = s.point(centre(&rings[j]));
            for i in 0..n {
                let (a, b) = (index[j][i], index[j][(i + 1) % n]);
                let (a, b) = if forward { (a, b) } else { (b, a) };
                let angle = |i: usize| {
                    let t = std::f32::consts::TAU * i as f32 / n as f32;
                    Vec2::new(0.5 + 0.5 * t.cos(), 0.5 + 0.5 * t.sin())
                };
                let (ua, ub) = if forward { (angle(i), angle(i + 1)) } else { (angle(i + 1), angle(i)) };
                s.triangle([a, b, middle], [ua, ub, Vec2::splat(0.5)]);
            }
        }
    }
    s
}

/// Frames along a path by parallel transport; the section's second axis starts as close to `up` as it can.
fn frames(path: &[Vec3], up: Vec3, cyclic: bool) -> Vec<(Vec3, Vec3)> {
    let n = path.len();
    let tangent = |i: usize| {
        let (before, after) = if cyclic {
            (path[(i + n - 1) % n], path[(i + 1) % n])
        } else {
            (path[i.saturating_sub(1)], path[(i + 1).min(n - 1)])
        };
        (after - before).normalize_or(Vec3::Z)
    };
    let first = tangent(0);
    let mut b =
        (up - first * up.dot(first)).try_normalize().unwrap_or_else(|| first.any_orthonormal_vector());
    (0..n)
        .map(|i| {
            let t = tangent(i);
            b = (b - t * b.dot(t)).normalize_or(t.any_orthonormal_vector());
            (b.cross(t), b)
        })
        .collect()
}

fn place(section: &[Vec2], scale: f32, p: Vec3, (side, up): (Vec3, Vec3)) -> Vec<Vec3> {
    section.iter().map(|q| p + side * (q.x * scale) + up * (q.y * scale)).collect()
}

/// `section` carried along an open `path` and closed at both ends; its y axis starts towards `up`.
pub fn sweep(section: &[Vec2], path: &[Vec3], up: Vec3) -> Solid {
    let f = frames(path, up, false);
    let rings: Vec<_> = path.iter().zip(f).map(|(p, f)| place(section, 1.0, *p, f)).collect();
    loft(&rings)
}

/// `section` carried around a closed `path` (the first point is not repeated).
pub fn sweep_closed(section: &[Vec2], path: &[Vec3], up: Vec3) -> Solid {
    let f = frames(path, up, true);
    let rings: Vec<_> = path.iter().zip(f).map(|(p, f)| place(section, 1.0, *p, f)).collect();
    skin(&rings, Ends::Joined).outwards()
}

/// A round tube of radius `r` along a path.
pub fn tube(path: &[Vec3], r: f32, n: usize) -> Solid {
    tube_tapered(path, |_| r, n)
}

/// A thin tube with six sides, for wires and small rods.
pub fn wire(path: &[Vec3], r: f32) -> Solid {
    tube(path, r, 6)
}

/// A round tube whose radius depends on the position along the path, from 0 to 1.
pub fn tube_tapered(path: &[Vec3], r: impl Fn(f32) -> f32, n: usize) -> Solid {
    let section = oval(1.0, 1.0, n);
    let f = frames(path, Vec3::Z, false);
    let last = (path.len() - 1) as f32;
    let rings: Vec<_> = path
        .iter()
        .zip(f)
        .enumerate()
        .map(|(i, (p, f))| place(&section, r(i as f32 / last), *p, f))
        .collect();
    loft(&rings)
}

/// A torus about the z axis: distance of the tube's centre `radius`, tube radius `r`.
pub fn ring(radius: f32, r: f32, n: usize, sides: usize) -> Solid {
    let path: Vec<Vec3> = oval(radius, radius, n).into_iter().map(|p| p.extend(0.0)).collect();
    sweep_closed(&oval(r, r, sides), &path, Vec3::Z)
}

/// A body along y through stations `[y, half width, half height, centre z]`. The sections are superellipses:
/// `square` of 1 is an ellipse, towards 0 a box.
pub fn hull(stations: &[[f32; 4]], square: f32, n: usize) -> Solid {
    let power = |c: f32| c.signum() * c.abs().powf(square);
    let rings: Vec<Vec<Vec3>> = stations
        .iter()
        .map(|&[y, w, h, z]| {
            (0..n)
                .map(|i| {
                    let t = std::f32::consts::TAU * (i as f32 + 0.5) / n as f32;
                    Vec3::new(w * power(t.cos()), y, z + h * power(t.sin()))
                })
                .collect()
        })
        .collect();
    loft(&rings).crease(50.0)
}

/// Stations of a [`hull`] refined to a smooth curve through them.
pub fn stations(given: &[[f32; 4]], steps: usize) -> Vec<[f32; 4]> {
    let a: Vec<Vec3> = given.iter().map(|s| Vec3::new(s[0], s[1], s[2])).collect();
    let b: Vec<Vec3> = given.iter().map(|s| Vec3::new(s[3], 0.0, 0.0)).collect();
    let (a, b) = (super::curve(&a, steps), super::curve(&b, steps));
    a.iter().zip(b).map(|(a, b)| [a.x, a.y.max(0.0), a.z.max(0.0), b.x]).collect()
}
