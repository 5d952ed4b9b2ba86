//! The files behind one mesh: its own, and those it names, which must lie under the root folder.

use super::texture::TextureStore;
use super::{LoadOptions, MeshError, Up};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Warnings kept for one mesh; more are only counted.
const MAX_WARNINGS: usize = 50;

/// What loading one mesh carries along: its path, the folder it must not leave, its limits, its warnings.
pub(super) struct Files {
    pub path: PathBuf,
    pub size: u64,
    pub options: LoadOptions,
    pub textures: TextureStore,
    folder: PathBuf,
    /// Folders below which named files may lie: the root, and what links on the way from it to the mesh lead to.
    roots: Vec<PathBuf>,
    warnings: Vec<String>,
    suppressed: usize,
    /// What [`Self::warn_once`] has said.
    said: HashSet<String>,
}

impl Files {
    /// Checks that `path` is a file and settles the root folder.
    pub fn open(path: &Path, options: &LoadOptions) -> Result<Self, MeshError> {
        let read_error = |path: &Path, source| MeshError::Read { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(|source| read_error(path, source))?;
        if !metadata.is_file() {
            let message = "is not a regular file".to_owned();
            return Err(MeshError::Content { path: path.to_owned(), message });
        }
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let root = options.root.as_deref().unwrap_or(&folder);
        let roots = roots(root, &folder).map_err(|source| read_error(root, source))?;
        Ok(Self {
            path: path.to_owned(),
            size: metadata.len(),
            options: options.clone(),
            textures: TextureStore::new(options.max_texture_bytes),
            folder,
            roots,
            warnings: Vec::new(),
            suppressed: 0,
            said: HashSet::new(),
        })
    }

    pub fn open_mesh(&self) -> Result<File, MeshError> {
        File::open(&self.path).map_err(|source| self.read_error(source))
    }

    pub fn up(&self, default: Up) -> Up {
        self.options.up.unwrap_or(default)
    }

    pub fn warn(&mut self, message: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(message);
        } else {
            self.suppressed += 1;
        }
    }

    /// [`Self::warn`], the first time that it is about `what`.
    pub fn warn_once(&mut self, what: &str, message: String) {
        if self.said.insert(what.to_owned()) {
            self.warn(message);
        }
    }

    pub fn into_warnings(mut self) -> Vec<String> {
        if self.suppressed > 0 {
            self.warnings.push(format!("{}: {} more warnings", self.path.display(), self.suppressed));
        }
        self.warnings
    }

    pub fn read_error(&self, source: std::io::Error) -> MeshError {
        MeshError::Read { path: self.path.clone(), source }
    }

    pub fn syntax(&self, line: u64, message: impl Into<String>) -> MeshError {
        MeshError::Syntax { path: self.path.clone(), line, message: message.into() }
    }

    pub fn content(&self, message: impl Into<String>) -> MeshError {
        MeshError::Content { path: self.path.clone(), message: message.into() }
    }

    /// The file that `name`, written in a file of the folder `base`, means: relative to `base`, or, for a path from
    /// another machine, by its last component beside it. Backslashes count as slashes and a name that differs only
    /// in case is accepted, because meshes come from systems where both are the same. The error says why not.
    pub fn resolve(&self, base: &Path, name: &[u8]) -> Result<PathBuf, String> {
        let shown = String::from_utf8_lossy(name).into_owned();
        let name: Vec<u8> = name.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect();
        if name.is_empty() || name.contains(&0) {
            return Err(format!("{shown:?} is not a file name"));
        }
        let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or(&name);
        let mut outside = false;
        for candidate in [&name[..], last] {
            let joined = base.join(os_string(candidate));
            let Some(found) = exact_or_other_case(&joined) else { continue };
            let Ok(canonical) = found.canonicalize() else { continue };
            if !self.roots.iter().any(|root| canonical.starts_with(root)) {
                outside = true;
            } else if canonical.is_file() {
                return Ok(canonical);
            }
        }
        Err(if outside {
            format!("{shown:?} lies outside of the folder of the meshes")
        } else {
            format!("{shown:?} does not exist")
        })
    }

    /// The folder of the mesh.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The root, and every folder that a symbolic link between it and the folder of the mesh leads to: somebody who links
/// classes or objects into a folder means all that is below them.
fn roots(root: &Path, folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut roots = vec![root.canonicalize()?];
    if let Ok(between) = folder.strip_prefix(root) {
        let mut at = root.to_owned();
        for part in between.components() {
            at.push(part);
            if matches!(part, std::path::Component::Normal(_)) && at.is_symlink() {
                roots.push(at.canonicalize()?);
            }
        }
    }
    Ok(roots)
}

fn exact_or_other_case(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return Some(path.to_owned());
    }
    let wanted = path.file_name()?.to_str()?.to_lowercase();
    let mut same: Vec<PathBuf> = std::fs::read_dir(path.parent()?)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|entry| {
            entry.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.to_lowercase() == wanted)
        })
        .collect();
    same.sort();
    same.into_iter().next()
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> OsString {
    OsString::from(String::from_utf8_lossy(bytes).into_owned())
}
