//! Folders of images without a table: `CLASS/IMAGE`, where every image is an object of its own, or `CLASS/OBJECT/IMAGE`;
//! below `train/` and `val/` where there are such folders.

use std::path::Path;

use walkdir::WalkDir;

use crate::error::{Error, Result};
use crate::image_file::{EXTENSIONS, OTHER_EXTENSIONS};
use crate::image_list::natural;
use crate::import::rows::{Row, Rows, split_named};

/// All images below `root`.
pub fn read(root: &Path) -> Result<Rows> {
    let mut rows = Vec::new();
    let mut others = 0_usize;
    let has_sides = has_sides(root)?;
    let walk = WalkDir::new(root).follow_links(true).sort_by(|a, b| natural(a.file_name(), b.file_name()));
    let walk = walk
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.'));
    for entry in walk {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(root).to_path_buf();
            Error::read(&path)(error.into())
        })?;
        let extension = entry
            .path()
            .extension()
            .map(|extension| extension.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        if !entry.file_type().is_file() || !EXTENSIONS.contains(&extension.as_str()) {
            others +=
                usize::from(entry.file_type().is_file() && OTHER_EXTENSIONS.contains(&extension.as_str()));
            continue;
        }
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
        let parts = parts.ok_or_else(|| Error::content(entry.path(), "its name is not UTF-8"))?;
        let (split, below) = match (has_sides, &parts[..]) {
            (true, [side, below @ ..]) => (split_named(side), below),
            (_, below) => (None, below),
        };
        let (class, object) = match below {
            [class, file] => {
                (*class, Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file))
            }
            [class, object, _] => (*class, *object),
            [_] => {
                return Err(Error::content(
                    entry.path(),
                    "this image belongs to no class: expected CLASS/IMAGE or CLASS/OBJECT/IMAGE",
                ));
            }
            _ => {
                return Err(Error::content(
                    entry.path(),
                    "lies too deep: expected CLASS/IMAGE or CLASS/OBJECT/IMAGE",
                ));
            }
        };
        rows.push(Row {
            place: relative.display().to_string(),
            file: parts.join("/"),
            class: class.to_owned(),
            object: object.to_owned(),
            view: None,
            split,
            pose: None,
            light: None,
            region: None,
        });
    }
    if rows.is_empty() {
        let message = format!("holds no images ({}) in folders of classes", EXTENSIONS.join(", "));
        return Err(Error::content(root, message));
    }
    let mut notes = Vec::new();
    if others > 0 {
        notes.push(format!("{others} images of unsupported types are left out"));
    }
    Ok(Rows {
        source: root.to_path_buf(),
        folder: root.to_path_buf(),
        rows,
        convention: String::new(),
        notes,
        prefers_views: false,
    })
}

/// Whether the folders in `root` are sides of a split, both of them there.
fn has_sides(root: &Path) -> Result<bool> {
    let entries = std::fs::read_dir(root).map_err(Error::read(root))?;
    let names = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'));
    let sides: Vec<_> = names.map(|name| split_named(&name)).collect();
    let has = |split| sides.contains(&Some(split));
    Ok(sides.iter().all(Option::is_some) && has(crate::Split::Train) && has(crate::Split::Val))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Split;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        root
    }

    #[test]
    fn classes_objects_and_sides_come_from_the_names() {
        let root = folder(&[
            "cups/a.jpg",
            "cups/b.PNG",
            "pans/red/2.jpg",
            "pans/red/10.webp",
            "pans/.x/1.jpg",
            "notes.txt",
        ]);
        let rows = read(root.path()).unwrap().rows;
        let found: Vec<(&str, &str, &str)> =
            rows.iter().map(|row| (row.class.as_str(), row.object.as_str(), row.file.as_str())).collect();
        assert_eq!(
            found,
            [
                ("cups", "a", "cups/a.jpg"),
                ("cups", "b", "cups/b.PNG"),
                ("pans", "red", "pans/red/2.jpg"),
                ("pans", "red", "pans/red/10.webp"),
            ]
        );
        assert!(rows.iter().all(|row| row.split.is_none() && row.pose.is_none()));
        let root = folder(&["train/cups/a.jpg", "test/cups/b.jpg"]);
        let rows = read(root.path()).unwrap().rows;
        assert_eq!(
            rows.iter().map(|row| row.split).collect::<Vec<_>>(),
            [Some(Split::Val), Some(Split::Train)]
        );
        assert!(rows.iter().all(|row| row.class == "cups"));
    }

    #[test]
    fn what_is_no_class_folder_is_named() {
        let refusal = |files: &[&str]| read(folder(files).path()).unwrap_err().to_string();
        assert!(
            refusal(&["a.jpg"]).ends_with(
                "a.jpg: this image belongs to no class: expected CLASS/IMAGE or CLASS/OBJECT/IMAGE"
            )
        );
        assert!(refusal(&["a/b/c/d.jpg"]).contains("lies too deep"));
        assert!(refusal(&["notes.txt"]).contains("holds no images (jpg, jpeg, png, webp)"));
    }
}
