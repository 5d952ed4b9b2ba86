//! Tar archives of a dataset that is being made: which objects each has, and how they are put together from fragments, one of
//! every object.

use std::fs::{self, File};
use std::io::{Cursor, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Status, Store, WORK, remove_if_there};
use crate::arrays;
use crate::card::Format;
use crate::checksums;
use crate::error::{Error, FileError, Result};
use crate::object::{Split, SplitBy};
use crate::storage::{archive_name, index_name, index_rows, sample_key};
use crate::tar;

impl Store {
    /// The views of an object in an archive; with a split by views, those for training.
    pub(super) fn fragment_path(&self, index: usize) -> PathBuf {
        self.root.join(WORK).join("fragments").join(format!("{index:07}.tar"))
    }

    /// With a split by views, the views of an object that are held out.
    fn held_out_path(&self, index: usize) -> PathBuf {
        self.root.join(WORK).join("fragments").join(format!("{index:07}-val.tar"))
    }

    /// Object `index` has all its views, and they are to be part of an archive.
    pub(super) fn publish_fragments(&self, index: usize, images: &[Vec<u8>]) -> Result<()> {
        let object = &self.plan.objects[index];
        let train = self.plan.settings.views_of(Split::Train);
        let mut fragments = [Vec::new(), Vec::new()];
        for (view, image) in images.iter().enumerate() {
            let key = sample_key(object, view);
            let fragment = &mut fragments[usize::from(view >= train)];
            tar::append(fragment, &format!("{key}.jpg"), image);
            tar::append(fragment, &format!("{key}.latent.npy"), &self.latents_file(object, view));
            tar::append(fragment, &format!("{key}.cls"), object.label.to_string().as_bytes());
        }
        for fragment in &mut fragments {
            let sum = checksums::of(fragment);
            fragment.extend_from_slice(&sum.to_le_bytes());
        }
        // The first one comes last: where it is, the object is done.
        if self.plan.settings.split == SplitBy::Views {
            self.staging.publish(&self.held_out_path(index), &fragments[1])?;
        }
        self.staging.publish(&self.fragment_path(index), &fragments[0])
    }

    /// Whether object `index` is part of an archive that is there already.
    pub fn is_sealed(&self, index: usize) -> bool {
        self.plan.settings.format == Format::Shards && self.archive_path(self.archive_of(index)).exists()
    }

    /// The archive that object `index` belongs to.
    pub fn archive_of(&self, index: usize) -> (Split, usize) {
        let split = self.plan.objects[index].split;
        let first = match split {
            Split::Train => 0,
            Split::Val => self.train_objects(),
        };
        (split, (index - first) / self.objects_per_tar())
    }

    /// All archives of the plan; with a split by views, those for training, each of which stands for one that is held out.
    pub fn archives(&self) -> Vec<(Split, usize)> {
        if self.plan.settings.format == Format::Files {
            return Vec::new();
        }
        let train = self.train_objects();
        let counts = [train, self.plan.objects.len() - train];
        let of = |(split, count): (Split, usize)| {
            (0..count.div_ceil(self.objects_per_tar())).map(move |n| (split, n))
        };
        Split::ALL.into_iter().zip(counts).flat_map(of).collect()
    }

    fn train_objects(&self) -> usize {
        self.plan.objects.partition_point(|object| object.split == Split::Train)
    }

    fn objects_per_tar(&self) -> usize {
        self.plan.settings.objects_per_tar.unwrap_or(1).max(1)
    }

    fn archive_path(&self, (split, number): (Split, usize)) -> PathBuf {
        self.root.join(archive_name(split, number))
    }

    /// Puts an archive together if all its objects are settled; says whether it is there now.
    pub fn seal(&self, archive: (Split, usize)) -> Result<bool> {
        let path = self.archive_path(archive);
        if path.exists() {
            return Ok(true);
        }
        let (split, number) = archive;
        let (first, last) = match split {
            Split::Train => (0, self.train_objects()),
            Split::Val => (self.train_objects(), self.plan.objects.len()),
        };
        let begin = first + number * self.objects_per_tar();
        let members: Vec<usize> = (begin..(begin + self.objects_per_tar()).min(last)).collect();
        let (mut fragments, mut held_out) = (Vec::new(), Vec::new());
        for &index in &members {
            match self.status(index, false)? {
                Status::Done => {
                    fragments.push(self.fragment_path(index));
                    held_out.push(self.held_out_path(index));
                }
                Status::Skipped(_) => {}
                Status::Missing => return Ok(path.exists()),
            }
        }
        let packed = match self.plan.settings.split {
            SplitBy::Objects => Ok(()),
            // The archive of the same objects' held-out views is there before the one that says that it is sealed.
            SplitBy::Views => {
                let val = (Split::Val, number);
                self.pack(val, &self.archive_path(val), &held_out)
            }
        };
        match packed.and_then(|()| self.pack(archive, &path, &fragments)) {
            Ok(()) => {}
            // Rendered again when the command is run again.
            Err(Error::File(FileError::Content { path, message }))
                if fragments.contains(&path) || held_out.contains(&path) =>
            {
                remove_if_there(&path)?;
                return Err(Error::content(
                    &path,
                    format!("{message}; run the same command again to render it again"),
                ));
            }
            // Another process sealed it meanwhile and took the fragments away.
            Err(Error::File(FileError::Read { reason, .. }))
                if reason.kind() == ErrorKind::NotFound && path.exists() => {}
            Err(error) => return Err(error),
        }
        for fragment in fragments.iter().chain(&held_out) {
            remove_if_there(fragment)?;
        }
        Ok(true)
    }

    /// Writes index and archive from fragments; the archive appears last.
    fn pack(&self, (split, number): (Split, usize), path: &Path, fragments: &[PathBuf]) -> Result<()> {
        let mut index: Vec<[i64; 3]> = Vec::new();
        let mut problem = None;
        let staged = self.staging.publish_with_then(
            path,
            |file| {
                let mut offset = 0;
                for fragment in fragments {
                    match copy_fragment(fragment, file, offset) {
                        Ok((rows, length)) => {
                            index.extend(rows);
                            offset += length;
                        }
                        Err(CopyError::Fragment(error)) => {
                            problem = Some(error);
                            return Err(ErrorKind::Interrupted.into());
                        }
                        Err(CopyError::Archive(error)) => return Err(error),
                    }
                }
                file.write_all(&tar::END)?;
                Ok(arrays::integer_rows(3, index.as_flattened()))
            },
            |index| self.staging.publish(&self.root.join(index_name(split, number)), &index),
        );
        match problem {
            Some(problem) => Err(problem),
            None => staged,
        }
    }
}

enum CopyError {
    Fragment(Error),
    Archive(std::io::Error),
}

/// Appends a fragment to an archive that is `offset` bytes long: its index rows and its length.
fn copy_fragment(
    fragment: &Path,
    archive: &mut File,
    offset: u64,
) -> std::result::Result<(Vec<[i64; 3]>, u64), CopyError> {
    let mut bytes = fs::read(fragment).map_err(Error::read(fragment)).map_err(CopyError::Fragment)?;
    take_checksum(&mut bytes).map_err(|message| CopyError::Fragment(Error::content(fragment, message)))?;
    let length = bytes.len();
    bytes.extend_from_slice(&tar::END);
    let members = tar::members(&mut Cursor::new(&bytes), fragment).map_err(CopyError::Fragment)?;
    archive.write_all(&bytes[..length]).map_err(CopyError::Archive)?;
    Ok((index_rows(&bytes, &members, offset), length as u64))
}

/// Takes the checksum off the end of a fragment. One that was written before there were checksums is whole blocks.
fn take_checksum(fragment: &mut Vec<u8>) -> std::result::Result<(), &'static str> {
    if fragment.len().is_multiple_of(512) {
        return Ok(());
    }
    match fragment.split_last_chunk() {
        Some((rest, sum)) if checksums::of(rest) == u32::from_le_bytes(*sum) => {
            fragment.truncate(fragment.len() - 4);
            Ok(())
        }
        _ => Err("the views of an object are damaged"),
    }
}
