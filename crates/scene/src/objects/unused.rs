//! Files in a folder of meshes that look like meshes and are not used: of types that are not read, in places where no
//! objects are looked for, or beside the mesh that is taken of their object.

use super::{ObjectSource, SHAPENET_MESH, entries, is_mesh_file, listed_name};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Well-known endings of meshes and scenes that are not read.
const OTHER_EXTENSIONS: [&str; 28] = [
    "3dm", "3ds", "3mf", "abc", "amf", "blend", "c4d", "ctm", "dae", "dxf", "fbx", "iges", "igs", "lwo",
    "ma", "max", "mb", "sldprt", "skp", "step", "stp", "usd", "usda", "usdc", "usdz", "vrml", "wrl", "x3d",
];

/// Files that are not used, relative to the folder of the meshes and sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unused {
    /// Meshes of types that are not read.
    pub unsupported: Vec<PathBuf>,
    /// Meshes outside of class folders, or deeper than objects are looked for.
    pub misplaced: Vec<PathBuf>,
    /// Meshes of objects of which another one is taken.
    pub doubles: Vec<PathBuf>,
}

/// What lies below `root` and is not used, `objects` being what [`super::discover`] found there. Folders in the layout of
/// ShapeNet are not looked into: what is beside the mesh there belongs to it.
pub fn unused(root: &Path, objects: &[ObjectSource]) -> Unused {
    let meshes: HashMap<(&str, &str), Option<&Path>> = objects
        .iter()
        .map(|object| ((object.class.as_str(), object.name.as_str()), object.mesh.as_deref().ok()))
        .collect();
    let mut found = Unused::default();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        // What cannot be read has been reported where objects were looked for.
        for path in entries(&folder).unwrap_or_default() {
            let Ok(below) = path.strip_prefix(root) else { continue };
            let depth = below.components().count();
            if path.is_dir() {
                // Links are followed where objects are looked for, and no farther: they may lead back.
                let is_looked_at = depth < 3 || (depth == 3 && path.ends_with("models"));
                if (is_looked_at || !path.is_symlink()) && !path.join(SHAPENET_MESH).is_file() {
                    folders.push(path);
                }
            } else if is_other_mesh(&path) {
                found.unsupported.push(below.to_path_buf());
            } else if is_mesh_file(&path) {
                let object = object_of(below);
                let mesh =
                    object.as_ref().and_then(|(class, name)| meshes.get(&(class.as_str(), name.as_str())));
                match mesh {
                    // Skipped, with the reason; or the mesh itself.
                    Some(None) => {}
                    Some(Some(mesh)) if *mesh == path => {}
                    Some(Some(_)) => found.doubles.push(below.to_path_buf()),
                    None => found.misplaced.push(below.to_path_buf()),
                }
            }
        }
    }
    for paths in [&mut found.unsupported, &mut found.misplaced, &mut found.doubles] {
        paths.sort();
    }
    found
}

/// The class and the name of the object that a mesh would be one of, where it lies in a place in which objects are looked
/// for.
fn object_of(below: &Path) -> Option<(String, String)> {
    let shown = |name| listed_name(name).unwrap_or_else(|(shown, _)| shown);
    let parts: Vec<&OsStr> = below.iter().collect();
    match parts[..] {
        [class, _] => Some((shown(class), shown(below.file_stem()?))),
        [class, object, _] => Some((shown(class), shown(object))),
        [class, object, models, _] if models == "models" => Some((shown(class), shown(object))),
        _ => None,
    }
}

fn is_other_mesh(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    OTHER_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
}
