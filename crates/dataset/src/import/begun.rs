//! What an import that did not end left behind, and what of it is of use to the next one. The images of an object appear at
//! once, as a folder; a record in the work folder says which files they were made of. So an import goes on where images
//! were removed or added meanwhile: folders of the same files stay, others are made again or taken away.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::card::{Card, Origin, Settings};
use crate::durable::Staging;
use crate::error::{Error, Result};
use crate::import::arrange::Arranged;
use crate::import::rows::Rows;
use crate::object::Object;
use crate::storage::file_names;
use crate::work::WORK;

/// `asked` with all that may differ from what is recorded in `card` and still be the same dataset: in a complete one what was
/// left out, in one that is being made everything that the table or folder says.
pub fn as_recorded(asked: &Settings, card: &Card) -> Settings {
    let recorded = &card.settings;
    let mut settings = Settings { views: recorded.views, ..asked.clone() };
    if !card.is_complete() {
        settings.objects = recorded.objects;
        settings.objects_digest.clone_from(&recorded.objects_digest);
        settings.split = recorded.split;
    }
    if let (Origin::Imported(own), Some(known)) = (&mut settings.origin, recorded.imported()) {
        (own.boxes, own.without_pose, own.fewest_views) =
            (known.boxes, known.without_pose, known.fewest_views);
        if !card.is_complete() {
            own.source_digest.clone_from(&known.source_digest);
            own.latents.clone_from(&known.latents);
        }
    }
    settings
}

/// The folders of objects that are there, and the records of what they were made of.
pub struct Made<'a> {
    /// The dataset.
    pub root: &'a Path,
    /// Where unfinished files lie.
    pub staging: &'a Staging,
}

impl Made<'_> {
    fn folder(&self, synset: &str, name: &str) -> PathBuf {
        self.root.join(synset).join(name)
    }

    fn records(&self) -> PathBuf {
        self.root.join(WORK).join("made")
    }

    fn record(&self, object: &Object) -> PathBuf {
        self.records().join(&object.synset).join(&object.name)
    }

    /// The images of an object that were made of `rows`, where they are there.
    pub fn images(&self, object: &Object, rows: &Rows, members: &[usize]) -> Option<Vec<PathBuf>> {
        let folder = self.folder(&object.synset, &object.name);
        let is_of_these =
            std::fs::read(self.record(object)).is_ok_and(|known| known == digest(rows, members));
        let images = || (0..members.len()).map(|view| folder.join(&file_names(view)[0]));
        (is_of_these && images().all(|image| image.is_file())).then(|| images().collect())
    }

    /// Publishes the images of an object that are made of `rows`, in place of any others.
    pub fn publish(
        &self,
        object: &Object,
        rows: &Rows,
        members: &[usize],
        images: Vec<Vec<u8>>,
    ) -> Result<()> {
        if self.images(object, rows, members).is_some() {
            return Ok(());
        }
        self.remove(&object.synset, &object.name)?;
        let name = |view: usize| file_names(view)[0].clone();
        let files: Vec<(String, Vec<u8>)> =
            images.into_iter().enumerate().map(|(view, image)| (name(view), image)).collect();
        // The record comes first: a folder without one is made again.
        self.staging.publish(&self.record(object), &digest(rows, members))?;
        self.staging.publish_folder(&self.folder(&object.synset, &object.name), &files)?;
        Ok(())
    }

    /// Takes the images of an object away, if there are any.
    pub fn remove(&self, synset: &str, name: &str) -> Result<()> {
        let folder = self.folder(synset, name);
        if folder.exists() { self.staging.discard(&folder) } else { Ok(()) }
    }

    /// Takes away the images of objects that are not among those of `arranged` any more.
    pub fn remove_others(&self, arranged: &Arranged) -> Result<()> {
        let objects = arranged.objects.iter().map(|object| (object.synset.as_str(), object.name.as_str()));
        let objects: HashSet<(&str, &str)> = objects.collect();
        for synset in names(&self.records())? {
            let records = self.records().join(&synset);
            for name in names(&records)? {
                if !objects.contains(&(synset.as_str(), name.as_str())) {
                    self.remove(&synset, &name)?;
                    let _ = std::fs::remove_file(records.join(&name));
                }
            }
        }
        Ok(())
    }

    /// Removes the folders of classes whose images are all gone. Not while others are written.
    pub fn remove_empty_classes(&self) -> Result<()> {
        for synset in names(&self.records())? {
            // Only empty folders can be removed so.
            let _ = std::fs::remove_dir(self.root.join(synset));
        }
        Ok(())
    }
}

/// A number for the files that the images of an object are made of, in order: which ones, and as they are now. A picture that
/// was replaced by another of its name differs in its length or in when it was written.
fn digest(rows: &Rows, members: &[usize]) -> Vec<u8> {
    let mut hash = random::Fnv1a::new();
    for row in members.iter().map(|&row| &rows.rows[row]) {
        hash.add(row.file.as_bytes());
        hash.add(&[0]);
        row.region
            .iter()
            .flat_map(|region| region.0)
            .for_each(|value| hash.add(&value.to_bits().to_le_bytes()));
        // A file that is not there is found out when it is read.
        if let Ok(found) = std::fs::metadata(rows.folder.join(&row.file)) {
            hash.add(&found.len().to_le_bytes());
            let written = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            hash.add(&written.map_or(0, |time| time.as_nanos()).to_le_bytes());
        }
    }
    format!("{:016x}\n", hash.value()).into_bytes()
}

/// The names in a folder; none where it is not there.
fn names(folder: &Path) -> Result<Vec<String>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::read(folder)(error)),
    }
}
