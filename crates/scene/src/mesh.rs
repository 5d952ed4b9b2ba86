//! The triangle mesh every loader and every procedural object produces, ready to be rendered.
//!
//! Axes are the world's (z up): loaders of y-up formats turn `(x, y, z)` into `(x, -z, y)` before they hand a mesh
//! out. Corners are unified: a vertex carries its own normal and texture coordinate, so a sharp edge or a texture
//! seam is two vertices at one position.

use std::sync::Arc;

/// One corner of a triangle.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Vertex {
    /// Position in the object frame.
    pub position: [f32; 3],
    /// Unit shading normal; may point to either side, back faces are shaded like front faces.
    pub normal: [f32; 3],
    /// Texture coordinate, origin at the bottom left, repeated outside `[0, 1)`.
    pub uv: [f32; 2],
}

/// An 8-bit sRGB image; row 0 is the top row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texture {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// `width * height` pixels, red, green, blue, alpha; alpha counts in [`Material::opacity`] alone.
    pub pixels: Vec<[u8; 4]>,
}

/// An image over a surface, and where its points lie in it: `(u, v)` is looked up at `scale * (u, v) + offset`.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// What the map means decides how its bytes are read.
    pub image: Arc<Texture>,
    /// Factors of u and v.
    pub scale: [f32; 2],
    /// Added to them afterwards.
    pub offset: [f32; 2],
}

impl From<Texture> for Map {
    fn from(image: Texture) -> Self {
        Self::new(Arc::new(image))
    }
}

impl std::ops::Deref for Map {
    type Target = Texture;

    fn deref(&self) -> &Texture {
        &self.image
    }
}

impl Map {
    /// The image as the texture coordinates have it.
    pub fn new(image: Arc<Texture>) -> Self {
        Self { image, scale: [1.0; 2], offset: [0.0; 2] }
    }
}

/// How a surface reflects light: the part of the Principled BSDF that the published scenes use.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// Name in the file it came from.
    pub name: String,
    /// Linear RGB albedo; ignored where there is a texture.
    pub base_colour: [f32; 3],
    /// Replaces `base_colour` where present (sRGB-decoded, bilinear, repeated).
    pub texture: Option<Map>,
    /// `1 - sqrt(clamp(Ns, 0, 1000) / 1000)`.
    pub roughness: f32,
    /// `mean(Ks)`.
    pub specular: f32,
    /// 0 is a dielectric, 1 a metal: reflects in its base colour, and nothing else.
    pub metallic: f32,
    /// Opacity: 1 is opaque; below 1 mixes with what lies behind.
    pub alpha: f32,
    /// Factor of `alpha`, in the map's alpha channel.
    pub opacity: Option<Map>,
    /// Linear radiance that the surface sends out itself, in every direction.
    pub emission: [f32; 3],
    /// Factor of `emission` (sRGB-decoded).
    pub emission_map: Option<Map>,
    /// Factors of `specular` (red), `roughness` (green) and `metallic` (blue), linear.
    pub surface_map: Option<Map>,
    /// Normals in the frame of the texture coordinates (0 .. 255 is -1 .. 1; green upwards).
    pub normal_map: Option<Map>,
    /// How far `normal_map` turns the normal: 0 not at all, 1 as it says.
    pub normal_strength: f32,
}

impl Default for Material {
    /// The plain grey of an object without any material.
    fn default() -> Self {
        Self {
            name: String::new(),
            base_colour: [0.8; 3],
            texture: None,
            roughness: 0.5,
            specular: 0.5,
            metallic: 0.0,
            alpha: 1.0,
            opacity: None,
            emission: [0.0; 3],
            emission_map: None,
            surface_map: None,
            normal_map: None,
            normal_strength: 1.0,
        }
    }
}

/// A triangle mesh with materials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// Unified corners.
    pub vertices: Vec<Vertex>,
    /// Indices into `vertices`.
    pub triangles: Vec<[u32; 3]>,
    /// For every triangle its index into `materials`.
    pub triangle_materials: Vec<u32>,
    /// At least one where there are triangles.
    pub materials: Vec<Material>,
}
