//! The same hierarchy for one ray at a time: nodes with sixteen children and blocks of sixteen triangles, each tested
//! at once.
//!
//! Packets walk the binary nodes as long as several of their rays go the same way; where a finely divided surface
//! scatters them, each ray goes on alone from here. Every wide node and every block stands for one binary node.

use glam::Vec3;
use simd::{Floats, Lanes, Mask, WIDTH, prefetch};

use crate::bvh::Node;
use crate::packet::{inside, load};
use crate::trace::Triangle;

/// No parent.
const NONE: u32 = u32::MAX;
/// Marks a block among references to nodes.
const BLOCK: u32 = 1 << 31;
/// Levels of wide nodes that a walk has room for.
pub const MAX_LEVELS: usize = 12;

/// Sixteen boxes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct WideNode {
    /// Lower corners by axis, then upper corners; empty places have boxes that nothing enters.
    planes: [Floats; 6],
    /// Wide nodes or, with [`BLOCK`], blocks.
    children: [u32; WIDTH],
}

/// Sixteen triangles; empty places have no area.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Block {
    corner: [Floats; 3],
    edge1: [Floats; 3],
    edge2: [Floats; 3],
}

/// Whether a reference is to a block.
#[inline(always)]
pub fn is_block(reference: u32) -> bool {
    reference & BLOCK != 0
}

#[inline(always)]
fn block_index(reference: u32) -> usize {
    (reference & !BLOCK) as usize
}

/// The wide hierarchy.
#[derive(Clone, Debug, Default)]
pub struct Wide {
    nodes: Vec<WideNode>,
    blocks: Vec<Block>,
    /// First triangle of each block.
    firsts: Vec<u32>,
    /// For every binary node what stands for it; empty where packets walk alone.
    entries: Vec<Entry>,
}

/// What stands for a binary node: some of the places of a wide node or a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The wide node or block.
    pub reference: u32,
    /// The places.
    pub places: Mask,
}

impl Wide {
    /// Collapses a binary hierarchy over `triangles`.
    pub fn new(binary: &[Node], triangles: &[Triangle]) -> Self {
        let mut wide = Self { entries: vec![Entry::default(); binary.len()], ..Self::default() };
        if binary.is_empty() {
            return wide;
        }
        // Children follow their parents, so one pass from the end finds the triangles below every node.
        let mut below = vec![(0_u32, 0_u32); binary.len()];
        for (index, node) in binary.iter().enumerate().rev() {
            below[index] = if node.count() > 0 {
                (node.first, node.count())
            } else if let Some(&[(first, left), (_, right)]) =
                below.get(node.first as usize..).and_then(|rest| rest.first_chunk::<2>())
            {
                (first, left + right)
            } else {
                (0, 0)
            };
        }
        let mut work = vec![(0_u32, NONE, 0_usize, 0_usize)];
        let mut deepest = 0;
        while let Some((node, parent, place, depth)) = work.pop() {
            deepest = deepest.max(depth);
            let (first, count) = below[node as usize];
            let reference = if count as usize <= WIDTH {
                let reference = BLOCK | wide.blocks.len() as u32;
                wide.blocks.push(Block::new(&triangles[first as usize..][..count as usize]));
                wide.firsts.push(first);
                wide.enter(binary, node, reference, &|node| {
                    let (start, count) = below[node as usize];
                    Some(places((start - first) as usize, count as usize))
                });
                reference
            } else {
                let children = gather(binary, &below, node);
                let reference = wide.nodes.len() as u32;
                wide.nodes.push(WideNode::new(binary, &children));
                let end = |node: u32| below[node as usize].0 + below[node as usize].1;
                wide.enter(binary, node, reference, &|node| {
                    // Children are in the order of their triangles.
                    let start = children
                        .iter()
                        .position(|&child| below[child as usize].0 == below[node as usize].0)?;
                    let count = children[start..].iter().position(|&child| end(child) == end(node))? + 1;
                    Some(places(start, count))
                });
                for (place, &child) in children.iter().enumerate().rev() {
                    work.push((child, reference, place, depth + 1));
                }
                reference
            };
            if let Some(parent) = wide.nodes.get_mut(parent as usize) {
                parent.children[place] = reference;
            }
        }
        if deepest >= MAX_LEVELS {
            // A tree out of shape.
            wide.entries.clear();
        }
        wide
    }

    /// Notes for `root` and the nodes below it, as far as `places` knows them, what stands for them.
    fn enter(&mut self, binary: &[Node], root: u32, reference: u32, places: &dyn Fn(u32) -> Option<Mask>) {
        let mut work = vec![root];
        while let Some(node) = work.pop() {
            if let Some(places) = places(node) {
                self.entries[node as usize] = Entry { reference, places };
                if binary[node as usize].count() == 0 {
                    let first = binary[node as usize].first;
                    work.extend([first, first + 1]);
                }
            }
        }
    }

    /// Whether rays can go on alone.
    #[inline(always)]
    pub fn is_usable(&self) -> bool {
        !self.entries.is_empty()
    }

    /// What stands for a binary node.
    #[inline(always)]
    pub fn entry(&self, node: u32) -> Entry {
        self.entries[node as usize]
    }

    /// Asks for the memory that [`Self::entry`] reads.
    #[inline(always)]
    pub fn prefetch_entry(&self, node: u32) {
        if let Some(entry) = self.entries.get(node as usize) {
            prefetch(entry);
        }
    }

    /// Children of a wide node whose boxes the ray enters before `limit`, and where.
    #[inline(always)]
    pub fn enters<L: Lanes>(&self, reference: u32, ray: &SingleRay<L>, limit: f32) -> (Mask, L) {
        ray.enters(&self.nodes[reference as usize], limit)
    }

    /// A child of a wide node.
    #[inline(always)]
    pub fn child(&self, reference: u32, place: usize) -> u32 {
        self.nodes[reference as usize].children[place & (WIDTH - 1)]
    }

    /// Places in a block of the triangles hit before `limit`, with distances and barycentric weights, and the first
    /// triangle of the block.
    #[inline(always)]
    pub fn hits<L: Lanes>(&self, reference: u32, ray: &SingleRay<L>, limit: f32) -> (Mask, [L; 3], u32) {
        let index = block_index(reference);
        let (mask, hit) = ray.hits(&self.blocks[index], limit);
        (mask, hit, self.firsts[index])
    }
}

/// The places `start .. start + count`.
fn places(start: usize, count: usize) -> Mask {
    (((1_u32 << count) - 1) << start) as Mask
}

/// Up to sixteen nodes that together make up `root`, in the order of their triangles, by opening the fullest one again
/// and again.
fn gather(binary: &[Node], below: &[(u32, u32)], root: u32) -> Vec<u32> {
    let mut children = Vec::with_capacity(WIDTH);
    children.push(root);
    while children.len() < WIDTH {
        let mut fullest = (WIDTH as u32, 0);
        for (place, &child) in children.iter().enumerate() {
            let count = below[child as usize].1;
            if count > fullest.0 && binary[child as usize].count() == 0 {
                fullest = (count, place);
            }
        }
        let (count, place) = fullest;
        if count == WIDTH as u32 {
            break;
        }
        let first = binary[children[place] as usize].first;
        children[place] = first;
        children.insert(place + 1, first + 1);
    }
    children
}

impl WideNode {
    fn new(binary: &[Node], children: &[u32]) -> Self {
        let mut node = Self { planes: [Floats::splat(f32::INFINITY); 6], children: [0; WIDTH] };
        for axis in 0..3 {
            node.planes[3 + axis] = Floats::splat(f32::NEG_INFINITY);
            for (place, &child) in children.iter().enumerate() {
                node.planes[axis].0[place] = binary[child as usize].min[axis];
                node.planes[3 + axis].0[place] = binary[child as usize].max[axis];
            }
        }
        node
    }
}

impl Block {
    fn new(triangles: &[Triangle]) -> Self {
        let zero = [Floats::splat(0.0); 3];
        let mut block = Self { corner: zero, edge1: zero, edge2: zero };
        for (place, triangle) in triangles.iter().enumerate() {
            for axis in 0..3 {
                block.corner[axis].0[place] = triangle.corner[axis];
                block.edge1[axis].0[place] = triangle.edge1[axis];
                block.edge2[axis].0[place] = triangle.edge2[axis];
            }
        }
        block
    }
}

/// One ray, in every lane.
pub struct SingleRay<L> {
    origin: [L; 3],
    direction: [L; 3],
    inverse: [L; 3],
    /// Which of a wide node's planes it enters and leaves by.
    near: [usize; 3],
    far: [usize; 3],
}

#[inline(always)]
pub(crate) fn splat<L: Lanes>(vector: Vec3) -> [L; 3] {
    [L::splat(vector.x), L::splat(vector.y), L::splat(vector.z)]
}

#[inline(always)]
pub(crate) fn dot<L: Lanes>(a: &[L; 3], b: &[L; 3]) -> L {
    a[0].mul(b[0]).add(a[1].mul(b[1])).add(a[2].mul(b[2]))
}

#[inline(always)]
pub(crate) fn cross<L: Lanes>(a: &[L; 3], b: &[L; 3]) -> [L; 3] {
    [
        a[1].mul(b[2]).sub(a[2].mul(b[1])),
        a[2].mul(b[0]).sub(a[0].mul(b[2])),
        a[0].mul(b[1]).sub(a[1].mul(b[0])),
    ]
}

impl<L: Lanes> SingleRay<L> {
    #[inline(always)]
    pub fn new(origin: Vec3, direction: Vec3, inverse: Vec3) -> Self {
        let back = [
            3 * usize::from(inverse.x < 0.0),
            3 * usize::from(inverse.y < 0.0),
            3 * usize::from(inverse.z < 0.0),
        ];
        Self {
            origin: splat(origin),
            direction: splat(direction),
            inverse: splat(inverse),
            near: [back[0], 1 + back[1], 2 + back[2]],
            far: [3 - back[0], 4 - back[1], 5 - back[2]],
        }
    }

    /// Children whose boxes the ray enters before `limit`, and where.
    #[inline(always)]
    fn enters(&self, node: &WideNode, limit: f32) -> (Mask, L) {
        let (mut near, mut far) = (L::splat(0.0), L::splat(limit));
        for axis in 0..3 {
            let enter = L::load(&node.planes[self.near[axis]]).sub(self.origin[axis]).mul(self.inverse[axis]);
            let leave = L::load(&node.planes[self.far[axis]]).sub(self.origin[axis]).mul(self.inverse[axis]);
            near = near.max(enter);
            far = far.min(leave);
        }
        (near.le(far), near)
    }

    /// Places of the triangles hit before `limit`, with distances and barycentric weights (Möller, Trumbore).
    #[inline(always)]
    fn hits(&self, block: &Block, limit: f32) -> (Mask, [L; 3]) {
        let (edge1, edge2): ([L; 3], [L; 3]) = (load(&block.edge1), load(&block.edge2));
        let p = cross(&self.direction, &edge2);
        let inverse = L::splat(1.0).div(dot(&edge1, &p));
        let corner: [L; 3] = load(&block.corner);
        let s = [self.origin[0].sub(corner[0]), self.origin[1].sub(corner[1]), self.origin[2].sub(corner[2])];
        let u = dot(&s, &p).mul(inverse);
        let q = cross(&s, &edge1);
        let v = dot(&self.direction, &q).mul(inverse);
        let t = dot(&edge2, &q).mul(inverse);
        (inside(t, u, v, L::splat(limit)), [t, u, v])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bvh;

    /// The triangles that a reference, or some places of it, stands for.
    fn triangles_of(wide: &Wide, entry: Entry) -> Vec<u32> {
        let mut found = Vec::new();
        let mut work = vec![entry];
        while let Some(Entry { reference, places }) = work.pop() {
            for place in (0..WIDTH).filter(|place| places >> place & 1 != 0) {
                if is_block(reference) {
                    let index = block_index(reference);
                    if wide.blocks[index].edge1.iter().any(|axis| axis.0[place] != 0.0) {
                        found.push(wide.firsts[index] + place as u32);
                    }
                } else if wide.nodes[reference as usize].planes[0].0[place].is_finite() {
                    work.push(Entry { reference: wide.child(reference, place), places: Mask::MAX });
                }
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn every_binary_node_has_exactly_its_triangles() {
        let mut random = random::Random::new(2, random::Stream::new("wide-test"), 0);
        for count in [1, 5, 17, 40, 700] {
            let corners: Vec<[Vec3; 3]> = (0..count)
                .map(|_| [0; 3].map(|_| Vec3::from([0; 3].map(|_| random.range(-1.0, 1.0) as f32))))
                .collect();
            let (nodes, order) = bvh::build(&corners);
            let triangles: Vec<Triangle> =
                order.iter().map(|&index| Triangle::new(corners[index as usize], index, 0.0)).collect();
            let wide = Wide::new(&nodes, &triangles);
            assert!(wide.is_usable());
            let mut work = vec![0_u32];
            while let Some(index) = work.pop() {
                let node = &nodes[index as usize];
                let mut leaves = vec![index];
                let mut expected = Vec::new();
                while let Some(leaf) = leaves.pop() {
                    let leaf = &nodes[leaf as usize];
                    expected.extend(leaf.first..leaf.first + leaf.count());
                    if leaf.count() == 0 {
                        leaves.extend([leaf.first, leaf.first + 1]);
                    }
                }
                expected.sort_unstable();
                assert_eq!(triangles_of(&wide, wide.entry(index)), expected, "{count} {index}");
                if node.count() == 0 {
                    work.extend([node.first, node.first + 1]);
                }
            }
        }
    }
}
