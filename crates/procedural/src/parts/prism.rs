//! Extruded outlines with optional bevels; concave outlines are cut into triangles by ear clipping.

use crate::solid::Solid;
use glam::{Vec2, Vec3};

/// An outline from pairs.
pub fn polygon(points: &[(f32, f32)]) -> Vec<Vec2> {
    points.iter().map(|&p| p.into()).collect()
}

/// A rectangle of full size `x` by `y` with round corners of radius `r`.
pub fn rounded_rectangle(x: f32, y: f32, r: f32, steps: usize) -> Vec<Vec2> {
    let r = r.min(0.499 * x.min(y));
    let mut out = Vec::with_capacity(4 * (steps + 1));
    for (k, (sx, sy)) in [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)].into_iter().enumerate() {
        for i in 0..=steps {
            let a = (k as f32 + i as f32 / steps as f32) * std::f32::consts::FRAC_PI_2;
            out.push(Vec2::new(sx * (x * 0.5 - r) + r * a.cos(), sy * (y * 0.5 - r) + r * a.sin()));
        }
    }
    out
}

/// An outline in the xy plane extruded along z by `depth`, centred on z = 0, with edges bevelled by `bevel`.
pub fn prism(outline: &[Vec2], depth: f32, bevel: f32) -> Solid {
    let mut points = outline.to_vec();
    if area(&points) < 0.0 {
        points.reverse();
    }
    let h = depth * 0.5;
    let bevel = bevel.min(h * 0.9);
    let levels: Vec<(Vec<Vec2>, f32)> = if bevel > 1e-6 {
        let inner = inset(&points, bevel);
        vec![(inner.clone(), -h), (points.clone(), -h + bevel), (points.clone(), h - bevel), (inner, h)]
    } else {
        vec![(points.clone(), -h), (points.clone(), h)]
    };
    let n = points.len();
    let (low, high) = bounds(&points);
    let flat_uv = |p: Vec2| (p - low) / (high - low).max(Vec2::splat(1e-6));
    let mut s = Solid::default();
    let rings: Vec<Vec<u32>> =
        levels.iter().map(|(ring, z)| ring.iter().map(|p| s.point(p.extend(*z))).collect()).collect();
    let perimeter: f32 = (0..n).map(|i| points[i].distance(points[(i + 1) % n])).sum();
    for j in 1..rings.len() {
        let mut walked = 0.0;
        for i in 0..n {
            let k = (i + 1) % n;
            let (u0, u1) = (walked / perimeter, (walked + points[i].distance(points[k])) / perimeter);
            walked += points[i].distance(points[k]);
            let (v0, v1) = ((levels[j - 1].1 + h) / depth, (levels[j].1 + h) / depth);
            s.quad(
                [rings[j - 1][i], rings[j - 1][k], rings[j][k], rings[j][i]],
                [Vec2::new(u0, v0), Vec2::new(u1, v0), Vec2::new(u1, v1), Vec2::new(u0, v1)],
            );
        }
    }
    let last = rings.len() - 1;
    for [a, b, c] in clip_ears(&levels[0].0) {
        let uv = [a, b, c].map(|i| flat_uv(points[i]));
        s.triangle([a, b, c].map(|i| rings[last][i]), uv);
        s.triangle([a, c, b].map(|i| rings[0][i]), [uv[0], uv[2], uv[1]]);
    }
    s.crease(30.0)
}

/// An outline of `(y, z)` pairs extruded along x: side views of vehicles and the like.
pub fn prism_x(outline: &[(f32, f32)], width: f32, bevel: f32) -> Solid {
    // (x, y, z) of the prism become (y, z, x): a rotation, so the orientation stays.
    prism(&polygon(outline), width, bevel).map(|p| Vec3::new(p.z, p.x, p.y))
}

/// An outline of `(x, z)` pairs extruded along y: front views.
pub fn prism_y(outline: &[(f32, f32)], depth: f32, bevel: f32) -> Solid {
    prism(&polygon(outline), depth, bevel).map(|p| Vec3::new(p.x, p.z, p.y)).flip()
}

fn area(p: &[Vec2]) -> f32 {
    (0..p.len()).map(|i| p[i].perp_dot(p[(i + 1) % p.len()])).sum::<f32>() * 0.5
}

fn bounds(p: &[Vec2]) -> (Vec2, Vec2) {
    p.iter().fold((Vec2::MAX, Vec2::MIN), |(low, high), q| (low.min(*q), high.max(*q)))
}

/// The outline moved inwards by `d` (mitred, the mitre limited to twice the distance).
fn inset(p: &[Vec2], d: f32) -> Vec<Vec2> {
    let n = p.len();
    (0..n)
        .map(|i| {
            let a = (p[i] - p[(i + n - 1) % n]).normalize_or_zero().perp();
            let b = (p[(i + 1) % n] - p[i]).normalize_or_zero().perp();
            let m = (a + b).normalize_or(a);
            p[i] + m * (d / m.dot(a).max(0.5))
        })
        .collect()
}

/// Triangles of a counter-clockwise simple polygon.
fn clip_ears(p: &[Vec2]) -> Vec<[usize; 3]> {
    let mut rest: Vec<usize> = (0..p.len()).collect();
    let mut out = Vec::with_capacity(p.len());
    let turn = |a: usize, b: usize, c: usize| (p[b] - p[a]).perp_dot(p[c] - p[b]);
    while rest.len() > 3 {
        let n = rest.len();
        let is_ear = |i: usize| {
            let (a, b, c) = (rest[(i + n - 1) % n], rest[i], rest[(i + 1) % n]);
            turn(a, b, c) > 0.0
                && !rest.iter().any(|&q| {
                    q != a
                        && q != b
                        && q != c
                        && turn(a, b, q) >= 0.0
                        && turn(b, c, q) >= 0.0
                        && turn(c, a, q) >= 0.0
                })
        };
        // A polygon always has an ear; if rounding hides them all, cut any corner.
        let i = (0..n).find(|&i| is_ear(i)).unwrap_or(0);
        out.push([rest[(i + n - 1) % n], rest[i], rest[(i + 1) % n]]);
        rest.remove(i);
    }
    out.push([rest[0], rest[1], rest[2]]);
    out
}
