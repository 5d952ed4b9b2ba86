//! A bounding volume hierarchy over triangles: binary, built by binned surface-area splits, stored as one flat array
//! of 32-byte nodes whose children lie side by side. No pointers, so the same array can be used by any device.

use bytemuck::{Pod, Zeroable};
use glam::{Vec3, Vec3A};

/// A node. `count` 0 is an inner node whose children are `first` and `first + 1`; otherwise a leaf with the
/// triangles `first .. first + count`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Node {
    /// Lower corner.
    pub min: [f32; 3],
    /// First triangle of a leaf, first child of an inner node.
    pub first: u32,
    /// Upper corner.
    pub max: [f32; 3],
    /// Number of triangles in the low 16 bits; for an inner node 0 there and the split axis in bits 16 and 17.
    pub count_axis: u32,
}

impl Node {
    /// Number of triangles; 0 for an inner node.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.count_axis & 0xffff
    }

    /// The corners of its box.
    pub fn corners(&self) -> [Vec3; 8] {
        std::array::from_fn(|corner| {
            let pick = |axis: usize| if corner >> axis & 1 == 0 { self.min[axis] } else { self.max[axis] };
            Vec3::new(pick(0), pick(1), pick(2))
        })
    }

    /// Axis along which an inner node's children are ordered.
    #[inline(always)]
    pub fn axis(&self) -> u32 {
        self.count_axis >> 16
    }
}

/// Two siblings, in one cache line.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Pair([Node; 2]);

/// All nodes: a slice whose pairs of siblings each lie in one cache line.
#[derive(Clone, Debug, Default)]
pub struct Nodes(Vec<Pair>);

impl std::ops::Deref for Nodes {
    type Target = [Node];

    #[inline(always)]
    fn deref(&self) -> &[Node] {
        bytemuck::cast_slice(&self.0)
    }
}

impl Nodes {
    /// Adds a pair; returns the first of the two.
    fn push_pair(&mut self) -> usize {
        self.0.push(Pair::zeroed());
        2 * (self.0.len() - 1)
    }

    /// The largest coordinate of a box.
    pub fn reach(&self) -> f32 {
        self.first().map_or(0.0, |root| reach(root.min.into(), root.max.into()))
    }

    fn set(&mut self, index: usize, node: Node) {
        self.0[index / 2].0[index % 2] = node;
    }
}

/// Deepest level that traversal has stack for; beyond it splits are in the middle of the list, so that no input
/// gets deeper.
pub const MAX_DEPTH: usize = 60;
/// Depth from which on lists are halved.
const HALVE_FROM: usize = 36;
const MAX_LEAF: usize = 4;
/// With more triangles than this, lists of up to [`LARGE_LEAF`] are not split: rays come there one by one.
const MANY: usize = 150_000;
const LARGE_LEAF: usize = 8;
const BINS: usize = 16;
/// Lists up to this long are split by fewer bins.
const FEW: usize = 32;
const FEW_BINS: usize = 8;
/// Width of the margin around boxes over the largest coordinate: they are a little wider than their triangles, so that rounding
/// in the ray tests never loses a hit.
pub const PADDING: f32 = 4e-6;
/// Cost of visiting a node over that of a triangle.
const NODE_COST: f32 = 1.0;

#[derive(Clone, Copy)]
struct Bounds {
    min: Vec3A,
    max: Vec3A,
}

impl Bounds {
    const EMPTY: Self = Self { min: Vec3A::splat(f32::INFINITY), max: Vec3A::splat(f32::NEG_INFINITY) };

    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn half_area(self) -> f32 {
        let d = (self.max - self.min).max(Vec3A::ZERO);
        d.x * d.y + d.y * d.z + d.z * d.x
    }
}

#[derive(Clone, Copy)]
struct Item {
    bounds: Bounds,
    index: u32,
}

impl Item {
    #[inline(always)]
    fn centre(&self) -> Vec3A {
        0.5 * (self.bounds.min + self.bounds.max)
    }
}

/// Builds the hierarchy over triangles given by their three corners. Returns the nodes (the root first; empty where
/// there are no triangles) and the order in which leaves refer to the triangles.
pub fn build(triangles: &[[Vec3; 3]]) -> (Nodes, Vec<u32>) {
    let mut items: Vec<Item> = triangles
        .iter()
        .enumerate()
        .map(|(index, corners)| {
            let [a, b, c] = corners.map(Vec3A::from);
            let bounds = Bounds { min: a.min(b).min(c), max: a.max(b).max(c) };
            Item { bounds, index: index as u32 }
        })
        .collect();
    let mut nodes = Nodes(Vec::with_capacity(triangles.len() / 2));
    let whole = items.iter().fold(Bounds::EMPTY, |sum, item| sum.union(item.bounds));
    let padding = Vec3A::splat(PADDING * reach(whole.min, whole.max));
    if !items.is_empty() {
        let leaf = if items.len() > MANY { LARGE_LEAF } else { 1 };
        // The root is alone in its pair, so that the sibling of any other node `i` is `i ^ 1`.
        nodes.push_pair();
        let mut work = vec![(0_usize, 0_usize, items.len(), 0_usize)];
        while let Some((node, start, end, depth)) = work.pop() {
            let bounds = items[start..end].iter().fold(Bounds::EMPTY, |sum, item| sum.union(item.bounds));
            let split = if end - start <= leaf { None } else { split(&mut items[start..end], bounds, depth) };
            let (first, count_axis) = match split {
                None => (start as u32, (end - start) as u32),
                Some((middle, axis)) => {
                    let child = nodes.push_pair();
                    work.push((child + 1, start + middle, end, depth + 1));
                    work.push((child, start, start + middle, depth + 1));
                    (child as u32, (axis as u32) << 16)
                }
            };
            let (min, max) = ((bounds.min - padding).to_array(), (bounds.max + padding).to_array());
            nodes.set(node, Node { min, first, max, count_axis });
        }
    }
    (nodes, items.iter().map(|item| item.index).collect())
}

/// The largest coordinate of a box; 0 where there is none.
fn reach(min: Vec3A, max: Vec3A) -> f32 {
    let reach = min.abs().max(max.abs()).max_element();
    if reach.is_finite() { reach } else { 0.0 }
}

/// Orders `items` into two parts; returns the size of the first part and the axis, or `None` for a leaf.
fn split(items: &mut [Item], bounds: Bounds, depth: usize) -> Option<(usize, usize)> {
    let count = items.len();
    if count <= 1 {
        return None;
    }
    let centres = items.iter().fold(Bounds::EMPTY, |sum, item| Bounds {
        min: sum.min.min(item.centre()),
        max: sum.max.max(item.centre()),
    });
    let extent = centres.max - centres.min;
    if depth < HALVE_FROM && extent.max_element() > 0.0 {
        // Most lists are short, and few bins do for them.
        let used = if count > FEW { BINS } else { FEW_BINS };
        let scale = Vec3A::splat(used as f32) / extent.max(Vec3A::splat(f32::MIN_POSITIVE));
        let last = used as i32 - 1;
        let place = |item: &Item| (item.centre() - centres.min) * scale;
        let mut bins = [[(0_u32, Bounds::EMPTY); BINS]; 3];
        for item in items.iter() {
            let place = place(item).to_array();
            for (axis, bins) in bins.iter_mut().enumerate() {
                let slot = &mut bins[(place[axis] as i32).clamp(0, last) as usize];
                slot.0 += 1;
                slot.1 = slot.1.union(item.bounds);
            }
        }
        let mut best = (f32::INFINITY, 0, 0);
        for (axis, bins) in bins.iter().enumerate().filter(|&(axis, _)| extent[axis] > 0.0) {
            let mut right_cost = [0.0_f32; BINS];
            let (mut right, mut right_count) = (Bounds::EMPTY, 0);
            for i in (1..used).rev() {
                right = right.union(bins[i].1);
                right_count += bins[i].0;
                right_cost[i] =
                    if right_count > 0 { right.half_area() * right_count as f32 } else { f32::INFINITY };
            }
            let (mut left, mut left_count) = (Bounds::EMPTY, 0);
            for i in 1..used {
                left = left.union(bins[i - 1].1);
                left_count += bins[i - 1].0;
                let cost = left.half_area() * left_count as f32 + right_cost[i];
                if left_count > 0 && cost < best.0 {
                    best = (cost, axis, i);
                }
            }
        }
        let (cost, axis, boundary) = best;
        let area = bounds.half_area();
        if cost.is_finite() {
            if count <= MAX_LEAF && cost + NODE_COST * area >= count as f32 * area {
                return None;
            }
            let middle =
                partition(items, |item| ((place(item)[axis] as i32).clamp(0, last) as usize) < boundary);
            if middle > 0 && middle < count {
                return Some((middle, axis));
            }
        }
    }
    if count <= MAX_LEAF {
        return None;
    }
    let axis = extent.max_position();
    items.select_nth_unstable_by(count / 2, |a, b| {
        a.centre()[axis].total_cmp(&b.centre()[axis]).then(a.index.cmp(&b.index))
    });
    Some((count / 2, axis))
}

/// Moves the items that satisfy `first` to the front; returns how many there are.
fn partition(items: &mut [Item], first: impl Fn(&Item) -> bool) -> usize {
    let mut front = 0;
    let mut back = items.len();
    while front < back {
        if first(&items[front]) {
            front += 1;
        } else {
            back -= 1;
            items.swap(front, back);
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(triangles: &[[Vec3; 3]]) -> usize {
        let (nodes, order) = build(triangles);
        let mut seen = vec![0; triangles.len()];
        let mut deepest = 0;
        let mut stack = if nodes.is_empty() { vec![] } else { vec![(0_usize, 0_usize)] };
        while let Some((index, depth)) = stack.pop() {
            deepest = deepest.max(depth);
            let node = nodes[index];
            let (min, max) = (Vec3::from(node.min), Vec3::from(node.max));
            if node.count() == 0 {
                for child in [node.first as usize, node.first as usize + 1] {
                    assert!(
                        min.cmple(Vec3::from(nodes[child].min)).all()
                            && max.cmpge(Vec3::from(nodes[child].max)).all()
                    );
                    stack.push((child, depth + 1));
                }
            }
            for slot in node.first..node.first + node.count() {
                let triangle = order[slot as usize] as usize;
                seen[triangle] += 1;
                assert!(
                    triangles[triangle]
                        .iter()
                        .all(|corner| corner.cmpge(min).all() && corner.cmple(max).all())
                );
            }
        }
        assert!(seen.iter().all(|&times| times == 1));
        deepest
    }

    #[test]
    fn every_triangle_lies_in_exactly_one_leaf_inside_its_boxes() {
        let mut random = random::Random::new(1, random::Stream::new("bvh-test"), 0);
        let mut point = |scale: f64| {
            Vec3::new(
                random.range(-scale, scale) as f32,
                random.range(-scale, scale) as f32,
                random.uniform() as f32,
            )
        };
        let triangles: Vec<[Vec3; 3]> = (0..2000)
            .map(|_| {
                let centre = point(1.0);
                [centre, centre + point(0.05), centre + point(0.05)]
            })
            .collect();
        assert!(check(&triangles) < 30);
    }

    #[test]
    fn awkward_input_stays_shallow() {
        assert_eq!(check(&[]), 0);
        assert_eq!(check(&[[Vec3::ZERO; 3]]), 0);
        assert!(check(&vec![[Vec3::ZERO, Vec3::X, Vec3::Y]; 5000]) <= 14);
        // Sizes that shrink geometrically make the deepest trees.
        let shrinking: Vec<[Vec3; 3]> =
            (0..3000).map(|i| [Vec3::X, Vec3::Y, Vec3::Z].map(|corner| corner * 0.97_f32.powi(i))).collect();
        assert!(check(&shrinking) < MAX_DEPTH);
    }
}
