//! Fewer triangles for the rays that only look for light.
//!
//! Shadows and reflected light do not show triangles that are much smaller than a pixel, but rays pay for them. So
//! vertices of very fine meshes are merged in cells of a pixel to three wherever the surface in the cell is flat and
//! nothing else happens there: no rim, no crease, no change of material, no seam of a texture. The merged surface stays
//! within a third of a pixel (at 256 pixels) of the true one. The camera always sees the true one.

use glam::{IVec3, Vec3};
use scene::Vertex;

use crate::mesh::MaterialData;

/// Distance by which rays start above the true surface, against meeting the merged one.
pub(crate) const LIFT: f32 = 1.5e-3;
/// Largest image, in pixels along a side, whose light is found on the merged surface.
pub(crate) const MAX_SIZE: u32 = 512;
/// Meshes with fewer triangles are left alone.
const MIN_FACES: usize = 30_000;
/// Share of the triangles that may be left; otherwise merging does not pay.
const MAX_LEFT: f32 = 0.6;
/// Sides of the cells, tried one after the other.
const CELLS: [f32; 4] = [0.02, 0.014, 0.01, 0.007];
/// Distance of a cell's vertices from their mean plane, at most. Triangles between neighbouring cells are off by a few
/// times as much where the surface is curved.
const FLATNESS: f32 = 2.5e-4;
/// Sum of the normals in a cell over the sum of their lengths, at least: keeps the two sides of a thin sheet apart.
const AGREEMENT: f32 = 0.9;
/// Gap in the ring of triangles around a vertex from which on it lies on a rim.
const GAP: f32 = 1e-5;

/// A triangle of a mesh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Face {
    /// Its vertices.
    pub vertices: [u32; 3],
    /// Its index in the mesh.
    pub index: u32,
    /// Its material.
    pub material: u32,
}

/// The same surface with fewer triangles, or `None` where that does not pay or would show.
pub(crate) fn simplify(vertices: &[Vertex], faces: &[Face], materials: &[MaterialData]) -> Option<Vec<Face>> {
    let clear = |face: &Face| materials[face.material as usize].is_clear();
    if faces.len() < MIN_FACES || faces.iter().any(clear) {
        return None;
    }
    let corners = Corners::new(vertices, faces, materials);
    let targets = corners.merge();
    let mut kept = Vec::with_capacity(faces.len() / 4);
    for face in faces {
        let target = face.vertices.map(|vertex| targets[corners.corner_of[vertex as usize] as usize]);
        if target[0] != target[1] && target[1] != target[2] && target[2] != target[0] {
            // A corner that stays keeps the face's own vertex, with its normal and texture coordinate.
            let vertices = std::array::from_fn(|i| {
                let own = face.vertices[i];
                if corners.corner_of[own as usize] == target[i] {
                    own
                } else {
                    corners.vertex_of[target[i] as usize]
                }
            });
            kept.push(Face { vertices, ..*face });
        }
    }
    (kept.len() as f32 <= MAX_LEFT * faces.len() as f32).then_some(kept)
}

/// Open addressing: finds equal things by their hashes.
struct Table {
    slots: Vec<u32>,
}

const EMPTY: u32 = u32::MAX;

impl Table {
    fn new(count: usize) -> Self {
        Self { slots: vec![EMPTY; (2 * count.max(4)).next_power_of_two()] }
    }

    /// The thing that `is_same`, or `new` in its place.
    fn find(&mut self, key: [u32; 3], new: u32, is_same: impl Fn(u32) -> bool) -> u32 {
        let mut hash = 0_u64;
        for word in key {
            hash = (hash.rotate_left(23) ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> 32) as usize & mask;
        loop {
            match self.slots[slot] {
                EMPTY => {
                    self.slots[slot] = new;
                    return new;
                }
                other if is_same(other) => return other,
                _ => slot = (slot + 1) & mask,
            }
        }
    }
}

/// The places where faces meet: vertices at the same position are one.
struct Corners {
    /// For every vertex its corner.
    corner_of: Vec<u32>,
    /// For every corner one of its vertices.
    vertex_of: Vec<u32>,
    places: Vec<Place>,
}

/// What is known about a corner.
#[derive(Clone, Copy)]
struct Place {
    position: Vec3,
    /// Sum of the normals of its faces, by area, and of their lengths.
    normal: Vec3,
    area: f32,
    /// Sum of the edges opposite to it, which is zero where its faces make a closed ring.
    gap: Vec3,
    material: u32,
    /// Whether it has to stay.
    stays: bool,
}

impl Corners {
    fn new(vertices: &[Vertex], faces: &[Face], materials: &[MaterialData]) -> Self {
        let mut table = Table::new(vertices.len());
        let mut corners =
            Self { corner_of: Vec::with_capacity(vertices.len()), vertex_of: vec![], places: vec![] };
        for (index, vertex) in vertices.iter().enumerate() {
            // Adding 0 makes the two zeros equal.
            let position = Vec3::from(vertex.position) + Vec3::ZERO;
            let count = corners.places.len() as u32;
            let corner = table.find(position.to_array().map(f32::to_bits), count, |other| {
                corners.places[other as usize].position == position
            });
            if corner == count {
                let zero = Vec3::ZERO;
                let place =
                    Place { position, normal: zero, area: 0.0, gap: zero, material: u32::MAX, stays: false };
                corners.places.push(place);
                corners.vertex_of.push(index as u32);
            }
            corners.corner_of.push(corner);
        }
        for face in faces {
            let textured = materials[face.material as usize].has_maps();
            let corner = face.vertices.map(|vertex| corners.corner_of[vertex as usize] as usize);
            let [a, b, c] = corner.map(|corner| corners.places[corner].position);
            let normal = (b - a).cross(c - a);
            let area = normal.length();
            for (i, gap) in [c - b, a - c, b - a].into_iter().enumerate() {
                let first = corners.vertex_of[corner[i]];
                let seam = textured && vertices[first as usize].uv != vertices[face.vertices[i] as usize].uv;
                let place = &mut corners.places[corner[i]];
                place.normal += normal;
                place.area += area;
                place.gap += gap;
                let other = place.material != face.material && place.material != u32::MAX;
                place.material = face.material;
                place.stays |= other || seam;
            }
        }
        for place in &mut corners.places {
            place.stays |= place.gap.abs().max_element() > GAP;
        }
        corners
    }

    /// For every corner the one that takes its place.
    fn merge(&self) -> Vec<u32> {
        let mut targets: Vec<u32> = (0..self.places.len() as u32).collect();
        let mut waiting = targets.clone();
        for side in CELLS {
            let cells = Cells::new(&self.places, &waiting, side);
            waiting.retain(|&corner| {
                let cell = &cells.cells[cells.cell_of[corner as usize] as usize];
                if cell.is_flat() {
                    targets[corner as usize] = cell.nearest;
                }
                !cell.is_flat()
            });
        }
        targets
    }
}

/// Corners by cells of one size.
struct Cells {
    /// For every corner its cell, or [`EMPTY`].
    cell_of: Vec<u32>,
    cells: Vec<Cell>,
}

struct Cell {
    place: IVec3,
    /// Sums over its corners.
    position: Vec3,
    normal: Vec3,
    area: f32,
    count: f32,
    stays: bool,
    /// Largest distance from the mean plane.
    off: f32,
    /// The corner nearest to the mean, and its distance squared.
    nearest: u32,
    distance: f32,
}

impl Cells {
    fn new(places: &[Place], corners: &[u32], side: f32) -> Self {
        let mut table = Table::new(corners.len());
        let mut cell_of = vec![EMPTY; places.len()];
        let mut cells: Vec<Cell> = Vec::new();
        for &corner in corners {
            let from = &places[corner as usize];
            let place = (from.position / side).floor().as_ivec3();
            let count = cells.len() as u32;
            let cell = table.find(place.to_array().map(|x| x as u32), count, |other| {
                cells[other as usize].place == place
            });
            if cell == count {
                let zero = Vec3::ZERO;
                cells.push(Cell {
                    place,
                    position: zero,
                    normal: zero,
                    area: 0.0,
                    count: 0.0,
                    stays: false,
                    off: 0.0,
                    nearest: EMPTY,
                    distance: f32::INFINITY,
                });
            }
            cell_of[corner as usize] = cell;
            let cell = &mut cells[cell as usize];
            cell.position += from.position;
            cell.normal += from.normal;
            cell.area += from.area;
            cell.count += 1.0;
            cell.stays |= from.stays;
        }
        for cell in &mut cells {
            cell.stays |= cell.normal.length() < AGREEMENT * cell.area;
            cell.position /= cell.count;
            cell.normal = cell.normal.normalize_or_zero();
        }
        for &corner in corners {
            let cell = &mut cells[cell_of[corner as usize] as usize];
            let apart = places[corner as usize].position - cell.position;
            cell.off = cell.off.max(apart.dot(cell.normal).abs());
            if apart.length_squared() < cell.distance {
                (cell.nearest, cell.distance) = (corner, apart.length_squared());
            }
        }
        Self { cell_of, cells }
    }
}

impl Cell {
    /// Whether its corners may become one.
    fn is_flat(&self) -> bool {
        !self.stays && self.off <= FLATNESS
    }
}

#[cfg(test)]
pub(crate) mod tests;
