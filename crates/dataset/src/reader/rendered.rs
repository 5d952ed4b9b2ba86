//! Views and latents of datasets that were rendered or published: as many views of every object, 7 or 10 latents.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::arrays;
use crate::error::{Error, Result};
use crate::latent_table::{LatentColumns, LatentTable};
use crate::lists;
use crate::object::{Object, SplitBy};
use crate::storage::file_names;

/// Counts the views of the first object; the others are taken to have as many.
pub fn count_views(root: &Path, object: &Object) -> Result<usize> {
    let folder = root.join(&object.synset).join(&object.name);
    let views = (0..).take_while(|&view| folder.join(&file_names(view)[0]).exists()).count();
    if views == 0 {
        return Err(Error::content(&folder, "expected views image_0.jpg, image_1.jpg ..., found none"));
    }
    Ok(views)
}

/// The latents of all views: from the tables where they are there and fit, else from the single files.
pub fn read_latents(
    root: &Path,
    lists_folder: &Path,
    objects: &[Object],
    views: usize,
    split: SplitBy,
) -> Result<LatentTable> {
    let mut width = None;
    let mut values = Vec::new();
    for &split in lists::sides(split) {
        let objects: Vec<&Object> = objects.iter().filter(|object| object.split == split).collect();
        let tables = [root, lists_folder].map(|folder| folder.join(lists::latent_list(split)));
        let (columns, source, mut part) = match tables.iter().find(|path| path.exists()) {
            Some(path) => {
                let (shape, values) = arrays::read_floats(path)?;
                let expected = objects.len() * views;
                match shape[..] {
                    [rows, columns] if rows == expected => {
                        refuse_not_finite(path, &values, columns)?;
                        (columns, path.clone(), values)
                    }
                    _ => {
                        let message = format!("expected {expected} rows of latents, found shape {shape:?}");
                        return Err(Error::content(path, message));
                    }
                }
            }
            None => read_single_latents(root, &objects, views)?,
        };
        if LatentTable::new(columns, Vec::new()).is_none() || width.is_some_and(|width| width != columns) {
            return Err(Error::content(
                &source,
                format!(
                    "expected 7, 10, 13 or 16 latents everywhere, or two more with the camera, found {columns}"
                ),
            ));
        }
        if !objects.is_empty() {
            width = Some(columns);
        }
        values.append(&mut part);
    }
    LatentTable::new(width.unwrap_or(crate::latent_table::WIDTH), values)
        .ok_or_else(|| Error::content(root, "the latents do not form a table"))
}

/// Refuses a table of latents, `columns` in a row, with a NaN or an infinity: losses and metrics would be NaN.
fn refuse_not_finite(path: &Path, values: &[f64], columns: usize) -> Result<()> {
    let Some(at) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    let (row, column) = (at / columns.max(1), at % columns.max(1));
    let names = LatentColumns::rendered(columns).map(LatentColumns::names).unwrap_or_default();
    let name = names.get(column).copied().unwrap_or("a latent");
    Err(Error::content(path, format!("{name} in row {row} is {}, expected a finite number", values[at])))
}

/// Latents from `latent_i.npy` of every view: (columns, where they were found, values).
fn read_single_latents(root: &Path, objects: &[&Object], views: usize) -> Result<(usize, PathBuf, Vec<f64>)> {
    let read = |object: &&Object| -> Result<Vec<Vec<f64>>> {
        let folder = root.join(&object.synset).join(&object.name);
        let file = |view| {
            let path = folder.join(&file_names(view)[1]);
            let (shape, values) = arrays::read_floats(&path)?;
            match shape[..] {
                [columns] if LatentColumns::rendered(columns).is_some() => {
                    refuse_not_finite(&path, &values, values.len())?;
                    Ok(values)
                }
                _ => Err(Error::content(
                    &path,
                    format!(
                        "expected 7, 10, 13 or 16 latents, or two more with the camera, found shape {shape:?}"
                    ),
                )),
            }
        };
        (0..views).map(file).collect()
    };
    let rows: Vec<Vec<Vec<f64>>> = objects.par_iter().map(read).collect::<Result<_>>()?;
    let columns = rows.first().and_then(|object| object.first()).map_or(7, Vec::len);
    for (object, rows) in objects.iter().zip(&rows) {
        if let Some(view) = rows.iter().position(|row| row.len() != columns) {
            let path = root.join(&object.synset).join(&object.name).join(&file_names(view)[1]);
            return Err(Error::content(&path, format!("expected {columns} latents as in the other views")));
        }
    }
    Ok((columns, root.to_path_buf(), rows.into_iter().flatten().flatten().collect()))
}
