//! The checksum of every image (CRC-32): in the index beside an archive, or in a table beside the lists. A JPEG whose
//! scan is damaged still decodes, to another picture; only its checksum tells.
//!
//! Datasets made before there were checksums, and the published ones, have none; they are read as they are.

use std::path::Path;

use crate::arrays;
use crate::error::{Error, Result};
use crate::object::Split;

/// File name of the checksums of one side of the split, where images are single files.
pub fn checksum_list(split: Split) -> String {
    format!("checksums_{split}.npy")
}

/// CRC-32 of the bytes of an image.
pub fn of(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// A stored number as a checksum.
pub fn from_integer(value: i64, path: &Path) -> Result<u32> {
    u32::try_from(value).map_err(|_| Error::content(path, format!("{value} is not a checksum (CRC-32)")))
}

/// Refuses `bytes`, those of image `name`, where they are not those that were written.
pub fn verify(bytes: &[u8], expected: Option<u32>, name: impl FnOnce() -> std::path::PathBuf) -> Result<()> {
    match expected {
        Some(expected) if of(bytes) != expected => {
            Err(Error::content(&name(), "is damaged: its checksum is not the one recorded with the dataset"))
        }
        _ => Ok(()),
    }
}

/// Checksums of `counts` images on each side of the split, from the tables in `folder`; `None` where there are none.
pub fn read_tables(folder: &Path, counts: [usize; 2]) -> Result<Option<Vec<u32>>> {
    let mut checksums = Vec::new();
    let mut missing = Vec::new();
    for (split, count) in Split::ALL.into_iter().zip(counts) {
        let path = folder.join(checksum_list(split));
        if !path.exists() {
            missing.push(path);
            continue;
        }
        let (shape, values) = arrays::read_integers(&path)?;
        if shape != [count] {
            let message = format!("expected {count} checksums, one for each view, found shape {shape:?}");
            return Err(Error::content(&path, message));
        }
        for value in values {
            checksums.push(from_integer(value, &path)?);
        }
    }
    match &missing[..] {
        [] => Ok(Some(checksums)),
        [path] => Err(Error::content(path, "is missing, although the other side's checksums are there")),
        _ => Ok(None),
    }
}

/// The table of some checksums.
pub fn table(checksums: impl IntoIterator<Item = u32>) -> Vec<u8> {
    arrays::integers(&checksums.into_iter().map(i64::from).collect::<Vec<_>>())
}
