//! What rays that leave a triangle cannot meet: parts of the hierarchy around it that lie behind its plane as a whole.
//! Where a surface bulges, that is all of the surface nearby, through whose boxes the rays would otherwise have to find
//! their way.

use glam::Vec3;

use super::hierarchy::Part;
use crate::outline::Inside;
use crate::trace::Triangle;

/// Nothing is left out.
const NOTHING: u32 = u32::MAX;
/// Bits for the children of a node that are left out; above them is the node.
const CHILD_BITS: u32 = 4;
/// How far in front of the plane still counts as behind it: half of the height at which rays start.
const TOLERANCE: f32 = 1e-4;
/// Nodes and triangles that are looked at for one side of a triangle, at most.
const MOST_LOOKS: usize = 96;

/// One side of a triangle on its way up the hierarchy: the plane through it, and how often it may still look.
struct Side {
    slot: usize,
    is_back: bool,
    normal: Vec3,
    limit: f32,
    looks: usize,
}

/// For the front and the back of every triangle: a node, and which of its children (bit by bit) rays leave out.
/// `parts` are those of the nodes.
pub(super) fn parts_behind(parts: &[Vec<Part>], triangles: &[Triangle]) -> Vec<[u32; 2]> {
    let corners: Vec<[Vec3; 3]> = triangles
        .iter()
        .map(|triangle| {
            let corner = Vec3::from(triangle.corner);
            [corner, corner + Vec3::from(triangle.edge1), corner + Vec3::from(triangle.edge2)]
        })
        .collect();
    let surface = Surface { parts, corners: &corners };
    let sides = |slot: usize| {
        let normal = Vec3::from(triangles[slot].normal).normalize_or_zero();
        [false, true].map(|is_back| {
            let normal = if is_back { -normal } else { normal };
            let limit = normal.dot(corners[slot][0]) + TOLERANCE;
            Side { slot, is_back, normal, limit, looks: if normal == Vec3::ZERO { 0 } else { MOST_LOOKS } }
        })
    };
    let mut found = vec![[NOTHING; 2]; triangles.len()];
    // Sides that have all of a node behind them, by node.
    let mut risen: Vec<Vec<Side>> = parts.iter().map(|_| Vec::new()).collect();
    for node in (0..parts.len()).rev() {
        for (own, part) in parts[node].iter().enumerate() {
            let arriving: Vec<Side> = match part.inside() {
                Inside::Node(below) => std::mem::take(&mut risen[below]),
                Inside::Triangles(slots) => slots.flat_map(sides).collect(),
            };
            let is_leaf = matches!(part.inside(), Inside::Triangles(_));
            for mut side in arriving {
                if is_leaf && !surface.is_behind(part, &mut side) {
                    continue;
                }
                let mut children = 1_u32 << own;
                for (place, other) in parts[node].iter().enumerate() {
                    if place != own && surface.is_behind(other, &mut side) {
                        children |= 1 << place;
                    }
                }
                found[side.slot][usize::from(side.is_back)] = (node as u32) << CHILD_BITS | children;
                if children.count_ones() as usize == parts[node].len() {
                    risen[node].push(side);
                }
            }
        }
    }
    found
}

struct Surface<'a> {
    parts: &'a [Vec<Part>],
    corners: &'a [[Vec3; 3]],
}

impl Surface<'_> {
    /// Whether all of `part` lies behind a side, as far as it may look.
    fn is_behind(&self, part: &Part, side: &mut Side) -> bool {
        let farthest = Vec3::select(side.normal.cmpgt(Vec3::ZERO), part.high, part.low);
        let inside = part.inside();
        let cost = match &inside {
            Inside::Node(_) => 1,
            Inside::Triangles(slots) => slots.len(),
        };
        if side.looks < cost {
            return false;
        }
        if side.normal.dot(farthest) <= side.limit {
            return true;
        }
        side.looks -= cost;
        match inside {
            Inside::Node(node) => self.parts[node].iter().all(|part| self.is_behind(part, side)),
            Inside::Triangles(slots) => {
                self.corners[slots].iter().flatten().all(|&corner| side.normal.dot(corner) <= side.limit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PreparedMesh;
    use crate::cuda::hierarchy;

    /// Triangles of the left-out children of a node.
    fn left_out(parts: &[Vec<Part>], behind: u32) -> Vec<usize> {
        let (node, children) = ((behind >> CHILD_BITS) as usize, behind & ((1 << CHILD_BITS) - 1));
        let mut work: Vec<Part> = (0..parts[node].len())
            .filter(|place| children >> place & 1 == 1)
            .map(|place| parts[node][place])
            .collect();
        let mut slots = Vec::new();
        while let Some(part) = work.pop() {
            match part.inside() {
                Inside::Node(node) => work.extend(&parts[node]),
                Inside::Triangles(range) => slots.extend(range),
            }
        }
        slots
    }

    #[test]
    fn what_is_left_out_lies_behind() {
        let mut most = 0;
        for label in [0, 4, 30] {
            let mesh = PreparedMesh::new(&procedural::build(1, label, 0));
            let triangles = &mesh.geometry.triangles;
            let (_, parts) = hierarchy::nodes(&mesh.geometry);
            for (triangle, sides) in triangles.iter().zip(parts_behind(&parts, triangles)) {
                let normal = Vec3::from(triangle.normal).normalize();
                for (normal, behind) in [normal, -normal].into_iter().zip(sides) {
                    if behind == NOTHING {
                        continue;
                    }
                    let slots = left_out(&parts, behind);
                    most = most.max(slots.len());
                    for other in slots.into_iter().map(|slot| &triangles[slot]) {
                        for edge in [[0.0; 3], other.edge1, other.edge2] {
                            let corner = Vec3::from(other.corner) + Vec3::from(edge);
                            let height = normal.dot(corner - Vec3::from(triangle.corner));
                            assert!(height <= 1.1 * TOLERANCE, "{height}");
                        }
                    }
                }
            }
        }
        assert!(most >= 100, "hardly anything is left out: {most}");
    }

    #[test]
    fn a_convex_object_is_left_out_as_a_whole_from_the_front() {
        // An octahedron, its faces outwards.
        let triangles: Vec<[Vec3; 3]> = (0..8)
            .map(|octant: i32| {
                let [x, y, z] = [0, 1, 2].map(|bit| if octant >> bit & 1 == 0 { 1.0 } else { -1.0 });
                let [a, b, c] = [x * Vec3::X, y * Vec3::Y, z * Vec3::Z];
                if x * y * z > 0.0 { [a, b, c] } else { [a, c, b] }
            })
            .collect();
        let (nodes, order) = crate::bvh::build(&triangles);
        let triangles: Vec<Triangle> =
            order.iter().map(|&index| Triangle::new(triangles[index as usize], index, 0.0)).collect();
        let geometry = crate::trace::Geometry { nodes, triangles, ..Default::default() };
        let (_, parts) = hierarchy::nodes(&geometry);
        for [front, back] in parts_behind(&parts, &geometry.triangles) {
            assert_eq!(left_out(&parts, front).len(), 8);
            assert!(back == NOTHING || left_out(&parts, back).len() < 8);
        }
    }
}
