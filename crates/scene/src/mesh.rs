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
    /// `width * height` pixels, red, green, blue, alpha; opacity is the material's alone, not the image's.
    pub pixels: Vec<[u8; 4]>,
}

/// How a surface reflects light: the part of the Principled BSDF that the published scenes use.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// Name in the file it came from.
    pub name: String,
    /// Linear RGB albedo; ignored where there is a texture.
    pub base_colour: [f32; 3],
    /// Replaces `base_colour` where present (sRGB-decoded, bilinear, repeated).
    pub texture: Option<Arc<Texture>>,
    /// `1 - sqrt(clamp(Ns, 0, 1000) / 1000)`.
    pub roughness: f32,
    /// `mean(Ks)`.
    pub specular: f32,
    /// Opacity: 1 is opaque; below 1 mixes with what lies behind.
    pub alpha: f32,
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
            alpha: 1.0,
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
