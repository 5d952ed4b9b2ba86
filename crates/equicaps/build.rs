//! Tells the program which commit it was built from, as `EQUICAPS_COMMIT`: from the environment variable of that name
//! where somebody set it (a package builder, say), else from the repository's files. Runs no program and fails never:
//! without a repository the commit is simply not known.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=EQUICAPS_COMMIT");
    let given = std::env::var("EQUICAPS_COMMIT").ok().filter(|commit| !commit.is_empty());
    if let Some(commit) = given.or_else(|| commit_of(Path::new("../.."))) {
        println!("cargo::rustc-env=EQUICAPS_COMMIT={commit}");
    }
}

/// The commit that is checked out in the repository at `root`.
fn commit_of(root: &Path) -> Option<String> {
    let folder = git_folder(&root.join(".git"))?;
    let head = read(&folder.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref: ") else { return is_commit(&head).then_some(head) };
    // A worktree keeps its head to itself and shares the rest.
    let shared = read(&folder.join("commondir")).map_or_else(|| folder.clone(), |path| folder.join(path));
    [folder.join(reference), shared.join(reference)]
        .iter()
        .find_map(|path| read(path))
        .or_else(|| {
            let packed = read(&shared.join("packed-refs"))?;
            let line = packed.lines().find(|line| line.ends_with(&format!(" {reference}")))?;
            line.split(' ').next().map(str::to_owned)
        })
        .filter(|commit| is_commit(commit))
}

/// `.git` itself, or the folder that the file `.git` of a worktree names.
fn git_folder(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_path_buf());
    }
    let target = PathBuf::from(read(path)?.strip_prefix("gitdir: ")?);
    Some(if target.is_absolute() { target } else { path.parent()?.join(target) })
}

/// The text of a file, which the build then depends on.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.chars().all(|character| character.is_ascii_hexdigit())
}
