//! Whether a folder of meshes was named one level too deep or too high: `CLASS/OBJECT` is expected below it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use scene::objects;

use crate::counted::counted;

/// A folder that looks like another one was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongDepth {
    /// What was found: the beginning of a sentence.
    pub found: String,
    /// The folder that was probably meant.
    pub meant: PathBuf,
    /// What would be found there.
    pub there: String,
}

impl std::fmt::Display for WrongDepth {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { found, meant, there } = self;
        write!(formatter, "{found}: did you mean {}, where {there}?", meant.display())
    }
}

/// What is odd about the objects `ids` (class, name) of the mesh folder `root`, if anything is: every class has one
/// object (the folder is itself a class), or the objects of an only class hold several meshes each (they are classes).
pub fn wrong_depth(root: &Path, ids: &[(String, String)]) -> Option<WrongDepth> {
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (class, name) in ids {
        classes.entry(class).or_default().push(name);
    }
    let count = classes.len();
    if count > 1 && ids.len() == count {
        let meant = above(root)?;
        let own = root.canonicalize().ok()?.file_name()?.to_string_lossy().into_owned();
        return Some(WrongDepth {
            found: format!("every class in {} has one object ({count} classes)", root.display()),
            meant,
            there: format!("{own} is one class of {count} objects"),
        });
    }
    let (&only, members) = classes.first_key_value().filter(|_| count == 1)?;
    let inside = objects::discover(&root.join(only)).ok()?;
    let found: usize = inside.iter().filter(|object| object.mesh.is_ok()).count();
    let are_classes = members.iter().all(|name| root.join(only).join(name).is_dir());
    (are_classes && found >= 2 * members.len()).then(|| WrongDepth {
        found: format!(
            "{} has one class, {only}, whose objects are folders of several meshes, of which one is used each",
            root.display()
        ),
        meant: root.join(only),
        there: classes_with(members.len(), found),
    })
}

/// So many folders are looked into for objects.
const MOST_FOLDERS: usize = 20;

/// Where the objects are that `root` does not hold, if a folder in it has some: of several folders, the one with the most.
pub fn too_high(root: &Path) -> Option<WrongDepth> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.is_dir() && !path.file_name().is_some_and(is_hidden));
    folders.sort();
    let usable = |folder: &PathBuf| -> Option<Vec<String>> {
        let found = objects::discover(folder).ok()?;
        let usable = found.into_iter().filter(|object| object.mesh.is_ok());
        Some(usable.map(|object| object.class).collect())
    };
    let found = folders.into_iter().take(MOST_FOLDERS).filter_map(|folder| Some((usable(&folder)?, folder)));
    // Of those with equally many the first.
    let (found, meant) = found.min_by_key(|(found, _)| Reverse(found.len()))?;
    let classes = found.iter().collect::<BTreeSet<_>>().len();
    Some(WrongDepth {
        found: format!("no meshes are CLASS/OBJECT in {}", root.display()),
        meant,
        there: classes_with(classes, found.len()),
    })
}

/// So many classes have so many objects.
fn classes_with(classes: usize, objects: usize) -> String {
    let have = if classes == 1 { "has" } else { "have" };
    format!("{} {have} {}", counted(classes, "class"), counted(objects, "object"))
}

fn is_hidden(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with('.')
}

/// The folder above `root`, as `root` was written where possible.
fn above(root: &Path) -> Option<PathBuf> {
    match root.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !root.ends_with("..") => Some(parent.to_path_buf()),
        Some(_) if root.file_name().is_some() => Some(PathBuf::from(".")),
        _ => root.canonicalize().ok()?.parent().map(Path::to_path_buf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectSet;

    const MESH: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";

    fn meshes(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, MESH).unwrap();
        }
        root
    }

    fn hint(root: &Path) -> Option<WrongDepth> {
        wrong_depth(root, &ObjectSet::meshes(root, None, None).unwrap().ids())
    }

    #[test]
    fn a_folder_that_is_itself_a_class_leads_to_the_one_above() {
        let files =
            ["all/chair/a/model.obj", "all/chair/b/model.obj", "all/table/c/model.obj", "all/table/d.obj"];
        let root = meshes(&files);
        let (all, chair) = (root.path().join("all"), root.path().join("all/chair"));
        assert_eq!(hint(&all), None);
        let found = hint(&chair).unwrap();
        assert_eq!((&found.meant, found.there.as_str()), (&all, "chair is one class of 2 objects"));
        assert!(found.to_string().contains("every class in "), "{found}");
    }

    #[test]
    fn a_folder_above_the_classes_leads_into_it() {
        let files =
            ["all/chair/a.obj", "all/chair/b.obj", "all/table/c.obj", "all/table/d.obj", "all/table/e.obj"];
        let root = meshes(&files);
        let found = hint(root.path()).unwrap();
        assert_eq!(
            (found.meant, found.there.as_str()),
            (root.path().join("all"), "2 classes have 5 objects")
        );
        assert_eq!(hint(&root.path().join("all")), None);
        let root = meshes(&["a/b/c/1.obj", "a/b/c/2.obj"]);
        assert_eq!(hint(&root.path().join("a")).unwrap().there, "1 class has 2 objects");
        // An object of one mesh and its parts in folders of their own is what it should be.
        assert_eq!(hint(meshes(&["chair/a/a.obj", "chair/b/b.obj"]).path()), None);
    }

    #[test]
    fn a_folder_two_levels_above_the_objects_leads_into_it() {
        let root =
            meshes(&["all/chair/a/a.obj", "all/chair/b/x.obj", "all/table/c/c.obj", "few/desk/d/d.obj"]);
        std::fs::create_dir_all(root.path().join(".git/a/b")).unwrap();
        let text = ObjectSet::meshes(root.path(), None, None).unwrap_err().to_string();
        let all = root.path().join("all");
        let expected = format!(
            "no meshes are CLASS/OBJECT in {}: did you mean {}, where 2 classes have 3 objects?",
            root.path().display(),
            all.display()
        );
        assert_eq!(text, expected);
        std::fs::remove_dir_all(all).unwrap();
        assert_eq!(too_high(root.path()).unwrap().there, "1 class has 1 object");
        std::fs::remove_dir_all(root.path().join("few")).unwrap();
        assert_eq!(too_high(root.path()), None);
    }

    #[test]
    fn the_folder_above_is_written_as_the_folder_was() {
        assert_eq!(above(Path::new("objects/chair")), Some(PathBuf::from("objects")));
        assert_eq!(above(Path::new("chair")), Some(PathBuf::from(".")));
        let here = std::env::current_dir().unwrap();
        assert_eq!(above(Path::new(".")).as_deref(), here.canonicalize().unwrap().parent());
    }
}
