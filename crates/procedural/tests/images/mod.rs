//! Images of an object by the renderer, which of their pixels show it, and whether they show a triangle's inside.

#![allow(dead_code)]

use render::{PreparedMesh, Quality};
use scene::{Latents, Mesh};

type V = [f32; 3];

/// Quarter and half turns about each axis, in degrees.
pub const TURNS: [V; 9] = [
    [90.0, 0.0, 0.0],
    [180.0, 0.0, 0.0],
    [-90.0, 0.0, 0.0],
    [0.0, 90.0, 0.0],
    [0.0, 180.0, 0.0],
    [0.0, -90.0, 0.0],
    [0.0, 0.0, 90.0],
    [0.0, 0.0, 180.0],
    [0.0, 0.0, -90.0],
];

/// What a pixel's centre sees of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Floor,
    Outside,
    Inside,
}

/// An 8-bit image and what its pixels see.
pub struct Image {
    pub rgb: Vec<u8>,
    pub seen: Vec<Seen>,
}

/// The object under fixed light, rotated by Rz Ry Rx.
pub fn draw(prepared: &PreparedMesh, mesh: &Mesh, degrees: V, size: usize) -> Image {
    let latents = Latents {
        rotation: degrees.map(|d| f64::from(d).to_radians()),
        floor_hue: 0.6,
        spot_theta: 0.4,
        spot_phi: 0.9,
        spot_hue: 0.1,
        ..Latents::default()
    };
    let image = render::render(Some(prepared), &latents, size as u32, Quality::Fast);
    Image { rgb: image.pixels, seen: facing(mesh, degrees, size) }
}

/// Mean absolute difference of two images over the pixels where either shows the object, in 1/255.
pub fn difference(a: &Image, b: &Image) -> f32 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for i in 0..a.seen.len() {
        if a.seen[i] != Seen::Floor || b.seen[i] != Seen::Floor {
            let channel = |c: usize| f32::from(a.rgb[3 * i + c].abs_diff(b.rgb[3 * i + c]));
            sum += (channel(0) + channel(1) + channel(2)) / 3.0;
            count += 1;
        }
    }
    sum / count.max(1) as f32
}

fn rotate(p: V, degrees: V) -> V {
    let [x, y, z] = degrees.map(f32::to_radians);
    let p = [p[0], p[1] * x.cos() - p[2] * x.sin(), p[1] * x.sin() + p[2] * x.cos()];
    let p = [p[0] * y.cos() + p[2] * y.sin(), p[1], -p[0] * y.sin() + p[2] * y.cos()];
    [p[0] * z.cos() - p[1] * z.sin(), p[0] * z.sin() + p[1] * z.cos(), p[2]]
}

/// A z-buffer through the scene's camera that keeps only which side of the nearest triangle is seen.
pub fn facing(mesh: &Mesh, degrees: V, size: usize) -> Vec<Seen> {
    let h = std::f32::consts::FRAC_1_SQRT_2;
    let middle = size as f32 / 2.0;
    let screen: Vec<V> = mesh
        .vertices
        .iter()
        .map(|v| {
            // Camera at distance 2.5, half way between +y and +z; right is -x.
            let p = rotate(v.position, degrees);
            let depth = 2.5 - h * (p[1] + p[2]);
            let k = 1.388_89 / depth * size as f32;
            [middle - p[0] * k, middle - h * (p[2] - p[1]) * k, depth]
        })
        .collect();
    let mut nearest = vec![f32::MAX; size * size];
    let mut seen = vec![Seen::Floor; size * size];
    for t in &mesh.triangles {
        let s = t.map(|i| screen[i as usize]);
        let area = (s[1][0] - s[0][0]) * (s[2][1] - s[0][1]) - (s[1][1] - s[0][1]) * (s[2][0] - s[0][0]);
        if area.abs() < 1e-9 {
            continue;
        }
        let bound = |k: usize, f: fn(f32, f32) -> f32| f(f(s[0][k], s[1][k]), s[2][k]);
        let clip = |x: f32| x.clamp(0.0, size as f32) as usize;
        for y in clip(bound(1, f32::min))..clip(bound(1, f32::max).ceil()) {
            for x in clip(bound(0, f32::min))..clip(bound(0, f32::max).ceil()) {
                let (px, py) = (x as f32 + 0.5, y as f32 + 0.5);
                let edge = |a: V, b: V| ((b[0] - a[0]) * (py - a[1]) - (b[1] - a[1]) * (px - a[0])) / area;
                let w = [edge(s[1], s[2]), edge(s[2], s[0]), edge(s[0], s[1])];
                if w.iter().any(|&w| w < 0.0) {
                    continue;
                }
                let z = 1.0 / (0..3).map(|k| w[k] / s[k][2]).sum::<f32>();
                if z < nearest[y * size + x] {
                    nearest[y * size + x] = z;
                    // With y downwards, triangles seen from outside turn clockwise.
                    seen[y * size + x] = if area > 0.0 { Seen::Inside } else { Seen::Outside };
                }
            }
        }
    }
    seen
}
