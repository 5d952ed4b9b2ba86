//! From a lit scene to pixels.
//!
//! Camera rays run on a grid finer than the pixels; the light at their hits is computed on a coarser lattice of them
//! and interpolated between points of the same surface, while texture and outline keep the resolution of the rays.
//! The pixel filter then brings all samples down to pixels.

use glam::{Vec2, Vec3};
use simd::{Floats, WIDTH};

use crate::camera::{self, Camera};
use crate::lights::{FLOOR_Z, WORLD_RADIANCE};
use crate::lit_scene::LitScene;
use crate::packet::Fan;
use crate::points::{LAMP_LOBE, PointPacket, Shade, lamp_mirrored};
use crate::trace::{Hits, Traceable};
use crate::view::SurfacePoint;

mod layers;
mod place;
pub(crate) use layers::MAX_LAYERS;
use place::place_points;
pub(crate) use place::{GROUP, MOST_EXTRAS};

/// No sample, no point.
const NONE: u32 = u32::MAX;
/// Pixels that the filter reaches beyond a pixel, rounded up.
pub(crate) const MARGIN: i32 = 2;
/// Side of the blocks of camera rays that make a packet.
const BLOCK: usize = 4;
/// Nodes of the hierarchy whose outlines bound the object's.
const COVER_BOXES: usize = 128;
/// How steeply rays come down at least, for the points of the floor to be within reach of single precision.
const LEAST_DESCENT: f32 = -1e-3;

/// A hit of a camera ray.
struct Sample {
    point: SurfacePoint,
    albedo: Vec3,
    /// Position on the grid of rays.
    x: u32,
    y: u32,
    /// Its share of what the ray sees.
    weight: f32,
    /// Shaded points it takes its light from, and their weights.
    sources: [(u32, f32); 4],
}

/// The part of the image around the object.
struct Region {
    /// First pixel; may lie outside the image.
    x0: i32,
    y0: i32,
    /// Size in camera rays.
    width: usize,
    height: usize,
    /// Camera rays a pixel, along each axis.
    supersampling: usize,
}

impl Region {
    /// Direction of a camera ray in an image of `size` pixels; not normalized.
    fn direction(&self, camera: &Camera, x: usize, y: usize, size: u32) -> Vec3 {
        let scale = 1.0 / (self.supersampling as f32 * size as f32);
        let u = self.x0 as f32 / size as f32 + (x as f32 + 0.5) * scale - 0.5;
        let v = 0.5 - self.y0 as f32 / size as f32 - (y as f32 + 0.5) * scale;
        camera.ray(u, v)
    }
}

/// Scene-linear pixels, row 0 on top.
pub(crate) fn render_linear(scene: &LitScene<'_>, size: u32, rays: &mut u64) -> Vec<Vec3> {
    let mut pixels = floor_pixels(scene, size);
    add_sky(scene.view.camera.horizon(size as f32), size, &mut pixels);
    if scene.view.mesh.is_empty() {
        return pixels;
    }
    let bounds = scene.view.camera.sphere_bounds(scene.view.centre(), scene.view.radius, MARGIN, size);
    let [x0, x1, y0, y1] = bounds;
    let supersampling = scene.settings.supersampling;
    let region = Region {
        x0,
        y0,
        width: (x1 - x0).max(0) as usize * supersampling,
        height: (y1 - y0).max(0) as usize * supersampling,
        supersampling,
    };
    let (mut samples, first) = trace_samples(scene, &region, size, rays);
    if samples.is_empty() {
        return pixels;
    }
    let points = place_points(&region, scene, &mut samples, &first);
    let shades = shade_points(scene, &points, &samples, rays);
    resolve(scene, &region, &samples, &shades, size, &mut pixels);
    pixels
}

/// The floor as if the object did not hide it: found at every `floor_step`-th pixel corner and interpolated, or at
/// every pixel.
fn floor_pixels(scene: &LitScene<'_>, size: u32) -> Vec<Vec3> {
    let row = |y: f32| floor_row(&scene.view.camera, y, size);
    let step = scene.settings.floor_step;
    let mut pixels = Vec::with_capacity((size * size) as usize);
    if step == 1 {
        for y in 0..size {
            let point = row(y as f32 + 0.5);
            pixels.extend((0..size).map(|x| scene.floor.radiance(scene.view, point(x as f32 + 0.5))));
        }
        return pixels;
    }
    let nodes = size as usize / step + 2;
    let mut lattice = Vec::with_capacity(nodes * nodes);
    for y in 0..nodes {
        let point = row((y * step) as f32);
        lattice.extend((0..nodes).map(|x| scene.floor.radiance(scene.view, point((x * step) as f32))));
    }
    for y in 0..size as usize {
        let fy = ((y % step) as f32 + 0.5) / step as f32;
        let (upper, lower) =
            (&lattice[y / step * nodes..][..nodes], &lattice[(y / step + 1) * nodes..][..nodes]);
        for x in 0..size as usize {
            let (i, fx) = (x / step, ((x % step) as f32 + 0.5) / step as f32);
            let top = upper[i] + (upper[i + 1] - upper[i]) * fx;
            let bottom = lower[i] + (lower[i + 1] - lower[i]) * fx;
            pixels.push(top + (bottom - top) * fy);
        }
    }
    pixels
}

/// Shows the world in the rows above the horizon, and in its share of the row that the horizon crosses.
fn add_sky(horizon: f32, size: u32, pixels: &mut [Vec3]) {
    for (y, row) in pixels.chunks_mut(size as usize).enumerate() {
        let share = (horizon - y as f32).clamp(0.0, 1.0);
        if share == 0.0 {
            return;
        }
        row.iter_mut().for_each(|pixel| *pixel += (Vec3::splat(WORLD_RADIANCE) - *pixel) * share);
    }
}

/// The points of the floor along a row of an image of `size` pixels, by x: it moves along x alone.
/// What is far away or above the horizon stands for the end of the floor.
fn floor_row(camera: &Camera, y: f32, size: u32) -> impl Fn(f32) -> Vec2 + use<> {
    let scale = 1.0 / size as f32;
    let ray = camera::FOCAL * camera.forward + (0.5 - y * scale) * camera.up;
    let t = (FLOOR_Z - camera.position.z) / ray.z.min(LEAST_DESCENT);
    let start = camera.position + t * ray;
    move |x: f32| (start + (t * (x * scale - 0.5)) * camera::RIGHT).truncate()
}

/// Which blocks of 4 x 4 camera rays can meet the object, by the boxes of the hierarchy's upper nodes.
fn covered_blocks(scene: &LitScene<'_>, region: &Region, size: u32) -> Vec<bool> {
    let (columns, rows) = (region.width.div_ceil(BLOCK), region.height.div_ceil(BLOCK));
    let mut covered = vec![false; columns * rows];
    let nodes = &scene.view.mesh.geometry.nodes;
    for node in scene.view.mesh.geometry.cut(COVER_BOXES) {
        let node = &nodes[node as usize];
        let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
        for corner in node.corners() {
            let Some((x, y, _)) = scene.view.camera.project(scene.view.to_world(corner), size as f32) else {
                return vec![true; columns * rows];
            };
            for (axis, value) in [(0, x - region.x0 as f32), (1, y - region.y0 as f32)] {
                low[axis] = low[axis].min(value);
                high[axis] = high[axis].max(value);
            }
        }
        // In blocks, half a camera ray wider for rounding.
        let scale = region.supersampling as f32 / BLOCK as f32;
        let range = |axis: usize, count: usize| {
            let first = (low[axis] * scale - 0.2).max(0.0) as usize;
            let last = (high[axis] * scale + 0.2).clamp(-1.0, count as f32 - 1.0);
            first..(last + 1.0) as usize
        };
        for y in range(1, rows) {
            for x in range(0, columns) {
                covered[y * columns + x] = true;
            }
        }
    }
    covered
}

/// Camera rays over the region: the hits, and for every ray the first of its samples (they follow one another).
fn trace_samples(
    scene: &LitScene<'_>,
    region: &Region,
    size: u32,
    rays: &mut u64,
) -> (Vec<Sample>, Vec<u32>) {
    let view = scene.view;
    let mut first = vec![NONE; region.width * region.height];
    let is_clear = view.mesh.geometry.has_transparency;
    let mut samples = Vec::with_capacity(if is_clear { first.len() } else { first.len() / 2 });
    let direction_at = |x: usize, y: usize| region.direction(&view.camera, x, y, size);
    let origin = view.to_object(view.camera.position);
    let covered = covered_blocks(scene, region, size);
    // Between neighbouring rays, over their distance.
    let spacing = 1.0 / (region.supersampling as f32 * size as f32);
    let mut hits = Hits::NONE;
    let mut layers: [Vec<Sample>; WIDTH] = Default::default();
    for by in (0..region.height).step_by(BLOCK) {
        for bx in (0..region.width).step_by(BLOCK) {
            if !covered[by / BLOCK * region.width.div_ceil(BLOCK) + bx / BLOCK] {
                continue;
            }
            let zero = Floats::splat(0.0);
            let mut packet = Fan { origin, direction: [zero; 3], limit: zero, active: 0 };
            let (mut directions, mut places) = ([Vec3::ZERO; WIDTH], [[0; 2]; WIDTH]);
            for lane in 0..WIDTH {
                let (x, y) = (bx + lane % BLOCK, by + lane / BLOCK);
                if x < region.width && y < region.height {
                    let direction = direction_at(x, y);
                    let to_floor = (FLOOR_Z - view.camera.position.z) / direction.z;
                    packet.limit.0[lane] = if direction.z < 0.0 { to_floor } else { f32::INFINITY };
                    packet.active |= 1 << lane;
                    (directions[lane], places[lane]) = (direction, [x as u32, y as u32]);
                    let direction = view.object_from_world * direction;
                    for axis in 0..3 {
                        packet.direction[axis].0[lane] = direction[axis];
                    }
                }
            }
            *rays += u64::from(packet.active.count_ones());
            packet.nearest(&view.mesh.geometry, &mut hits);
            let hit_lanes = || (0..WIDTH).filter(|&lane| hits.mask >> lane & 1 != 0);
            hit_lanes().for_each(|lane| view.shape().prefetch(hits.triangle[lane]));
            let block = layers::Block { view, directions, limit: packet.limit, places, spacing };
            let place = |lane: usize| places[lane][1] as usize * region.width + places[lane][0] as usize;
            if !is_clear {
                for lane in hit_lanes() {
                    first[place(lane)] = samples.len() as u32;
                    samples.extend(block.sample(lane, &hits.lane(lane), 1.0).0);
                }
            } else if hits.mask != 0 {
                block.layers(hits, &mut layers, rays);
                for lane in hit_lanes() {
                    if !layers[lane].is_empty() {
                        first[place(lane)] = samples.len() as u32;
                        samples.append(&mut layers[lane]);
                    }
                }
            }
        }
    }
    (samples, first)
}

fn shade_points(scene: &LitScene<'_>, points: &[u32], samples: &[Sample], rays: &mut u64) -> Vec<Shade> {
    let mut shades = Vec::with_capacity(points.len());
    let mut batch = Vec::with_capacity(WIDTH);
    for chunk in points.chunks(WIDTH) {
        batch.clear();
        batch.extend(chunk.iter().map(|&sample| {
            let sample = &samples[sample as usize];
            let view = (scene.view.camera.position - sample.point.position).normalize_or(Vec3::Z);
            (sample.point, view, sample.albedo)
        }));
        let packet = PointPacket::new(scene, &batch);
        shades.extend_from_slice(&packet.shade(scene, rays)[..chunk.len()]);
    }
    shades
}

/// Filters the samples down to pixels and puts them over the floor.
fn resolve(
    scene: &LitScene<'_>,
    region: &Region,
    samples: &[Sample],
    shades: &[Shade],
    size: u32,
    pixels: &mut [Vec3],
) {
    let has_emission = scene.view.mesh.has_emission;
    let per_pixel = region.supersampling;
    let weights = camera::filter_weights(per_pixel);
    let mut radiance = vec![glam::Vec4::ZERO; region.width * region.height];
    for sample in samples {
        let (mut diffuse, mut specular, mut lamp) = (Vec3::ZERO, Vec3::ZERO, 0.0);
        for &(point, weight) in sample.sources.iter().filter(|source| source.0 != NONE) {
            let shade = &shades[point as usize];
            diffuse += weight * shade.diffuse;
            specular += weight * shade.specular;
            lamp += weight * shade.lamp;
        }
        if lamp > 0.0 {
            let surface = scene.view.surface(&sample.point);
            if surface.alpha() < LAMP_LOBE {
                specular += lamp * lamp_mirrored(scene.view, &sample.point, &surface, sample.albedo);
            }
        }
        let mut light = sample.albedo * diffuse + specular;
        if has_emission {
            light += scene.view.emission(&sample.point);
        }
        radiance[sample.y as usize * region.width + sample.x as usize] += sample.weight * light.extend(1.0);
    }
    let (columns, rows) = (region.width / per_pixel, region.height / per_pixel);
    let tap = |pixel: usize, i: usize| (pixel * per_pixel + i).wrapping_sub(per_pixel);
    // Rows first: one value a pixel column and ray row.
    let mut narrowed = vec![glam::Vec4::ZERO; columns * region.height];
    for y in 0..region.height {
        let row = &radiance[y * region.width..][..region.width];
        for x in 0..columns {
            let mut sum = glam::Vec4::ZERO;
            for (i, &weight) in weights.iter().enumerate() {
                if let Some(&value) = row.get(tap(x, i)) {
                    sum += weight * value;
                }
            }
            narrowed[y * columns + x] = sum;
        }
    }
    for y in 0..rows {
        for x in 0..columns {
            let (px, py) = (region.x0 + x as i32, region.y0 + y as i32);
            if px < 0 || py < 0 || px >= size as i32 || py >= size as i32 {
                continue;
            }
            let mut sum = glam::Vec4::ZERO;
            for (i, &weight) in weights.iter().enumerate() {
                if let Some(&value) = narrowed.get(tap(y, i).wrapping_mul(columns).wrapping_add(x)) {
                    sum += weight * value;
                }
            }
            let pixel = &mut pixels[py as usize * size as usize + px as usize];
            *pixel = *pixel * (1.0 - sum.w) + sum.truncate();
        }
    }
}

#[cfg(test)]
mod tests;
