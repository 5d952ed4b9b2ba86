//! An object as the device wants it: every array the kernels read, in one piece of memory, so that it travels in one
//! copy.

use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Zeroable;
use glam::{DVec3, Mat3, Vec3};

use super::layout::ViewData;
use super::packed::Packed;
use super::{behind, hierarchy};
use crate::PreparedMesh;
use crate::masks::Masks;
use crate::outline::{self, Hierarchy, Part};
use crate::shared::shared;
use crate::trace::{Geometry, Triangle};

/// Boxes that bound the object's shadow.
const CUT_BOXES: usize = 128;

/// An object ready to be copied to a device; made once, shared by all its views and by all renderers.
#[derive(Debug)]
pub struct Object {
    /// Tells objects apart in the renderers' caches.
    pub(super) id: u64,
    /// All arrays, each at a multiple of 16 bytes.
    pub(super) bytes: Vec<u8>,
    /// Where nodes, triangles, panes, shading, materials, texels, cut boxes, parents, quads of masks and nodes for light start; the
    /// last where the first do, unless there are masks.
    starts: [usize; 10],
    cut_count: usize,
    has_transparency: bool,
    has_emission: bool,
    pub(super) centre: Vec3,
    pub(super) radius: f32,
    is_empty: bool,
}

shared! {
    /// A triangle as three planes: the distance from the triangle, and its barycentric coordinates.
    pub(super) struct Planes as "Triangle" {
        plane: [f32; 4] as "float4",
        u: [f32; 4] as "float4",
        v: [f32; 4] as "float4",
    }

    /// What shading needs of a triangle.
    pub(super) struct Shading as "Shading" {
        corner: [f32; 3],
        edge1: [f32; 3],
        edge2: [f32; 3],
        face: [f32; 3],
        normals: [[f32; 3]; 3],
        uvs: [[f32; 2]; 3],
        material: u32,
        /// What rays from the front and from the back leave out: see behind.rs.
        behind: [u32; 2],
        /// Its leaf in the CPU's hierarchy.
        leaf: u32,
    }

    /// What rays that look for light find at a triangle of an object that lets some of it through: see masks.rs.
    pub(super) struct Pane as "Pane" {
        /// Where the first corner of a triangle with holes lies on its map, and what the weights of the others add. The last
        /// is what passes the triangle, or, with the sign, its first quad (bits).
        across: [f32; 4] as "float4",
        /// The same from above, and its alpha.
        down: [f32; 4] as "float4",
        /// Width and height of the copy that is looked up, and the same as floats (bits).
        copy: [u32; 4] as "uint4",
    }
}

impl Pane {
    fn new(triangle: &Triangle, masks: &Masks) -> Self {
        let Some(face) = masks.face(triangle.mask) else {
            let passes = triangle.transparency.max(0.0).abs();
            return Self { across: [0.0, 0.0, 0.0, passes], ..Self::zeroed() };
        };
        let ([ax, bx, cx], [ay, by, cy]) = (face.across, face.down);
        let (first, width, height) = face.copy;
        Self {
            across: [ax, bx, cx, f32::from_bits(1 << 31 | first)],
            down: [ay, by, cy, face.alpha * (1.0 / 255.0)],
            copy: [width, height, (width as f32).to_bits(), (height as f32).to_bits()],
        }
    }
}

impl Planes {
    /// All zero where the triangle has no area: never hit.
    fn new(triangle: &Triangle) -> Self {
        let vector = |v: [f32; 3]| Vec3::from(v).as_dvec3();
        let (corner, edge1, edge2) =
            (vector(triangle.corner), vector(triangle.edge1), vector(triangle.edge2));
        let normal = edge1.cross(edge2).normalize_or_zero();
        let (across2, across1) = (edge2.cross(normal), normal.cross(edge1));
        let plane = |direction: DVec3| {
            let [x, y, z] = direction.as_vec3().to_array();
            [x, y, z, -direction.dot(corner) as f32]
        };
        let planes = Self {
            plane: plane(normal),
            u: plane(across2 / edge1.dot(across2)),
            v: plane(across1 / edge2.dot(across1)),
        };
        let is_finite = [planes.plane, planes.u, planes.v].iter().flatten().all(|value| value.is_finite());
        if is_finite { planes } else { Self::zeroed() }
    }
}

/// Of every triangle its leaf in the CPU's hierarchy, and of every pair of nodes the parent with the axis that orders them:
/// the order in which the CPU comes to triangles.
fn family(geometry: &Geometry) -> (Vec<u32>, Vec<u32>) {
    let mut leaves = vec![0; geometry.triangles.len()];
    let mut parents = vec![0; geometry.nodes.len() / 2];
    // The second of the first pair is not in use.
    for (index, node) in geometry.nodes.iter().enumerate().filter(|&(index, _)| index != 1) {
        if node.count() == 0 {
            parents[node.first as usize / 2] = (index as u32) << 2 | node.axis().min(2);
        } else {
            leaves[node.first as usize..][..node.count() as usize].fill(index as u32);
        }
    }
    (leaves, parents)
}

impl Object {
    /// The device's arrays of a mesh that no CPU renders.
    pub fn of(mesh: &scene::Mesh) -> Self {
        Self::new(&PreparedMesh::for_device(mesh))
    }

    /// The device's arrays of a prepared mesh.
    pub fn new(mesh: &PreparedMesh) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let geometry = &mesh.geometry;
        let (nodes, parts) = hierarchy::nodes(geometry);
        let lit_nodes = (!geometry.masks.is_empty()).then(|| hierarchy::lit_nodes(geometry, &parts));
        let behind = behind::parts_behind(&parts, &geometry.triangles);
        let (leaves, parents) = family(geometry);
        let planes: Vec<Planes> = geometry.triangles.iter().map(Planes::new).collect();
        let panes: Vec<Pane> = if geometry.has_transparency {
            geometry.triangles.iter().map(|triangle| Pane::new(triangle, &geometry.masks)).collect()
        } else {
            Vec::new()
        };
        let shading: Vec<Shading> = geometry
            .triangles
            .iter()
            .zip(&mesh.corners)
            .zip(behind)
            .zip(leaves)
            .map(|(((triangle, corners), behind), leaf)| Shading {
                corner: triangle.corner,
                edge1: triangle.edge1,
                edge2: triangle.edge2,
                face: Vec3::from(triangle.normal).normalize_or(Vec3::Z).to_array(),
                normals: corners.normals,
                uvs: corners.uvs,
                material: corners.material,
                behind,
                leaf,
            })
            .collect();
        let cut: Vec<[[f32; 3]; 2]> = geometry
            .cut(CUT_BOXES)
            .into_iter()
            .map(|node| {
                let node = &geometry.nodes[node as usize];
                [node.min, node.max]
            })
            .collect();
        let mut packed = Packed::default();
        let first_node = packed.add(&nodes);
        let starts = [
            first_node,
            packed.add(&planes),
            packed.add(&panes),
            packed.add(&shading),
            packed.add(&mesh.materials),
            packed.add(mesh.texels.as_slice()),
            packed.add(&cut),
            packed.add(&parents),
            packed.add(geometry.masks.quads()),
            lit_nodes.map_or(first_node, |nodes| packed.add(&nodes)),
        ];
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            bytes: packed.bytes,
            starts,
            cut_count: cut.len(),
            has_transparency: geometry.has_transparency,
            has_emission: mesh.has_emission,
            centre: mesh.centre,
            radius: mesh.radius,
            is_empty: mesh.is_empty(),
        }
    }

    /// Its sphere where it is deformed: see [`outline::sphere`].
    pub(crate) fn sphere(&self, shape: Mat3, stretch: f32) -> (Vec3, f32) {
        outline::sphere(self, shape, stretch)
    }

    /// Device memory it takes.
    pub fn device_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is nothing to see.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Fills in where the arrays are, for an object that lies at `address`.
    pub(super) fn place(&self, address: u64, view: &mut ViewData) {
        let [nodes, triangles, panes, shading, materials, texels, cut, parents, quads, lit_nodes] =
            self.starts.map(|start| address + start as u64);
        *view = ViewData {
            nodes,
            lit_nodes,
            triangles,
            panes,
            shading,
            materials,
            texels,
            cut,
            parents,
            quads,
            cut_count: self.cut_count as i32,
            has_transparency: i32::from(self.has_transparency),
            has_emission: i32::from(self.has_emission),
            is_empty: i32::from(self.is_empty),
            ..*view
        };
    }
}

impl Hierarchy for Object {
    fn parts(&self, node: usize, found: impl FnMut(Part)) {
        let start = self.starts[0] + node * size_of::<hierarchy::Node>();
        let bytes = &self.bytes[start..][..size_of::<hierarchy::Node>()];
        bytemuck::pod_read_unaligned::<hierarchy::Node>(bytes).parts().for_each(found);
    }

    fn corners(&self, slot: usize) -> [Vec3; 3] {
        // Corner and edges come first.
        let start = self.starts[3] + slot * size_of::<Shading>();
        let bytes = &self.bytes[start..][..size_of::<[[f32; 3]; 3]>()];
        let [corner, edge1, edge2] = bytemuck::pod_read_unaligned::<[[f32; 3]; 3]>(bytes).map(Vec3::from);
        [corner, corner + edge1, corner + edge2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_triangles_lead_up_to_two_siblings_that_have_one_of_them_each() {
        let mesh = PreparedMesh::new(&procedural::build(1, 13, 0));
        let nodes = &mesh.geometry.nodes;
        let (leaves, parents) = family(&mesh.geometry);
        // Triangles from, to below a node.
        let below = |node: u32| {
            let end = |right: bool| {
                let mut node = &nodes[node as usize];
                while node.count() == 0 {
                    node = &nodes[node.first as usize + usize::from(right)];
                }
                node.first + if right { node.count() } else { 0 }
            };
            end(false)..end(true)
        };
        let count = leaves.len() as u32;
        for i in 0..2000 {
            let (a, b) = (i * 7919 % count, i * 104_729 % count);
            let (mut x, mut y) = (leaves[a as usize], leaves[b as usize]);
            assert!(below(x).contains(&a) && nodes[x as usize].count() > 0);
            if x == y {
                continue;
            }
            // As in trace.cu.
            while x >> 1 != y >> 1 {
                let lower = if x > y { &mut x } else { &mut y };
                *lower = parents[*lower as usize >> 1] >> 2;
            }
            assert!(x == y ^ 1 && below(x).contains(&a) && below(y).contains(&b));
            let parent = &nodes[parents[x as usize >> 1] as usize >> 2];
            assert_eq!((parent.first, parent.axis()), (x.min(y), parents[x as usize >> 1] & 3));
        }
    }
}
