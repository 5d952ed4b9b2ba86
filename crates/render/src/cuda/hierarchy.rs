//! The hierarchy as the device reads it: a node holds the boxes of both its children, by middle and half extent, so that
//! one step needs one read and few comparisons.

use bytemuck::{Pod, Zeroable};
use glam::Vec3;

use crate::trace::{Geometry, Triangle};

/// Marks leaves in references.
const LEAF: u32 = 1 << 31;
/// Bits of the first triangle in the reference of a leaf; the number of triangles is above them.
const FIRST_BITS: u32 = 27;
/// Triangles of a leaf at most.
const MOST: u32 = 15;
/// Margin around boxes over the largest coordinate: more than the rounding of the box test.
const PADDING: f32 = 1e-6;

/// A node, as `types.cu` has it. The fourth numbers of the middles are the children's references (bits).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Node {
    middle0: [f32; 4],
    half0: [f32; 4],
    middle1: [f32; 4],
    half1: [f32; 4],
}

/// A box and what is in it.
struct Child {
    low: Vec3,
    high: Vec3,
    content: Content,
}

enum Content {
    /// An inner node of the CPU's hierarchy.
    Inner(u32),
    /// Triangles from, to.
    Triangles(u32, u32),
}

/// The device's nodes, the root first; none where there are no triangles. Leaves refer to triangles by their position.
pub(super) fn nodes(geometry: &Geometry) -> Vec<Node> {
    let Some(root) = geometry.nodes.first() else { return Vec::new() };
    let reach = Vec3::from(root.min).abs().max(Vec3::from(root.max).abs()).max_element();
    let padding = Vec3::splat(PADDING * reach);
    let mut nodes = vec![Node::zeroed()];
    let mut work = vec![(0_usize, child(geometry, 0))];
    while let Some((slot, parent)) = work.pop() {
        let mut parts = match parent.content {
            Content::Inner(first) => vec![child(geometry, first), child(geometry, first + 1)],
            Content::Triangles(from, to) if to - from <= MOST => vec![parent],
            Content::Triangles(from, to) => {
                let middle = from + (to - from) / 2;
                vec![leaf(geometry, from, middle), leaf(geometry, middle, to)]
            }
        }
        .into_iter();
        let mut place = |part: Option<Child>| {
            let Some(part) = part else {
                // A box that no ray enters.
                return ([0.0, 0.0, 0.0, f32::from_bits(LEAF)], [-1.0, -1.0, -1.0, 0.0]);
            };
            let (middle, half) = (0.5 * (part.low + part.high), 0.5 * (part.high - part.low) + padding);
            let reference = match part.content {
                Content::Triangles(from, to) if to - from <= MOST => LEAF | (to - from) << FIRST_BITS | from,
                _ => {
                    let slot = nodes.len();
                    nodes.push(Node::zeroed());
                    work.push((slot, part));
                    slot as u32
                }
            };
            (middle.extend(f32::from_bits(reference)).to_array(), half.extend(0.0).to_array())
        };
        let ((middle0, half0), (middle1, half1)) = (place(parts.next()), place(parts.next()));
        nodes[slot] = Node { middle0, half0, middle1, half1 };
    }
    nodes
}

fn child(geometry: &Geometry, index: u32) -> Child {
    let node = &geometry.nodes[index as usize];
    let content = match node.count() {
        0 => Content::Inner(node.first),
        count => Content::Triangles(node.first, node.first + count),
    };
    Child { low: Vec3::from(node.min), high: Vec3::from(node.max), content }
}

fn leaf(geometry: &Geometry, from: u32, to: u32) -> Child {
    let corners = |triangle: &Triangle| {
        let a = Vec3::from(triangle.corner);
        [a, a + Vec3::from(triangle.edge1), a + Vec3::from(triangle.edge2)]
    };
    let (mut low, mut high) = (Vec3::INFINITY, Vec3::NEG_INFINITY);
    for corner in geometry.triangles[from as usize..to as usize].iter().flat_map(corners) {
        low = low.min(corner);
        high = high.max(corner);
    }
    Child { low, high, content: Content::Triangles(from, to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PreparedMesh;

    #[test]
    fn every_triangle_is_reached_once_through_boxes_that_contain_it() {
        for label in [4, 30] {
            let mesh = PreparedMesh::new(&procedural::build(1, label, 0));
            let nodes = nodes(&mesh.geometry);
            let mut seen = vec![0; mesh.triangle_count()];
            let mut stack = vec![0_u32];
            while let Some(reference) = stack.pop() {
                let node = &nodes[reference as usize];
                for (middle, half) in [(node.middle0, node.half0), (node.middle1, node.half1)] {
                    let reference = middle[3].to_bits();
                    if half[0] < 0.0 {
                        continue;
                    }
                    if reference & LEAF == 0 {
                        stack.push(reference);
                        continue;
                    }
                    let first = reference & ((1 << FIRST_BITS) - 1);
                    let count = reference >> FIRST_BITS & MOST;
                    assert!(count > 0);
                    for slot in first..first + count {
                        seen[slot as usize] += 1;
                        let child = leaf(&mesh.geometry, slot, slot + 1);
                        for axis in 0..3 {
                            assert!(child.low[axis] >= middle[axis] - half[axis]);
                            assert!(child.high[axis] <= middle[axis] + half[axis]);
                        }
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1));
        }
    }
}
