//! Reading meshes from files: one entry point for every format.
//!
//! The content decides what a file is, not its name. A file that cannot be read, whatever is wrong with it, gives a
//! [`MeshError`] that names the file and the line; what can be lived without (a texture, a material library) gives a
//! warning. Memory is bounded by the size of the file, by [`LoadOptions::max_triangles`] and by
//! [`LoadOptions::max_texture_bytes`], never by what a header claims.

mod colours;
mod error;
mod files;
mod format;
mod gltf;
mod lines;
mod map_statement;
mod mtl;
mod obj;
mod off;
mod ply;
mod polygons;
mod stl;
mod texture;
mod triangulate;

pub use error::MeshError;

use crate::Mesh;
use files::Files;
use format::Format;
use std::path::{Path, PathBuf};

/// The axis that points up in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    /// OBJ and glTF: `(x, y, z)` becomes `(x, -z, y)`.
    Y,
    /// STL, PLY and OFF: nothing changes.
    Z,
}

impl Up {
    fn to_world<T: Copy + std::ops::Neg<Output = T>>(self, [x, y, z]: [T; 3]) -> [T; 3] {
        match self {
            Self::Y => [x, -z, y],
            Self::Z => [x, y, z],
        }
    }
}

/// How to read a mesh.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Files that a mesh names (materials, textures, buffers) may lie anywhere below this folder, never outside,
    /// symbolic links resolved; a folder on the way to the mesh that is a link counts as a part of it. `None` is the
    /// mesh's own folder.
    pub root: Option<PathBuf>,
    /// Overrides the format's own up axis.
    pub up: Option<Up>,
    /// More triangles than this are refused; 10 million by default (about 2.5 GB while loading).
    pub max_triangles: usize,
    /// Textures beyond this many decoded bytes in one mesh are left out with a warning; 512 MiB by default.
    pub max_texture_bytes: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { root: None, up: None, max_triangles: 10_000_000, max_texture_bytes: 512 << 20 }
    }
}

impl LoadOptions {
    /// The defaults with a root folder.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: Some(root.into()), ..Self::default() }
    }
}

/// A mesh and what was noticed while reading it.
#[derive(Clone, Debug)]
pub struct LoadedMesh {
    /// In world axes (z up), neither centred nor scaled: see [`crate::normalise`].
    pub mesh: Mesh,
    /// One sentence each, naming file and place.
    pub warnings: Vec<String>,
}

/// Whether a warning is about something that does not change how the mesh looks.
pub fn is_harmless(warning: &str) -> bool {
    warning.ends_with(polygons::WITHOUT_AREA)
}

/// Reads the mesh at `path`, in whatever of the known formats it is.
pub fn load_mesh(path: &Path, options: &LoadOptions) -> Result<LoadedMesh, MeshError> {
    let mut files = Files::open(path, options)?;
    let mesh = match Format::of(&mut files)? {
        Format::Obj => obj::load(&mut files),
        Format::Gltf => gltf::load(&mut files),
        Format::Off => off::load(&mut files),
        Format::Ply => ply::load(&mut files),
        Format::AsciiStl => stl::load_ascii(&mut files),
        Format::BinaryStl => stl::load_binary(&mut files),
    }?;
    Ok(LoadedMesh { mesh, warnings: files.into_warnings() })
}
