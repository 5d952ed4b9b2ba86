//! Thick curved sheets and cushions.

use crate::solid::Solid;
use glam::{Vec2, Vec3};

/// The patch `f(u, v)` over the unit square as a sheet of the given thickness: front side along `du x dv`.
pub fn sheet(nu: usize, nv: usize, thickness: f32, f: impl Fn(f32, f32) -> Vec3) -> Solid {
    let mut s = Solid::default();
    let grid = |i: usize, j: usize| (i as f32 / nu as f32, j as f32 / nv as f32);
    let e = 1e-3;
    let normal = |u: f32, w: f32| {
        let du = f((u + e).min(1.0), w) - f((u - e).max(0.0), w);
        let dv = f(u, (w + e).min(1.0)) - f(u, (w - e).max(0.0));
        du.cross(dv).normalize_or(Vec3::Z)
    };
    let mut index = [vec![0_u32; (nu + 1) * (nv + 1)], vec![0_u32; (nu + 1) * (nv + 1)]];
    for (side, table) in index.iter_mut().enumerate() {
        for j in 0..=nv {
            for i in 0..=nu {
                let (u, w) = grid(i, j);
                let offset = if side == 0 { 0.5 } else { -0.5 } * thickness;
                table[j * (nu + 1) + i] = s.point(f(u, w) + normal(u, w) * offset);
            }
        }
    }
    let at = |side: usize, i: usize, j: usize| index[side][j * (nu + 1) + i];
    let uv = |i: usize, j: usize| Vec2::from(grid(i, j));
    for j in 0..nv {
        for i in 0..nu {
            let c = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
            s.quad(c.map(|(i, j)| at(0, i, j)), c.map(|(i, j)| uv(i, j)));
            let c = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)];
            s.quad(c.map(|(i, j)| at(1, i, j)), c.map(|(i, j)| uv(i, j)));
        }
    }
    // The rim, walked counter-clockwise seen from the front.
    let mut rim: Vec<(usize, usize)> = (0..nu).map(|i| (i, 0)).collect();
    rim.extend((0..nv).map(|j| (nu, j)));
    rim.extend((1..=nu).rev().map(|i| (i, nv)));
    rim.extend((1..=nv).rev().map(|j| (0, j)));
    for k in 0..rim.len() {
        let ((a, b), (c, d)) = (rim[k], rim[(k + 1) % rim.len()]);
        s.quad(
            [at(1, a, b), at(1, c, d), at(0, c, d), at(0, a, b)],
            [uv(a, b), uv(c, d), uv(c, d), uv(a, b)],
        );
    }
    s.crease(45.0)
}

/// A padded block: round edges, bulging top and bottom.
pub fn cushion(x: f32, y: f32, z: f32) -> Solid {
    let n = 6;
    let half = Vec3::new(x, y, z) * 0.5;
    let shape = move |u: f32, w: f32, side: f32| {
        // Towards the border the surface comes down to the seam like a quarter of an ellipse.
        let (a, b) = (2.0 * u - 1.0, 2.0 * w - 1.0);
        let edge = |t: f32| (1.0 - t.abs().powi(6)).max(0.0).sqrt();
        let dome = 0.78 + 0.22 * (1.0 - a * a) * (1.0 - b * b);
        let corner = 1.0 - 0.06 * a * a * b * b;
        Vec3::new(half.x * a * corner, half.y * b * corner, side * half.z * dome * edge(a).min(edge(b)))
    };
    let mut s = Solid::default();
    let spread = |i: usize| {
        // Finer rows near the border, where the surface curves.
        let t = i as f32 / (2 * n) as f32 * 2.0 - 1.0;
        0.5 + 0.5 * t.signum() * (1.0 - (1.0 - t.abs()).powf(1.7))
    };
    let m = 2 * n;
    let mut index = vec![[0_u32; 2]; (m + 1) * (m + 1)];
    for j in 0..=m {
        for i in 0..=m {
            let border = i == 0 || j == 0 || i == m || j == m;
            let top = s.point(shape(spread(i), spread(j), 1.0));
            let bottom = if border { top } else { s.point(shape(spread(i), spread(j), -1.0)) };
            index[j * (m + 1) + i] = [top, bottom];
        }
    }
    for j in 0..m {
        for i in 0..m {
            let c = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
            let uv = c.map(|(i, j)| Vec2::new(spread(i), spread(j)));
            let id = c.map(|(i, j)| index[j * (m + 1) + i]);
            s.quad(id.map(|p| p[0]), uv);
            s.quad([3, 2, 1, 0].map(|k: usize| id[k][1]), [3, 2, 1, 0].map(|k: usize| uv[k]));
        }
    }
    s.crease(75.0)
}
