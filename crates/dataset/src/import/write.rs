//! The files of an imported dataset. Objects appear one by one, each at once; the lists and the complete card come last, so
//! that what was interrupted goes on when the same command is run again.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::arrays;
use crate::card::{CARD, Card, Counts, Format, Origin, README, Settings, json};
use crate::checksums::{self, checksum_list};
use crate::durable::{self, Staging};
use crate::error::{Error, Result};
use crate::import::arrange::Arranged;
use crate::import::bad::{none_is_usable, records};
use crate::import::begun::{Made, as_recorded};
use crate::import::images::{Images, Reader, refuse_missing_files};
use crate::import::rows::{Row, Rows};
use crate::import::sources::{SOURCES, Source, to_lines};
use crate::import::{Imported, Options, Outcome};
use crate::jpeg::ChannelOrder;
use crate::latent_table::LatentColumns;
use crate::lists::{CLASSES, folder_entry, image_list, label_list, latent_list, view_count_list};
use crate::object::{Object, Split, SplitBy};
use crate::plan::{Plan, classes, digest};
use crate::work::{SKIPPED, Skipped, WORK, check_names, holds_something_else, read_skipped, remove_work};

/// Makes the dataset of `rows` in `root`.
pub fn write(root: &Path, rows: &Rows, arranged: &Arranged, options: &Options<'_>) -> Result<Outcome> {
    let columns = columns(rows);
    let settings = settings(rows, arranged, columns, options)?;
    let mut notes = rows.notes.clone();
    notes.push(format!("held out: {} ({})", arranged.split.held_out(), arranged.reason));
    let plan = Plan { settings: settings.clone(), objects: arranged.objects.clone() };
    check_names(&plan)?;
    match Card::read(root)? {
        None if holds_something_else(root)? => {
            return Err(Error::Request(format!(
                "{} is not empty and holds no dataset begun by this command; use another --out",
                root.display()
            )));
        }
        Some(card) => {
            let asked = as_recorded(&settings, &card);
            if let Some(difference) = card.settings.difference(&asked) {
                return Err(Error::OtherSettings { path: root.to_path_buf(), difference });
            }
            if card.is_complete() {
                let skipped = read_skipped(root)?;
                let classes = classes_left(arranged, &skipped);
                return Ok(Outcome { card, classes, notes, skipped, was_complete: true });
            }
            if card.settings != settings {
                notes.push(
                    "what is imported has changed since this import was begun: what was copied of the same images is kept"
                        .to_owned(),
                );
            }
        }
        None => {}
    }
    refuse_missing_files(rows, options.skip_bad)?;
    durable::create_folder(root)?;
    let staging = Staging::create(&root.join(WORK).join("staging"))?;
    let made = Made { root, staging: &staging };
    made.remove_others(arranged)?;
    staging.publish(&root.join(CARD), &Card::begun(settings.clone()).to_json())?;
    let has_failed = AtomicBool::new(false);
    let Images { good, bad } = Reader { made: &made, rows, arranged, options, has_failed }.images()?;
    made.remove_empty_classes()?;
    let views: Vec<Vec<usize>> =
        good.iter().map(|views| views.iter().map(|(view, _)| *view).collect()).collect();
    let (kept, gone) = arranged.with_only(&views);
    if kept.objects.is_empty() {
        return Err(none_is_usable(rows, &bad));
    }
    let skipped = records(rows, arranged, &gone, &bad);
    let is_kept = |object: &usize| gone.binary_search_by_key(object, |(gone, _)| *gone).is_err();
    let checksums: Vec<Vec<u32>> = (0..good.len())
        .filter(is_kept)
        .map(|object| good[object].iter().map(|(_, sum)| *sum).collect())
        .collect();
    let settings = counted(settings, rows, &kept);
    let classes = classes_left(arranged, &skipped);
    let writer = Writer { root, staging, rows, all: arranged, kept: &kept, classes };
    let card = writer.finish(settings, columns, &checksums, &skipped)?;
    drop(writer);
    remove_work(root);
    Ok(Outcome { card, classes, notes, skipped, was_complete: false })
}

/// How many classes have objects when those that are `skipped` as a whole are gone.
fn classes_left(arranged: &Arranged, skipped: &[Skipped]) -> usize {
    let gone = skipped.iter().filter(|record| record.file.is_none());
    let gone: HashSet<(&str, &str)> = gone.map(|gone| (gone.synset.as_str(), gone.name.as_str())).collect();
    let objects = arranged.objects.iter();
    let left = objects.filter(|object| !gone.contains(&(object.synset.as_str(), object.name.as_str())));
    left.map(|object| object.label).collect::<HashSet<u32>>().len()
}

/// The latents that the rows have.
fn columns(rows: &Rows) -> LatentColumns {
    let any = |has: fn(&Row) -> bool| rows.rows.iter().any(has);
    LatentColumns {
        rotation: any(|row| row.pose.is_some()),
        light: any(|row| row.light.is_some()),
        translation: any(|row| row.pose.is_some_and(|pose| pose.translation.is_some())),
        ..LatentColumns::default()
    }
}

/// All latents of a row, NaN where they are not known.
fn latents(row: &Row) -> [f64; 10] {
    let mut all = [f64::NAN; 10];
    if let Some(pose) = row.pose {
        all[..3].copy_from_slice(&pose.rotation);
        pose.translation.iter().for_each(|translation| all[7..].copy_from_slice(translation));
    }
    row.light.iter().for_each(|light| all[3..7].copy_from_slice(light));
    all
}

fn settings(
    rows: &Rows,
    arranged: &Arranged,
    columns: LatentColumns,
    options: &Options<'_>,
) -> Result<Settings> {
    let mut hash = random::Fnv1a::new();
    for row in &rows.rows {
        let text = format!("{}\t{}\t{}\t{:?}\t{:?}\n", row.file, row.class, row.object, row.view, row.split);
        hash.add(text.as_bytes());
        latents(row).iter().for_each(|value| hash.add(&value.to_bits().to_le_bytes()));
        row.region
            .iter()
            .flat_map(|region| region.0)
            .for_each(|value| hash.add(&value.to_bits().to_le_bytes()));
    }
    let name = rows.source.canonicalize().map_err(Error::read(&rows.source))?;
    let name = name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = match options.reference {
        false => None,
        true => {
            let folder = if rows.folder.as_os_str().is_empty() { Path::new(".") } else { &rows.folder };
            Some(folder.canonicalize().map_err(Error::read(folder))?)
        }
    };
    let settings = Settings {
        preset: "imported".to_owned(),
        origin: Origin::Imported(Box::new(Imported {
            source: name,
            source_digest: format!("{:016x}", hash.value()),
            fit: options.fit,
            boxes: 0,
            latents: columns.names().into_iter().map(str::to_owned).collect(),
            convention: rows.convention.clone(),
            without_pose: 0,
            fewest_views: 0,
            folder,
        })),
        limit: None,
        objects: arranged.objects.len(),
        objects_digest: digest(&arranged.objects),
        views: arranged.index.most(),
        split: arranged.split,
        size: options.size,
        seed: options.seed,
        quality: String::new(),
        device: String::new(),
        mixed_devices: Vec::new(),
        channel_order: ChannelOrder::Rgb,
        format: if options.reference { Format::Reference } else { Format::Files },
        objects_per_tar: None,
        ranges: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(counted(settings, rows, arranged))
}

/// `settings` with the numbers of the views of `kept`.
fn counted(mut settings: Settings, rows: &Rows, kept: &Arranged) -> Settings {
    let count =
        |has: fn(&Row) -> bool| kept.rows.iter().flatten().filter(|&&row| has(&rows.rows[row])).count();
    settings.views = kept.index.most();
    if let Origin::Imported(imported) = &mut settings.origin {
        imported.boxes = count(|row| row.region.is_some());
        imported.without_pose = count(|row| row.pose.is_none());
        imported.fewest_views = kept.rows.iter().map(Vec::len).min().unwrap_or(0);
    }
    settings
}

struct Writer<'a> {
    root: &'a Path,
    staging: Staging,
    rows: &'a Rows,
    /// What was asked for.
    all: &'a Arranged,
    /// What of it can be used.
    kept: &'a Arranged,
    /// Classes that this has.
    classes: usize,
}

impl Writer<'_> {
    fn publish(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.staging.publish(&self.root.join(name), bytes)
    }

    /// The lists, the tables and the card.
    fn finish(
        &self,
        settings: Settings,
        columns: LatentColumns,
        checksums: &[Vec<u32>],
        skipped: &[Skipped],
    ) -> Result<Card> {
        let Arranged { objects, rows, index, split, .. } = self.kept;
        let by_views = *split == SplitBy::Views;
        let mut images = [0; 2];
        for (side, images) in Split::ALL.into_iter().zip(&mut images) {
            let members: Vec<usize> =
                (0..objects.len()).filter(|&object| by_views || objects[object].split == side).collect();
            let folders: Vec<String> = members.iter().map(|&object| folder_entry(&objects[object])).collect();
            let labels: Vec<i64> = members.iter().map(|&object| i64::from(objects[object].label)).collect();
            let views = |object: usize| index.views_of(side, object);
            let counts: Vec<i64> = members.iter().map(|&object| views(object).len() as i64).collect();
            *images = members.iter().map(|&object| views(object).len()).sum();
            self.publish(&image_list(side), &arrays::strings(&folders))?;
            self.publish(&label_list(side), &arrays::integers(&labels))?;
            self.publish(&view_count_list(side), &arrays::integers(&counts))?;
            let sums = members.iter().flat_map(|&object| checksums[object][views(object)].iter().copied());
            self.publish(&checksum_list(side), &checksums::table(sums))?;
            if columns.width() > 0 {
                let of = |&row: &usize| columns.of(&latents(&self.rows.rows[row]));
                let values: Vec<f64> =
                    members.iter().flat_map(|&object| rows[object].iter().flat_map(of)).collect();
                self.publish(&latent_list(side), &arrays::rows(columns.width(), &values))?;
            } else {
                // From an import that was begun with poses.
                let _ = std::fs::remove_file(self.root.join(latent_list(side)));
            }
        }
        let sources: Vec<Source> = objects
            .iter()
            .zip(rows)
            .flat_map(|(object, rows)| {
                rows.iter().enumerate().map(|(view, &row)| self.source(object, view, row))
            })
            .collect();
        self.publish(SOURCES, &to_lines(sources.iter()))?;
        let classes = classes(&self.all.objects);
        self.publish(CLASSES, &json(&classes))?;
        self.publish(SKIPPED, &json(&skipped))?;
        let train_objects = objects.iter().filter(|object| object.split == Split::Train).count();
        let val_objects = if by_views { objects.len() } else { objects.len() - train_objects };
        let counts = Counts {
            classes: classes.len(),
            train_objects,
            val_objects,
            images: index.total(),
            images_of_sides: Some(images),
            skipped_objects: self.all.objects.len() - objects.len(),
            skipped_images: self.rows.rows.len() - index.total(),
        };
        let card = Card { counts: Some(counts), ..Card::begun(settings) };
        self.publish(README, card.to_markdown(self.classes).as_bytes())?;
        self.publish(CARD, &card.to_json())?;
        Ok(card)
    }

    fn source(&self, object: &Object, view: usize, row: usize) -> Source {
        let row = &self.rows.rows[row];
        Source {
            object: object.id(),
            view,
            file: row.file.clone(),
            place: row.place.clone(),
            region: row.region,
        }
    }
}

#[cfg(test)]
mod tests;
