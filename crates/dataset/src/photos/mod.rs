//! Photographs as views: every view of a photograph is a warp of it that is known, made when somebody asks for it.
//!
//! A photograph is an object, the folder it lies in its class. Warps and split are functions of the seed and the
//! photograph's name, so nothing depends on threads or memory. View `place + n * views`, for any `n`, is one more view, as
//! of [`crate::OnTheFly`].

mod picture;
mod ranges;
mod warp;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pose::{Group, Part, Space, ViewPose};
use scene::Latents;

pub use picture::Picture;
pub use ranges::WarpRanges;
pub use warp::{Warp, Warps};

use crate::counted::counted;
use crate::error::{Error, Result};
use crate::image_file::{decode_upright, read_regular};
use crate::image_list;
use crate::import::split_named;
use crate::object::{Class, Object, Split, SplitBy};
use crate::plan::classes;
use crate::side_folders::SideFolders;
use crate::split;
use crate::views::Views;

/// The class of photographs that lie in no folder of their own.
const NO_CLASS: &str = "photographs";

/// The part of a photograph's side that an unwarped view shows at least.
const LEAST_REACH: f64 = 0.05;

/// How views of photographs are made.
#[derive(Clone, Debug)]
pub struct PhotosOptions {
    /// What the warps are.
    pub group: Group,
    /// How far they go.
    pub ranges: WarpRanges,
    /// Views of each photograph that evaluations see; with a split by views, those for training.
    pub views: usize,
    /// Views of each photograph that are held out, besides; 0 for a split by photographs.
    pub held_out_views: usize,
    /// Side of the views where nobody asks for another.
    pub side: usize,
    /// Seed of warps and split.
    pub seed: u64,
    /// Bytes of decoded photographs to keep.
    pub memory: usize,
}

/// Photographs of a folder.
pub struct Photos {
    options: PhotosOptions,
    warps: Warps,
    objects: Vec<Object>,
    classes: Vec<Class>,
    files: Vec<PathBuf>,
    sides: SideFolders,
    kept: Vec<OnceLock<Arc<Picture>>>,
    bytes: AtomicUsize,
    /// Those that were prepared, until somebody asks for them.
    prepared: Mutex<HashMap<usize, Arc<Picture>>>,
    /// Whether somebody else has one, so that it need not be prepared.
    is_handed_over: Vec<AtomicBool>,
}

impl Photos {
    /// The photographs in `folder` and in all folders below it: `CLASS/PHOTO.jpg`, or all of one class; below `train/` and
    /// `val/` where there are such, which are the split then.
    pub fn open(folder: &Path, options: PhotosOptions) -> Result<Self> {
        options.ranges.validate().map_err(Error::Request)?;
        let warps = Warps::within(options.group, options.ranges);
        if warps.reach() < LEAST_REACH {
            return Err(Error::Request(format!(
                "photos.scale, .translation, .shear and .perspective go so far that views would show {:.3} of the side of a \
                 photograph, so as not to reach its edge; at least {LEAST_REACH} is needed",
                warps.reach()
            )));
        }
        let list = image_list::collect(&[OsString::from(folder)])?;
        let files: Vec<PathBuf> = list
            .images
            .into_iter()
            .filter(|image| image.packed().is_none())
            .map(|image| image.path)
            .collect();
        if files.is_empty() {
            let what = "holds no image files to be warped; views of a packed dataset are none";
            return Err(Error::content(folder, what));
        }
        let below: Vec<Vec<String>> = files.iter().map(|path| parts_below(folder, path)).collect();
        let folders = below.iter().filter(|parts| parts.len() > 1).map(|parts| parts[0].as_str());
        let sides = SideFolders::of(folders);
        if let Some(at) = below.iter().position(|parts| sides.are_sides && parts.len() == 1) {
            let what =
                "lies on no side of the split: expected it in one of the folders of the sides beside it";
            return Err(Error::content(&files[at], what));
        }
        let mut named: Vec<((String, String), PathBuf)> =
            below.iter().map(|parts| named(parts, sides.are_sides)).zip(files).collect();
        named.sort();
        let ids = || named.iter().map(|(id, _)| id.clone());
        let objects = match options.held_out_views {
            0 if sides.are_sides => split::as_given(options.seed, ids().map(|id| (id.clone(), side(&id)))),
            0 => split::assign_by(SplitBy::Objects, options.seed, &ids().collect::<Vec<_>>()),
            _ => split::assign_by(SplitBy::Views, options.seed, &ids().collect::<Vec<_>>()),
        };
        let file = |object: &Object| {
            let id = (object.synset.clone(), object.name.clone());
            named.binary_search_by(|(other, _)| other.cmp(&id)).map(|at| named[at].1.clone())
        };
        let files: std::result::Result<Vec<PathBuf>, usize> = objects.iter().map(file).collect();
        let files = files.map_err(|_| Error::Request("two photographs have the same name".to_owned()))?;
        Ok(Self {
            warps,
            classes: classes(&objects),
            kept: objects.iter().map(|_| OnceLock::new()).collect(),
            bytes: AtomicUsize::new(0),
            prepared: Mutex::default(),
            is_handed_over: objects.iter().map(|_| AtomicBool::new(false)).collect(),
            objects,
            files,
            sides,
            options,
        })
    }

    /// Side of the photographs as they are kept: an unwarped view of the usual size shows their pixels.
    fn most(&self) -> usize {
        (self.options.side as f64 / self.warps.reach()).ceil() as usize
    }

    /// A photograph, ready to be warped; kept as far as there is memory.
    pub fn picture(&self, object: usize) -> Result<Arc<Picture>> {
        if let Some(known) = self.kept[object].get() {
            return Ok(Arc::clone(known));
        }
        let picture = self.take_or_decode(object)?;
        let size = picture.bytes();
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size > self.options.memory
            || self.kept[object].set(Arc::clone(&picture)).is_err()
        {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
        }
        Ok(picture)
    }

    /// The same for somebody who keeps it elsewhere from now on.
    pub fn hand_over(&self, object: usize) -> Result<Arc<Picture>> {
        let picture = match self.kept[object].get() {
            Some(known) => Arc::clone(known),
            None => self.take_or_decode(object)?,
        };
        self.is_handed_over[object].store(true, Ordering::Relaxed);
        Ok(picture)
    }

    fn take_or_decode(&self, object: usize) -> Result<Arc<Picture>> {
        let prepared = self.prepared().remove(&object);
        prepared.map_or_else(|| self.decode(object), Ok)
    }

    fn decode(&self, object: usize) -> Result<Arc<Picture>> {
        let path = &self.files[object];
        let bytes = read_regular(path)?;
        let image = decode_upright(&bytes).map_err(|message| Error::content(path, message))?;
        Ok(Arc::new(Picture::new(&image, self.most())))
    }

    fn prepared(&self) -> MutexGuard<'_, HashMap<usize, Arc<Picture>>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The warp of one view.
    pub fn warp(&self, object: usize, view: usize) -> Warp {
        self.warps.draw(self.options.seed, &self.objects[object].id(), view as u64)
    }
}

/// The parts of a path below `folder`.
fn parts_below(folder: &Path, path: &Path) -> Vec<String> {
    let below = path.strip_prefix(folder).unwrap_or(path);
    below.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
}

/// The class and the name of a photograph; where folders are sides, the name begins with that of its side.
fn named(parts: &[String], are_sides: bool) -> (String, String) {
    let (side, below) = match parts {
        [side, below @ ..] if are_sides => (Some(side), below),
        all => (None, all),
    };
    let (class, name) = match below {
        [class, name @ ..] if !name.is_empty() => (class.as_str(), name),
        all => (NO_CLASS, all),
    };
    let name: Vec<&str> = side.into_iter().chain(name).map(String::as_str).collect();
    (class.to_owned(), name.join("/"))
}

/// The side of the split that the name of a photograph begins with.
fn side((_, name): &(String, String)) -> Split {
    name.split('/').next().and_then(split_named).unwrap_or(Split::Train)
}

impl Views for Photos {
    fn objects(&self) -> &[Object] {
        &self.objects
    }

    fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn views(&self) -> usize {
        self.options.views + self.options.held_out_views
    }

    fn held_out_views(&self) -> usize {
        self.options.held_out_views
    }

    fn side(&self) -> usize {
        self.options.side
    }

    fn space(&self) -> Space {
        Space::Image
    }

    fn has_translation(&self) -> bool {
        self.has(Part::Translation)
    }

    fn has(&self, part: Part) -> bool {
        self.options.group.has(part)
    }

    fn has_light(&self) -> bool {
        false
    }

    fn has_more_views(&self) -> bool {
        true
    }

    fn latents(&self, object: usize, view: usize) -> Latents {
        self.warp(object, view).latents()
    }

    fn pose(&self, object: usize, view: usize) -> ViewPose {
        self.warp(object, view).pose
    }

    fn images_digest(&self) -> Option<u64> {
        let mut hash = random::Fnv1a::new();
        hash.add(self.options.group.name.as_bytes());
        if self.options.ranges != WarpRanges::default() {
            hash.add(&self.options.ranges.bytes());
        }
        for file in &self.files {
            let bytes = std::fs::metadata(file).map_or(0, |found| found.len());
            hash.add(&bytes.to_le_bytes());
        }
        Some(hash.value())
    }

    fn image(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()> {
        self.picture(object)?.view(&self.warp(object, view), side, pixels);
        Ok(())
    }

    fn prepare(&self, object: usize) -> Result<()> {
        let is_there = self.is_handed_over[object].load(Ordering::Relaxed)
            || self.kept[object].get().is_some()
            || self.prepared().contains_key(&object);
        if !is_there {
            let picture = self.decode(object)?;
            self.prepared().insert(object, picture);
        }
        Ok(())
    }

    fn description(&self) -> String {
        let PhotosOptions { side, group, .. } = &self.options;
        let photographs = counted(self.objects.len(), "photograph");
        let classes = counted(self.classes.len(), "class");
        let folders = match &self.sides {
            SideFolders { are_sides: true, .. } if self.options.held_out_views == 0 => {
                "; the split is that of the folders".to_owned()
            }
            SideFolders { beside: Some(beside), .. } => {
                format!(
                    "; all folders are taken for classes, also those of a split, as {beside} lies beside them"
                )
            }
            _ => String::new(),
        };
        format!("{photographs} of {classes}, warped on the fly ({group}) at {side}x{side}{folders}")
    }
}

#[cfg(test)]
mod tests;
