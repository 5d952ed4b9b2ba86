//! An object made ready for rendering: its hierarchy, and what shading needs, in flat arrays.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use glam::{Vec2, Vec3};
use scene::Vertex;
use simd::prefetch;

use crate::bsdf::Surface;
use crate::bvh;
use crate::colour::srgb_decode;
use crate::shared::shared;
use crate::simplify::{Face, simplify};
use crate::trace::{Geometry, Hit, Triangle};
use crate::wide::Wide;

/// Shading data of a triangle, in the order of the leaves: 64 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Corners {
    /// Unit normals of the corners.
    pub normals: [[f32; 3]; 3],
    /// Texture coordinates of the corners.
    pub uvs: [[f32; 2]; 3],
    /// Index of the material.
    pub material: u32,
}

shared! {
    /// A material; `texture_width` 0 means that `base_colour` counts.
    pub struct MaterialData as "Material" {
        /// Linear albedo.
        pub base_colour: [f32; 3],
        /// Burley and GGX roughness.
        pub roughness: f32,
        /// Principled specular.
        pub specular: f32,
        /// Opacity.
        pub alpha: f32,
        /// First texel in [`PreparedMesh::texels`].
        pub texture_start: u32,
        /// Width of the texture, or 0.
        pub texture_width: u32,
        /// Height of the texture.
        pub texture_height: u32,
    }
}

/// A mesh with its bounding volume hierarchy, built once an object and shared by all its views.
#[derive(Clone, Debug, Default)]
pub struct PreparedMesh {
    pub(crate) geometry: Geometry,
    pub(crate) corners: Vec<Corners>,
    pub(crate) materials: Vec<MaterialData>,
    /// All textures, row 0 on top, sRGB.
    pub(crate) texels: Vec<[u8; 4]>,
    /// What light sees of an object with very many triangles.
    pub(crate) simple: Option<(Geometry, Vec<Corners>)>,
    /// Centre of the bounding sphere, object frame.
    pub(crate) centre: Vec3,
    /// Radius of the bounding sphere.
    pub(crate) radius: f32,
}

/// Triangles that rays can meet, and what shading needs of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    pub geometry: &'a Geometry,
    pub corners: &'a [Corners],
}

/// A point on the object's surface as the object frame sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectPoint {
    pub position: Vec3,
    /// Unit normal of the triangle, by winding.
    pub face_normal: Vec3,
    /// Unit interpolated normal, on the side of `face_normal`.
    pub normal: Vec3,
    pub uv: Vec2,
    pub material: u32,
}

impl PreparedMesh {
    /// Builds the hierarchy. Triangles with missing vertices or coordinates that are not finite are left out; a
    /// missing material becomes the plain grey.
    pub fn new(mesh: &scene::Mesh) -> Self {
        Self::with(mesh, true)
    }

    /// Only what a device takes: nothing that is there to make the CPU's rays faster.
    pub(crate) fn for_device(mesh: &scene::Mesh) -> Self {
        Self::with(mesh, false)
    }

    fn with(mesh: &scene::Mesh, is_for_cpu: bool) -> Self {
        let (materials, texels) = flatten_materials(&mesh.materials);
        let grey = materials.len() as u32 - 1;
        let mut faces = Vec::with_capacity(mesh.triangles.len());
        for (index, &vertices) in mesh.triangles.iter().enumerate() {
            let finite = |&vertex: &u32| {
                mesh.vertices.get(vertex as usize).is_some_and(|v| Vec3::from(v.position).is_finite())
            };
            if vertices.iter().all(finite) {
                let material = match mesh.triangle_materials.get(index) {
                    Some(&material) if material < grey => material,
                    _ => grey,
                };
                faces.push(Face { vertices, index: index as u32, material });
            }
        }
        let build = |faces: &[Face]| build(&mesh.vertices, faces, &materials, is_for_cpu);
        let simple = is_for_cpu.then(|| simplify(&mesh.vertices, &faces, &materials)).flatten();
        let simple = simple.map(|faces| build(&faces));
        let (geometry, corners) = build(&faces);
        let (min, max) = match geometry.nodes.first() {
            Some(root) => (Vec3::from(root.min), Vec3::from(root.max)),
            None => (Vec3::ZERO, Vec3::ZERO),
        };
        let centre = 0.5 * (min + max);
        let corners_of = |face: &Face| face.vertices.map(|v| Vec3::from(mesh.vertices[v as usize].position));
        let radius = faces
            .iter()
            .flat_map(corners_of)
            .map(|corner| corner.distance_squared(centre))
            .fold(0.0, f32::max)
            .sqrt();
        Self { geometry, corners, materials, texels, simple, centre, radius }
    }

    /// Number of triangles that can be hit.
    pub fn triangle_count(&self) -> usize {
        self.geometry.triangles.len()
    }

    /// Whether there is nothing to see.
    pub fn is_empty(&self) -> bool {
        self.geometry.triangles.is_empty()
    }

    /// The object as it is.
    #[inline]
    pub(crate) fn shape(&self) -> Shape<'_> {
        Shape { geometry: &self.geometry, corners: &self.corners }
    }

    /// The object as light sees it: with fewer triangles where it has very many; see [`crate::simplify`].
    #[inline]
    pub(crate) fn simple_shape(&self) -> Option<Shape<'_>> {
        let (geometry, corners) = self.simple.as_ref()?;
        Some(Shape { geometry, corners })
    }

    /// Linear albedo of a material at a texture coordinate.
    #[inline]
    pub(crate) fn albedo(&self, material: u32, uv: Vec2) -> Vec3 {
        let material = &self.materials[material as usize];
        if material.texture_width == 0 {
            return Vec3::from(material.base_colour);
        }
        let (width, height) = (material.texture_width, material.texture_height);
        // Texture coordinates start at the bottom left, rows at the top.
        let (x0, x1, fx) = texel_pair(uv.x, width);
        let (y0, y1, fy) = texel_pair(1.0 - uv.y, height);
        let texel = |x: u32, y: u32| {
            let [r, g, b, _] = self.texels[(material.texture_start + y * width + x) as usize];
            Vec3::new(f32::from(r), f32::from(g), f32::from(b))
        };
        let top = texel(x0, y0).lerp(texel(x1, y0), fx);
        let bottom = texel(x0, y1).lerp(texel(x1, y1), fx);
        let value = top.lerp(bottom, fy);
        Vec3::new(srgb_decode(value.x), srgb_decode(value.y), srgb_decode(value.z))
    }

    /// Scalar parameters of a material.
    #[inline]
    pub(crate) fn surface(&self, material: u32) -> Surface {
        let material = &self.materials[material as usize];
        Surface { roughness: material.roughness, specular: material.specular }
    }

    /// Opacity of a material.
    #[inline]
    pub(crate) fn alpha(&self, material: u32) -> f32 {
        self.materials[material as usize].alpha
    }
}

impl Shape<'_> {
    /// The surface at a hit.
    #[inline(always)]
    pub fn point(&self, hit: &Hit) -> ObjectPoint {
        let triangle = &self.geometry.triangles[hit.triangle as usize];
        let corners = &self.corners[hit.triangle as usize];
        let (edge1, edge2) = (Vec3::from(triangle.edge1), Vec3::from(triangle.edge2));
        let w = 1.0 - hit.u - hit.v;
        let [n0, n1, n2] = corners.normals.map(Vec3::from);
        let [t0, t1, t2] = corners.uvs.map(Vec2::from);
        let face_normal = Vec3::from(triangle.normal).normalize_or(Vec3::Z);
        let normal = (w * n0 + hit.u * n1 + hit.v * n2).normalize_or(face_normal);
        ObjectPoint {
            position: Vec3::from(triangle.corner) + hit.u * edge1 + hit.v * edge2,
            face_normal,
            normal: if normal.dot(face_normal) < 0.0 { -normal } else { normal },
            uv: w * t0 + hit.u * t1 + hit.v * t2,
            material: corners.material,
        }
    }

    /// Asks for the memory that [`Self::point`] reads.
    #[inline]
    pub fn prefetch(&self, triangle: u32) {
        prefetch(&self.geometry.triangles[triangle as usize]);
        prefetch(&self.corners[triangle as usize]);
    }
}

/// The hierarchy over `faces` and their shading data.
fn build(
    vertices: &[Vertex],
    faces: &[Face],
    materials: &[MaterialData],
    is_for_cpu: bool,
) -> (Geometry, Vec<Corners>) {
    let positions: Vec<[Vec3; 3]> = faces
        .iter()
        .map(|face| face.vertices.map(|vertex| Vec3::from(vertices[vertex as usize].position)))
        .collect();
    let (nodes, order) = bvh::build(&positions);
    let mut triangles = Vec::with_capacity(order.len());
    let mut corners = Vec::with_capacity(order.len());
    for &slot in &order {
        let [a, b, c] = positions[slot as usize];
        let face = &faces[slot as usize];
        triangles.push(Triangle::new([a, b, c], face.index, 1.0 - materials[face.material as usize].alpha));
        let normal = (b - a).cross(c - a).normalize_or(Vec3::Z);
        let vertices = face.vertices.map(|vertex| &vertices[vertex as usize]);
        corners.push(Corners {
            normals: vertices.map(|vertex| {
                let own = Vec3::from(vertex.normal);
                if own.is_finite() { own.normalize_or(normal) } else { normal }.to_array()
            }),
            uvs: vertices.map(|vertex| vertex.uv.map(|x| if x.is_finite() { x } else { 0.0 })),
            material: face.material,
        });
    }
    let has_transparency = triangles.iter().any(|triangle| triangle.transparency > 0.0);
    let wide = if is_for_cpu { Wide::new(&nodes, &triangles) } else { Wide::default() };
    (Geometry { nodes, triangles, has_transparency, wide }, corners)
}

/// The two texels around a repeated coordinate and the weight of the second.
#[inline]
fn texel_pair(coordinate: f32, size: u32) -> (u32, u32, f32) {
    let x = (coordinate - coordinate.floor()) * size as f32 - 0.5;
    let low = x.floor();
    let wrap = |i: i64| i.rem_euclid(i64::from(size)) as u32;
    (wrap(low as i64), wrap(low as i64 + 1), x - low)
}

/// Materials and their textures in one array each, the plain grey last.
fn flatten_materials(materials: &[scene::Material]) -> (Vec<MaterialData>, Vec<[u8; 4]>) {
    let mut texels: Vec<[u8; 4]> = Vec::new();
    let mut placed: Vec<(*const scene::Texture, u32)> = Vec::new();
    let grey = scene::Material::default();
    let finite = |value: f32, otherwise: f32| if value.is_finite() { value } else { otherwise };
    let data = materials
        .iter()
        .chain(std::iter::once(&grey))
        .map(|material| {
            let texture = material.texture.as_ref().filter(|texture| {
                let count = u64::from(texture.width) * u64::from(texture.height);
                count > 0 && count == texture.pixels.len() as u64 && count < 1 << 30
            });
            let (start, width, height) = texture.map_or((0, 0, 0), |texture| {
                let key = Arc::as_ptr(texture);
                let start = placed.iter().find(|(other, _)| *other == key).map(|&(_, start)| start);
                let start = start.unwrap_or_else(|| {
                    let start = texels.len() as u32;
                    texels.extend_from_slice(&texture.pixels);
                    placed.push((key, start));
                    start
                });
                (start, texture.width, texture.height)
            });
            MaterialData {
                base_colour: material.base_colour.map(|channel| finite(channel, 0.8).clamp(0.0, 1.0)),
                roughness: finite(material.roughness, 0.5).clamp(0.0, 1.0),
                specular: finite(material.specular, 0.5).clamp(0.0, 1.0),
                alpha: finite(material.alpha, 1.0).clamp(0.0, 1.0),
                texture_start: start,
                texture_width: width,
                texture_height: height,
            }
        })
        .collect();
    (data, texels)
}

#[cfg(test)]
mod tests;
