//! Where the JPEG bytes of a dataset are: files in folders, or members of tar archives found by an index.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::arrays;
use crate::card::Card;
use crate::checksums;
use crate::descriptors::OpenFiles;
use crate::error::{Error, FileError, Result};
use crate::image_file::read_regular;
use crate::import::Region;
use crate::import::reading::read_files;
use crate::object::{Object, Split, SplitBy};
use crate::tar;
use crate::view_index::ViewIndex;

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
    Files {
        /// Of every view (row = views * object + view), where they are known.
        checksums: Option<Vec<u32>>,
    },
    /// Archives.
    Archives {
        /// The archives in order.
        archives: Vec<PathBuf>,
        /// Those of them that are open.
        files: OpenFiles,
        /// For every view, in the order of the archives: where it is.
        places: Vec<Place>,
    },
    /// Images that stay where they are.
    Reference {
        /// Of every view, in the order of the tables of checksums: its file, and the part of it that shows the object.
        files: Vec<(PathBuf, Option<Region>)>,
        /// Of every view.
        checksums: Option<Vec<u32>>,
    },
}

/// Where one image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    archive: u32,
    length: u32,
    offset: u64,
    checksum: Option<u32>,
}

impl Storage {
    /// Single files; `counts` are the number of views on each side of the split, whose lists are in `lists_folder`.
    pub fn files(lists_folder: &Path, counts: [usize; 2]) -> Result<Self> {
        Ok(Self::Files { checksums: checksums::read_tables(lists_folder, counts)? })
    }

    /// Finds the archives of both sides of the split and reads their indices. `counts` are the number of views on
    /// each side.
    pub fn archives(root: &Path, counts: [usize; 2]) -> Result<Self> {
        let mut archives = Vec::new();
        let mut places = Vec::new();
        for (split, count) in Split::ALL.into_iter().zip(counts) {
            let before = places.len();
            let mut next = root.to_path_buf();
            for number in 0.. {
                let path = root.join(archive_name(split, number));
                if !path.exists() {
                    next = path;
                    break;
                }
                let rows = read_index(root, split, number)?;
                let bytes = std::fs::metadata(&path).map_err(Error::read(&path))?.len();
                let inside = |row: &IndexRow| {
                    row.offset.checked_add(u64::from(row.length)).is_some_and(|end| end <= bytes)
                };
                if !rows.iter().all(inside) {
                    return Err(Error::content(&path, "its index names images beyond its end"));
                }
                let archive = archives.len() as u32;
                places.extend(rows.into_iter().map(|row| Place {
                    archive,
                    offset: row.offset,
                    length: row.length,
                    checksum: row.checksum,
                }));
                archives.push(path);
            }
            let found = places.len() - before;
            if found < count {
                let message = format!(
                    "is missing: the {split} archives before it hold {found} of the {count} images that the lists name"
                );
                return Err(Error::content(&next, message));
            }
            if found != count {
                let message = format!("its {split} archives hold {found} images, the lists name {count}");
                return Err(Error::content(&root.join(SHARDS), message));
            }
        }
        Ok(Self::Archives { archives, files: OpenFiles::new(), places })
    }

    /// Images that stay where they are: those that the sources in `root` name. `index` has what the files hold out.
    pub fn reference(
        root: &Path,
        lists_folder: &Path,
        card: Option<&Card>,
        index: &ViewIndex,
        counts: [usize; 2],
    ) -> Result<Self> {
        let Some(card) = card else {
            return Err(Error::content(root, "holds no card, which says where its images are"));
        };
        let folder =
            card.settings.imported().and_then(|imported| imported.folder.clone()).unwrap_or_default();
        let by_row = read_files(root, card, index.total())?;
        let by_views = card.settings.split == SplitBy::Views;
        let place = |number: usize| {
            let (object, view) = index.item(number);
            let (file, region) = &by_row[if by_views { index.row(object, view) } else { number }];
            (folder.join(file), *region)
        };
        let files = (0..by_row.len()).map(place).collect();
        Ok(Self::Reference { files, checksums: checksums::read_tables(lists_folder, counts)? })
    }

    /// Whether images stay where they are.
    pub fn is_reference(&self) -> bool {
        matches!(self, Self::Reference { .. })
    }

    /// The part of image `row` that shows the object, where it is known.
    pub fn region(&self, row: usize) -> Option<Region> {
        match self {
            Self::Reference { files, .. } => files[row].1,
            Self::Files { .. } | Self::Archives { .. } => None,
        }
    }

    /// The JPEG bytes of `view` of `object`, which is image `row` in the order of the archives, or of the tables of
    /// checksums; damaged ones are refused where their checksum is known.
    pub fn read(&self, root: &Path, object: &Object, view: usize, row: usize) -> Result<Vec<u8>> {
        let bytes = match self {
            Self::Files { .. } => {
                let path = root.join(&object.synset).join(&object.name).join(format!("image_{view}.jpg"));
                read_regular(&path)?
            }
            Self::Archives { archives, files, places } => {
                let place = places[row];
                let path = &archives[place.archive as usize];
                let file = files.get(place.archive, path).map_err(Error::read(path))?;
                let mut bytes = vec![0; place.length as usize];
                read_exact_at(&file, &mut bytes, place.offset).map_err(Error::read(path))?;
                bytes
            }
            Self::Reference { files, .. } => read_regular(&files[row].0)?,
        };
        checksums::verify(&bytes, self.checksum(row), || self.name(root, object, view, row))?;
        Ok(bytes)
    }

    /// What the bytes of the image in `row` must sum up to, where that is known.
    pub fn checksum(&self, row: usize) -> Option<u32> {
        match self {
            Self::Files { checksums } | Self::Reference { checksums, .. } => {
                checksums.as_ref().map(|checksums| checksums[row])
            }
            Self::Archives { places, .. } => places[row].checksum,
        }
    }

    /// What to call an image in messages.
    pub fn name(&self, root: &Path, object: &Object, view: usize, row: usize) -> PathBuf {
        match self {
            Self::Files { .. } => {
                root.join(&object.synset).join(&object.name).join(format!("image_{view}.jpg"))
            }
            Self::Archives { archives, places, .. } => {
                let archive = &archives[places[row].archive as usize];
                archive.join(format!("{}.jpg", sample_key(object, view)))
            }
            Self::Reference { files, .. } => files[row].0.clone(),
        }
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

/// One row of an index.
struct IndexRow {
    offset: u64,
    length: u32,
    checksum: Option<u32>,
}

/// The rows of one archive, from its index or, where that is missing, from the archive itself.
fn read_index(root: &Path, split: Split, number: usize) -> Result<Vec<IndexRow>> {
    let path = root.join(index_name(split, number));
    let (columns, values, path) = match arrays::read_integers(&path) {
        Ok((shape, values)) if matches!(shape[..], [_, 2 | 3]) => (shape[1], values, path),
        Ok((shape, _)) => {
            let message =
                format!("expected two or three columns (offset, length, checksum), found {shape:?}");
            return Err(Error::content(&path, message));
        }
        Err(Error::File(FileError::Read { reason, .. })) if reason.kind() == std::io::ErrorKind::NotFound => {
            let path = root.join(archive_name(split, number));
            (2, index_of(&path)?, path)
        }
        Err(error) => return Err(error),
    };
    let row = |row: &[i64]| -> Result<IndexRow> {
        let wrong = || Error::content(&path, "an offset or a length is out of range");
        Ok(IndexRow {
            offset: u64::try_from(row[0]).map_err(|_| wrong())?,
            length: u32::try_from(row[1]).map_err(|_| wrong())?,
            checksum: row.get(2).map(|&value| checksums::from_integer(value, &path)).transpose()?,
        })
    };
    values.chunks_exact(columns).map(row).collect()
}

/// Lists the images of an archive: offset, length, offset, length ...
fn index_of(path: &Path) -> Result<Vec<i64>> {
    let mut file = File::open(path).map_err(Error::read(path))?;
    let members = tar::members(&mut file, path)?;
    Ok(images(&members).flat_map(|member| [member.offset as i64, member.length as i64]).collect())
}

fn images(members: &[tar::Member]) -> impl Iterator<Item = &tar::Member> {
    members.iter().filter(|member| member.name.ends_with(".jpg"))
}

/// The index rows (offset, length, checksum) of the images of a `fragment`, which has `members` and begins `base`
/// bytes into the archive.
pub fn index_rows(fragment: &[u8], members: &[tar::Member], base: u64) -> Vec<[i64; 3]> {
    let row = |member: &tar::Member| {
        let data = &fragment[member.offset as usize..(member.offset + member.length) as usize];
        [(base + member.offset) as i64, member.length as i64, i64::from(checksums::of(data))]
    };
    images(members).map(row).collect()
}
