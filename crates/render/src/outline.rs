//! How far an object reaches once it is deformed: the sphere that the same object would have had if its vertices had been
//! moved beforehand. Grids begin at that sphere, so that both show the same points of the surface.
//!
//! Only the outermost of the vertices matter, and the boxes of a hierarchy say where they are.

use std::ops::Range;

use glam::{Mat3, Vec3};

use crate::trace::Geometry;

/// A box, by its middle and half its extent, and what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub middle: Vec3,
    pub half: Vec3,
    pub inside: Inside,
}

/// What is in a box.
#[derive(Clone, Debug)]
pub(crate) enum Inside {
    /// A node.
    Node(usize),
    /// Triangles.
    Triangles(Range<usize>),
}

/// A hierarchy over triangles.
pub(crate) trait Hierarchy {
    /// Calls `found` with the parts of a node.
    fn parts(&self, node: usize, found: impl FnMut(Part));
    /// Corners of a triangle.
    fn corners(&self, slot: usize) -> [Vec3; 3];
}

impl Hierarchy for Geometry {
    fn parts(&self, node: usize, mut found: impl FnMut(Part)) {
        let first = self.nodes[node].first as usize;
        // A leaf is a part of itself.
        let children = if self.nodes[node].count() == 0 { first..first + 2 } else { node..node + 1 };
        for child in children {
            let part = &self.nodes[child];
            let (low, high) = (Vec3::from(part.min), Vec3::from(part.max));
            let (from, count) = (part.first as usize, part.count() as usize);
            let inside = if count == 0 { Inside::Node(child) } else { Inside::Triangles(from..from + count) };
            found(Part { middle: 0.5 * (low + high), half: 0.5 * (high - low), inside });
        }
    }

    fn corners(&self, slot: usize) -> [Vec3; 3] {
        let triangle = &self.triangles[slot];
        let corner = Vec3::from(triangle.corner);
        [corner, corner + Vec3::from(triangle.edge1), corner + Vec3::from(triangle.edge2)]
    }
}

/// Middle, before the deformation, and radius of the sphere around an object that `shape` deforms: that of the box around
/// the moved vertices. `stretch` is the largest factor by which `shape` changes a length.
pub(crate) fn sphere(hierarchy: &impl Hierarchy, shape: Mat3, stretch: f32) -> (Vec3, f32) {
    let rows = shape.transpose();
    let reach = |row: Vec3| {
        let size = row.abs();
        let bound = |part: &Part| row.dot(part.middle) + size.dot(part.half);
        farthest(hierarchy, bound, |corner| row.dot(corner))
    };
    let middle = |row: Vec3| 0.5 * (reach(row) - reach(-row));
    let centre = Vec3::new(middle(rows.x_axis), middle(rows.y_axis), middle(rows.z_axis));
    let bound = |part: &Part| {
        let length = (shape * part.middle - centre).length() + stretch * part.half.length();
        length * length
    };
    let square = farthest(hierarchy, bound, |corner| (shape * corner - centre).length_squared());
    (shape.inverse() * centre, square.sqrt())
}

/// The largest value of a corner; `bound` is what no corner in a part exceeds.
fn farthest(hierarchy: &impl Hierarchy, bound: impl Fn(&Part) -> f32, value: impl Fn(Vec3) -> f32) -> f32 {
    let mut most = f32::NEG_INFINITY;
    // Parts that may have something larger, those that promise most last.
    let mut work: Vec<(f32, Inside)> = vec![(f32::INFINITY, Inside::Node(0))];
    while let Some((promised, inside)) = work.pop() {
        if promised <= most {
            continue;
        }
        match inside {
            Inside::Node(node) => {
                let before = work.len();
                hierarchy.parts(node, |part| work.push((bound(&part), part.inside)));
                work[before..].sort_by(|a, b| a.0.total_cmp(&b.0));
            }
            Inside::Triangles(slots) => {
                most = slots.flat_map(|slot| hierarchy.corners(slot)).map(&value).fold(most, f32::max);
            }
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PreparedMesh;
    use crate::cuda::Object;

    #[test]
    fn the_sphere_is_that_of_the_moved_vertices() {
        for (label, shape) in [
            (4, Mat3::from_diagonal(Vec3::new(0.8, 1.3, 1.1))),
            (17, Mat3::from_cols_array(&[1.2, 0.0, 0.0, 0.3, 0.9, 0.0, -0.2, 0.4, 1.1])),
            (28, Mat3::from_cols_array(&[0.7, 0.0, 0.0, -0.4, 0.8, 0.0, 0.1, -0.3, 1.4])),
        ] {
            let mesh = procedural::build(1, label, 0);
            let mut moved = mesh.clone();
            for vertex in &mut moved.vertices {
                vertex.position = (shape * Vec3::from(vertex.position)).to_array();
            }
            let (mesh, moved) = (PreparedMesh::new(&mesh), PreparedMesh::new(&moved));
            let (middle, radius) = sphere(&mesh.geometry, shape, 2.0);
            assert!((shape * middle - moved.centre).length() < 2e-6, "{middle} {}", moved.centre);
            assert!((radius - moved.radius).abs() < 2e-6, "{radius} {}", moved.radius);
            // A device is told the same, to the last bit.
            assert_eq!(Object::new(&mesh).sphere(shape, 2.0), (middle, radius));
        }
    }
}
