//! Boxes: plain, with chamfered edges, rounded, tapered, and frames made of four bars.

use crate::solid::Solid;
use glam::{Vec2, Vec3};

/// The corners of the unit square in the order of a quadrilateral.
const SQUARE: [Vec2; 4] =
    [Vec2::new(0.0, 0.0), Vec2::new(1.0, 0.0), Vec2::new(1.0, 1.0), Vec2::new(0.0, 1.0)];

/// A box from eight corners indexed by the bits x, y, z (set: the larger side).
fn hexahedron(p: [Vec3; 8]) -> Solid {
    let mut s = Solid { points: p.to_vec(), ..Solid::default() };
    // Each face starts at its bottom left corner as seen from outside with z up (top face: with +y down).
    for q in [[3, 2, 6, 7], [0, 1, 5, 4], [1, 3, 7, 5], [2, 0, 4, 6], [7, 6, 4, 5], [1, 0, 2, 3]] {
        s.quad(q, SQUARE);
    }
    s
}

/// A box with sharp edges (12 triangles). Every face shows the whole texture.
pub fn cuboid(x: f32, y: f32, z: f32) -> Solid {
    tapered((x, y), (x, y), z)
}

/// A box whose bottom and top rectangles differ: `(x, y)` at the bottom and at the top.
pub fn tapered(bottom: (f32, f32), top: (f32, f32), z: f32) -> Solid {
    hexahedron(std::array::from_fn(|i| {
        let (x, y) = if i & 4 == 0 { bottom } else { top };
        let sign = |bit: usize| if i & bit == 0 { -0.5 } else { 0.5 };
        Vec3::new(x * sign(1), y * sign(2), z * sign(4))
    }))
}

/// A box with chamfered edges, a tenth of its smallest side wide at most (44 triangles).
pub fn block(x: f32, y: f32, z: f32) -> Solid {
    let r = (0.1 * x.min(y).min(z)).min(0.02);
    let half = Vec3::new(x, y, z) * 0.5;
    let mut s = Solid::default();
    // Point 3 * corner + axis: the corner (bits x, y, z), moved along the face of `axis` away from its edges.
    for corner in 0..8 {
        for axis in 0..3 {
            let mut p = half - Vec3::splat(r);
            p[axis] = half[axis];
            s.point(Vec3::from_array(std::array::from_fn(
                |k| if corner >> k & 1 == 1 { p[k] } else { -p[k] },
            )));
        }
    }
    let size = Vec3::new(x, y, z);
    let mut facet = |ids: &[u32], axis: usize, side: f32| {
        let p: Vec<Vec3> = ids.iter().map(|&i| s.points[i as usize]).collect();
        let outwards = (p[1] - p[0]).cross(p[2] - p[0]).dot(p[0] + p[1] + p[2]) > 0.0;
        let order: Vec<usize> = if outwards { (0..p.len()).collect() } else { (0..p.len()).rev().collect() };
        let uv = |i: usize| face_uv(axis, side, p[i] / size);
        if let [a, b, c, d] = order[..] {
            s.quad([a, b, c, d].map(|i| ids[i]), [a, b, c, d].map(uv));
        } else {
            s.triangle([0, 1, 2].map(|i: usize| ids[order[i]]), [0, 1, 2].map(|i: usize| uv(order[i])));
        }
    };
    let side = |corner: u32, axis: usize| if corner >> axis & 1 == 1 { 1.0 } else { -1.0 };
    for a in 0..3_usize {
        let (b, c) = ((a + 1) % 3, (a + 2) % 3);
        for bit in 0..2_u32 {
            let k = bit << a;
            let corners = [k, k | 1 << b, k | 1 << b | 1 << c, k | 1 << c];
            facet(&corners.map(|q| 3 * q + a as u32), a, side(k, a));
        }
        for bits in 0..4_u32 {
            let k = (bits & 1) << b | (bits >> 1) << c;
            let (low, high) = (3 * k, 3 * (k | 1 << a));
            facet(&[low + b as u32, low + c as u32, high + c as u32, high + b as u32], b, side(k, b));
        }
    }
    for corner in 0..8_u32 {
        facet(&[3 * corner, 3 * corner + 1, 3 * corner + 2], 2, side(corner, 2));
    }
    s.crease(20.0)
}

/// A box with round edges of radius `r` (108 triangles a step squared), shaded smoothly.
pub fn rounded(x: f32, y: f32, z: f32, r: f32) -> Solid {
    let r = r.min(0.499 * x.min(y).min(z));
    let steps = if r > 0.15 * x.min(y).min(z) { 3 } else { 2 };
    grid_box([x, y, z], r, steps, |_, offset| offset.normalize_or_zero() * r).crease(50.0)
}

/// A box whose faces are grids with `steps` rows inside the band of width `r` along every edge. `shape` gets the
/// nearest point of the inner box and the offset from it.
fn grid_box(size: [f32; 3], r: f32, steps: usize, shape: impl Fn(Vec3, Vec3) -> Vec3) -> Solid {
    let half = Vec3::from(size) * 0.5;
    let inner = half - Vec3::splat(r);
    let mut s = Solid::default();
    let mut known: std::collections::HashMap<[i64; 3], u32> = std::collections::HashMap::new();
    let coordinates = |axis: usize| -> Vec<f32> {
        // Tangents of even angles in the bands, so that round edges have even facets.
        let band: Vec<f32> =
            (1..=steps).map(|k| r * (std::f32::consts::FRAC_PI_4 * k as f32 / steps as f32).tan()).collect();
        let mut out: Vec<f32> = band.iter().rev().map(|b| -inner[axis] - b).collect();
        out.extend([-inner[axis], inner[axis]]);
        out.extend(band.iter().map(|b| inner[axis] + b));
        out
    };
    for axis in 0..3 {
        let (u, w) = ((axis + 1) % 3, (axis + 2) % 3);
        for side in [-1.0_f32, 1.0] {
            let (cu, cw) = (coordinates(u), coordinates(w));
            let mut index = vec![vec![0_u32; cw.len()]; cu.len()];
            for (i, &a) in cu.iter().enumerate() {
                for (j, &b) in cw.iter().enumerate() {
                    let mut p = Vec3::ZERO;
                    p[axis] = side * half[axis];
                    (p[u], p[w]) = (a, b);
                    let core = p.clamp(-inner, inner);
                    let q = core + shape(core, p - core);
                    let key = [q.x, q.y, q.z].map(|c| (f64::from(c) * 1e6).round() as i64);
                    index[i][j] = *known.entry(key).or_insert_with(|| s.point(q));
                }
            }
            for i in 1..cu.len() {
                for j in 1..cw.len() {
                    let q = [index[i - 1][j - 1], index[i][j - 1], index[i][j], index[i - 1][j]];
                    let uv = [(i - 1, j - 1), (i, j - 1), (i, j), (i - 1, j)].map(|(i, j)| {
                        let mut p = Vec3::ZERO;
                        p[axis] = side;
                        (p[u], p[w]) = (cu[i] / size[u], cw[j] / size[w]);
                        face_uv(axis, side, p)
                    });
                    let at = |k: usize| (q[k], uv[k]);
                    let order = if side > 0.0 { [0, 1, 2, 3] } else { [3, 2, 1, 0] };
                    s.quad(order.map(|k| at(k).0), order.map(|k| at(k).1));
                }
            }
        }
    }
    s
}

/// Texture coordinates on a face of a box: upright as seen from outside, as in [`hexahedron`].
fn face_uv(axis: usize, side: f32, p: Vec3) -> Vec2 {
    let uv = match axis {
        0 => Vec2::new(p.y * side, p.z),
        1 => Vec2::new(-p.x * side, p.z),
        _ => Vec2::new(-p.x, -p.y * side),
    };
    uv + Vec2::splat(0.5)
}

/// A rectangular frame in the xz plane, outer size `x` by `z`, depth `y`, made of bars of width `bar`.
pub fn frame(x: f32, y: f32, z: f32, bar: f32) -> Solid {
    let upright = block(bar, y, z).at((x - bar) * 0.5, 0.0, 0.0).both_x();
    let cross = block(x - 2.0 * bar, y, bar);
    let h = (z - bar) * 0.5;
    upright.with(cross.clone().at(0.0, 0.0, h)).with(cross.at(0.0, 0.0, -h)).crease(20.0)
}
