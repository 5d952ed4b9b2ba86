//! Pictures from files, for commands that use a network: files, folders, patterns and lists, decoded at the size the
//! network takes.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use dataset::card::Format;
use dataset::{Dataset, Object, Views};
use evaluate::{Encoded, Encoder};
use rayon::prelude::*;

use crate::commands::picture_file::{self, ENDINGS, OTHER_ENDINGS};
use crate::terminal::Terminal;

/// What to do about a picture that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OnBadSample {
    /// End with its name.
    Fail,
    /// Leave it out, with a warning.
    Skip,
}

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
        let Some((dataset, object, view)) = &self.packed else { return picture_file::load(&self.path, side) };
        let mut pixels = vec![0; side * side * 3];
        dataset.image(*object, *view, side, &mut pixels)?;
        Ok(pixels)
    }
}

/// All pictures that `arguments` name, in order: a file, a folder (with everything below it, sorted, hidden files left
/// out), a packed dataset, a pattern with `*` and `?`, or `@LIST`, a text file with one path a line.
pub fn collect(arguments: &[OsString], terminal: &Terminal) -> anyhow::Result<Vec<Image>> {
    let mut datasets = HashMap::new();
    let mut found = Vec::new();
    for argument in arguments {
        let text = argument.to_string_lossy();
        if let Some(list) = text.strip_prefix('@') {
            let bytes = std::fs::read(list).with_context(|| format!("cannot read the list {list}"))?;
            let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
            for line in lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
                found.push(one(Path::new(&os_str(line)), &mut datasets)?);
            }
            continue;
        }
        let path = Path::new(argument);
        if path.is_dir() {
            let mut below = Below::default();
            below.walk(path)?;
            if !below.others.is_empty() {
                let kinds = below.others.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                terminal.warn(format!(
                    "pictures of other kinds in {text} are left out ({kinds}); jpg and png are read"
                ));
            }
            if below.pictures.is_empty() {
                let Some(dataset) = packed(path, &mut datasets) else {
                    anyhow::bail!("{text} holds no pictures ({})", ENDINGS.join(", "));
                };
                for object in 0..dataset.objects().len() {
                    found.extend((0..dataset.views()).map(|view| Image::view(&dataset, path, object, view)));
                }
            }
            found.extend(below.pictures.into_iter().map(Image::file));
        } else if text.contains(['*', '?']) && !path.exists() {
            let mut paths = Vec::new();
            expand(path, &mut paths)?;
            if paths.is_empty() {
                anyhow::bail!("no file matches {text}");
            }
            found.extend(paths.into_iter().map(Image::file));
        } else {
            found.push(one(path, &mut datasets)?);
        }
    }
    Ok(found)
}

#[cfg(unix)]
fn os_str(bytes: &[u8]) -> std::borrow::Cow<'_, OsStr> {
    std::borrow::Cow::Borrowed(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

#[cfg(not(unix))]
fn os_str(bytes: &[u8]) -> std::borrow::Cow<'_, OsStr> {
    std::borrow::Cow::Owned(OsString::from(String::from_utf8_lossy(bytes).into_owned()))
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

/// What lies below a folder.
#[derive(Default)]
struct Below {
    pictures: Vec<PathBuf>,
    /// Endings of pictures that cannot be read.
    others: BTreeSet<String>,
    /// The folders that lead here, so that a link to one of them is not followed for ever.
    inside: Vec<PathBuf>,
}

impl Below {
    fn walk(&mut self, folder: &Path) -> anyhow::Result<()> {
        let place = folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
        if self.inside.contains(&place) {
            return Ok(());
        }
        self.inside.push(place);
        for path in children(folder)? {
            let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
                continue;
            } else if path.is_dir() {
                self.walk(&path)?;
            } else if ENDINGS.contains(&ending.as_str()) {
                self.pictures.push(path);
            } else if OTHER_ENDINGS.contains(&ending.as_str()) {
                self.others.insert(ending);
            }
        }
        self.inside.pop();
        Ok(())
    }
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

/// Pictures that are read while the network works on as many.
const AT_ONCE: usize = 128;
/// Warnings about pictures that are left out; more are only counted.
const MOST_WARNINGS: usize = 5;

/// The features of all `images`, in order, with progress. Those that cannot be read are an error, or, with
/// [`OnBadSample::Skip`], are taken off the list.
pub fn encode(
    encoder: &mut dyn Encoder,
    images: &mut Vec<Image>,
    on_bad: OnBadSample,
    terminal: &Terminal,
) -> anyhow::Result<Encoded> {
    let side = encoder.side();
    let progress = terminal.progress(images.len() as u64, "pictures");
    let mut all = Encoded::default();
    let mut bad = Vec::new();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let (sender, receiver) = sync_channel(1);
        let all_images = &*images;
        scope.spawn(move || {
            for chunk in all_images.chunks(AT_ONCE) {
                let read: Vec<anyhow::Result<Vec<u8>>> =
                    chunk.par_iter().map(|image| image.load(side)).collect();
                // Nobody listens any more after a failure.
                if sender.send(read).is_err() {
                    return;
                }
            }
        });
        let mut index = 0;
        for read in receiver {
            let mut pixels = Vec::new();
            let (count, mut good) = (read.len(), 0);
            for (offset, picture) in read.into_iter().enumerate() {
                match picture {
                    Ok(picture) => {
                        pixels.extend(picture);
                        good += 1;
                    }
                    Err(error) if on_bad == OnBadSample::Fail && all_images.len() > 1 => {
                        let what = crate::sentence(&error);
                        anyhow::bail!("{what} (--on-bad-sample skip leaves such pictures out)");
                    }
                    Err(error) if on_bad == OnBadSample::Fail => return Err(error),
                    Err(error) => bad.push((index + offset, crate::sentence(&error))),
                }
            }
            if good > 0 {
                let encoded = encoder.encode(&pixels, good)?;
                all.representation.extend(encoded.representation);
                all.equivariant.extend(encoded.equivariant);
                all.invariant.extend(encoded.invariant);
            }
            index += count;
            progress.advance(count as u64);
        }
        Ok(())
    })?;
    progress.finish();
    if bad.len() == images.len()
        && let Some((_, first)) = bad.first()
    {
        anyhow::bail!("none of the pictures can be read: {first}");
    }
    for (_, what) in bad.iter().take(MOST_WARNINGS) {
        terminal.warn(format!("left out {what}"));
    }
    if bad.len() > MOST_WARNINGS {
        terminal.warn(format!("{} more pictures are left out", bad.len() - MOST_WARNINGS));
    }
    let mut index = 0;
    images.retain(|_| {
        index += 1;
        bad.binary_search_by_key(&(index - 1), |(bad, _)| *bad).is_err()
    });
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
        std::fs::create_dir(folder.path().join(".thumbnails")).unwrap();
        std::fs::write(folder.path().join(".thumbnails/small.jpg"), b"x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("round")).unwrap();
        let terminal = Terminal::new(false, true);
        let collect = |path: &Path| collect(&[path.into()], &terminal);
        let all = collect(folder.path()).unwrap();
        let names: Vec<_> =
            all.iter().map(|image| image.path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["image_2.jpg", "image_10.jpg"]);
        assert_eq!(collect(&folder.path().join("image_?.jpg")).unwrap().len(), 1);
        assert_eq!(collect(&folder.path().join("../*/image_?.jpg")).unwrap().len(), 1);
        assert!(collect(Path::new("/no/such/picture.jpg")).is_err());
    }
}
