//! The files of an imported dataset. Objects appear one by one, each at once; the lists and the complete card come last, so
//! that what was interrupted goes on when the same command is run again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::arrays;
use crate::card::{CARD, Card, Counts, Format, Origin, README, Settings, json};
use crate::checksums::{self, checksum_list};
use crate::durable::{self, Staging};
use crate::error::{Error, Result};
use crate::image_file::{decode_upright, read_regular};
use crate::import::arrange::Arranged;
use crate::import::fit::square;
use crate::import::rows::{Row, Rows};
use crate::import::sources::{SOURCES, Source, to_lines};
use crate::import::{Imported, Options, Outcome};
use crate::jpeg::{self, ChannelOrder};
use crate::latent_table::LatentColumns;
use crate::lists::{CLASSES, folder_entry, image_list, label_list, latent_list, view_count_list};
use crate::object::{Object, Split, SplitBy};
use crate::plan::{Plan, classes, digest};
use crate::storage::file_names;
use crate::work::{SKIPPED, WORK, check_names, holds_something_else, remove_work};

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
        Some(card) if card.settings != settings => {
            let difference = card.settings.difference(&settings).unwrap_or_default();
            return Err(Error::OtherSettings { path: root.to_path_buf(), difference });
        }
        Some(card) if card.is_complete() => return Ok(Outcome { card, notes, was_complete: true }),
        _ => {}
    }
    refuse_missing_files(rows)?;
    durable::create_folder(root)?;
    let writer = Writer {
        root,
        staging: Staging::create(&root.join(WORK).join("staging"))?,
        rows,
        arranged,
        options,
        has_failed: AtomicBool::new(false),
    };
    writer.staging.publish(&root.join(CARD), &Card::begun(settings.clone()).to_json())?;
    let checksums = writer.images()?;
    let card = writer.finish(settings, columns, &checksums)?;
    drop(writer);
    remove_work(root);
    Ok(Outcome { card, notes, was_complete: false })
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
    let views = |object: usize| arranged.index.views(object);
    Ok(Settings {
        preset: "imported".to_owned(),
        origin: Origin::Imported(Box::new(Imported {
            source: name,
            source_digest: format!("{:016x}", hash.value()),
            fit: options.fit,
            boxes: rows.rows.iter().filter(|row| row.region.is_some()).count(),
            latents: columns.names().into_iter().map(str::to_owned).collect(),
            convention: rows.convention.clone(),
            without_pose: rows.rows.iter().filter(|row| row.pose.is_none()).count(),
            fewest_views: (0..arranged.objects.len()).map(views).min().unwrap_or(0),
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
    })
}

/// Names the first row whose file is not there, before anything is written.
fn refuse_missing_files(rows: &Rows) -> Result<()> {
    let is_missing = |row: &&Row| !rows.folder.join(&row.file).is_file();
    match rows.rows.par_iter().find_first(is_missing) {
        None => Ok(()),
        Some(row) => {
            let path = rows.folder.join(&row.file);
            let missing = rows.rows.par_iter().filter(is_missing).count();
            let more = if missing > 1 {
                format!(" ({missing} rows name files that are not there)")
            } else {
                String::new()
            };
            Err(rows.wrong(row, format!("there is no file {}{more}", path.display())))
        }
    }
}

/// All of them, or the first failure in order; an interruption is one only where there is no other.
fn whole<T>(mut outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
    let failed = outcomes.iter().position(|outcome| !matches!(outcome, Ok(_) | Err(Error::Interrupted)));
    match failed {
        Some(failed) => outcomes.swap_remove(failed).map(|one| vec![one]),
        None => outcomes.into_iter().collect(),
    }
}

struct Writer<'a> {
    root: &'a Path,
    staging: Staging,
    rows: &'a Rows,
    arranged: &'a Arranged,
    options: &'a Options<'a>,
    /// Set where an image cannot be used: the others need not be looked at.
    has_failed: AtomicBool,
}

impl Writer<'_> {
    fn folder(&self, object: &Object) -> PathBuf {
        self.root.join(&object.synset).join(&object.name)
    }

    /// Reads, and where it is to be copied writes, every image; their checksums, by object.
    fn images(&self) -> Result<Vec<Vec<u32>>> {
        (self.options.on_begin)(self.rows.rows.len() as u64);
        // Collected before it is looked at, so that of all failures the first in order is reported.
        let outcomes: Vec<Result<Vec<u32>>> = (0..self.arranged.objects.len())
            .into_par_iter()
            .with_max_len(1)
            .map(|object| self.object(object))
            .collect();
        whole(outcomes)
    }

    fn object(&self, number: usize) -> Result<Vec<u32>> {
        let rows = &self.arranged.rows[number];
        let is_stopped =
            || self.options.stop.load(Ordering::Relaxed) || self.has_failed.load(Ordering::Relaxed);
        if is_stopped() {
            return Err(Error::Interrupted);
        }
        let folder = self.folder(&self.arranged.objects[number]);
        if !self.options.reference
            && let Some(checksums) = self.written(&folder, rows.len())?
        {
            (self.options.on_images)(rows.len() as u64);
            return Ok(checksums);
        }
        let image = |&row: &usize| {
            if is_stopped() {
                return Err(Error::Interrupted);
            }
            let failed = |_: &Error| self.has_failed.store(true, Ordering::Relaxed);
            let image = self.image(&self.rows.rows[row]).inspect_err(failed)?;
            (self.options.on_images)(1);
            let sum = checksums::of(&image);
            // What stays where it is need not be held.
            Ok((sum, if self.options.reference { Vec::new() } else { image }))
        };
        let outcomes: Vec<Result<(u32, Vec<u8>)>> = rows.par_iter().with_max_len(4).map(image).collect();
        let images: Vec<(u32, Vec<u8>)> = whole(outcomes)?;
        let sums = images.iter().map(|(sum, _)| *sum).collect();
        let name = |view: usize| file_names(view)[0].clone();
        let files: Vec<(String, Vec<u8>)> =
            images.into_iter().enumerate().map(|(view, (_, image))| (name(view), image)).collect();
        if !self.options.reference {
            self.staging.publish_folder(&folder, &files)?;
        }
        Ok(sums)
    }

    /// The checksums of an object that an earlier process has written; a folder with missing files is taken away.
    fn written(&self, folder: &Path, views: usize) -> Result<Option<Vec<u32>>> {
        if !folder.exists() {
            return Ok(None);
        }
        let paths: Vec<PathBuf> = (0..views).map(|view| folder.join(&file_names(view)[0])).collect();
        if !paths.iter().all(|path| path.is_file()) {
            self.staging.discard(folder)?;
            return Ok(None);
        }
        let sum = |path: &PathBuf| Ok(checksums::of(&read_regular(path)?));
        paths.iter().map(sum).collect::<Result<_>>().map(Some)
    }

    /// The bytes to be stored of an image, or, where it stays where it is, its own; it can be decoded.
    fn image(&self, row: &Row) -> Result<Vec<u8>> {
        let (side, path) = (self.options.size, self.rows.folder.join(&row.file));
        let wrong = |message: String| self.rows.wrong(row, format!("{}: {message}", path.display()));
        let bytes = read_regular(&path).map_err(|error| self.rows.wrong(row, error))?;
        let image = decode_upright(&bytes).map_err(wrong)?;
        let mut pixels = vec![0; side * side * 3];
        square(&image, self.options.fit, row.region, side, &mut pixels).map_err(wrong)?;
        if self.options.reference {
            return Ok(bytes);
        }
        // What is stored as it would be, is copied: no picture is compressed twice without need.
        let is_stored_so = bytes.starts_with(&[0xFF, 0xD8])
            && row.region.is_none()
            && (image.width, image.height) == (side, side)
            && jpeg::decode(&bytes).is_ok_and(|stored| stored.pixels == pixels);
        if is_stored_so {
            return Ok(bytes);
        }
        let side = u16::try_from(side).map_err(|_| wrong("the side is too long for a JPEG".to_owned()))?;
        jpeg::encode(&pixels, side, ChannelOrder::Rgb).map_err(wrong)
    }

    fn publish(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.staging.publish(&self.root.join(name), bytes)
    }

    /// The lists, the tables and the card.
    fn finish(&self, settings: Settings, columns: LatentColumns, checksums: &[Vec<u32>]) -> Result<Card> {
        let Arranged { objects, rows, index, split, .. } = self.arranged;
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
        let classes = classes(objects);
        self.publish(CLASSES, &json(&classes))?;
        self.publish(SKIPPED, b"[]\n")?;
        let train_objects = objects.iter().filter(|object| object.split == Split::Train).count();
        let val_objects = if by_views { objects.len() } else { objects.len() - train_objects };
        let counts = Counts {
            classes: classes.len(),
            train_objects,
            val_objects,
            images: self.rows.rows.len(),
            images_of_sides: Some(images),
            skipped_objects: 0,
        };
        let card = Card { counts: Some(counts), ..Card::begun(settings) };
        self.publish(README, card.to_markdown().as_bytes())?;
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
