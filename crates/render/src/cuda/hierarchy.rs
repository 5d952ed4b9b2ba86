//! The hierarchy as the device reads it: a node holds the boxes of its children, by middle and half extent in half
//! precision, so that a child needs 16 bytes and few comparisons. Boxes are rounded outwards.

use bytemuck::{Pod, Zeroable};
use glam::{Vec2, Vec3};

use crate::bvh::{self, MAX_DEPTH};
use crate::outline::{self, Inside};
use crate::shared::{CType, shared};
use crate::trace::{Geometry, Triangle};

/// Marks leaves in references.
const LEAF: u32 = 1 << 31;
/// Bits of the first triangle in the reference of a leaf; the number of triangles is above them.
const FIRST_BITS: u32 = 27;
/// Triangles of a leaf at most.
const MOST: u32 = 15;
/// Children of a node at most.
pub(super) const WIDTH: usize = 4;
/// Levels from the root on that have nodes of more than two children.
const WIDE_LEVELS: usize = 16;
/// Nodes and leaves that a walk has room for. Every level leaves all but one of a node's children for later; besides,
/// there is a mark at the end, and a node may add all its children to the leaves that wait.
pub(super) const ROOM: usize = (WIDTH - 1) * WIDE_LEVELS + (MAX_DEPTH - WIDE_LEVELS) + 1 + 2 * WIDTH + LEAVES;
/// Leaves that are enough for a walk to look at their triangles.
pub(super) const LEAVES: usize = 3;
/// Margin around boxes over the largest coordinate, beside that of the CPU's: more than the rounding of the box test.
const PADDING: f32 = 1e-6;

shared! {
    /// A node: its children.
    pub(super) struct Node as "Node" {
        children: [PackedChild; WIDTH],
    }
}

/// The box of a child (x, y, z of middle and half extent), and the child; one load on the device.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct PackedChild {
    middle: [u16; 3],
    half: [u16; 3],
    reference: u32,
}

impl Node {
    /// The boxes of its children, as they are packed, and what is in them.
    pub fn parts(&self) -> impl Iterator<Item = outline::Part> {
        self.children.into_iter().filter(|child| child.half[0] != MINUS_ONE).map(|child| {
            let [middle, half] = [child.middle, child.half].map(|bits| Vec3::from(bits.map(half_value)));
            outline::Part { middle, half, inside: inside(child.reference) }
        })
    }
}

impl CType for PackedChild {
    const NAME: &'static str = "uint4";
}

impl PackedChild {
    /// A box that no ray enters.
    const EMPTY: Self = Self { middle: [0; 3], half: [MINUS_ONE; 3], reference: LEAF };

    fn new(low: Vec3, high: Vec3, reference: u32) -> Self {
        let mut child = Self { middle: [0; 3], half: [INFINITE; 3], reference };
        for axis in 0..3 {
            let middle = half_bits(0.5 * (low[axis] + high[axis]), f32::round);
            let value = half_value(middle);
            // What does not fit into half precision gets a box that every ray enters.
            if value.is_finite() {
                child.middle[axis] = middle;
                child.half[axis] = half_bits((high[axis] - value).max(value - low[axis]), f32::ceil);
            }
        }
        child
    }
}

/// Half precision of -1 and of infinity.
const MINUS_ONE: u16 = 0xbc00;
const INFINITE: u16 = 0x7c00;

/// The half-precision number at `value`, rounded by `round` in units of its last place (towards or away from zero alike).
fn half_bits(value: f32, round: fn(f32) -> f32) -> u16 {
    let size = value.abs();
    let sign = if value < 0.0 { 0x8000 } else { 0 };
    // Biased exponent; 1 for the smallest normal numbers and for all below them.
    let exponent = ((size.to_bits() >> 23) as i32 - 127 + 15).max(1);
    if exponent > 30 || size.is_nan() {
        return sign | INFINITE;
    }
    let unit = 2.0_f32.powi(exponent - 15 - 10);
    // Up to 2048: a carry out of the fraction raises the exponent, as it should.
    let units = round(size / unit) as u32;
    sign | ((((exponent - 1) as u32) << 10) + units).min(u32::from(INFINITE)) as u16
}

fn half_value(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 10 & 31), u32::from(bits & 1023));
    let size = match exponent {
        31 => f32::INFINITY,
        0 => fraction as f32 * (1.0 / (1 << 24) as f32),
        _ => f32::from_bits((exponent + 127 - 15) << 23 | fraction << 13),
    };
    if bits & 0x8000 == 0 { size } else { -size }
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

/// A child of a node as it is before it is packed: its true box, and the child.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub low: Vec3,
    pub high: Vec3,
    reference: u32,
}

impl Part {
    /// What is in it.
    pub fn inside(&self) -> Inside {
        inside(self.reference)
    }
}

fn inside(reference: u32) -> Inside {
    if reference & LEAF == 0 {
        return Inside::Node(reference as usize);
    }
    let first = (reference & ((1 << FIRST_BITS) - 1)) as usize;
    Inside::Triangles(first..first + (reference >> FIRST_BITS & MOST) as usize)
}

/// The device's nodes, the root first; none where there are no triangles. Leaves refer to triangles by their position.
/// Besides, the parts of every node, which come before those of its children.
pub(super) fn nodes(geometry: &Geometry) -> (Vec<Node>, Vec<Vec<Part>>) {
    if geometry.nodes.is_empty() {
        return Default::default();
    }
    let padding = Vec3::splat(PADDING * geometry.nodes.reach());
    let mut nodes = vec![Node::zeroed()];
    let mut all_parts: Vec<Vec<Part>> = vec![Vec::new()];
    let mut work = vec![(0_usize, child(geometry, 0), 0)];
    while let Some((slot, parent, level)) = work.pop() {
        let mut parts = vec![parent];
        let width = if level < WIDE_LEVELS { WIDTH } else { 2 };
        while parts.len() < width {
            // The largest is the one most rays would enter.
            let inner = parts.iter().enumerate().filter(|(_, part)| part.is_inner());
            let Some((largest, _)) = inner.max_by(|(_, a), (_, b)| a.half_area().total_cmp(&b.half_area()))
            else {
                break;
            };
            let [first, second] = split(geometry, &parts[largest]);
            parts[largest] = first;
            parts.insert(largest + 1, second);
        }
        let mut parts = parts.into_iter();
        let mut place = |part: Option<Child>| {
            let Some(part) = part else { return PackedChild::EMPTY };
            let (low, high) = (part.low, part.high);
            let reference = match part.content {
                Content::Triangles(from, to) if to - from <= MOST => LEAF | (to - from) << FIRST_BITS | from,
                _ => {
                    let slot = nodes.len();
                    nodes.push(Node::zeroed());
                    all_parts.push(Vec::new());
                    work.push((slot, part, level + 1));
                    slot as u32
                }
            };
            all_parts[slot].push(Part { low, high, reference });
            PackedChild::new(low - padding, high + padding, reference)
        };
        let children = std::array::from_fn(|_| place(parts.next()));
        nodes[slot] = Node { children };
    }
    (nodes, all_parts)
}

/// The same nodes for rays that look for light: boxes leave out what masks leave open. `parts` are those of the nodes.
pub(super) fn lit_nodes(geometry: &Geometry, parts: &[Vec<Part>]) -> Vec<Node> {
    // Boxes of the CPU's hierarchy have its margin already; these do not.
    let padding = Vec3::splat((PADDING + bvh::PADDING) * geometry.nodes.reach());
    let corners = corners_in_light(geometry);
    let mut nodes = vec![Node::zeroed(); parts.len()];
    let mut boxes = vec![NOTHING; parts.len()];
    // Nodes come after their parents.
    for (node, parts) in parts.iter().enumerate().rev() {
        let mut children = [PackedChild::EMPTY; WIDTH];
        for (child, part) in children.iter_mut().zip(parts) {
            let (low, high) = match part.inside() {
                Inside::Node(below) => boxes[below],
                Inside::Triangles(slots) => around(slots.flat_map(&corners)),
            };
            // What is rounded may not come to lie outside of the whole.
            let (low, high) = (low.max(part.low), high.min(part.high));
            if low.cmple(high).all() {
                *child = PackedChild::new(low - padding, high + padding, part.reference);
                boxes[node] = (boxes[node].0.min(low), boxes[node].1.max(high));
            }
        }
        nodes[node] = Node { children };
    }
    nodes
}

/// Of every triangle, corners of a part outside of which light passes as if it were not there.
fn corners_in_light(geometry: &Geometry) -> impl Fn(usize) -> Vec<Vec3> {
    let outlines = geometry.masks.outlines();
    move |slot| {
        let triangle = &geometry.triangles[slot];
        let whole = [Vec2::ZERO, Vec2::X, Vec2::Y];
        let weights = match triangle.mask {
            0 if triangle.transparency >= 1.0 => &[],
            0 => whole.as_slice(),
            mask => &outlines[mask as usize - 1],
        };
        let [corner, edge1, edge2] = [triangle.corner, triangle.edge1, triangle.edge2].map(Vec3::from);
        weights.iter().map(|weights| corner + weights.x * edge1 + weights.y * edge2).collect()
    }
}

/// The box around nothing.
const NOTHING: (Vec3, Vec3) = (Vec3::INFINITY, Vec3::NEG_INFINITY);

/// The box around points.
fn around(points: impl Iterator<Item = Vec3>) -> (Vec3, Vec3) {
    points.fold(NOTHING, |(low, high), point| (low.min(point), high.max(point)))
}

impl Child {
    /// Whether it becomes a node of its own.
    fn is_inner(&self) -> bool {
        match self.content {
            Content::Inner(_) => true,
            Content::Triangles(from, to) => to - from > MOST,
        }
    }

    fn half_area(&self) -> f32 {
        let size = self.high - self.low;
        size.x * size.y + size.y * size.z + size.z * size.x
    }
}

/// The two parts of an inner child.
fn split(geometry: &Geometry, parent: &Child) -> [Child; 2] {
    match parent.content {
        Content::Inner(first) => [child(geometry, first), child(geometry, first + 1)],
        Content::Triangles(from, to) => {
            let middle = from + (to - from) / 2;
            [leaf(geometry, from, middle), leaf(geometry, middle, to)]
        }
    }
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
    let (low, high) = around(geometry.triangles[from as usize..to as usize].iter().flat_map(corners));
    Child { low, high, content: Content::Triangles(from, to) }
}

#[cfg(test)]
mod tests {
    use glam::Vec3Swizzles;

    use super::*;
    use crate::PreparedMesh;

    #[test]
    fn every_triangle_is_reached_once_through_boxes_that_contain_it() {
        for label in [4, 30] {
            let mesh = PreparedMesh::new(&procedural::build(1, label, 0));
            let (nodes, _) = nodes(&mesh.geometry);
            let mut seen = vec![0; mesh.triangle_count()];
            let mut stack = vec![0_u32];
            while let Some(reference) = stack.pop() {
                for child in nodes[reference as usize].children {
                    let reference = child.reference;
                    if child.half[0] == MINUS_ONE {
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
                        let inside = leaf(&mesh.geometry, slot, slot + 1);
                        for axis in 0..3 {
                            let (middle, half) =
                                (half_value(child.middle[axis]), half_value(child.half[axis]));
                            assert!(inside.low[axis] >= middle - half && inside.high[axis] <= middle + half);
                        }
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1));
        }
    }

    #[test]
    fn light_finds_the_same_triangles_in_smaller_boxes() {
        // Every triangle has a map of which the middle is there.
        let alpha = |i: usize| if (8..16).contains(&(i % 24)) { 255 } else { 0 };
        let map = scene::Texture {
            width: 24,
            height: 24,
            pixels: (0..24 * 24).map(|i| [0, 0, 0, alpha(i)]).collect(),
        };
        let mut mesh = procedural::build(1, 4, 0);
        mesh.vertices =
            mesh.triangles.iter().flatten().map(|&vertex| mesh.vertices[vertex as usize]).collect();
        mesh.triangles = (0..mesh.triangles.len() as u32).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect();
        for (vertex, uv) in
            mesh.vertices.iter_mut().zip([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].into_iter().cycle())
        {
            vertex.uv = uv;
        }
        mesh.materials = vec![scene::Material { opacity: Some(map.into()), ..Default::default() }];
        mesh.triangle_materials.fill(0);
        let geometry = PreparedMesh::for_device(&mesh).geometry;
        let (nodes, parts) = nodes(&geometry);
        let area = |node: &Node| node.parts().map(|part| part.half.dot(part.half.yzx())).sum::<f32>();
        let all_area = |nodes: &[Node]| nodes.iter().map(area).sum::<f32>();
        let lit = lit_nodes(&geometry, &parts);
        assert_eq!(lit.len(), nodes.len());
        assert!(all_area(&lit) < 0.9 * all_area(&nodes), "{} {}", all_area(&lit), all_area(&nodes));
        let corners = corners_in_light(&geometry);
        let mut seen = 0;
        for (lit, whole) in lit.iter().zip(&nodes) {
            for (lit, whole) in lit.children.iter().zip(&whole.children) {
                if lit.half[0] == MINUS_ONE {
                    continue;
                }
                assert_eq!(lit.reference, whole.reference);
                let Inside::Triangles(slots) = inside(lit.reference) else { continue };
                seen += slots.len();
                let [middle, half] = [lit.middle, lit.half].map(|bits| Vec3::from(bits.map(half_value)));
                for corner in slots.flat_map(&corners) {
                    assert!((corner - middle).abs().cmple(half).all(), "{corner} in {middle}, {half}");
                }
            }
        }
        assert_eq!(seen, geometry.triangles.len());
    }

    #[test]
    fn a_walk_has_room_for_the_deepest_trees() {
        // Sizes that shrink geometrically make the deepest trees.
        let shrinking: Vec<[Vec3; 3]> =
            (0..3000).map(|i| [Vec3::X, Vec3::Y, Vec3::Z].map(|corner| corner * 0.97_f32.powi(i))).collect();
        let (nodes, order) = crate::bvh::build(&shrinking);
        let triangles =
            order.iter().map(|&index| Triangle::new(shrinking[index as usize], index, 0.0)).collect();
        let geometry = Geometry { nodes, triangles, ..Geometry::default() };
        let (_, parts) = super::nodes(&geometry);
        let mut needed = vec![0; parts.len()];
        for node in (0..parts.len()).rev() {
            let below = parts[node].iter().map(|part| match part.inside() {
                Inside::Node(child) => needed[child],
                Inside::Triangles(_) => 0,
            });
            needed[node] = below.max().unwrap_or(0) + parts[node].len() - 1;
        }
        assert!(needed[0] > 25 && needed[0] + 1 + 2 * WIDTH + LEAVES <= ROOM, "{} of {ROOM}", needed[0]);
    }

    #[test]
    fn half_precision_is_rounded_as_asked() {
        for (value, nearest) in
            [(0.0, 0), (1.0, 0x3c00), (-1.0, MINUS_ONE), (0.333_251_95, 0x3555), (6e-8, 1)]
        {
            assert_eq!(half_bits(value, f32::round), nearest, "{value}");
        }
        assert_eq!(half_bits(1e6, f32::ceil), INFINITE);
        for i in 1..2000 {
            let value = (i as f32 * 0.37).sin() * 10.0_f32.powi(i % 9 - 6);
            assert!((half_value(half_bits(value, f32::round)) - value).abs() <= value.abs() * 4.9e-4 + 3e-8);
            assert!(half_value(half_bits(value.abs(), f32::ceil)) >= value.abs());
        }
    }
}
