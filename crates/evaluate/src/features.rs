//! Frozen features of all views, computed once and kept on disk.
//!
//! A folder of parts, one for a block of objects, named by a key of weights and data: an interrupted extraction goes
//! on with the first missing part, and other weights or other pictures never meet an old feature. A part is written
//! beside and renamed, and ends with a checksum; one that does not check is computed again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataset::{Loader, LoaderOptions, Views};
use serde::{Deserialize, Serialize};

use crate::encoder::{Encoder, Widths};
use crate::error::{Error, Result};

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

/// Features of all views, row = views * object + view.
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
    /// Pictures in a batch.
    pub batch: usize,
    /// Threads that decode pictures.
    pub workers: usize,
}

/// Objects in one part.
const PART_OBJECTS: usize = 32;
const MAGIC: &[u8; 8] = b"EQFEAT01";

/// Features of every view of every object; `progress` is told how many views are done.
pub fn extract(
    encoder: &mut dyn Encoder,
    views: &Arc<dyn Views>,
    extraction: &Extraction,
    mut progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<Features> {
    let widths = encoder.widths();
    let objects = views.objects().len();
    let mut features = Features::with_widths(widths, objects * views.views());
    let folder = extraction.cache.as_ref().map(|cache| {
        cache.join(format!("{}-{}-{}", extraction.weights_key, extraction.data_key, encoder.side()))
    });
    let starts: Vec<usize> = (0..objects).step_by(PART_OBJECTS).collect();
    let rows_of = |start: usize| (objects.min(start + PART_OBJECTS) - start) * views.views();
    let part_path =
        |start: usize| folder.as_ref().map(|f| f.join(format!("part-{:06}.bin", start / PART_OBJECTS)));
    let mut parts: Vec<Option<Features>> = Vec::with_capacity(starts.len());
    for &start in &starts {
        let part = part_path(start).and_then(|path| read_part(&path, widths, rows_of(start)));
        if part.is_some() {
            progress(rows_of(start) as u64);
        }
        parts.push(part);
    }
    let missing: Vec<usize> =
        starts.iter().zip(&parts).filter(|(_, part)| part.is_none()).map(|(&start, _)| start).collect();
    if let Some(folder) = folder.as_ref().filter(|_| !missing.is_empty()) {
        dataset::durable::create_folder(folder)?;
    }
    // Batches never cross the border of a part.
    let plan: Vec<Vec<(usize, usize)>> = missing
        .iter()
        .flat_map(|&start| {
            let end = objects.min(start + PART_OBJECTS);
            let items: Vec<_> =
                (start..end).flat_map(|object| (0..views.views()).map(move |view| (object, view))).collect();
            items.chunks(extraction.batch.max(1)).map(<[_]>::to_vec).collect::<Vec<_>>()
        })
        .collect();
    let options = LoaderOptions { side: encoder.side(), workers: extraction.workers, queue: 2 };
    let mut loader = Loader::start(Arc::clone(views), plan, options)?;
    for start in missing {
        let mut part = Features::with_widths(widths, rows_of(start));
        while part.representation.values.len() < rows_of(start) * widths.representation {
            if stop() {
                return Err(Error::Interrupted);
            }
            let Some(batch) = loader.next() else {
                return Err(Error::Request("the loader ended before all views were read".to_owned()));
            };
            let batch = batch?;
            let count = batch.items.len();
            let encoded = encoder.encode(&batch.pixels, count)?;
            part.representation.values.extend(encoded.representation);
            part.equivariant.values.extend(encoded.equivariant);
            part.invariant.values.extend(encoded.invariant);
            loader.recycle(batch);
            progress(count as u64);
        }
        if let Some(path) = part_path(start) {
            write_part(&path, &part)?;
        }
        parts[start / PART_OBJECTS] = Some(part);
    }
    for part in parts.into_iter().flatten() {
        features.representation.values.extend(part.representation.values);
        features.equivariant.values.extend(part.equivariant.values);
        features.invariant.values.extend(part.invariant.values);
    }
    Ok(features)
}

impl Features {
    fn with_widths(widths: Widths, rows: usize) -> Self {
        let table = |width: usize| Table { width, values: Vec::with_capacity(rows * width) };
        Self {
            representation: table(widths.representation),
            equivariant: table(widths.equivariant.unwrap_or(0)),
            invariant: table(widths.invariant.unwrap_or(0)),
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

    fn tables(&self) -> [&Table; 3] {
        [&self.representation, &self.equivariant, &self.invariant]
    }
}

fn write_part(path: &Path, part: &Features) -> Result<()> {
    let mut bytes = MAGIC.to_vec();
    for table in part.tables() {
        bytes.extend((table.width as u64).to_le_bytes());
        bytes.extend((table.values.len() as u64).to_le_bytes());
    }
    for table in part.tables() {
        bytes.extend(table.values.iter().flat_map(|value| value.to_le_bytes()));
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    Ok(dataset::durable::write(path, &bytes)?)
}

/// A part, where it is there and in order; anything else is computed again.
fn read_part(path: &Path, widths: Widths, rows: usize) -> Option<Features> {
    let bytes = std::fs::read(path).ok()?;
    let (body, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC)?;
    let mut take = |count: usize| {
        let (head, tail) = rest.split_at_checked(count)?;
        rest = tail;
        Some(head)
    };
    let mut number = || Some(u64::from_le_bytes(take(8)?.try_into().ok()?) as usize);
    let mut part = Features::with_widths(widths, 0);
    let mut sizes = [0; 3];
    for (table, size) in part.tables().into_iter().zip(&mut sizes) {
        if number()? != table.width {
            return None;
        }
        *size = number()?;
        if *size != rows * table.width {
            return None;
        }
    }
    for (table, size) in
        [&mut part.representation, &mut part.equivariant, &mut part.invariant].into_iter().zip(sizes)
    {
        let data = take(size * 4)?;
        table.values = data.as_chunks::<4>().0.iter().map(|&value| f32::from_le_bytes(value)).collect();
    }
    rest.is_empty().then_some(part)
}

/// A hash of what decides the pictures: objects, views, side, all latents, and the bytes of some pictures.
pub fn data_key(views: &dyn Views) -> Result<String> {
    let mut hash = Hash::default();
    hash.add(&(views.views() as u64).to_le_bytes());
    hash.add(&(views.side() as u64).to_le_bytes());
    for (index, object) in views.objects().iter().enumerate() {
        hash.add(object.id().as_bytes());
        hash.add(&[0]);
        for view in 0..views.views() {
            let row = dataset::latent_table::row(&views.latents(index, view));
            row.iter().for_each(|value| hash.add(&value.to_le_bytes()));
        }
    }
    let side = views.side();
    let mut pixels = vec![0; side * side * 3];
    let objects = views.objects().len();
    for sample in 0..objects.min(16) {
        views.picture(
            sample * objects / 16.min(objects),
            sample % views.views().max(1),
            side,
            &mut pixels,
        )?;
        hash.add(&pixels);
    }
    Ok(hash.finish())
}

/// A hash of a weights file.
pub fn weights_key(bytes: &[u8]) -> String {
    let mut hash = Hash::default();
    hash.add(bytes);
    hash.finish()
}

/// FNV-1a over 64 bits, with a final mix.
#[derive(Debug)]
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> String {
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
        format!("{:016x}", mixed ^ (mixed >> 27))
    }
}
