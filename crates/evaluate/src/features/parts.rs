//! Files of kept features: one block of rows of all three tables, with a checksum at the end. Written beside and renamed;
//! one that does not check is computed again, so that nothing needs to wait for the disk.

use std::path::Path;

use crate::encoder::Encoded;
use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"EQFEAT01";

/// Some rows of the three tables, where they belong.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub widths: [usize; 3],
    pub values: [&'a mut [f32]; 3],
}

impl Part<'_> {
    /// Puts the features of `count` images from `row` on.
    pub fn put(&mut self, row: usize, count: usize, encoded: &Encoded) -> Result<()> {
        let all = [&encoded.representation, &encoded.equivariant, &encoded.invariant];
        for ((to, from), width) in self.values.iter_mut().zip(all).zip(self.widths) {
            let places = to.get_mut(row * width..(row + count) * width).filter(|to| to.len() == from.len());
            let Some(places) = places else {
                let message = format!("{} features for {count} images, {width} each expected", from.len());
                return Err(Error::Request(message));
            };
            places.copy_from_slice(from);
        }
        Ok(())
    }

    fn header(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (width, values) in self.widths.iter().zip(&self.values) {
            bytes.extend((*width as u64).to_le_bytes());
            bytes.extend((values.len() as u64).to_le_bytes());
        }
        bytes
    }

    /// The file without its checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.header();
        bytes.reserve(self.values.iter().map(|values| values.len() * 4).sum::<usize>() + 4);
        for values in &self.values {
            if cfg!(target_endian = "little") {
                bytes.extend_from_slice(bytemuck::cast_slice(values));
            } else {
                bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
        bytes
    }

    /// Fills the rows from a file; `false` where it is not there or not in order.
    pub fn read(&mut self, path: &Path) -> bool {
        self.try_read(path).is_some()
    }

    fn try_read(&mut self, path: &Path) -> Option<()> {
        let bytes = std::fs::read(path).ok()?;
        let (body, checksum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let mut rest = body.strip_prefix(self.header().as_slice())?;
        if rest.len() != self.values.iter().map(|values| values.len() * 4).sum::<usize>() {
            return None;
        }
        for values in &mut self.values {
            let (own, tail) = rest.split_at(values.len() * 4);
            for (to, from) in values.iter_mut().zip(own.as_chunks::<4>().0) {
                *to = f32::from_le_bytes(*from);
            }
            rest = tail;
        }
        Some(())
    }
}

/// Writes a part's file.
pub(super) fn write(path: &Path, mut bytes: Vec<u8>) -> Result<()> {
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    let beside = path.with_extension(format!("bin.{}", std::process::id()));
    let written = std::fs::write(&beside, &bytes).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        Error::Dataset(dataset::Error::write(path)(error))
    })
}
