//! Where the JPEG bytes of a dataset are: files in folders, or members of tar archives found by an index.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::arrays;
use crate::error::{Error, FileError, Result};
use crate::object::{Object, Split};
use crate::tar;

/// Folder of the archives inside a dataset.
pub const SHARDS: &str = "shards";

/// `shards/train-000003.tar`, relative to the dataset.
pub fn archive_name(split: Split, number: usize) -> String {
    format!("{SHARDS}/{split}-{number:06}.tar")
}

/// The index beside an archive: `shards/train-000003.npy`.
pub fn index_name(split: Split, number: usize) -> String {
    format!("{SHARDS}/{split}-{number:06}.npy")
}

/// `image_3.jpg`, `latent_3.npy`: a view's files in the published layout.
pub fn file_names(view: usize) -> [String; 2] {
    [format!("image_{view}.jpg"), format!("latent_{view}.npy")]
}

/// Name of a view's members in an archive, without their extensions.
///
/// WebDataset takes everything up to the first dot of the last path component for the sample's key; object names may
/// hold dots, so they are folders here, not parts of the file name.
pub fn sample_key(object: &Object, view: usize) -> String {
    format!("{}/{}/{view:02}", object.synset, object.name)
}

/// Where images are.
#[derive(Debug)]
pub enum Storage {
    /// The published layout.
    Files,
    /// Archives.
    Archives {
        /// The archives in order.
        archives: Vec<Archive>,
        /// For every view, in the order of the archives: where it is.
        places: Vec<Place>,
    },
}

/// One archive; opened when first needed.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    file: OnceLock<File>,
}

/// Where one image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    archive: u32,
    length: u32,
    offset: u64,
}

impl Storage {
    /// Finds the archives of both sides of the split and reads their indices. `counts` are the number of views on
    /// each side.
    pub fn archives(root: &Path, counts: [usize; 2]) -> Result<Self> {
        let mut archives = Vec::new();
        let mut places = Vec::new();
        for (split, count) in Split::ALL.into_iter().zip(counts) {
            let before = places.len();
            for number in 0.. {
                let path = root.join(archive_name(split, number));
                if !path.exists() {
                    break;
                }
                let rows = read_index(root, split, number)?;
                let bytes = std::fs::metadata(&path).map_err(Error::read(&path))?.len();
                let inside = |&(offset, length): &(u64, u32)| {
                    offset.checked_add(u64::from(length)).is_some_and(|end| end <= bytes)
                };
                if !rows.iter().all(inside) {
                    return Err(Error::content(&path, "its index names images beyond its end"));
                }
                let archive = archives.len() as u32;
                places.extend(rows.into_iter().map(|(offset, length)| Place { archive, offset, length }));
                archives.push(Archive { path, file: OnceLock::new() });
            }
            let found = places.len() - before;
            if found != count {
                let message = format!("its {split} archives hold {found} images, the lists name {count}");
                return Err(Error::content(&root.join(SHARDS), message));
            }
        }
        Ok(Self::Archives { archives, places })
    }

    /// The JPEG bytes of `view` of `object`, which is image `row` of the archives.
    pub fn read(&self, root: &Path, object: &Object, view: usize, row: usize) -> Result<Vec<u8>> {
        match self {
            Self::Files => {
                let path = root.join(&object.synset).join(&object.name).join(format!("image_{view}.jpg"));
                std::fs::read(&path).map_err(Error::read(&path))
            }
            Self::Archives { archives, places } => {
                let place = places[row];
                let archive = &archives[place.archive as usize];
                let mut bytes = vec![0; place.length as usize];
                archive.read(place.offset, &mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// What to call an image in messages.
    pub fn name(&self, root: &Path, object: &Object, view: usize, row: usize) -> PathBuf {
        match self {
            Self::Files => root.join(&object.synset).join(&object.name).join(format!("image_{view}.jpg")),
            Self::Archives { archives, places } => {
                let archive = &archives[places[row].archive as usize].path;
                archive.join(format!("{}.jpg", sample_key(object, view)))
            }
        }
    }
}

impl Archive {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let file = File::open(&self.path).map_err(Error::read(&self.path))?;
                self.file.get_or_init(|| file)
            }
        };
        read_exact_at(file, bytes, offset).map_err(Error::read(&self.path))
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        offset += read as u64;
    }
    Ok(())
}

/// The (offset, length) rows of one archive, from its index or, where that is missing, from the archive itself.
fn read_index(root: &Path, split: Split, number: usize) -> Result<Vec<(u64, u32)>> {
    let path = root.join(index_name(split, number));
    let (values, path) = match arrays::read_integers(&path) {
        Ok((shape, values)) if matches!(shape[..], [_, 2]) => (values, path),
        Ok((shape, _)) => {
            return Err(Error::content(
                &path,
                format!("expected two columns (offset, length), found {shape:?}"),
            ));
        }
        Err(Error::File(FileError::Read { reason, .. })) if reason.kind() == std::io::ErrorKind::NotFound => {
            let path = root.join(archive_name(split, number));
            (index_of(&path)?, path)
        }
        Err(error) => return Err(error),
    };
    let row = |pair: &[i64]| Some((u64::try_from(pair[0]).ok()?, u32::try_from(pair[1]).ok()?));
    let rows: Option<Vec<_>> = values.chunks_exact(2).map(row).collect();
    rows.ok_or_else(|| Error::content(&path, "an offset or a length is out of range"))
}

/// Lists the images of an archive: offset, length, offset, length ...
pub fn index_of(path: &Path) -> Result<Vec<i64>> {
    let mut file = File::open(path).map_err(Error::read(path))?;
    let members = tar::members(&mut file, path)?;
    Ok(index_rows(&members, 0))
}

/// The index rows of the images among `members`, `base` bytes into the archive.
pub fn index_rows(members: &[tar::Member], base: u64) -> Vec<i64> {
    let images = members.iter().filter(|member| member.name.ends_with(".jpg"));
    images.flat_map(|member| [(base + member.offset) as i64, member.length as i64]).collect()
}
