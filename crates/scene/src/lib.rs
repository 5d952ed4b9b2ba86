//! Meshes, materials and the latents of a view: everything a picture is made from, before there are pixels.

pub mod latents;
pub mod mesh;

pub use latents::Latents;
pub use mesh::{Material, Mesh, Texture, Vertex};
