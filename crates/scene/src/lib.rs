//! Meshes, materials and the latents of a view: everything an image is made from, before there are pixels.

pub mod camera;
pub mod latent_ranges;
pub mod latents;
pub mod load;
pub mod mesh;
pub mod npy;
pub mod objects;
pub mod placement;
pub mod views;

pub use camera::{Camera, FLOOR_HEIGHT};
pub use latent_ranges::{Distribution, Distributions, LatentRanges, Range, ScaleRange};
pub use latents::{LatentError, Latents, Shape};
pub use load::{LoadOptions, LoadedMesh, MeshError, Up, load_mesh};
pub use mesh::{Map, Material, Mesh, Texture, Vertex};
pub use objects::{ObjectSource, ObjectsError, discover};
pub use placement::{BoundingBox, Normalisation, normalise};
pub use views::{ViewRecord, ViewsError, read_views};
