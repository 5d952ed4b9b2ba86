//! Meshes, materials and the latents of a view: everything a picture is made from, before there are pixels.

pub mod latents;
pub mod mesh;
pub mod views;

pub use latents::Latents;
pub use mesh::{Material, Mesh, Texture, Vertex};
pub use views::{ViewRecord, ViewsError, read_views};
