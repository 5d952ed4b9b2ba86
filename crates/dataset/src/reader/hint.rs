//! What somebody may have meant who named a place that is no dataset, and which command is for that.

use std::path::Path;

use scene::objects::{self, ObjectsError};
use walkdir::WalkDir;

use crate::card::CARD;
use crate::folder_depth;
use crate::image_file::EXTENSIONS;
use crate::import;

/// Where there is no folder `root`: a sentence.
pub(super) fn no_folder(root: &Path) -> String {
    let (place, word) = (root.display(), crate::shell_word(root));
    if let Some(size) = root.to_str().and_then(|text| text.strip_prefix("procedural:")) {
        return format!(
            "there is no dataset folder {place}; views on disk are needed here: \
             equicaps render --procedural {size} --out DIR"
        );
    }
    if !root.is_file() {
        return format!("there is no dataset folder {place}");
    }
    if objects::is_mesh_file(root) {
        return format!("{place} is one mesh; expected a folder of them, as CLASS/OBJECT.obj, or a dataset");
    }
    if import::is_table(root) {
        return format!(
            "{place} is a file; if it is a table of images, equicaps dataset import {word} --out DIR makes a dataset of them"
        );
    }
    format!("{place} is a file; expected the folder of a dataset, or a folder of meshes")
}

/// Where `root` is a folder and `lists_folder` has no lists: the rest of a sentence.
pub(super) fn instead(root: &Path, lists_folder: &Path) -> String {
    if lists_folder != root {
        return String::new();
    }
    let word = crate::shell_word(root);
    match root.parent() {
        Some(parent) if parent.join(CARD).exists() => {
            format!("; its shards or images alone are not enough, the dataset is {}", parent.display())
        }
        _ => match (objects::discover(root), folder_depth::too_high(root)) {
            (Ok(_), _) => format!(
                "; it holds meshes: make views of them with equicaps render --meshes {word} --out DIR"
            ),
            (Err(ObjectsError::Empty { has_loose: true, .. }), _) => {
                "; the meshes in it belong to no class: move them into a folder of their class".to_owned()
            }
            (Err(ObjectsError::Empty { wrong_name: Some(reason), .. }), _) => {
                format!("; none of the meshes in it can be used ({reason})")
            }
            (Err(_), Some(wrong)) => format!("; {wrong}"),
            (Err(_), None) if import::is_importable(root) => format!(
                "; split files that are kept elsewhere are named by --lists; images without them become a dataset by \
                 equicaps dataset import {word} --out DIR{}",
                transform(&word)
            ),
            (Err(_), None) if holds_images(root) => {
                format!("; it holds images without lists of objects{}", transform(&word))
            }
            (Err(_), None) => format!(
                ", nor are there meshes (CLASS/OBJECT with {}); split files that are kept elsewhere are named by --lists",
                objects::endings()
            ),
        },
    }
}

/// How photographs are trained on, of which no pose is known: the rest of a sentence.
fn transform(word: &str) -> String {
    format!(
        "; photographs without poses are trained on by equicaps train --data {word} --transform image-rotation (or another \
         group of images, docs/groups.md)"
    )
}

/// So many files and folders are looked at for an image.
const MOST_ENTRIES: usize = 10_000;

/// Whether there is an image in `folder`.
fn holds_images(folder: &Path) -> bool {
    let is_image = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
    };
    let mut entries = WalkDir::new(folder).into_iter().take(MOST_ENTRIES).flatten();
    entries.any(|entry| entry.file_type().is_file() && is_image(entry.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_dataset_is_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let said = |name: &str| {
            let path = root.path().join(name);
            std::fs::write(&path, "").unwrap();
            no_folder(&path)
        };
        assert!(said("chair.OBJ").contains("is one mesh; expected a folder of them"));
        assert!(said("poses.csv").contains("is a file; if it is a table of images, equicaps dataset import"));
        assert!(
            said("all.zip").ends_with("is a file; expected the folder of a dataset, or a folder of meshes")
        );
        let missing = no_folder(&root.path().join("nowhere"));
        assert!(
            missing.ends_with("nowhere") && missing.starts_with("there is no dataset folder"),
            "{missing}"
        );
        assert!(instead(root.path(), root.path()).starts_with("; the meshes in it belong to no class"));
        std::fs::remove_file(root.path().join("chair.OBJ")).unwrap();
        let bare = instead(root.path(), root.path());
        assert!(bare.starts_with(", nor are there meshes (CLASS/OBJECT with .obj, .glb, "), "{bare}");
        assert_eq!(instead(root.path(), Path::new("lists")), "");
        std::fs::write(root.path().join("cat.JPG"), "").unwrap();
        let photographs = instead(root.path(), root.path());
        let word = crate::shell_word(root.path());
        let train = format!("equicaps train --data {word} --transform image-rotation");
        assert!(
            photographs.starts_with("; it holds images") && photographs.contains(&train),
            "{photographs}"
        );
        std::fs::create_dir(root.path().join("c")).unwrap();
        std::fs::write(root.path().join("c/b\\d.obj"), "").unwrap();
        let misnamed = instead(root.path(), root.path());
        assert!(misnamed.ends_with("(c/b\u{fffd}d: its name has a backslash; rename it)"), "{misnamed}");
    }
}
