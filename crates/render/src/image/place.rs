//! Which samples light is computed at, and which of these points every sample takes its light from.
//!
//! Points lie on a lattice of camera rays; samples that none of the lattice points around them resembles, outlines and
//! what is seen behind a transparent surface, share further points with their neighbours: with the nearest where they are
//! all that their ray sees, from farther away the less they count.

use glam::Vec3;

use super::{NONE, Region, Sample};
use crate::lit_scene::LitScene;
use crate::view::{SurfacePoint, View};

/// Sum of interpolation weights below which a sample gets a shaded point of its own.
const MIN_WEIGHT: f32 = 0.1;
/// Cosine between normals at which two points stop being of the same surface, by [`reach`].
const MIN_COSINE: [f32; 3] = [0.9, 0.8, 0.6];
/// Steps of likeness.
const STEPS: f32 = 16.0;
/// Width of the lobe of surfaces whose samples do not share points from farther away than any other.
const MIRROR: f32 = 0.01;
/// Cells of the lattice, along each axis, within which samples of a transparent object share points at most.
pub(crate) const GROUP: usize = 4;
/// Further points of a group at most: samples beyond take the one they resemble most.
pub(crate) const MOST_EXTRAS: usize = 128;

/// How much of the light at `other`, which is as far away as a `reach` allows, a point may take for its own.
#[inline]
fn likeness(point: &SurfacePoint, (other, normal): (Vec3, Vec3), tolerance: f32, reach: usize) -> f32 {
    const RISE: [f32; 3] =
        [1.0 / (1.0 - MIN_COSINE[0]), 1.0 / (1.0 - MIN_COSINE[1]), 1.0 / (1.0 - MIN_COSINE[2])];
    let cosine = point.normal.dot(normal);
    if cosine <= MIN_COSINE[reach] {
        return 0.0;
    }
    let offset = (other - point.position).dot(point.face_normal).abs();
    let flatness = 1.0 - offset / (tolerance * (1 << reach) as f32);
    let alike = if flatness <= 0.0 { 0.0 } else { (cosine - MIN_COSINE[reach]) * RISE[reach] * flatness };
    // In steps, where there are many to choose from, so that rounding does not choose between those of one plane.
    if reach == 0 { alike } else { (STEPS * alike + 0.5) as i32 as f32 * (1.0 / STEPS) }
}

/// A point beyond the lattice.
struct Further {
    /// The one before it in its group, or [`NONE`].
    next: u32,
    /// Cell of the lattice.
    cell: [u32; 2],
    position: Vec3,
    normal: Vec3,
}

/// Binary logarithm of the number of lattice cells, along each axis, of the square in which a sample looks for a point to
/// share: the more the less it counts, but where a surface mirrors, light changes within a cell.
#[inline]
fn reach(view: &View<'_>, sample: &Sample, sharing: f32) -> usize {
    if 2.0 * sample.weight >= sharing {
        return 0;
    }
    let surface = view.surface(&sample.point);
    if surface.has_specular() && surface.alpha() < MIRROR {
        return 0;
    }
    1 + usize::from(4.0 * sample.weight < sharing)
}

/// The lattice cell before a place along an axis, and how far behind it the place lies.
#[inline]
fn lattice_place(place: u32, step: usize) -> (i64, f32) {
    let place = i64::from(place) - (step / 2) as i64;
    let cell = place.div_euclid(step as i64);
    (cell, place as f32 / step as f32 - cell as f32)
}

/// Chooses the samples at which light is computed, neighbours together, and tells every sample which it uses; `first` has
/// the first sample of every ray.
pub(super) fn place_points(
    region: &Region,
    scene: &LitScene<'_>,
    samples: &mut [Sample],
    first: &[u32],
) -> Vec<u32> {
    let (view, sharing, step) = (scene.view, scene.settings.sharing, scene.settings.shading_step);
    let (columns, rows) = (region.width.div_ceil(step), region.height.div_ceil(step));
    let mut lattice = vec![NONE; columns * rows];
    let mut points: Vec<u32> = Vec::new();
    for block in 0..columns.div_ceil(4) * rows.div_ceil(4) {
        let (bx, by) = (4 * (block % columns.div_ceil(4)), 4 * (block / columns.div_ceil(4)));
        for (x, y) in (0..16).map(|i| (bx + i % 4, by + i / 4)) {
            let (sx, sy) = (x * step + step / 2, y * step + step / 2);
            if x < columns && y < rows && sx < region.width && sy < region.height {
                let sample = first[sy * region.width + sx];
                if sample != NONE {
                    lattice[y * columns + x] = points.len() as u32;
                    points.push(sample);
                }
            }
        }
    }
    // Points beyond the lattice, chained by group of lattice cells: the last of each group, and how many it has.
    let regular = points.len();
    let mut further: Vec<Further> = Vec::new();
    let group = if view.mesh.geometry.has_transparency { GROUP } else { 1 };
    let groups = columns.div_ceil(group);
    let mut chains = vec![(NONE, 0); groups * rows.div_ceil(group)];
    let tolerance = 0.012 * step as f32 / region.supersampling as f32;
    for index in 0..samples.len() {
        let sample = &samples[index];
        let ((cx, fx), (cy, fy)) = (lattice_place(sample.x, step), lattice_place(sample.y, step));
        let mut sources = [(NONE, 0.0); 4];
        let mut total = 0.0;
        for (slot, source) in sources.iter_mut().enumerate() {
            let (nx, ny) = (cx + (slot & 1) as i64, cy + (slot >> 1) as i64);
            let bilinear =
                (if slot & 1 == 0 { 1.0 - fx } else { fx }) * (if slot >> 1 == 0 { 1.0 - fy } else { fy });
            if bilinear <= 0.0 || nx < 0 || ny < 0 || nx >= columns as i64 || ny >= rows as i64 {
                continue;
            }
            let point = lattice[ny as usize * columns + nx as usize];
            if point == NONE {
                continue;
            }
            let other = points[point as usize] as usize;
            let alike = if other == index {
                1.0
            } else {
                let other = &samples[other].point;
                likeness(&sample.point, (other.position, other.normal), tolerance, 0)
            };
            *source = (point, bilinear * alike);
            total += bilinear * alike;
        }
        if total < MIN_WEIGHT {
            let cell = [sample.x / step as u32, sample.y / step as u32];
            let (last, count) = &mut chains[cell[1] as usize / group * groups + cell[0] as usize / group];
            let (reach, is_full) = (reach(view, sample, sharing), *count == MOST_EXTRAS);
            let mut link = *last;
            let mut best = (NONE, if is_full { -1.0 } else { MIN_WEIGHT });
            while let Some(other) = further.get(link as usize) {
                let is_near =
                    (cell[0] ^ other.cell[0]) >> reach == 0 && (cell[1] ^ other.cell[1]) >> reach == 0;
                if is_near || is_full {
                    let alike = likeness(&sample.point, (other.position, other.normal), tolerance, reach);
                    if alike > best.1 {
                        best = (regular as u32 + link, alike);
                    }
                }
                link = other.next;
            }
            if best.0 == NONE {
                best.0 = points.len() as u32;
                points.push(index as u32);
                let SurfacePoint { position, normal, .. } = sample.point;
                further.push(Further { next: *last, cell, position, normal });
                (*last, *count) = (further.len() as u32 - 1, *count + 1);
            }
            sources = [(best.0, 1.0), (NONE, 0.0), (NONE, 0.0), (NONE, 0.0)];
            total = 1.0;
        }
        samples[index].sources = sources.map(|(point, weight)| (point, weight / total));
    }
    points
}
