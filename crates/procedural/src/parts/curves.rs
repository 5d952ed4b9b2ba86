//! Curves for sweeps and profiles.

use glam::Vec3;

/// Short for a vector.
pub fn v(x: f32, y: f32, z: f32) -> Vec3 {
    Vec3::new(x, y, z)
}

/// `n + 1` points from `a` to `b`.
pub fn line(a: Vec3, b: Vec3, n: usize) -> Vec<Vec3> {
    (0..=n).map(|i| a.lerp(b, i as f32 / n as f32)).collect()
}

/// `n + 1` points of a cubic Bézier curve.
pub fn bezier(p: [Vec3; 4], n: usize) -> Vec<Vec3> {
    (0..=n)
        .map(|i| {
            let t = i as f32 / n as f32;
            let s = 1.0 - t;
            p[0] * (s * s * s) + p[1] * (3.0 * s * s * t) + p[2] * (3.0 * s * t * t) + p[3] * (t * t * t)
        })
        .collect()
}

/// A smooth curve through all `points` (Catmull-Rom), `n` steps between neighbours.
pub fn curve(points: &[Vec3], n: usize) -> Vec<Vec3> {
    let last = points.len() - 1;
    let mut out = Vec::with_capacity(last * n + 1);
    for i in 0..last {
        let (p1, p2) = (points[i], points[i + 1]);
        let p0 = if i == 0 { p1 + (p1 - p2) } else { points[i - 1] };
        let p3 = if i + 2 > last { p2 + (p2 - p1) } else { points[i + 2] };
        for k in 0..n {
            let t = k as f32 / n as f32;
            let (t2, t3) = (t * t, t * t * t);
            out.push(
                ((p1 * 2.0)
                    + (p2 - p0) * t
                    + (p0 * 2.0 - p1 * 5.0 + p2 * 4.0 - p3) * t2
                    + (p1 * 3.0 - p0 - p2 * 3.0 + p3) * t3)
                    * 0.5,
            );
        }
    }
    out.push(points[last]);
    out
}

/// A smooth curve through pairs, for profiles of revolution and outlines.
pub fn curve2(points: &[(f32, f32)], n: usize) -> Vec<(f32, f32)> {
    let p: Vec<Vec3> = points.iter().map(|&(a, b)| v(a, b, 0.0)).collect();
    curve(&p, n).into_iter().map(|p| (p.x, p.y)).collect()
}

/// `n + 1` points of a circular arc in the plane spanned by `x` and `y` about `centre`, from `from` to `to` degrees.
pub fn arc(centre: Vec3, x: Vec3, y: Vec3, from: f32, to: f32, n: usize) -> Vec<Vec3> {
    (0..=n)
        .map(|i| {
            let a = (from + (to - from) * i as f32 / n as f32).to_radians();
            centre + x * a.cos() + y * a.sin()
        })
        .collect()
}
