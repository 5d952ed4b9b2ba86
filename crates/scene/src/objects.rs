//! Finding objects in folders: ShapeNetCore v2, any `CLASS/OBJECT...` layout, and lists of objects.
//!
//! An object that cannot be used is kept, with the reason: whoever renders a data set records it.

mod unused;

pub use unused::{Unused, unused};

use crate::npy::{self, Data};
use crate::{LoadOptions, LoadedMesh, load_mesh, normalise};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where ShapeNetCore v2 keeps an object's mesh.
const SHAPENET_MESH: &str = "models/model_normalized.obj";
/// Known file name endings; where an object has several meshes, the first wins.
const EXTENSIONS: [&str; 6] = ["obj", "glb", "gltf", "ply", "off", "stl"];
/// The end of the reason for which an object cannot be used that has a name which no list could hold.
const RENAME: &str = "; rename it";

/// One object and its mesh file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSource {
    /// Name of the class folder, a WordNet synset id in ShapeNet.
    pub class: String,
    /// Name of the object in its class.
    pub name: String,
    /// The mesh, or why there is none.
    pub mesh: Result<PathBuf, String>,
}

/// Why no objects can be found.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// A folder or list cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Folder or file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Nothing there looks like objects.
    #[error("{}: no objects found, expected CLASS/OBJECT.EXT, CLASS/OBJECT/MESH or CLASS/OBJECT/models/model_normalized.obj with a mesh of type obj, glb, gltf, ply, off or stl{}{}", root.display(), if *has_loose { "; meshes that lie in the folder itself belong to no class: move them into a folder of their class" } else { "" }, wrong_name.iter().map(|reason| format!("; {reason}")).collect::<String>())]
    Empty {
        /// The folder.
        root: PathBuf,
        /// Whether meshes lie in the folder itself.
        has_loose: bool,
        /// An object with a name that cannot be used, where there is one, and what to do about it.
        wrong_name: Option<String>,
    },
    /// An object list in NumPy's format is damaged.
    #[error(transparent)]
    Npy(#[from] npy::NpyError),
    /// An object list has a wrong entry.
    #[error("{}, entry {entry}: {message}", path.display())]
    List {
        /// The list.
        path: PathBuf,
        /// Line of a text list, row of an array; from 1.
        entry: usize,
        /// What was found and what was expected.
        message: String,
    },
}

impl ObjectSource {
    /// `CLASS/OBJECT`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.class, self.name)
    }

    /// Loads the mesh and normalises it (centred, diagonal 1). The error is a reason to skip the object; paths in it
    /// are relative to the root of `options`, so that it does not depend on where the meshes are kept.
    pub fn load(&self, options: &LoadOptions) -> Result<LoadedMesh, String> {
        let path = self.mesh.as_ref().map_err(Clone::clone)?;
        let mut loaded = load_mesh(path, options).map_err(|error| relative(&error.to_string(), options))?;
        for warning in &mut loaded.warnings {
            *warning = relative(warning, options);
        }
        normalise(&mut loaded.mesh).ok_or_else(|| format!("{}: has no extent", self.id()))?;
        Ok(loaded)
    }
}

/// `message` without the root folder in front of its paths. A path begins a message or follows a blank; loading names
/// the mesh as it was called, and files that it leads to by their full paths.
fn relative(message: &str, options: &LoadOptions) -> String {
    let Some(root) = &options.root else { return message.to_owned() };
    let mut text = message.to_owned();
    for root in [root.canonicalize().ok(), Some(root.clone())].into_iter().flatten() {
        let prefix = format!("{}/", root.display().to_string().trim_end_matches('/'));
        text = match text.strip_prefix(&prefix) {
            Some(rest) => rest.replace(&format!(" {prefix}"), " "),
            None => text.replace(&format!(" {prefix}"), " "),
        };
    }
    text
}

/// All objects below `root`, sorted by class and name.
///
/// Every folder of `root` is a class. In it, a folder is an object (`models/model_normalized.obj`, or the best mesh
/// in it) and so is a mesh file. Of several meshes of one object the order is that of obj, glb, gltf, ply, off, stl;
/// then one named like the folder; then the first by name. Folders without a mesh are ignored beside mesh files and
/// unusable objects elsewhere. Names that begin with a dot are ignored. Objects whose name, or that of their class, no
/// list could hold (it is not UTF-8, or has a backslash) are unusable, too.
pub fn discover(root: &Path) -> Result<Vec<ObjectSource>, ObjectsError> {
    let mut objects = Vec::new();
    for class in entries(root)?.into_iter().filter(|entry| entry.is_dir()) {
        let class_name = listed_name(class.file_name().unwrap_or_default());
        let mut meshes: BTreeMap<String, Result<PathBuf, String>> = BTreeMap::new();
        let mut folders = Vec::new();
        for entry in entries(&class)? {
            if entry.is_dir() {
                folders.push(entry);
            } else if rank(&entry).is_some()
                && let Some(stem) = entry.file_stem()
            {
                match listed_name(stem) {
                    Ok(stem) => {
                        let better = meshes
                            .get(&stem)
                            .and_then(|known| known.as_ref().ok())
                            .is_none_or(|known| rank(&entry) < rank(known));
                        if better {
                            meshes.insert(stem, Ok(entry));
                        }
                    }
                    Err((shown, problem)) => {
                        meshes.insert(shown, Err(format!("its name {problem}{RENAME}")));
                    }
                }
            }
        }
        let has_files = !meshes.is_empty();
        for folder in folders {
            let mesh = mesh_in(&folder);
            match listed_name(folder.file_name().unwrap_or_default()) {
                Ok(name) if mesh.is_ok() || !has_files => {
                    meshes.entry(name).or_insert(mesh);
                }
                Ok(_) => {}
                Err((shown, problem)) => {
                    meshes.entry(shown).or_insert(Err(format!("its name {problem}{RENAME}")));
                }
            }
        }
        let (class_name, problem) = match class_name {
            Ok(name) => (name, None),
            Err((shown, problem)) => (shown, Some(format!("the name of its class {problem}{RENAME}"))),
        };
        objects.extend(meshes.into_iter().map(|(name, mesh)| {
            let mesh = mesh.and_then(|mesh| problem.clone().map_or(Ok(mesh), Err));
            let mesh = mesh.map_err(|reason| format!("{class_name}/{name}: {reason}"));
            ObjectSource { class: class_name.clone(), name, mesh }
        }));
    }
    if objects.iter().all(|object| object.mesh.is_err()) {
        let mut reasons = objects.iter().filter_map(|object| object.mesh.as_ref().err());
        let wrong_name = reasons.find(|reason| reason.ends_with(RENAME)).cloned();
        let has_loose = entries(root)?.iter().any(|entry| rank(entry).is_some() && entry.is_file());
        return Err(ObjectsError::Empty { root: root.to_owned(), has_loose, wrong_name });
    }
    Ok(objects)
}

/// The objects of a list, in its order; those that are not below `root` carry that as their reason.
pub fn locate(root: &Path, list: &[(String, String)]) -> Vec<ObjectSource> {
    let find = |(class, name): &(String, String)| {
        let folder = root.join(class).join(name);
        let file = |extension: &&str| root.join(class).join(format!("{name}.{extension}"));
        let mesh = match EXTENSIONS.iter().map(file).find(|path| path.is_file()) {
            Some(path) => Ok(path),
            None if folder.is_dir() => mesh_in(&folder).map_err(|reason| format!("{class}/{name}: {reason}")),
            None => Err(format!("{class}/{name}: there is no such object")),
        };
        ObjectSource { class: class.clone(), name: name.clone(), mesh }
    };
    list.iter().map(find).collect()
}

/// Reads a list of `(class, object)`: a NumPy array of unicode strings, either of shape `(n, 2)` as the published
/// generator has them or of shape `(n,)` with entries `/CLASS/OBJECT/` as in the published splits; or a text file
/// with `CLASS/OBJECT`, `CLASS OBJECT` or `CLASS,OBJECT` in a line, where `#` begins a comment. Repeated objects count
/// once.
pub fn read_list(path: &Path) -> Result<Vec<(String, String)>, ObjectsError> {
    let bytes = std::fs::read(path).map_err(|source| ObjectsError::Read { path: path.to_owned(), source })?;
    let wrong = |entry, message: &str| ObjectsError::List {
        path: path.to_owned(),
        entry,
        message: message.to_owned(),
    };
    let mut pairs = Vec::new();
    if bytes.starts_with(b"\x93NUMPY") {
        let array = npy::parse(&bytes)
            .map_err(|message| npy::NpyError::Content { path: path.to_owned(), message })?;
        match (&array.data, &array.shape[..]) {
            (Data::Unicode(entries), [_, 2]) => {
                for (row, pair) in entries.as_chunks::<2>().0.iter().enumerate() {
                    pairs.push((row + 1, pair.clone()));
                }
            }
            (Data::Unicode(entries), [_]) => {
                for (row, entry) in entries.iter().enumerate() {
                    let pair = split_pair(entry)
                        .ok_or_else(|| wrong(row + 1, &format!("{entry:?}, expected /CLASS/OBJECT/")))?;
                    pairs.push((row + 1, pair));
                }
            }
            _ => {
                let message = format!(
                    "is an array of shape {:?}, expected strings of shape (n, 2) or (n,)",
                    array.shape
                );
                return Err(npy::NpyError::Content { path: path.to_owned(), message }.into());
            }
        }
    } else {
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong(1, "is neither text nor a NumPy array"))?;
        for (row, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                let pair = split_pair(line)
                    .ok_or_else(|| wrong(row + 1, &format!("{line:?}, expected CLASS/OBJECT")))?;
                pairs.push((row + 1, pair));
            }
        }
    }
    let mut seen = HashSet::new();
    let mut list = Vec::with_capacity(pairs.len());
    for (entry, [class, name]) in pairs {
        for part in [&class, &name] {
            if part.is_empty() || part == "." || part == ".." || part.contains(['/', '\\', '\0']) {
                return Err(wrong(entry, &format!("{part:?} is not the name of a folder")));
            }
        }
        if seen.insert((class.clone(), name.clone())) {
            list.push((class, name));
        }
    }
    Ok(list)
}

fn split_pair(text: &str) -> Option<[String; 2]> {
    let text = text.trim_matches('/');
    let (class, name) = text.split_once(['/', ',', '\t', ' '])?;
    Some([class.trim().to_owned(), name.trim().to_owned()])
}

/// The mesh of an object's folder, or why there is none.
fn mesh_in(folder: &Path) -> Result<PathBuf, String> {
    let shapenet = folder.join(SHAPENET_MESH);
    if shapenet.is_file() {
        return Ok(shapenet);
    }
    let name = file_name(folder).unwrap_or_default();
    let mut reason = "holds no mesh".to_owned();
    for place in [folder.to_owned(), folder.join("models")] {
        if !place.is_dir() {
            continue;
        }
        let found = match entries(&place) {
            Ok(found) => found,
            Err(error) => {
                reason = error.to_string();
                continue;
            }
        };
        let order = |path: &PathBuf| {
            let like_folder = path.file_stem().and_then(|stem| stem.to_str()) == Some(name.as_str());
            Some((rank(path)?, !like_folder, path.clone()))
        };
        if let Some((_, _, best)) = found.iter().filter(|path| path.is_file()).filter_map(order).min() {
            return Ok(best);
        }
    }
    Err(reason)
}

/// The name of a class or an object as lists hold it; where they cannot, as it can be shown there, and why.
fn listed_name(name: &OsStr) -> Result<String, (String, &'static str)> {
    match name.to_str() {
        None => Err((name.to_string_lossy().into_owned(), "is not UTF-8")),
        Some(text) if text.contains('\\') => Err((text.replace('\\', "\u{fffd}"), "has a backslash")),
        Some(text) => Ok(text.to_owned()),
    }
}

/// Sorted paths in a folder, without hidden ones.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ObjectsError> {
    let read_error = |source| ObjectsError::Read { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(read_error)? {
        let entry = entry.map_err(read_error)?;
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with('.') && name != "__MACOSX" {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Whether the name of `path` is that of a mesh.
pub fn is_mesh_file(path: &Path) -> bool {
    rank(path).is_some()
}

/// The endings of the names of meshes, in words: `.obj, .glb, ...`.
pub fn endings() -> String {
    EXTENSIONS.map(|extension| format!(".{extension}")).join(", ")
}

fn rank(path: &Path) -> Option<usize> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    EXTENSIONS.iter().position(|known| *known == extension)
}
