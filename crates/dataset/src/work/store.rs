//! The state of a dataset that is being made: which objects are done, skipped or missing, and how they become done.

use std::fs::{self, File};
use std::io::{Cursor, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::arrays;
use crate::card::{CARD, Card, Format, json};
use crate::checksums;
use crate::durable::{self, Staging};
use crate::error::{Error, FileError, Result};
use crate::object::{Object, Split, SplitBy};
use crate::plan::Plan;
use crate::storage::{archive_name, file_names, index_name, index_rows, sample_key};
use crate::tar;
use crate::work::names;

/// Name of the work folder.
pub(crate) const WORK: &str = ".equicaps";

/// An object that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skipped {
    /// Class folder.
    pub synset: String,
    /// Object name.
    pub name: String,
    /// Why, in one sentence.
    pub reason: String,
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// All its views are there.
    Done,
    /// It was tried and cannot be used.
    Skipped(Skipped),
    /// Nobody has settled it yet.
    Missing,
}

/// A dataset that is being made.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    plan: Plan,
    staging: Staging,
}

/// What was found on opening.
pub enum Opened {
    /// Nothing is left to do.
    Complete(Box<Card>),
    /// There is, or may be, work to do.
    Open(Box<Store>),
}

impl Store {
    /// Opens `root` for making the planned dataset. Refuses a folder that holds anything else; nothing is written in
    /// that case. Where `allow_mixed_devices`, a dataset begun on another device is continued, and the card says so.
    pub fn open(root: &Path, plan: Plan, allow_mixed_devices: bool) -> Result<Opened> {
        let settings = plan.settings.clone();
        Self::open_now(root, plan, allow_mixed_devices).or_else(|error| match Card::read(root)? {
            // Another process finished it meanwhile, and took the work folder away under our feet.
            Some(card) if card.is_complete() && card.settings.difference(&settings).is_none() => {
                Ok(Opened::Complete(Box::new(card)))
            }
            _ => Err(error),
        })
    }

    fn open_now(root: &Path, mut plan: Plan, allow_mixed_devices: bool) -> Result<Opened> {
        names::check(&plan)?;
        let mut is_joined = false;
        // The card comes before everything else: where something is there without it, it may have come meanwhile.
        let card = match Card::read(root)? {
            None if holds_something_else(root)? => match Card::read(root)? {
                None => {
                    return Err(Error::Request(format!(
                        "{} is not empty and holds no dataset begun by this command; use another --out",
                        root.display()
                    )));
                }
                card => card,
            },
            card => card,
        };
        if let Some(card) = card {
            let allow = allow_mixed_devices && !card.is_complete();
            if let Some(joined) = plan.settings.continuing(&card.settings, allow) {
                is_joined = joined != card.settings;
                plan.settings = joined;
            }
            if !is_joined {
                refuse_other_settings(root, &card, &plan)?;
            }
            if card.is_complete() {
                remove_work(root);
                return Ok(Opened::Complete(Box::new(card)));
            }
        }
        durable::create_folder(root)?;
        let staging = Staging::create(&root.join(WORK).join("staging"))?;
        staging.publish_new(&objects_path(root), &json(&plan.objects))?;
        let card = Card::begun(plan.settings.clone());
        if is_joined {
            staging.publish(&root.join(CARD), &card.to_json())?;
        }
        if !staging.publish_new(&root.join(CARD), &card.to_json())?
            && let Some(card) = Card::read(root)?
        {
            refuse_other_settings(root, &card, &plan)?;
            if card.is_complete() {
                // Finished by another process at this very moment: take our traces away again.
                drop(staging);
                remove_work(root);
                return Ok(Opened::Complete(Box::new(card)));
            }
        }
        Ok(Opened::Open(Box::new(Self { root: root.to_path_buf(), plan, staging })))
    }

    /// Opens a dataset that others began, to finish it.
    pub fn reopen(root: &Path) -> Result<Opened> {
        let Some(card) = Card::read(root)? else {
            return Err(Error::Request(format!("{} holds no dataset: there is no {CARD}", root.display())));
        };
        if card.is_complete() {
            remove_work(root);
            return Ok(Opened::Complete(Box::new(card)));
        }
        let path = objects_path(root);
        let bytes = fs::read(&path).map_err(Error::read(&path))?;
        let objects: Vec<Object> = serde_json::from_slice(&bytes)
            .map_err(|error| Error::content(&path, format!("not a list of objects: {error}")))?;
        if crate::plan::digest(&objects) != card.settings.objects_digest {
            return Err(Error::content(&path, format!("does not belong to the card {CARD} beside it")));
        }
        let staging = Staging::create(&root.join(WORK).join("staging"))?;
        let plan = Plan { settings: card.settings, objects };
        Ok(Opened::Open(Box::new(Self { root: root.to_path_buf(), plan, staging })))
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The dataset's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Publishes a file of the dataset.
    pub fn publish(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.staging.publish(&self.root.join(name), bytes)
    }

    fn object_folder(&self, object: &Object) -> PathBuf {
        self.root.join(&object.synset).join(&object.name)
    }

    /// The views of an object in an archive; with a split by views, those for training.
    fn fragment_path(&self, index: usize) -> PathBuf {
        self.root.join(WORK).join("fragments").join(format!("{index:07}.tar"))
    }

    /// With a split by views, the views of an object that are held out.
    fn held_out_path(&self, index: usize) -> PathBuf {
        self.root.join(WORK).join("fragments").join(format!("{index:07}-val.tar"))
    }

    fn checksums_path(&self, index: usize) -> PathBuf {
        self.root.join(WORK).join("checksums").join(format!("{index:07}.npy"))
    }

    fn skip_path(&self, index: usize) -> PathBuf {
        self.root.join(WORK).join("skipped").join(format!("{index:07}.json"))
    }

    /// What is known of object number `index` of the plan. `repair` takes a folder with missing files out of the way,
    /// so that the object can be made again.
    pub fn status(&self, index: usize, repair: bool) -> Result<Status> {
        let object = &self.plan.objects[index];
        let done = match self.plan.settings.format {
            Format::Files | Format::Reference => self.folder_is_complete(index, object, repair)?,
            Format::Shards => self.fragment_path(index).exists(),
        };
        if done {
            return Ok(Status::Done);
        }
        if let Some(skipped) = self.read_skip_record(index)? {
            return Ok(Status::Skipped(skipped));
        }
        let sealed =
            self.plan.settings.format == Format::Shards && self.archive_path(self.archive_of(index)).exists();
        Ok(if sealed { Status::Done } else { Status::Missing })
    }

    /// Whether object `index` is part of an archive that is there already.
    pub fn is_sealed(&self, index: usize) -> bool {
        self.plan.settings.format == Format::Shards && self.archive_path(self.archive_of(index)).exists()
    }

    fn read_skip_record(&self, index: usize) -> Result<Option<Skipped>> {
        let path = self.skip_path(index);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| Error::content(&path, format!("not a skip record: {error}"))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::read(&path)(error)),
        }
    }

    fn folder_is_complete(&self, index: usize, object: &Object, repair: bool) -> Result<bool> {
        let folder = self.object_folder(object);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::read(&folder)(error)),
        };
        let names: std::collections::HashSet<_> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        let complete = (0..self.plan.settings.views)
            .all(|view| file_names(view).iter().all(|name| names.contains(name)));
        if !complete && repair {
            remove_if_there(&self.checksums_path(index))?;
            self.staging.discard(&folder)?;
        }
        Ok(complete)
    }

    /// Object `index` has all its views: `images` are the JPEGs in order.
    pub fn commit(&self, index: usize, images: Vec<Vec<u8>>) -> Result<()> {
        let object = &self.plan.objects[index];
        let latents = |view| arrays::vector(&self.plan.latents(object, view).to_vec());
        match self.plan.settings.format {
            Format::Files | Format::Reference => {
                let sums: Vec<u32> = images.iter().map(|image| checksums::of(image)).collect();
                let files: Vec<(String, Vec<u8>)> = images
                    .into_iter()
                    .enumerate()
                    .flat_map(|(view, image)| file_names(view).into_iter().zip([image, latents(view)]))
                    .collect();
                // Of the folder that is there only: another process's may have been made on another device.
                if self.staging.publish_folder(&self.object_folder(object), &files)? {
                    self.staging.publish(&self.checksums_path(index), &checksums::table(sums))?;
                }
            }
            Format::Shards => {
                let train = self.plan.settings.views_of(Split::Train);
                let mut fragments = [Vec::new(), Vec::new()];
                for (view, image) in images.iter().enumerate() {
                    let key = sample_key(object, view);
                    let fragment = &mut fragments[usize::from(view >= train)];
                    tar::append(fragment, &format!("{key}.jpg"), image);
                    tar::append(fragment, &format!("{key}.latent.npy"), &latents(view));
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
                self.staging.publish(&self.fragment_path(index), &fragments[0])?;
            }
        }
        remove_if_there(&self.skip_path(index))
    }

    /// The checksums of the images of object `index`, whose folder is there: those of its images when they were
    /// written or, where the process was killed before it had noted them, of what is in the folder.
    pub fn checksums(&self, index: usize) -> Result<Vec<u32>> {
        let views = self.plan.settings.views;
        let path = self.checksums_path(index);
        if let Ok((shape, values)) = arrays::read_integers(&path)
            && shape == [views]
        {
            return values.into_iter().map(|value| checksums::from_integer(value, &path)).collect();
        }
        let folder = self.object_folder(&self.plan.objects[index]);
        let of_view = |view| {
            let path = folder.join(&file_names(view)[0]);
            Ok(checksums::of(&fs::read(&path).map_err(Error::read(&path))?))
        };
        (0..views).map(of_view).collect()
    }

    /// Object `index` cannot be used.
    pub fn skip(&self, index: usize, reason: String) -> Result<Skipped> {
        let object = &self.plan.objects[index];
        let skipped = Skipped { synset: object.synset.clone(), name: object.name.clone(), reason };
        self.staging.publish(&self.skip_path(index), &json(&skipped))?;
        Ok(skipped)
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

fn refuse_other_settings(root: &Path, card: &Card, plan: &Plan) -> Result<()> {
    match card.settings.difference(&plan.settings) {
        Some(difference) => Err(Error::OtherSettings { path: root.to_path_buf(), difference }),
        None => Ok(()),
    }
}

/// Whether `root` has files in it although it has no card.
pub fn holds_something_else(root: &Path) -> Result<bool> {
    match fs::read_dir(root) {
        Ok(entries) => Ok(entries.flatten().any(|entry| entry.file_name() != WORK)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::read(root)(error)),
    }
}

fn objects_path(root: &Path) -> PathBuf {
    root.join(WORK).join("objects.json")
}

/// Removes the work folder of a complete dataset. It goes away all at once: a process that still looks at it sees
/// either everything or nothing, and cannot publish anything any more.
pub fn remove_work(root: &Path) {
    let away = root.join(format!("{WORK}.removed"));
    let _ = fs::remove_dir_all(&away);
    let _ = fs::rename(root.join(WORK), &away);
    let _ = fs::remove_dir_all(&away);
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::write(path)(error)),
        _ => Ok(()),
    }
}
