//! The state of a dataset that is being made: which objects are done, skipped or missing, and how they become done.

mod archives;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::arrays;
use crate::card::{CARD, Card, Format, json};
use crate::checksums;
use crate::durable::{self, Staging};
use crate::error::{Error, Result};
use crate::object::Object;
use crate::plan::Plan;
use crate::storage::file_names;
use crate::work::names;

/// Name of the work folder.
pub(crate) const WORK: &str = ".equicaps";

/// An object that could not be used, or, where it names a file, an image of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skipped {
    /// Class folder.
    pub synset: String,
    /// Object name.
    pub name: String,
    /// The image's file, relative to the table or folder that was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where the image is named: `line 7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Why, in one sentence.
    pub reason: String,
}

/// An object that is used, of which not all is as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noticed {
    /// Class folder.
    pub synset: String,
    /// Object name.
    pub name: String,
    /// What was noticed, a sentence each.
    pub warnings: Vec<String>,
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
        if card.settings.imported().is_some() {
            return Err(Error::Request(format!(
                "the import in {} is not complete: run the command that imports it again to go on",
                root.display()
            )));
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

    fn checksums_path(&self, index: usize) -> PathBuf {
        self.root.join(WORK).join("checksums").join(format!("{index:07}.npy"))
    }

    fn note_path(&self, index: usize) -> PathBuf {
        self.root.join(WORK).join("warnings").join(format!("{index:07}.json"))
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
        Ok(if self.is_sealed(index) { Status::Done } else { Status::Missing })
    }

    fn read_skip_record(&self, index: usize) -> Result<Option<Skipped>> {
        read_record(&self.skip_path(index), "not a skip record")
    }

    /// Whether the folder of an object has all its files. Where it can be made again (`repair`), the checksums of its images must
    /// have been noted, too: what a kill left before that may have been damaged since, and nobody would know.
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
            .all(|view| file_names(view).iter().all(|name| names.contains(name)))
            && (!repair || self.checksums_path(index).is_file());
        if !complete && repair {
            remove_if_there(&self.checksums_path(index))?;
            self.staging.discard(&folder)?;
        }
        Ok(complete)
    }

    /// Object `index` has all its views: `images` are the JPEGs in order.
    pub fn commit(&self, index: usize, images: Vec<Vec<u8>>) -> Result<()> {
        let object = &self.plan.objects[index];
        match self.plan.settings.format {
            Format::Files | Format::Reference => {
                let sums: Vec<u32> = images.iter().map(|image| checksums::of(image)).collect();
                let files: Vec<(String, Vec<u8>)> = images
                    .into_iter()
                    .enumerate()
                    .flat_map(|(view, image)| {
                        file_names(view).into_iter().zip([image, self.latents_file(object, view)])
                    })
                    .collect();
                // Of the folder that is there only: another process's may have been made on another device.
                if self.staging.publish_folder(&self.object_folder(object), &files)? {
                    self.staging.publish(&self.checksums_path(index), &checksums::table(sums))?;
                }
            }
            Format::Shards => self.publish_fragments(index, &images)?,
        }
        remove_if_there(&self.skip_path(index))
    }

    /// The file with the latents of a view.
    fn latents_file(&self, object: &Object, view: usize) -> Vec<u8> {
        arrays::vector(&self.plan.latents(object, view).to_vec())
    }

    /// The checksums of the images of object `index`, whose folder is there: those of its images when they were
    /// written or, where there is no such note that can be read, of what is in the folder.
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

    /// Writes down what was noticed of object `index`, which is about to be done.
    pub fn note(&self, index: usize, warnings: Vec<String>) -> Result<()> {
        let path = self.note_path(index);
        if warnings.is_empty() {
            return remove_if_there(&path);
        }
        let Object { synset, name, .. } = &self.plan.objects[index];
        let noticed = Noticed { synset: synset.clone(), name: name.clone(), warnings };
        self.staging.publish(&path, &json(&noticed))
    }

    /// What was noticed of object `index`, if anything was.
    pub fn noticed(&self, index: usize) -> Result<Option<Noticed>> {
        read_record(&self.note_path(index), "not a list of warnings")
    }

    /// Object `index` cannot be used.
    pub fn skip(&self, index: usize, reason: String) -> Result<Skipped> {
        let object = &self.plan.objects[index];
        let (synset, name) = (object.synset.clone(), object.name.clone());
        let skipped = Skipped { synset, name, file: None, place: None, reason };
        self.staging.publish(&self.skip_path(index), &json(&skipped))?;
        Ok(skipped)
    }
}

/// What is written down in `path`, if there is such a file; `otherwise` says what is wrong with another one.
fn read_record<T: DeserializeOwned>(path: &Path, otherwise: &str) -> Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Error::content(path, format!("{otherwise}: {error}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::read(path)(error)),
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
