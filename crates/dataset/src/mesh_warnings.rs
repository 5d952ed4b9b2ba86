//! Warnings about meshes in words: files that are not used, and what was noticed of those that are.

use std::path::{Path, PathBuf};

use scene::objects::{self, Unused};

use crate::counted::counted;

/// So many files are named in a sentence; the others are counted.
const NAMED: usize = 3;

/// So many warnings about meshes are shown.
const SHOWN: usize = 10;

/// What is not used, a sentence for each kind.
pub(crate) fn of_unused(unused: &Unused) -> Vec<String> {
    let Unused { unsupported, misplaced, doubles } = unused;
    let kinds = [
        (
            unsupported,
            "file",
            format!("in formats that are not read (those that are: {})", objects::endings()),
        ),
        (
            misplaced,
            "mesh",
            "where no objects are looked for (CLASS/OBJECT.EXT and CLASS/OBJECT/MESH are)".to_owned(),
        ),
        (doubles, "mesh", "of objects of which another mesh is taken".to_owned()),
    ];
    let found = kinds.into_iter().filter(|(paths, ..)| !paths.is_empty());
    found
        .map(|(paths, what, why)| format!("left out {} {why}: {}", counted(paths.len(), what), named(paths)))
        .collect()
}

/// The first few of `paths`, and how many more there are.
fn named(paths: &[PathBuf]) -> String {
    let first =
        paths.iter().take(NAMED).map(|path| Path::display(path).to_string()).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The first of `warnings` about meshes and, where there are more, how many and where all of them are (`listed`).
pub fn shown_warnings(mut warnings: Vec<String>, listed: &str) -> Vec<String> {
    let more = warnings.len().saturating_sub(SHOWN);
    if more > 0 {
        warnings.truncate(SHOWN);
        warnings.push(format!("{} about meshes{listed}", counted(more, "more warning")));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_files_are_named_and_the_others_counted() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let unused = Unused {
            unsupported: paths(&["k/b.fbx"]),
            misplaced: Vec::new(),
            doubles: paths(&["k/a.stl", "k/b.stl", "k/c.stl", "k/d.stl", "k/e.stl"]),
        };
        assert_eq!(
            of_unused(&unused),
            [
                "left out 1 file in formats that are not read (those that are: .obj, .glb, .gltf, .ply, .off, .stl): k/b.fbx",
                "left out 5 meshes of objects of which another mesh is taken: k/a.stl, k/b.stl, k/c.stl and 2 more",
            ]
        );
    }

    #[test]
    fn ten_warnings_are_shown_and_the_others_counted() {
        let warnings = |number: usize| (0..number).map(|k| k.to_string()).collect::<Vec<_>>();
        assert_eq!(shown_warnings(warnings(10), ""), warnings(10));
        let shown = shown_warnings(warnings(11), ", all in x");
        assert_eq!((shown.len(), shown[10].as_str()), (11, "1 more warning about meshes, all in x"));
    }
}
