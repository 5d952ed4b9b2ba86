//! Images that people have become a dataset: a table of files and poses ([`rows`]), a BOP folder ([`bop`]), or folders of
//! classes ([`folders`]); copied, or named where they are.

mod arrange;
mod bad;
mod begun;
mod bop;
mod columns;
mod fit;
mod folders;
mod images;
mod own_names;
pub(crate) mod reading;
mod readme;
mod rotation;
mod rows;
mod sources;
mod table;
mod write;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::error::{Error, Result};
use crate::object::SplitBy;
use crate::work::Skipped;

pub use fit::{Fit, Region};
pub use rotation::{AngleUnit, Conventions, EulerOrder, PoseFrame};
pub use sources::{SOURCES, Source};

pub(crate) use fit::square;
pub(crate) use rows::{places, split_named};
pub(crate) use sources::read as read_sources;
pub(crate) use table::is_table;

/// What a card says of imported images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The name of the table or folder.
    pub source: String,
    /// A number for what it says: files, objects, poses.
    pub source_digest: String,
    /// How images that are not square became square.
    pub fit: Fit,
    /// Views that were cut around a box of their object.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub boxes: usize,
    /// Names of the latents that are known, in the order of the tables.
    pub latents: Vec<String>,
    /// How rotations were written, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub convention: String,
    /// Views whose pose is not known.
    pub without_pose: usize,
    /// The smallest number of views of an object.
    pub fewest_views: usize,
    /// The folder that the files of `sources.jsonl` are relative to, where images stay where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// How to import.
pub struct Options<'a> {
    /// How poses are to be read.
    pub conventions: Conventions,
    /// How images become square.
    pub fit: Fit,
    /// Side of the images in pixels.
    pub size: usize,
    /// Whether images stay where they are.
    pub reference: bool,
    /// What is to be held out, where it is not what the table says.
    pub split: Option<SplitBy>,
    /// Seed of the split.
    pub seed: u64,
    /// Whether images that cannot be used are left out, and recorded; else they end the import, all of them named.
    pub skip_bad: bool,
    /// Set by somebody else to stop after the images in hand.
    pub stop: &'a AtomicBool,
    /// Called once with the number of images to read.
    pub on_begin: &'a (dyn Fn(u64) + Sync),
    /// Called with the number of images done since the last call.
    pub on_images: &'a (dyn Fn(u64) + Sync),
}

/// What an import came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The card of the dataset.
    pub card: Card,
    /// Classes that have objects: those of which nothing can be used keep their label only.
    pub classes: usize,
    /// What was assumed or left out, a sentence each.
    pub notes: Vec<String>,
    /// Objects and images that are left out.
    pub skipped: Vec<Skipped>,
    /// Whether the dataset was there already.
    pub was_complete: bool,
}

/// Makes a dataset in `root` of what `source` names.
pub fn import(source: &Path, root: &Path, options: &Options<'_>) -> Result<Outcome> {
    refuse_inside(source, root)?;
    let rows = read(source, &options.conventions)?;
    let arranged = arrange::arrange(&rows, options.split, options.seed)?;
    write::write(root, &rows, &arranged, options)
}

/// Refuses to make a dataset inside the folder that is imported: the next import would take it for a part of that.
fn refuse_inside(source: &Path, root: &Path) -> Result<()> {
    let Some(folder) = source.canonicalize().ok().filter(|folder| folder.is_dir()) else { return Ok(()) };
    let absolute = std::path::absolute(root).map_err(Error::read(root))?;
    let there = absolute.ancestors().find_map(|folder| folder.canonicalize().ok());
    if there.is_some_and(|there| there.starts_with(&folder)) && !source.join(crate::card::CARD).exists() {
        let message = format!("lies inside {}, which is imported; use another --out", source.display());
        return Err(Error::content(root, message));
    }
    Ok(())
}

/// Whether `folder` is one that could be imported: a BOP folder, or folders of classes.
pub(crate) fn is_importable(folder: &Path) -> bool {
    bop::is_bop(folder) || folders::read(folder).is_ok()
}

fn read(source: &Path, conventions: &Conventions) -> Result<rows::Rows> {
    if !source.exists() {
        return Err(Error::Request(format!("there is no table or folder {}", source.display())));
    }
    if source.is_file() {
        return rows::read(source, conventions);
    }
    if *conventions != Conventions::default() {
        let message =
            "is a folder: --angles, --unit, --frame, --inverse and --scale are for the poses of a table";
        return Err(Error::content(source, message));
    }
    if source.join(crate::card::CARD).exists() {
        return Err(Error::content(source, "is a dataset already"));
    }
    if bop::is_bop(source) { bop::read(source) } else { folders::read(source) }
}
