//! The last step of making a dataset: its lists, tables and card, once every object is settled.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::arrays;
use crate::card::{Card, Counts, Format, json};
use crate::checksums::{checksum_list, table};
use crate::error::{Error, Result};
use crate::lists::{CLASSES, folder_entry, image_list, label_list, latent_list};
use crate::object::{Object, Split, SplitBy};
use crate::plan::classes;
use crate::work::store::{Noticed, Opened, Skipped, Status, Store, remove_work};

/// What finishing came to.
#[derive(Clone, Debug)]
pub enum Finished {
    /// The dataset is complete.
    Complete {
        /// Its card.
        card: Box<Card>,
        /// Objects that could not be used.
        skipped: Vec<Skipped>,
    },
    /// Some objects are not settled yet.
    Missing {
        /// How many.
        objects: usize,
        /// One of them, `SYNSET/OBJECT`.
        first: String,
    },
}

/// Finishes the dataset in `root`, if all its objects are there.
pub fn finish(root: &std::path::Path) -> Result<Finished> {
    match Store::reopen(root)? {
        Opened::Complete(card) => Ok(Finished::Complete { card, skipped: read_skipped(root)? }),
        Opened::Open(store) => finish_store(*store),
    }
}

/// File name of the skip list.
pub(crate) const SKIPPED: &str = "skipped.json";

/// File name of what was noticed of the objects that are used; there is none where nothing was.
pub const WARNINGS: &str = "warnings.json";

/// Reads the skip list of a complete dataset.
pub fn read_skipped(root: &std::path::Path) -> Result<Vec<Skipped>> {
    let path = root.join(SKIPPED);
    let bytes = std::fs::read(&path).map_err(Error::read(&path))?;
    serde_json::from_slice(&bytes).map_err(|error| Error::content(&path, format!("not a skip list: {error}")))
}

/// Writes everything that belongs to the whole dataset; the card last.
pub fn finish_store(store: Store) -> Result<Finished> {
    let root = store.root().to_path_buf();
    let done = try_finish(&store);
    drop(store);
    match done {
        Ok(Finished::Complete { card, skipped }) => {
            remove_work(&root);
            Ok(Finished::Complete { card, skipped })
        }
        // Another process may have finished meanwhile, and taken the work folder away under our feet.
        other => match complete(&root)? {
            Some(finished) => Ok(finished),
            None => other,
        },
    }
}

/// What finishing comes to where the dataset is complete already.
pub fn complete(root: &std::path::Path) -> Result<Option<Finished>> {
    match Card::read(root)? {
        Some(card) if card.is_complete() => {
            Ok(Some(Finished::Complete { card: Box::new(card), skipped: read_skipped(root)? }))
        }
        _ => Ok(None),
    }
}

fn try_finish(store: &Store) -> Result<Finished> {
    let plan = store.plan();
    let statuses: Vec<Status> = (0..plan.objects.len())
        .into_par_iter()
        .map(|index| store.status(index, false))
        .collect::<Result<_>>()?;
    let missing: Vec<&Object> = plan
        .objects
        .iter()
        .zip(&statuses)
        .filter(|(_, status)| **status == Status::Missing)
        .map(|(object, _)| object)
        .collect();
    if let Some(first) = missing.first() {
        return Ok(Finished::Missing { objects: missing.len(), first: first.id() });
    }
    let mut skipped: Vec<Skipped> = statuses
        .iter()
        .filter_map(|s| if let Status::Skipped(s) = s { Some(s.clone()) } else { None })
        .collect();
    skipped.sort();
    let usable: Vec<&Object> = plan
        .objects
        .iter()
        .zip(&statuses)
        .filter(|(_, s)| **s == Status::Done)
        .map(|(object, _)| object)
        .collect();
    if usable.is_empty() {
        let first =
            skipped.first().map_or(String::new(), |s| format!(" ({}/{}: {})", s.synset, s.name, s.reason));
        return Err(Error::Request(format!("none of the {} objects can be used{first}", plan.objects.len())));
    }
    for archive in store.archives() {
        if !store.seal(archive)? {
            return Err(Error::Request("an archive lost a part while it was put together".to_owned()));
        }
    }
    for split in Split::ALL {
        publish_lists(store, split, &usable)?;
    }
    if plan.settings.format == Format::Files {
        publish_checksums(store, &statuses)?;
    }
    let classes = classes(&plan.objects);
    store.publish(CLASSES, &json(&classes))?;
    store.publish(SKIPPED, &json(&skipped))?;
    publish_warnings(store, &statuses)?;
    // Another process may have gone on with it on another device, which only the card on disk tells.
    let settings = Card::read(store.root())?.map_or_else(|| plan.settings.clone(), |card| card.settings);
    let train_objects = usable.iter().filter(|object| object.split == Split::Train).count();
    let val_objects = match settings.split {
        SplitBy::Objects => usable.len() - train_objects,
        SplitBy::Views => usable.len(),
    };
    let card = Card {
        counts: Some(Counts {
            classes: classes.len(),
            train_objects,
            val_objects,
            images: usable.len() * plan.settings.views,
            images_of_sides: None,
            skipped_objects: skipped.len(),
            skipped_images: 0,
        }),
        ..Card::begun(settings)
    };
    let labels: HashSet<u32> = usable.iter().map(|object| object.label).collect();
    store.publish(crate::card::README, card.to_markdown(labels.len()).as_bytes())?;
    store.publish(crate::card::CARD, &card.to_json())?;
    Ok(Finished::Complete { card: Box::new(card), skipped })
}

/// With a split by views both sides list all objects, and both tables have all views: row = views * object + view.
fn publish_lists(store: &Store, split: Split, usable: &[&Object]) -> Result<()> {
    let plan = store.plan();
    let has_all = plan.settings.split == SplitBy::Views;
    let objects: Vec<&Object> =
        usable.iter().copied().filter(|object| has_all || object.split == split).collect();
    let folders: Vec<String> = objects.iter().map(|object| folder_entry(object)).collect();
    let labels: Vec<i64> = objects.iter().map(|object| i64::from(object.label)).collect();
    let columns = plan.settings.ranges.map_or(crate::latent_table::WIDTH, |ranges| ranges.width());
    let latents: Vec<f64> = objects
        .iter()
        .flat_map(|object| (0..plan.settings.views).flat_map(|view| plan.latents(object, view).to_vec()))
        .collect();
    store.publish(&image_list(split), &arrays::strings(&folders))?;
    store.publish(&label_list(split), &arrays::integers(&labels))?;
    store.publish(&latent_list(split), &arrays::rows(columns, &latents))
}

/// What was noticed of the objects that are used.
fn publish_warnings(store: &Store, statuses: &[Status]) -> Result<()> {
    let done = (0..statuses.len()).into_par_iter().filter(|&index| statuses[index] == Status::Done);
    let noticed = done.map(|index| store.noticed(index)).collect::<Result<Vec<_>>>()?;
    let mut noticed: Vec<Noticed> = noticed.into_iter().flatten().collect();
    if noticed.is_empty() {
        return Ok(());
    }
    noticed.sort_by(|a, b| (&a.synset, &a.name).cmp(&(&b.synset, &b.name)));
    store.publish(WARNINGS, &json(&noticed))
}

/// The checksums of all images, in the order of the lists.
fn publish_checksums(store: &Store, statuses: &[Status]) -> Result<()> {
    let plan = store.plan();
    let train = plan.settings.views_of(Split::Train);
    for split in Split::ALL {
        let (is_here, views) = match (plan.settings.split, split) {
            (SplitBy::Objects, _) => (Some(split), 0..plan.settings.views),
            (SplitBy::Views, Split::Train) => (None, 0..train),
            (SplitBy::Views, Split::Val) => (None, train..plan.settings.views),
        };
        let is_usable = |index: &usize| {
            statuses[*index] == Status::Done && is_here.is_none_or(|side| plan.objects[*index].split == side)
        };
        let usable: Vec<usize> = (0..statuses.len()).filter(is_usable).collect();
        let of = |&index: &usize| Ok(store.checksums(index)?[views.clone()].to_vec());
        let checksums: Vec<Vec<u32>> = usable.par_iter().map(of).collect::<Result<_>>()?;
        store.publish(&checksum_list(split), &table(checksums.into_iter().flatten()))?;
    }
    Ok(())
}
