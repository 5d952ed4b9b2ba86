//! Reading an imported dataset again: numbers of views, latents of which some may be missing, and where images are that
//! were left where they were.

use std::path::Path;

use crate::arrays;
use crate::card::{CARD, Card};
use crate::error::{Error, Result};
use crate::import::{Imported, Region, places, read_sources};
use crate::latent_table::{LatentColumns, LatentTable, NAMES};
use crate::lists::{self, latent_list, view_count_list};
use crate::object::{Object, Split, SplitBy};
use crate::view_index::ViewIndex;

/// Views of an object at most.
const MOST_VIEWS: i64 = 1_000_000;

/// How many views `objects` have, from the lists in `folder`.
pub fn read_counts(folder: &Path, objects: &[Object], split: SplitBy) -> Result<ViewIndex> {
    let read = |side: Split| -> Result<Vec<usize>> {
        let path = folder.join(view_count_list(side));
        let expected = match split {
            SplitBy::Views => objects.len(),
            SplitBy::Objects => objects.iter().filter(|object| object.split == side).count(),
        };
        let (shape, counts) = arrays::read_integers(&path)?;
        if shape != [expected] {
            let message =
                format!("expected {expected} numbers of views, one for each object, found shape {shape:?}");
            return Err(Error::content(&path, message));
        }
        let wrong = counts.iter().position(|count| !(1..=MOST_VIEWS).contains(count));
        match wrong {
            Some(row) => Err(Error::content(
                &path,
                format!("row {row} is {}, expected a number of views", counts[row]),
            )),
            None => Ok(counts.into_iter().map(|count| count as usize).collect()),
        }
    };
    let [train, val] = [read(Split::Train)?, read(Split::Val)?];
    Ok(match split {
        SplitBy::Objects => ViewIndex::new(train.into_iter().chain(val).map(|views| (views, 0))),
        SplitBy::Views => ViewIndex::new(train.into_iter().zip(val).map(|(kept, last)| (kept + last, last))),
    })
}

/// The latents that `imported` names, of all views.
pub fn read_latents(
    folder: &Path,
    imported: &Imported,
    objects: &[Object],
    index: &ViewIndex,
    split: SplitBy,
) -> Result<LatentTable> {
    let columns = LatentColumns::with_names(&imported.latents).ok_or_else(|| {
        let message = format!("{:?} are not latents in their order", imported.latents);
        Error::content(&folder.join(CARD), message)
    })?;
    let (width, mut values) = (columns.width(), Vec::new());
    for &side in if width > 0 { lists::sides(split) } else { &[] } {
        let path = folder.join(latent_list(side));
        let views = |object: usize| {
            (split == SplitBy::Views || objects[object].split == side).then(|| index.views(object))
        };
        let expected: usize = (0..objects.len()).filter_map(views).sum();
        let (shape, mut part) = arrays::read_floats(&path)?;
        if shape != [expected, width] {
            let message = format!("expected {expected} rows of {width} latents, found shape {shape:?}");
            return Err(Error::content(&path, message));
        }
        refuse_half_missing(&path, columns, &part)?;
        values.append(&mut part);
    }
    LatentTable::with_columns(columns, index.total(), values)
        .ok_or_else(|| Error::content(folder, "the latents do not form a table"))
}

/// A pose is there or it is not; light is always there.
fn refuse_half_missing(path: &Path, columns: LatentColumns, values: &[f64]) -> Result<()> {
    let names = columns.names();
    let is_light = |column: usize| NAMES[3..7].contains(&names[column]);
    for (row, values) in values.chunks_exact(names.len()).enumerate() {
        let has_pose = values[0].is_finite() || !columns.rotation;
        let wrong = (0..names.len()).find(|&column| {
            let is_missing = values[column].is_nan() && !is_light(column) && !has_pose;
            !values[column].is_finite() && !is_missing
                || values[column].is_finite() && !is_light(column) && !has_pose
        });
        if let Some(column) = wrong {
            let message =
                format!("{} in row {row} is {}, expected a finite number", names[column], values[column]);
            return Err(Error::content(path, message));
        }
    }
    Ok(())
}

/// What to say of views without a pose, if there are any: how many, and which rows of what was imported.
pub fn without_pose(root: &Path, imported: &Imported, latents: &LatentTable) -> Result<Option<String>> {
    let missing = (0..latents.rows()).filter(|&row| !latents.has_pose(row)).count();
    if missing == 0 {
        return Ok(None);
    }
    let (source, all) = (&imported.source, latents.rows());
    if missing == all {
        return Ok(Some(format!("none of the {all} views imported from {source} has a pose")));
    }
    let mut named: Vec<String> = Vec::new();
    for (row, source) in read_sources(root)?.enumerate() {
        let source = source?;
        if row < all && !latents.has_pose(row) {
            named.push(source.place);
        }
    }
    let named = places(named.iter().map(String::as_str));
    Ok(Some(format!("{missing} of the {all} views imported from {source} have no pose: {named}")))
}

/// The files of all views in their natural order, with the parts of them that show an object.
pub fn read_files(root: &Path, card: &Card, expected: usize) -> Result<Vec<(String, Option<Region>)>> {
    let sources = read_sources(root)?.map(|source| source.map(|source| (source.file, source.region)));
    let files: Vec<_> = sources.collect::<Result<_>>()?;
    if files.len() != expected || card.settings.imported().is_none() {
        let message = format!("names {} files, expected {expected}", files.len());
        return Err(Error::content(&root.join(crate::import::SOURCES), message));
    }
    Ok(files)
}
