//! Images that people name: files, folders, patterns, lists, and the views of packed datasets.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alphanumeric_sort::compare_os_str;
use walkdir::{DirEntry, WalkDir};

use crate::card::{CARD, Format};
use crate::error::{Error, Result};
use crate::image_file::{self, EXTENSIONS, OTHER_EXTENSIONS};
use crate::pattern::{is_pattern, matching};
use crate::{Dataset, Object, Views};

/// An image: a file, or a view of a packed dataset under the path it would have unpacked, or of one that refers to images
/// elsewhere, under their paths.
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
        let path = match dataset.is_referring() {
            true => dataset.image_name(object, view),
            false => root.join(synset).join(name).join(format!("image_{view}.jpg")),
        };
        Self { path, packed: Some((Arc::clone(dataset), object, view)) }
    }

    /// The view of a packed dataset that it is: dataset, object, view.
    pub(crate) fn packed(&self) -> Option<(&Dataset, usize, usize)> {
        self.packed.as_ref().map(|(dataset, object, view)| (&**dataset, *object, *view))
    }

    /// Its pixels at `side` x `side`, RGB.
    pub fn load(&self, side: usize) -> Result<Vec<u8>> {
        let Some((dataset, object, view)) = &self.packed else { return image_file::load(&self.path, side) };
        let mut pixels = vec![0; side * side * 3];
        dataset.image(*object, *view, side, &mut pixels)?;
        Ok(pixels)
    }
}

/// What some arguments name.
#[derive(Clone, Debug, Default)]
pub struct ImageList {
    /// The images, in order.
    pub images: Vec<Image>,
    /// What was left out, a sentence each.
    pub warnings: Vec<String>,
    /// Packed datasets by folder, opened once.
    datasets: HashMap<PathBuf, Option<Arc<Dataset>>>,
}

/// All images that `arguments` name, in order: a file, a folder (with everything below it, in natural order, hidden
/// files left out), a packed dataset, a pattern with `*` and `?`, or `@LIST`, a text file with one path a line.
pub fn collect(arguments: &[OsString]) -> Result<ImageList> {
    let mut list = ImageList::default();
    for argument in arguments {
        let (text, path) = (argument.to_string_lossy(), Path::new(argument));
        if let Some(file) = text.strip_prefix('@') {
            list.add_lines(Path::new(file))?;
        } else if path.is_dir() {
            list.add_folder(path)?;
        } else if is_pattern(&text) && !path.exists() {
            list.add_pattern(&text)?;
        } else {
            list.add_one(path)?;
        }
    }
    Ok(list)
}

impl ImageList {
    fn add_lines(&mut self, list: &Path) -> Result<()> {
        let bytes = std::fs::read(list).map_err(Error::read(list))?;
        let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        lines.enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#")).try_for_each(
            |(number, line)| {
                let place = |error| match error {
                    Error::Request(message) => {
                        Error::content(list, format!("line {}: {message}", number + 1))
                    }
                    other => other,
                };
                self.add_one(Path::new(&os_str(line))).map_err(place)
            },
        )
    }

    fn add_folder(&mut self, folder: &Path) -> Result<()> {
        let before = self.images.len();
        let mut others = BTreeSet::new();
        let is_hidden = |entry: &DirEntry| entry.file_name().to_string_lossy().starts_with('.');
        // Links may lead to one folder by many ways.
        let mut seen = HashSet::new();
        let mut is_new = |entry: &DirEntry| {
            !entry.file_type().is_dir() || entry.path().canonicalize().is_ok_and(|real| seen.insert(real))
        };
        let walk = WalkDir::new(folder).follow_links(true);
        let walk = walk.sort_by(|a, b| natural(a.file_name(), b.file_name())).into_iter();
        for entry in walk.filter_entry(|entry| (entry.depth() == 0 || !is_hidden(entry)) && is_new(entry)) {
            let path = match entry {
                Ok(entry) if entry.file_type().is_dir() => continue,
                // A pipe or a device would be waited for, or never end.
                Ok(entry) if !entry.file_type().is_file() => {
                    self.warnings.push(format!("skipped {}: not a regular file", entry.path().display()));
                    continue;
                }
                Ok(entry) => entry.into_path(),
                // A link to a folder that leads here.
                Err(error) if error.loop_ancestor().is_some() => continue,
                // A link to nothing is an image that cannot be read.
                Err(error) => match error.path().filter(|path| path.is_symlink()) {
                    Some(path) => path.to_path_buf(),
                    None => return Err(Error::walk(folder, error)),
                },
            };
            let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
            if EXTENSIONS.contains(&extension.as_str()) {
                self.images.push(Image::file(path));
            } else if OTHER_EXTENSIONS.contains(&extension.as_str()) {
                others.insert(extension);
            }
        }
        if !others.is_empty() {
            let kinds = others.into_iter().collect::<Vec<_>>().join(", ");
            self.warnings.push(format!(
                "skipped images of unsupported types in {} ({kinds}); jpg, png and webp are read",
                folder.display()
            ));
        }
        if self.images.len() == before {
            let Some(dataset) = self.packed(folder)? else {
                return Err(Error::content(folder, format!("holds no images ({})", EXTENSIONS.join(", "))));
            };
            for object in 0..dataset.objects().len() {
                self.images.extend(
                    (0..dataset.views_in(object)).map(|view| Image::view(&dataset, folder, object, view)),
                );
            }
        }
        Ok(())
    }

    /// Files that match `pattern`; brackets stand for themselves.
    fn add_pattern(&mut self, pattern: &str) -> Result<()> {
        let mut paths = matching(pattern);
        paths.retain(|path| path.is_file());
        if paths.is_empty() {
            return Err(Error::Request(format!("no file matches {pattern}")));
        }
        paths.sort_by(|a, b| by_parts(a, b));
        self.images.extend(paths.into_iter().map(Image::file));
        Ok(())
    }

    /// One image: a file, or a view of the packed dataset that its path leads into.
    fn add_one(&mut self, path: &Path) -> Result<()> {
        if path.is_file() {
            self.images.push(Image::file(path.to_path_buf()));
            return Ok(());
        }
        let view =
            path.file_stem().and_then(|stem| stem.to_str()?.strip_prefix("image_")?.parse::<usize>().ok());
        let mut folders = path.ancestors().skip(1);
        let parts = (folders.next().and_then(Path::file_name), folders.next().and_then(Path::file_name));
        if let (Some(view), (Some(name), Some(synset)), Some(root)) = (view, parts, folders.next())
            && let Some(dataset) = self.packed(root)?
        {
            let is_it = |object: &Object| *name == *object.name && *synset == *object.synset;
            let object =
                dataset.objects().iter().position(is_it).filter(|&object| view < dataset.views_in(object));
            if let Some(object) = object {
                self.images.push(Image::view(&dataset, root, object, view));
                return Ok(());
            }
        }
        Err(Error::Request(format!("there is no image {}", path.display())))
    }

    /// The packed dataset in `folder`, if there is one.
    fn packed(&mut self, folder: &Path) -> Result<Option<Arc<Dataset>>> {
        if let Some(known) = self.datasets.get(folder) {
            return Ok(known.clone());
        }
        let root = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let is_packed =
            |dataset: &Dataset| dataset.card().is_some_and(|card| card.settings.format != Format::Files);
        let found = match Dataset::open(root) {
            Ok(dataset) => Some(dataset).filter(is_packed).map(Arc::new),
            // A folder without a card is none; what is wrong with one that has a card is to be said.
            Err(error) if root.join(CARD).is_file() => return Err(error),
            Err(_) => None,
        };
        Ok(self.datasets.entry(folder.to_path_buf()).or_insert(found).clone())
    }
}

/// Numbers in names in their natural order: image_2 before image_10.
pub(crate) fn natural(a: &OsStr, b: &OsStr) -> Ordering {
    compare_os_str(a, b).then_with(|| a.cmp(b))
}

fn by_parts(a: &Path, b: &Path) -> Ordering {
    let pairs = a.components().zip(b.components());
    let mut orders = pairs.map(|(a, b)| natural(a.as_os_str(), b.as_os_str()));
    orders.find(|order| order.is_ne()).unwrap_or_else(|| a.cmp(b))
}

#[cfg(unix)]
fn os_str(bytes: &[u8]) -> std::borrow::Cow<'_, OsStr> {
    std::borrow::Cow::Borrowed(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

#[cfg(not(unix))]
fn os_str(bytes: &[u8]) -> std::borrow::Cow<'_, OsStr> {
    std::borrow::Cow::Owned(OsString::from(String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixty folders, each with two links to the next: 2^60 ways to the last one.
    #[cfg(unix)]
    #[test]
    fn a_lattice_of_links_and_a_pipe_do_not_take_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for number in 0..60 {
            let here = root.join(format!("d{number}"));
            std::fs::create_dir(&here).unwrap();
            std::fs::write(here.join("x.png"), b"x").unwrap();
            for link in ["a", "b"] {
                std::os::unix::fs::symlink(root.join(format!("d{}", number + 1)), here.join(link)).unwrap();
            }
        }
        let pipe = root.join("d59/pipe.jpg");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        let list = collect(&[root.into()]).unwrap();
        let images = list.images.iter().filter(|image| image.path.ends_with("x.png")).count();
        assert_eq!(images, 60);
        if made.is_ok_and(|status| status.success()) {
            assert!(list.warnings.iter().any(|w| w.ends_with("pipe.jpg: not a regular file")), "{list:?}");
            assert!(image_file::load(&pipe, 16).unwrap_err().to_string().ends_with("is not a regular file"));
            assert!(collect(&[pipe.into()]).is_err());
        }
    }

    #[test]
    fn folders_patterns_and_lists_in_natural_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["image_10.jpg", "image_2.jpg", "a [1].JPG", "notes.txt", "other.heic"] {
            std::fs::write(root.join(name), b"x").unwrap();
        }
        for (folder, name) in [(".thumbnails", "small.jpg"), ("image_3", "x.png"), ("image_11", "y.png")] {
            std::fs::create_dir(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join(name), b"x").unwrap();
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root, root.join("round")).unwrap();
            std::os::unix::fs::symlink(root.join("nothing"), root.join("nowhere.jpg")).unwrap();
        }
        let list = |path: &Path| collect(&[path.into()]);
        let names = |list: ImageList| -> Vec<String> {
            list.images
                .iter()
                .map(|image| image.path.file_name().unwrap().to_string_lossy().into_owned())
                .collect()
        };
        let all = list(root).unwrap();
        assert!(all.warnings.len() == 1 && all.warnings[0].contains("(heic)"), "{:?}", all.warnings);
        assert_eq!(names(all), ["a [1].JPG", "image_2.jpg", "x.png", "image_10.jpg", "y.png", "nowhere.jpg"]);
        let matching = |pattern: &str| names(list(&root.join(pattern)).unwrap());
        assert_eq!(matching("image_?.jpg"), ["image_2.jpg"]);
        assert_eq!(matching("image_*.jpg"), ["image_2.jpg", "image_10.jpg"]);
        assert_eq!(matching("image_*/*.png"), ["x.png", "y.png"]);
        assert_eq!(matching("a [1]*"), ["a [1].JPG"]);
        assert_eq!(matching("image_3/../*_2.jpg"), ["image_2.jpg"]);
        let file = root.join("list.txt");
        std::fs::write(&file, format!("# two\n{0}/image_10.jpg\n\n{0}/image_2.jpg\n", root.display()))
            .unwrap();
        assert_eq!(
            names(list(Path::new(&format!("@{}", file.display()))).unwrap()),
            ["image_10.jpg", "image_2.jpg"]
        );
        for missing in ["no.jpg", "no*.jpg", ".thumbnails/none"] {
            assert!(list(&root.join(missing)).is_err(), "{missing}");
        }
        std::fs::create_dir(root.join("empty")).unwrap();
        let error = list(&root.join("empty")).unwrap_err().to_string();
        assert!(error.ends_with("empty: holds no images (jpg, jpeg, png, webp)"), "{error}");
    }
}
