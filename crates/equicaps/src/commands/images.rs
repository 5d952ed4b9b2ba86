//! Pictures from files, for commands that use a network: files, folders, patterns and lists, decoded at the size the
//! network takes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use dataset::card::Format;
use dataset::resize::Resize;
use dataset::{Dataset, Object, Views, jpeg};
use evaluate::{Encoded, Encoder};
use rayon::prelude::*;

use crate::terminal::Terminal;

/// Endings of pictures that can be read.
const ENDINGS: [&str; 3] = ["jpg", "jpeg", "png"];

/// A picture: a file, or a view of a packed dataset under the path it would have unpacked.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its path.
    pub path: PathBuf,
    packed: Option<(Arc<Dataset>, usize, usize)>,
}

impl Image {
    fn file(path: PathBuf) -> Self {
        Self { path, packed: None }
    }

    fn view(dataset: &Arc<Dataset>, root: &Path, object: usize, view: usize) -> Self {
        let Object { synset, name, .. } = &dataset.objects()[object];
        let path = root.join(synset).join(name).join(format!("image_{view}.jpg"));
        Self { path, packed: Some((Arc::clone(dataset), object, view)) }
    }

    /// Its pixels at `side` x `side`, RGB.
    pub fn load(&self, side: usize) -> anyhow::Result<Vec<u8>> {
        let Some((dataset, object, view)) = &self.packed else { return load(&self.path, side) };
        let mut pixels = vec![0; side * side * 3];
        dataset.picture(*object, *view, side, &mut pixels)?;
        Ok(pixels)
    }
}

/// All pictures that `arguments` name, in order: a file, a folder (with everything below it, sorted), a packed dataset, a
/// pattern with `*` and `?`, or `@LIST`, a text file with one path a line.
pub fn collect(arguments: &[String]) -> anyhow::Result<Vec<Image>> {
    let mut datasets = HashMap::new();
    let mut found = Vec::new();
    for argument in arguments {
        if let Some(list) = argument.strip_prefix('@') {
            let text =
                std::fs::read_to_string(list).with_context(|| format!("cannot read the list {list}"))?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            for line in lines {
                found.push(one(Path::new(line), &mut datasets)?);
            }
            continue;
        }
        let path = Path::new(argument);
        if path.is_dir() {
            let mut paths = Vec::new();
            walk(path, &mut paths)?;
            if paths.is_empty() {
                let Some(dataset) = packed(path, &mut datasets) else {
                    anyhow::bail!("{argument} holds no pictures ({})", ENDINGS.join(", "));
                };
                for object in 0..dataset.objects().len() {
                    found.extend((0..dataset.views()).map(|view| Image::view(&dataset, path, object, view)));
                }
            }
            found.extend(paths.into_iter().map(Image::file));
        } else if argument.contains(['*', '?']) && !path.exists() {
            let mut paths = Vec::new();
            expand(path, &mut paths)?;
            if paths.is_empty() {
                anyhow::bail!("no file matches {argument}");
            }
            found.extend(paths.into_iter().map(Image::file));
        } else {
            found.push(one(path, &mut datasets)?);
        }
    }
    Ok(found)
}

/// One picture: a file, or a view of the packed dataset that its path leads into.
fn one(path: &Path, datasets: &mut HashMap<PathBuf, Option<Arc<Dataset>>>) -> anyhow::Result<Image> {
    if path.is_file() {
        return Ok(Image::file(path.to_path_buf()));
    }
    let view = path.file_stem().and_then(|stem| stem.to_str()?.strip_prefix("image_")?.parse::<usize>().ok());
    let mut folders = path.ancestors().skip(1);
    let parts = (folders.next().and_then(Path::file_name), folders.next().and_then(Path::file_name));
    if let (Some(view), (Some(name), Some(synset)), Some(root)) = (view, parts, folders.next())
        && let Some(dataset) = packed(root, datasets)
    {
        let is_it = |object: &Object| *name == *object.name && *synset == *object.synset;
        let object = dataset.objects().iter().position(is_it).filter(|_| view < dataset.views());
        if let Some(object) = object {
            return Ok(Image::view(&dataset, root, object, view));
        }
    }
    anyhow::bail!("there is no picture {}", path.display());
}

/// The packed dataset in `folder`, if there is one.
fn packed(folder: &Path, datasets: &mut HashMap<PathBuf, Option<Arc<Dataset>>>) -> Option<Arc<Dataset>> {
    let open = || {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let dataset = Dataset::open(folder).ok()?;
        let is_packed = dataset.card().is_some_and(|card| card.settings.format == Format::Shards);
        is_packed.then(|| Arc::new(dataset))
    };
    datasets.entry(folder.to_path_buf()).or_insert_with(open).clone()
}

/// Files that match a pattern, whose parts are matched one by one.
fn expand(pattern: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let parts: Vec<String> =
        pattern.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let mut places = vec![PathBuf::new()];
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        let mut next = Vec::new();
        for place in places {
            if !part.contains(['*', '?']) {
                next.push(place.join(part));
                continue;
            }
            let folder = if place.as_os_str().is_empty() { Path::new(".") } else { &place };
            if !folder.is_dir() {
                continue;
            }
            let fits = |child: &PathBuf| {
                child.file_name().is_some_and(|name| is_match(part, &name.to_string_lossy()))
                    && (is_last || child.is_dir())
            };
            let names = children(folder)?.into_iter().filter(fits);
            next.extend(names.filter_map(|child| Some(place.join(child.file_name()?))));
        }
        places = next;
    }
    found.extend(places.into_iter().filter(|path| path.is_file()));
    Ok(())
}

/// Makes the folder that a file is to be written into.
pub fn make_room(file: &Path) -> anyhow::Result<()> {
    if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        dataset::durable::create_folder(parent)?;
    }
    Ok(())
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

/// The picture of a file at `side` x `side` pixels, RGB.
fn load(path: &Path, side: usize) -> anyhow::Result<Vec<u8>> {
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

/// Pictures that are read while the network works on as many.
const AT_ONCE: usize = 128;

/// The features of all pictures, in order, with progress.
pub fn encode(encoder: &mut dyn Encoder, images: &[Image], terminal: &Terminal) -> anyhow::Result<Encoded> {
    let side = encoder.side();
    let progress = terminal.progress(images.len() as u64, "pictures");
    let read = |chunk: &[Image]| -> anyhow::Result<Vec<u8>> {
        let pictures: Vec<anyhow::Result<Vec<u8>>> = chunk.par_iter().map(|image| image.load(side)).collect();
        Ok(pictures.into_iter().collect::<anyhow::Result<Vec<_>>>()?.concat())
    };
    let mut all = Encoded::default();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let (sender, receiver) = sync_channel(1);
        scope.spawn(move || {
            for chunk in images.chunks(AT_ONCE) {
                // Nobody listens any more after a failure.
                if sender.send((chunk.len(), read(chunk))).is_err() {
                    return;
                }
            }
        });
        for (count, pixels) in receiver {
            let encoded = encoder.encode(&pixels?, count)?;
            all.representation.extend(encoded.representation);
            all.equivariant.extend(encoded.equivariant);
            all.invariant.extend(encoded.invariant);
            progress.advance(count as u64);
        }
        Ok(())
    })?;
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
            all.iter().map(|image| image.path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["image_2.jpg", "image_10.jpg"]);
        assert_eq!(collect(&[folder.path().join("image_?.jpg").display().to_string()]).unwrap().len(), 1);
        assert_eq!(
            collect(&[folder.path().join("../*/image_?.jpg").display().to_string()]).unwrap().len(),
            1
        );
        assert!(collect(&["/no/such/picture.jpg".to_owned()]).is_err());
    }
}
