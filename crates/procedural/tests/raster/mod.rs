//! A small z-buffer rasteriser with the camera and roughly the light of the published scene: enough to measure how
//! much a rotation changes the picture, and to look at objects without the renderer.

#![allow(dead_code)]

use scene::Mesh;

/// An RGB picture in display values 0..255, with the object's mask.
pub struct Picture {
    pub size: usize,
    pub rgb: Vec<[f32; 3]>,
    pub mask: Vec<bool>,
    /// Whether the surface seen is the inside of a triangle.
    pub back: Vec<bool>,
}

/// Irradiance of the 90-degree sun over 1.5, for surfaces tilted by 0, 30, ... 180 degrees.
const SUN: [f32; 7] = [0.8284, 0.7176, 0.4320, 0.1698, 0.0174, 0.0, 0.0];
/// Filmic curve: log2 of linear radiance and display value.
const FILMIC: [(f32, f32); 8] = [
    (-9.0, 5.0),
    (-6.0, 44.0),
    (-4.322, 69.6),
    (-3.322, 99.0),
    (-2.474, 127.55),
    (-1.0, 177.2),
    (0.0, 205.8),
    (3.0, 252.0),
];

fn filmic(x: f32) -> f32 {
    let l = x.max(1e-6).log2();
    if l <= FILMIC[0].0 {
        return FILMIC[0].1;
    }
    for w in FILMIC.windows(2) {
        if l < w[1].0 {
            return w[0].1 + (w[1].1 - w[0].1) * (l - w[0].0) / (w[1].0 - w[0].0);
        }
    }
    253.0
}

type V = [f32; 3];
fn dot(a: V, b: V) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
fn sub(a: V, b: V) -> V {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}
fn unit(a: V) -> V {
    let l = dot(a, a).sqrt().max(1e-9);
    a.map(|c| c / l)
}

/// Rotates by Rz Ry Rx, degrees.
pub fn rotate(p: V, degrees: V) -> V {
    let [x, y, z] = degrees.map(f32::to_radians);
    let p = [p[0], p[1] * x.cos() - p[2] * x.sin(), p[1] * x.sin() + p[2] * x.cos()];
    let p = [p[0] * y.cos() + p[2] * y.sin(), p[1], -p[0] * y.sin() + p[2] * y.cos()];
    [p[0] * z.cos() - p[1] * z.sin(), p[0] * z.sin() + p[1] * z.cos(), p[2]]
}

/// Draws `mesh` rotated by `degrees`, `size` pixels wide, through the scene's camera.
pub fn draw(mesh: &Mesh, degrees: V, size: usize) -> Picture {
    draw_zoomed(mesh, degrees, size, 1, 1.0)
}

/// [`draw`] with `oversampling` squared samples a pixel and a longer lens.
pub fn draw_zoomed(mesh: &Mesh, degrees: V, size: usize, oversampling: usize, zoom: f32) -> Picture {
    let n = size * oversampling;
    let floor = [0.24_f32, 0.36, 0.6].map(|a| a * 0.45);
    let mut colour = vec![floor; n * n];
    let mut depth = vec![f32::MAX; n * n];
    let mut inside = vec![false; n * n];
    let h = std::f32::consts::FRAC_1_SQRT_2;
    let eye = [0.0, 2.5 * h, 2.5 * h];
    let (right, up, forward) = ([-1.0, 0.0, 0.0], [0.0, -h, h], [0.0, -h, -h]);
    let spot = [1.5, 1.0, 3.5];
    let world: Vec<(V, V)> =
        mesh.vertices.iter().map(|v| (rotate(v.position, degrees), rotate(v.normal, degrees))).collect();
    let screen: Vec<V> = world
        .iter()
        .map(|(p, _)| {
            let d = sub(*p, eye);
            let z = dot(d, forward);
            let k = zoom * 1.388_89 / z * n as f32;
            [dot(d, right) * k + n as f32 / 2.0, n as f32 / 2.0 - dot(d, up) * k, z]
        })
        .collect();
    for (t, &m) in mesh.triangles.iter().zip(&mesh.triangle_materials) {
        let s = t.map(|i| screen[i as usize]);
        let area = (s[1][0] - s[0][0]) * (s[2][1] - s[0][1]) - (s[1][1] - s[0][1]) * (s[2][0] - s[0][0]);
        if area.abs() < 1e-9 {
            continue;
        }
        let bound = |k: usize, f: fn(f32, f32) -> f32| f(f(s[0][k], s[1][k]), s[2][k]);
        let clip = |x: f32| x.clamp(0.0, n as f32) as usize;
        for y in clip(bound(1, f32::min))..clip(bound(1, f32::max).ceil()) {
            for x in clip(bound(0, f32::min))..clip(bound(0, f32::max).ceil()) {
                let (px, py) = (x as f32 + 0.5, y as f32 + 0.5);
                let edge = |a: V, b: V| (b[0] - a[0]) * (py - a[1]) - (b[1] - a[1]) * (px - a[0]);
                let w = [edge(s[1], s[2]) / area, edge(s[2], s[0]) / area, edge(s[0], s[1]) / area];
                if w.iter().any(|&w| w < 0.0) {
                    continue;
                }
                let inverse: V = std::array::from_fn(|k| w[k] / s[k][2]);
                let z = 1.0 / (inverse[0] + inverse[1] + inverse[2]);
                if z >= depth[y * n + x] {
                    continue;
                }
                depth[y * n + x] = z;
                // The picture's x runs to the viewer's right and y down, so front faces turn clockwise.
                inside[y * n + x] = area > 0.0;
                let at = |f: &dyn Fn(usize) -> f32| (0..3).map(|k| inverse[k] * z * f(k)).sum::<f32>();
                let vertex = |k: usize| t[k] as usize;
                let mut normal = unit(std::array::from_fn(|c| at(&|k| world[vertex(k)].1[c])));
                let p: V = std::array::from_fn(|c| at(&|k| world[vertex(k)].0[c]));
                if dot(normal, sub(eye, p)) < 0.0 {
                    normal = normal.map(|c| -c);
                }
                let material = &mesh.materials[m as usize];
                let albedo = match &material.texture {
                    None => material.base_colour,
                    Some(texture) => {
                        let u = at(&|k| mesh.vertices[vertex(k)].uv[0]).rem_euclid(1.0);
                        let v = at(&|k| mesh.vertices[vertex(k)].uv[1]).rem_euclid(1.0);
                        let tx = ((u * texture.width as f32) as u32).min(texture.width - 1);
                        let ty = (((1.0 - v) * texture.height as f32) as u32).min(texture.height - 1);
                        let pixel = texture.pixels[(ty * texture.width + tx) as usize];
                        std::array::from_fn(|c| (f32::from(pixel[c]) / 255.0).powf(2.2))
                    }
                };
                let tilt = normal[2].clamp(-1.0, 1.0).acos().to_degrees() / 30.0;
                let i = (tilt as usize).min(5);
                let sun = 1.5 * (SUN[i] + (SUN[i + 1] - SUN[i]) * (tilt - i as f32));
                let l = unit(sub(spot, p));
                let lamp = 1.2 * dot(normal, l).max(0.0);
                let bounce = 0.12 * (1.0 - normal[2]);
                let e = (sun + lamp + bounce) / std::f32::consts::PI + 0.05;
                let half = unit(std::array::from_fn(|c| l[c] + unit(sub(eye, p))[c]));
                let shine = material.specular
                    * 0.6
                    * dot(normal, half).max(0.0).powf(4.0 / material.roughness.powi(2));
                colour[y * n + x] = albedo.map(|a| a * e + shine * 0.3);
            }
        }
    }
    let block = (oversampling * oversampling) as f32;
    let mut picture = Picture {
        size,
        rgb: vec![[0.0; 3]; size * size],
        mask: vec![false; size * size],
        back: vec![false; size * size],
    };
    for y in 0..n {
        for x in 0..n {
            let i = (y / oversampling) * size + x / oversampling;
            for (sum, radiance) in picture.rgb[i].iter_mut().zip(colour[y * n + x]) {
                *sum += filmic(radiance) / block;
            }
            picture.mask[i] |= depth[y * n + x] < f32::MAX;
            picture.back[i] |= inside[y * n + x];
        }
    }
    picture
}

/// Mean absolute difference of two pictures over the pixels that either object covers, in 1/255.
pub fn difference(a: &Picture, b: &Picture) -> f32 {
    let (mut sum, mut count) = (0.0, 0);
    for i in 0..a.rgb.len() {
        if a.mask[i] || b.mask[i] {
            sum += (0..3).map(|c| (a.rgb[i][c] - b.rgb[i][c]).abs()).sum::<f32>() / 3.0;
            count += 1;
        }
    }
    sum / count.max(1) as f32
}

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
