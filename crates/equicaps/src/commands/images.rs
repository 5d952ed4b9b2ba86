//! Pictures from files, for commands that use a network: files, folders, patterns and lists, decoded at the size the
//! network takes.

use std::path::{Path, PathBuf};

use anyhow::Context;
use dataset::jpeg;
use dataset::resize::Resize;
use evaluate::{Encoded, Encoder};
use rayon::prelude::*;

use crate::terminal::Terminal;

/// Endings of pictures that can be read.
const ENDINGS: [&str; 3] = ["jpg", "jpeg", "png"];

/// All pictures that `arguments` name, in order: a file, a folder (with everything below it, sorted), a pattern with
/// `*` and `?` in its last part, or `@LIST`, a text file with one path a line.
pub fn collect(arguments: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for argument in arguments {
        if let Some(list) = argument.strip_prefix('@') {
            let text =
                std::fs::read_to_string(list).with_context(|| format!("cannot read the list {list}"))?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            found.extend(lines.map(PathBuf::from));
            continue;
        }
        let path = Path::new(argument);
        if path.is_dir() {
            let before = found.len();
            walk(path, &mut found)?;
            if found.len() == before {
                anyhow::bail!("{argument} holds no pictures ({})", ENDINGS.join(", "));
            }
        } else if path.exists() {
            found.push(path.to_path_buf());
        } else if argument.contains(['*', '?']) {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let pattern =
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let mut names = children(parent)?;
            names.retain(|child| {
                child.file_name().is_some_and(|name| is_match(&pattern, &name.to_string_lossy()))
                    && child.is_file()
            });
            if names.is_empty() {
                anyhow::bail!("no file matches {argument}");
            }
            found.extend(names);
        } else {
            anyhow::bail!("there is no picture {argument}");
        }
    }
    Ok(found)
}

fn children(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // Numbers in names in their natural order: image_2 before image_10.
    paths.sort_by_key(|path| natural(&path.to_string_lossy()));
    Ok(paths)
}

fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let words = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(words);
        let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(digits);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    parts
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for path in children(folder)? {
        if path.is_dir() {
            walk(&path, found)?;
        } else if path
            .extension()
            .is_some_and(|e| ENDINGS.contains(&e.to_string_lossy().to_lowercase().as_str()))
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Shell patterns: `*` any characters, `?` one.
fn is_match(pattern: &str, name: &str) -> bool {
    match (pattern.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => {
            let rest = &pattern[1..];
            is_match(rest, name)
                || name.chars().next().is_some_and(|c| is_match(pattern, &name[c.len_utf8()..]))
        }
        (Some('?'), Some(c)) => is_match(&pattern[1..], &name[c.len_utf8()..]),
        (Some(p), Some(c)) if p == c => is_match(&pattern[p.len_utf8()..], &name[c.len_utf8()..]),
        _ => false,
    }
}

/// One picture at `side` x `side` pixels, RGB.
pub fn load(path: &Path, side: usize) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_png = bytes.starts_with(b"\x89PNG");
    let (width, height, pixels) = if is_png {
        let image = image::load_from_memory(&bytes)
            .with_context(|| format!("{} cannot be decoded", path.display()))?;
        let image = image.to_rgb8();
        (image.width() as usize, image.height() as usize, image.into_raw())
    } else {
        let picture =
            jpeg::decode(&bytes).map_err(|message| anyhow::anyhow!("{}: {message}", path.display()))?;
        (picture.width, picture.height, picture.pixels)
    };
    if (width, height) == (side, side) {
        return Ok(pixels);
    }
    if width == 0 || height == 0 {
        anyhow::bail!("{} is empty", path.display());
    }
    let mut resized = vec![0; side * side * 3];
    Resize::new(width, height, side).apply(&pixels, &mut resized);
    Ok(resized)
}

/// The features of all pictures, in order, with progress.
pub fn encode(encoder: &mut dyn Encoder, paths: &[PathBuf], terminal: &Terminal) -> anyhow::Result<Encoded> {
    let side = encoder.side();
    let progress = terminal.progress(paths.len() as u64, "pictures");
    let mut all = Encoded::default();
    for chunk in paths.chunks(64) {
        let pictures: Vec<anyhow::Result<Vec<u8>>> = chunk.par_iter().map(|path| load(path, side)).collect();
        let pixels = pictures.into_iter().collect::<anyhow::Result<Vec<_>>>()?.concat();
        let encoded = encoder.encode(&pixels, chunk.len())?;
        all.representation.extend(encoded.representation);
        all.equivariant.extend(encoded.equivariant);
        all.invariant.extend(encoded.invariant);
        progress.advance(chunk.len() as u64);
    }
    progress.finish();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_natural_order() {
        assert!(is_match("image_*.jpg", "image_10.jpg") && is_match("*", "x") && is_match("a?c", "abc"));
        assert!(!is_match("image_*.jpg", "latent_1.npy") && !is_match("a?c", "ac"));
        let folder = tempfile::tempdir().unwrap();
        for name in ["image_10.jpg", "image_2.jpg", "notes.txt"] {
            std::fs::write(folder.path().join(name), b"x").unwrap();
        }
        let all = collect(&[folder.path().display().to_string()]).unwrap();
        let names: Vec<_> =
            all.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["image_2.jpg", "image_10.jpg"]);
        assert_eq!(collect(&[folder.path().join("image_?.jpg").display().to_string()]).unwrap().len(), 1);
        assert!(collect(&["/no/such/picture.jpg".to_owned()]).is_err());
    }
}
