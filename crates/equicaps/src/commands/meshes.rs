//! Meshes from files, for commands that render without making a dataset.

use std::path::Path;

use anyhow::Context;
use render::PreparedMesh;
use scene::{LoadOptions, Mesh, load_mesh, normalise};

use crate::terminal::Terminal;

/// All usable meshes below `root`; a warning for each of the others.
pub fn load_all(root: &Path, terminal: &Terminal) -> anyhow::Result<Vec<Mesh>> {
    let mut meshes = Vec::new();
    for source in scene::objects::discover(root)? {
        match source.load(&LoadOptions::under(root)) {
            Ok(loaded) => meshes.push(loaded.mesh),
            Err(error) => terminal.warn(format!("skipped {}: {error}", source.id())),
        }
    }
    anyhow::ensure!(!meshes.is_empty(), "{}: no usable mesh", root.display());
    Ok(meshes)
}

/// The mesh `path` below `root`, ready to be rendered.
pub fn prepare(root: &Path, path: &Path, terminal: &Terminal) -> anyhow::Result<PreparedMesh> {
    let path = root.join(path);
    let mut loaded = load_mesh(&path, &LoadOptions::under(root))?;
    loaded.warnings.iter().for_each(|warning| terminal.warn(warning));
    normalise(&mut loaded.mesh).with_context(|| format!("{}: the mesh has no extent", path.display()))?;
    Ok(PreparedMesh::new(&loaded.mesh))
}
