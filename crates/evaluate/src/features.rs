//! Frozen features of all views, computed once and kept on disk.
//!
//! A folder of parts, one for a block of objects, named by a key of weights and data: an interrupted extraction goes
//! on with the first missing part, and other weights or other images never meet an old feature. Parts are written by
//! a thread of their own while the network goes on.

mod parts;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use dataset::{Loader, LoaderOptions, Views};
use engine::{Device, Precision};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::encoder::{Encoder, Widths};
use crate::error::{Error, Result};
use crate::features::parts::Part;

/// Where features are kept, beside the results of a run, unless somebody says otherwise.
pub const FOLDER: &str = "features";

/// Rows of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Numbers in a row.
    pub width: usize,
    /// Row after row.
    pub values: Vec<f32>,
}

impl Table {
    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..(row + 1) * self.width]
    }

    /// Several rows, one after the other.
    pub fn gather(&self, rows: &[i32]) -> Vec<f32> {
        rows.iter().flat_map(|&row| self.row(row as usize)).copied().collect()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.width.max(1)
    }
}

/// Which features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureKind {
    /// `h`.
    Representation,
    /// Raw poses, or the projector's (equivariant) output.
    Equivariant,
    /// Activations, or the projector's invariant output.
    Invariant,
}

/// Features of all views, object by object, view by view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    /// `h`.
    pub representation: Table,
    /// The equivariant embedding; empty for methods without.
    pub equivariant: Table,
    /// The invariant embedding; empty for methods without.
    pub invariant: Table,
}

/// How features are extracted and kept.
#[derive(Clone, Debug)]
pub struct Extraction {
    /// The folder of kept features; nothing is kept where `None`.
    pub cache: Option<PathBuf>,
    /// Hash of the weights.
    pub weights_key: String,
    /// Hash of the data.
    pub data_key: String,
    /// What else decides the features: the side of images, and the arithmetic where it is not float32.
    pub kind: String,
    /// Images in a batch, at most.
    pub batch: usize,
    /// Threads that decode images.
    pub workers: usize,
    /// Which of several processes this is, and how many share the work; only what it computes is then to be used.
    pub share: (usize, usize),
}

impl Extraction {
    /// Features of `encoder` on `device`, kept in `cache`, by one process alone; the data's key is still to be set.
    pub fn new(cache: Option<PathBuf>, weights_key: &str, encoder: &dyn Encoder, device: &Device) -> Self {
        Self {
            cache,
            weights_key: weights_key.to_owned(),
            data_key: String::new(),
            kind: match device.precision() {
                Precision::F32 => encoder.side().to_string(),
                other => format!("{}-{}", encoder.side(), other.name()),
            },
            batch: if matches!(device, Device::Cpu(_)) { 128 } else { 512 },
            workers: rayon::current_num_threads(),
            share: (0, 1),
        }
    }
}

/// Objects in one part.
const PART_OBJECTS: usize = 32;
/// Parts that may wait to be written.
const WAITING_PARTS: usize = 4;

/// The objects of a part.
fn objects_of(part: usize, objects: usize) -> Range<usize> {
    part * PART_OBJECTS..objects.min((part + 1) * PART_OBJECTS)
}

/// Features of every view of every object; `progress` gets how many views are done.
pub fn extract(
    encoder: &mut dyn Encoder,
    views: &Arc<dyn Views>,
    extraction: &Extraction,
    mut progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<Features> {
    let objects = views.objects().len();
    let sizes: Vec<usize> = (0..objects.div_ceil(PART_OBJECTS))
        .map(|part| objects_of(part, objects).map(|object| views.views_in(object)).sum())
        .collect();
    let mut features = Features::zeros(encoder.widths(), sizes.iter().sum());
    let folder = extraction.cache.as_ref().map(|cache| {
        cache.join(format!("{}-{}-{}", extraction.weights_key, extraction.data_key, extraction.kind))
    });
    let path = |part: usize| folder.as_ref().map(|folder| folder.join(format!("part-{part:06}.bin")));
    let mut parts = features.parts(&sizes);
    let known: Vec<bool> = parts
        .par_iter_mut()
        .enumerate()
        .map(|(index, part)| path(index).is_some_and(|path| part.read(&path)))
        .collect();
    (0..known.len()).filter(|&part| known[part]).for_each(|part| progress(sizes[part] as u64));
    let (process, processes) = extraction.share;
    let is_own = |part: &usize| part % processes.max(1) == process;
    let missing: Vec<usize> = (0..known.len()).filter(|&part| !known[part]).filter(is_own).collect();
    if let Some(folder) = folder.as_ref().filter(|_| !missing.is_empty()) {
        dataset::durable::create_folder(folder)?;
    }
    // Batches never cross the border of a part, and are of about equal size.
    let batches_of = |part: usize| {
        let items: Vec<_> = objects_of(part, objects)
            .flat_map(|object| (0..views.views_in(object)).map(move |view| (object, view)))
            .collect();
        let count = items.len().div_ceil(extraction.batch.max(1)).max(1);
        items.chunks(items.len().div_ceil(count).max(1)).map(<[_]>::to_vec).collect::<Vec<_>>()
    };
    let plan: Vec<Vec<(usize, usize)>> = missing.iter().flat_map(|&part| batches_of(part)).collect();
    let options = LoaderOptions { side: Some(encoder.side()), workers: extraction.workers, queue: 4 };
    let mut loader = Loader::start(Arc::clone(views), plan, options)?;
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<(PathBuf, Vec<u8>)>(WAITING_PARTS);
        let writer =
            scope.spawn(move || receiver.iter().try_for_each(|(path, bytes)| parts::write(&path, bytes)));
        let mut encode = || -> Result<()> {
            for &index in &missing {
                let part = &mut parts[index];
                let mut row = 0;
                while row < sizes[index] {
                    if stop() || !loader.wait(stop) {
                        return Err(Error::Interrupted);
                    }
                    let Some(batch) = loader.next() else {
                        return Err(Error::Request("the loader ended before all views were read".to_owned()));
                    };
                    let batch = batch?;
                    let count = batch.items.len();
                    part.put(row, count, &encoder.encode(&batch.pixels, count)?)?;
                    row += count;
                    loader.recycle(batch);
                    progress(count as u64);
                }
                // A writer that has failed says why below.
                if let Some(path) = path(index)
                    && sender.send((path, part.to_bytes())).is_err()
                {
                    break;
                }
            }
            Ok(())
        };
        let encoded = encode();
        drop(sender);
        let written =
            writer.join().unwrap_or_else(|_| Err(Error::Request("the writer of features failed".to_owned())));
        encoded.and(written)
    })?;
    Ok(features)
}

impl Features {
    fn zeros(widths: Widths, rows: usize) -> Self {
        let table = |width: usize| Table { width, values: vec![0.0; rows * width] };
        Self {
            representation: table(widths.representation),
            equivariant: table(widths.equivariant.unwrap_or(0)),
            invariant: table(widths.invariant.unwrap_or(0)),
        }
    }

    /// Every table changed.
    pub fn map(self, change: impl Fn(Table) -> Table) -> Self {
        Self {
            representation: change(self.representation),
            equivariant: change(self.equivariant),
            invariant: change(self.invariant),
        }
    }

    /// One of the tables.
    pub fn table(&self, kind: FeatureKind) -> &Table {
        match kind {
            FeatureKind::Representation => &self.representation,
            FeatureKind::Equivariant => &self.equivariant,
            FeatureKind::Invariant => &self.invariant,
        }
    }

    /// Blocks of so many rows, one after the other.
    fn parts(&mut self, sizes: &[usize]) -> Vec<Part<'_>> {
        let tables = [&mut self.representation, &mut self.equivariant, &mut self.invariant];
        let widths = [tables[0].width, tables[1].width, tables[2].width];
        let mut rest = tables.map(|table| table.values.as_mut_slice());
        let mut part = |&rows: &usize| {
            let mut table = 0;
            let values = rest.each_mut().map(|rest| {
                let (part, others) = std::mem::take(rest).split_at_mut(rows * widths[table]);
                *rest = others;
                table += 1;
                part
            });
            Part { widths, values }
        };
        sizes.iter().map(&mut part).collect()
    }
}

/// A hash of what decides the images: objects, views, side, all latents, and the bytes of some images.
pub fn data_key(views: &dyn Views) -> Result<String> {
    let mut hash = random::Fnv1a::new();
    hash.add(&(views.views() as u64).to_le_bytes());
    hash.add(&(views.side() as u64).to_le_bytes());
    for (index, object) in views.objects().iter().enumerate() {
        hash.add(object.id().as_bytes());
        hash.add(&[0]);
        let count = views.views_in(index);
        if count != views.views() {
            hash.add(&(count as u64).to_le_bytes());
        }
        for view in 0..count {
            let row = views.latents(index, view).to_vec();
            row.iter().for_each(|value| hash.add(&value.to_le_bytes()));
        }
    }
    views.images_digest().iter().for_each(|digest| hash.add(&digest.to_le_bytes()));
    let side = views.side();
    let mut pixels = vec![0; side * side * 3];
    let objects = views.objects().len();
    for sample in 0..objects.min(16) {
        let object = sample * objects / 16.min(objects);
        views.image(object, sample % views.views_in(object).max(1), side, &mut pixels)?;
        hash.add(&pixels);
    }
    Ok(key(hash.value()))
}

/// A hash of a weights file.
pub fn weights_key(bytes: &[u8]) -> String {
    key(random::fnv1a(bytes))
}

/// A hash as the name of a folder, mixed once more.
fn key(hash: u64) -> String {
    let mixed = (hash ^ (hash >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    format!("{:016x}", mixed ^ (mixed >> 27))
}
