//! Folders of images without a table: `CLASS/IMAGE`, where every image is an object of its own, or `CLASS/OBJECT/IMAGE`;
//! below `train/` and `val/` where there are such folders.

use std::path::Path;

use walkdir::{DirEntry, WalkDir};

use crate::counted::counted;
use crate::error::{Error, Result};
use crate::image_file::{EXTENSIONS, OTHER_EXTENSIONS};
use crate::image_list::natural;
use crate::import::own_names::{Own, tell_apart};
use crate::import::rows::{Row, Rows, split_named};
use crate::side_folders::SideFolders;

/// All images below `root`.
pub fn read(root: &Path) -> Result<Rows> {
    let (images, others) = images(root)?;
    let folders = images.iter().filter(|parts| parts.len() > 1).map(|parts| parts[0].as_str());
    let SideFolders { are_sides, beside } = SideFolders::of(folders);
    let mut rows = Vec::new();
    let mut own = Vec::new();
    for parts in &images {
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (side, below) = match &names[..] {
            [side, below @ ..] if are_sides && !below.is_empty() => (Some(*side), below),
            all => (None, all),
        };
        let wrong = |message: &str| {
            let message = format!("{message}: expected CLASS/IMAGE or CLASS/OBJECT/IMAGE");
            Err(Error::content(&root.join(parts.join("/")), message))
        };
        let (class, object) = match below {
            [class, file] => {
                own.push(Own { row: rows.len(), side: side.map(str::to_owned) });
                (*class, Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file))
            }
            [class, object, _] => (*class, *object),
            [_] => return wrong("this image belongs to no class"),
            _ => return wrong("lies too deep"),
        };
        rows.push(Row {
            place: parts.join("/"),
            file: parts.join("/"),
            class: class.to_owned(),
            object: object.to_owned(),
            view: None,
            split: side.and_then(split_named),
            pose: None,
            light: None,
            region: None,
        });
    }
    if rows.is_empty() {
        let message = format!("holds no images ({}) in folders of classes", EXTENSIONS.join(", "));
        return Err(Error::content(root, message));
    }
    tell_apart(&mut rows, &own);
    let mut notes = Vec::new();
    if others > 0 {
        notes.push(format!("left out, of unsupported types: {}", counted(others, "image")));
    }
    if let Some(beside) = beside {
        notes.push(format!(
            "all folders are taken for classes, also those of a split, as {beside} lies beside them"
        ));
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

/// The images below `root`, as the parts of their paths, in natural order; and the number of those of types that cannot be
/// read. A link to nothing with an image's name is an image that is not there.
fn images(root: &Path) -> Result<(Vec<Vec<String>>, usize)> {
    let (mut images, mut others) = (Vec::new(), 0);
    let walk = WalkDir::new(root).follow_links(true).sort_by(|a, b| natural(a.file_name(), b.file_name()));
    let is_seen =
        |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.');
    for entry in walk.into_iter().filter_entry(is_seen) {
        let path = match entry {
            Ok(entry) if entry.file_type().is_file() => entry.into_path(),
            Ok(_) => continue,
            // A link to a folder that leads here.
            Err(error) if error.loop_ancestor().is_some() => continue,
            Err(error) => match error.path().filter(|path| path.is_symlink() && !path.exists()) {
                Some(path) => path.to_path_buf(),
                None => return Err(Error::walk(root, error)),
            },
        };
        let extension =
            path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default();
        if EXTENSIONS.contains(&extension.as_str()) {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let parts: Option<Vec<String>> =
                relative.iter().map(|part| part.to_str().map(str::to_owned)).collect();
            images.push(parts.ok_or_else(|| Error::content(&path, "its name is not UTF-8"))?);
        } else {
            others += usize::from(OTHER_EXTENSIONS.contains(&extension.as_str()));
        }
    }
    Ok((images, others))
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
        let beside = refusal(&["train/c/a.jpg", "val/c/b.jpg", "top.jpg"]);
        assert!(beside.contains("top.jpg: this image belongs to no class"), "{beside}");
        assert!(refusal(&["notes.txt"]).contains("holds no images (jpg, jpeg, png, webp)"));
    }

    #[test]
    fn images_of_one_name_are_objects_of_their_own_and_sides_stay_sides() {
        let names = |files: &[&str]| {
            let rows = read(folder(files).path()).unwrap();
            let names: Vec<_> = rows.rows.iter().map(|row| (row.object.clone(), row.split)).collect();
            (names, rows.notes)
        };
        let of = |name: &str, split| (name.to_owned(), split);
        // A folder without images beside the sides does not matter.
        let (found, notes) =
            names(&["test/cups/a.jpg", "train/cups/a.jpg", "train/cups/b.jpg", "notes/x.txt"]);
        let (train, val) = (Some(Split::Train), Some(Split::Val));
        assert_eq!(found, [of("test_a", val), of("train_a", train), of("b", train)]);
        assert!(notes.is_empty(), "{notes:?}");
        // Views of one object on both sides stay one object.
        let (found, _) = names(&["test/cups/red/1.jpg", "train/cups/red/1.jpg"]);
        assert_eq!(found, [of("red", val), of("red", train)]);
        let (found, _) = names(&["c/a.jpg", "c/a/1.jpg", "c/b.jpg", "c/b.png"]);
        assert_eq!(found, ["a", "a.jpg", "b.jpg", "b.png"].map(|name| of(name, None)));
        let (found, notes) = names(&["extra/x.jpg", "train/a.jpg", "val/a.jpg"]);
        assert_eq!(found[1], of("a", None));
        assert!(notes[0].ends_with("as extra lies beside them"), "{notes:?}");
    }

    #[cfg(unix)]
    #[test]
    fn links_to_nothing_are_images_that_are_not_there() {
        let root = folder(&["cups/a.jpg"]);
        for (to, link) in [("nothing", "cups/b.jpg"), ("nothing", "cups/b.txt"), ("..", "cups/round")] {
            std::os::unix::fs::symlink(to, root.path().join(link)).unwrap();
        }
        let rows = read(root.path()).unwrap();
        assert_eq!(
            rows.rows.iter().map(|row| row.file.as_str()).collect::<Vec<_>>(),
            ["cups/a.jpg", "cups/b.jpg"]
        );
        let missing = read(&root.path().join("none")).unwrap_err().to_string();
        assert!(missing.ends_with("none: no such file or directory"), "{missing}");
    }
}
