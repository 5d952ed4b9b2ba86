//! An object made ready for rendering: its hierarchy, and what shading needs, in flat arrays.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use glam::{Vec2, Vec3, Vec4};
use scene::Vertex;
use simd::prefetch;

use crate::bsdf::Surface;
use crate::bvh;
use crate::maps::{self, MapData};
use crate::masks::Masks;
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
    /// A material; maps without an image leave the numbers as they are.
    pub struct MaterialData as "Material" {
        /// Linear albedo, where there is no texture.
        pub base_colour: [f32; 3],
        /// Burley and GGX roughness.
        pub roughness: f32,
        /// Principled specular.
        pub specular: f32,
        /// Share of the surface that is metal.
        pub metallic: f32,
        /// Opacity.
        pub alpha: f32,
        /// How far the map of normals turns the normal.
        pub normal_strength: f32,
        /// Linear radiance of the surface itself.
        pub emission: [f32; 3],
        /// Albedo, sRGB.
        pub texture: MapData as "Map",
        /// Factor of the opacity, in alpha.
        pub opacity: MapData as "Map",
        /// Factor of the emission, sRGB.
        pub emission_map: MapData as "Map",
        /// Factors of specular, roughness and metallic.
        pub surface_map: MapData as "Map",
        /// Normals in the frame of the texture coordinates.
        pub normal_map: MapData as "Map",
    }
}

impl MaterialData {
    /// Whether anything varies over the surface.
    #[inline]
    pub fn has_maps(&self) -> bool {
        self.texture.width
            | self.opacity.width
            | self.emission_map.width
            | self.surface_map.width
            | self.normal_map.width
            != 0
    }

    /// Whether light passes somewhere.
    pub fn is_clear(&self) -> bool {
        self.alpha < 1.0 || self.opacity.is_some()
    }
}

/// A mesh with its bounding volume hierarchy, built once an object and shared by all its views.
#[derive(Clone, Debug, Default)]
pub struct PreparedMesh {
    pub(crate) geometry: Geometry,
    pub(crate) corners: Vec<Corners>,
    pub(crate) materials: Vec<MaterialData>,
    /// All images, row 0 on top: see [`crate::maps`].
    pub(crate) texels: Arc<Vec<[u8; 4]>>,
    /// What light sees of an object with very many triangles.
    pub(crate) simple: Option<(Geometry, Vec<Corners>)>,
    /// Centre of the bounding sphere, object frame.
    pub(crate) centre: Vec3,
    /// Radius of the bounding sphere.
    pub(crate) radius: f32,
    /// Whether any material sends out light.
    pub(crate) has_emission: bool,
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
        let (materials, texels) = maps::flatten(&mesh.materials);
        let texels = Arc::new(texels);
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
        let build = |faces: &[Face]| build(&mesh.vertices, faces, (&materials, &texels), is_for_cpu);
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
        let has_emission = materials.iter().any(|material| material.emission != [0.0; 3]);
        Self { geometry, corners, materials, texels, simple, centre, radius, has_emission }
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

    /// Linear albedo of a material at a texture coordinate; `footprint` as in [`MapData::level`].
    #[inline]
    pub(crate) fn albedo(&self, material: u32, uv: Vec2, footprint: f32) -> Vec3 {
        let material = &self.materials[material as usize];
        let map = &material.texture;
        if map.is_some() {
            map.colour(&self.texels, uv, map.level(footprint))
        } else {
            Vec3::from(material.base_colour)
        }
    }

    /// Scalar parameters of a material.
    #[inline]
    pub(crate) fn surface(&self, material: u32, uv: Vec2, footprint: f32) -> Surface {
        let material = &self.materials[material as usize];
        let MaterialData { roughness, specular, metallic, .. } = *material;
        let map = &material.surface_map;
        if map.is_some() {
            let factors = map.lookup(&self.texels, uv, map.level(footprint)).round() * (1.0 / 255.0);
            return Surface {
                roughness: roughness * factors.y,
                specular: specular * factors.x,
                metallic: metallic * factors.z,
            };
        }
        Surface { roughness, specular, metallic }
    }

    /// Opacity of a material.
    #[inline]
    pub(crate) fn alpha(&self, material: u32, uv: Vec2, footprint: f32) -> f32 {
        let material = &self.materials[material as usize];
        let map = &material.opacity;
        if map.is_some() {
            let opacity = map.alpha(&self.texels, uv, map.opacity_level(footprint)) * (1.0 / 255.0);
            return material.alpha * opacity;
        }
        material.alpha
    }

    /// The normal at a hit as the map of normals turns it, object frame, on the side of the face's normal.
    pub(crate) fn mapped_normal(
        &self,
        shape: &Shape<'_>,
        hit: &Hit,
        point: &ObjectPoint,
        footprint: f32,
    ) -> Vec3 {
        let material = &self.materials[point.material as usize];
        let map = &material.normal_map;
        let triangle = &shape.geometry.triangles[hit.triangle as usize];
        let [a, b, c] = shape.corners[hit.triangle as usize].uvs.map(Vec2::from);
        let (ab, ac) = (b - a, c - a);
        let turn = if ab.x * ac.y - ab.y * ac.x < 0.0 { -1.0 } else { 1.0 };
        // The direction in which u grows, at right angles to the normal; v grows at its left.
        let across = turn * (ac.y * Vec3::from(triangle.edge1) - ab.y * Vec3::from(triangle.edge2));
        let n = point.normal;
        let tangent = (across - across.dot(n) * n).normalize_or_zero();
        let value = map.lookup(&self.texels, point.uv, map.level(footprint)) * (2.0 / 255.0) - Vec4::ONE;
        let mapped = value.x * tangent + value.y * (turn * n.cross(tangent)) + value.z * n;
        let mapped = mapped.normalize_or(n);
        let normal = (n + material.normal_strength * (mapped - n)).normalize_or(n);
        if tangent == Vec3::ZERO || normal.dot(point.face_normal) <= 0.0 { n } else { normal }
    }

    /// What a material sends out itself.
    #[inline]
    pub(crate) fn emission(&self, material: u32, uv: Vec2, footprint: f32) -> Vec3 {
        let material = &self.materials[material as usize];
        let (emission, map) = (Vec3::from(material.emission), &material.emission_map);
        if map.is_some() {
            return emission * map.colour(&self.texels, uv, map.level(footprint));
        }
        emission
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

    /// Area in texture coordinates over area in the object, of a triangle.
    #[inline]
    pub fn uv_density(&self, triangle: u32) -> f32 {
        let triangle = triangle as usize;
        maps::uv_density(&self.corners[triangle].uvs, self.geometry.triangles[triangle].normal)
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
    (materials, texels): (&[MaterialData], &Arc<Vec<[u8; 4]>>),
    is_for_cpu: bool,
) -> (Geometry, Vec<Corners>) {
    let mut masks = Masks::default();
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
        let material = &materials[face.material as usize];
        let mut triangle = Triangle::new([a, b, c], face.index, 1.0 - material.alpha);
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
        if material.opacity.is_some() {
            match masks.add(&corners[corners.len() - 1].uvs, triangle.normal, material, texels) {
                Ok(number) => triangle.mask = number,
                Err(transparency) => triangle.transparency = transparency,
            }
        }
        triangles.push(triangle);
    }
    masks.finish();
    // Also where light, which sees maps less sharply, finds no hole.
    let has_transparency = corners.iter().any(|corners| materials[corners.material as usize].is_clear());
    let wide = if is_for_cpu { Wide::new(&nodes, &triangles) } else { Wide::default() };
    (Geometry { nodes, triangles, has_transparency, masks, wide }, corners)
}

#[cfg(test)]
mod tests;
