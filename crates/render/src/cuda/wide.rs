//! The binary hierarchy collapsed to one of eight children a node, whose leaves are single triangles, each with its own
//! box: on the device the lanes of a warp test the children of four nodes at once.

use bytemuck::{Pod, Zeroable};
use glam::Vec3;

use crate::trace::Geometry;

/// Children of a node.
const WIDTH: usize = 8;
/// Levels for which the device has stack.
const MAX_DEPTH: usize = 18;
/// Marks triangles.
const LEAF: u32 = 1 << 31;
/// Width of the margin around a triangle's box over its largest coordinate.
const PADDING: f32 = 4e-6;

/// A child, as `types.cu` has it; an empty one has a box that no ray enters.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Child {
    pub low: [f32; 3],
    /// A node, or a triangle with [`LEAF`].
    pub target: u32,
    pub high: [f32; 3],
    pub unused: u32,
}

impl Child {
    const EMPTY: Self =
        Self { low: [f32::INFINITY; 3], target: LEAF, high: [f32::NEG_INFINITY; 3], unused: 0 };
}

/// What becomes a child.
#[derive(Clone, Copy)]
enum Part {
    Node(u32),
    Triangle(u32),
}

/// The children of node 0, of node 1, and so on; none where there are no triangles or where the hierarchy is too deep.
pub(super) fn collapse(geometry: &Geometry) -> Vec<Child> {
    let mut children = Vec::new();
    if geometry.nodes.is_empty() {
        return children;
    }
    children.extend([Child::EMPTY; WIDTH]);
    let mut work = vec![(0_usize, 0_u32, 1_usize)];
    while let Some((slot, node, depth)) = work.pop() {
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        let mut parts = expand(geometry, node);
        // The largest node that still fits is replaced by its children.
        loop {
            let mut best: Option<(f32, usize)> = None;
            for (position, part) in parts.iter().enumerate() {
                if let Part::Node(node) = *part {
                    let area = half_area(geometry, node);
                    let fits = parts.len() - 1 + expand(geometry, node).len() <= WIDTH;
                    if fits && best.is_none_or(|(largest, _)| area > largest) {
                        best = Some((area, position));
                    }
                }
            }
            let Some((_, position)) = best else { break };
            if let Part::Node(node) = parts.swap_remove(position) {
                parts.extend(expand(geometry, node));
            }
        }
        for (position, part) in parts.iter().enumerate() {
            children[WIDTH * slot + position] = match *part {
                Part::Node(node) => {
                    let target = children.len() / WIDTH;
                    children.extend([Child::EMPTY; WIDTH]);
                    work.push((target, node, depth + 1));
                    let node = &geometry.nodes[node as usize];
                    Child { low: node.min, target: target as u32, high: node.max, unused: 0 }
                }
                Part::Triangle(triangle) => leaf(geometry, triangle),
            };
        }
    }
    children
}

/// The children of a binary node, or the triangles of a leaf.
fn expand(geometry: &Geometry, node: u32) -> Vec<Part> {
    let node = &geometry.nodes[node as usize];
    match node.count() {
        0 => vec![Part::Node(node.first), Part::Node(node.first + 1)],
        count => (node.first..node.first + count).map(Part::Triangle).collect(),
    }
}

fn half_area(geometry: &Geometry, node: u32) -> f32 {
    let node = &geometry.nodes[node as usize];
    let d = Vec3::from(node.max) - Vec3::from(node.min);
    d.x * d.y + d.y * d.z + d.z * d.x
}

fn leaf(geometry: &Geometry, index: u32) -> Child {
    let triangle = &geometry.triangles[index as usize];
    let a = Vec3::from(triangle.corner);
    let (b, c) = (a + Vec3::from(triangle.edge1), a + Vec3::from(triangle.edge2));
    let (low, high) = (a.min(b).min(c), a.max(b).max(c));
    let padding = Vec3::splat(PADDING * low.abs().max(high.abs()).max_element());
    Child {
        low: (low - padding).to_array(),
        target: LEAF | index,
        high: (high + padding).to_array(),
        unused: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PreparedMesh;

    #[test]
    fn every_triangle_is_reached_once_through_boxes_that_contain_it() {
        let mesh = PreparedMesh::new(&procedural::build(1, 4, 0));
        let children = collapse(&mesh.geometry);
        let mut seen = vec![0; mesh.triangle_count()];
        let mut stack = vec![(0_u32, [f32::NEG_INFINITY; 3], [f32::INFINITY; 3])];
        let mut nodes = 0;
        while let Some((node, low, high)) = stack.pop() {
            nodes += 1;
            for child in &children[WIDTH * node as usize..][..WIDTH] {
                if child.low[0] > child.high[0] {
                    continue;
                }
                // Leaves have margins of their own.
                let inside = (0..3)
                    .all(|axis| child.low[axis] >= low[axis] - 1e-5 && child.high[axis] <= high[axis] + 1e-5);
                assert!(inside);
                if child.target & LEAF == 0 {
                    stack.push((child.target, child.low, child.high));
                } else {
                    seen[(child.target & !LEAF) as usize] += 1;
                }
            }
        }
        assert!(seen.iter().all(|&times| times == 1));
        assert_eq!(nodes * WIDTH, children.len());
        assert!(seen.len() as f64 / nodes as f64 > 2.5, "{} triangles in {nodes} nodes", seen.len());
    }
}
