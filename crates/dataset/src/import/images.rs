//! The images of an import: read, made square and, where they are to be copied, written; object by object. What cannot be used
//! is collected, so that all of it is known at the end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::checksums;
use crate::error::{Error, Result};
use crate::image_file::{decode_upright, read_regular};
use crate::import::Options;
use crate::import::arrange::Arranged;
use crate::import::bad::{Bad, none_is_usable, refusal};
use crate::import::begun::Made;
use crate::import::fit::square;
use crate::import::rows::{Row, Rows};
use crate::jpeg::{self, ChannelOrder};

/// A view of an object, and the checksum of its image.
pub type Good = (usize, u32);

/// The checksum of an image and its bytes to be stored, or why it cannot be used.
type Tried = std::result::Result<(u32, Vec<u8>), Bad>;

/// What came of reading all images.
pub struct Images {
    /// Those of each object that can be used, in order.
    pub good: Vec<Vec<Good>>,
    /// The others, in the order of their rows.
    pub bad: Vec<Bad>,
}

/// Names the first row whose file is not there, before anything is written; none where such rows are to be left out.
pub fn refuse_missing_files(rows: &Rows, skips: bool) -> Result<()> {
    let is_missing = |row: &&Row| !rows.folder.join(&row.file).is_file();
    let missing = rows.rows.par_iter().filter(is_missing).count();
    let all_missing = missing == rows.rows.len();
    let Some(row) = rows.rows.par_iter().find_first(is_missing).filter(|_| !skips || all_missing) else {
        return Ok(());
    };
    let path = rows.folder.join(&row.file);
    let more =
        if missing > 1 { format!("{missing} rows name files that are not there") } else { String::new() };
    let how = if all_missing { "" } else { "--on-bad-sample skip leaves such rows out" };
    let said: Vec<&str> = [more.as_str(), how].into_iter().filter(|text| !text.is_empty()).collect();
    let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
    Err(rows.wrong(row, format!("there is no file {}{said}", path.display())))
}

/// What reads the images of `rows`.
pub struct Reader<'a> {
    /// Where they go.
    pub made: &'a Made<'a>,
    /// What they are.
    pub rows: &'a Rows,
    /// By object.
    pub arranged: &'a Arranged,
    /// How they are read.
    pub options: &'a Options<'a>,
    /// Set where images cannot be written: the others need not be looked at.
    pub has_failed: AtomicBool,
}

impl Reader<'_> {
    /// Reads, and where it is to be copied writes, every image.
    pub fn images(&self) -> Result<Images> {
        (self.options.on_begin)(self.rows.rows.len() as u64);
        // Collected before it is looked at, so that of all failures the first in order is reported.
        let outcomes: Vec<Result<(Vec<Good>, Vec<Bad>)>> = (0..self.arranged.objects.len())
            .into_par_iter()
            .with_max_len(1)
            .map(|object| self.object(object).inspect_err(|_| self.has_failed.store(true, Ordering::Relaxed)))
            .collect();
        let (good, bad): (Vec<Vec<Good>>, Vec<Vec<Bad>>) = whole(outcomes)?.into_iter().unzip();
        let mut bad = bad.concat();
        bad.sort_unstable();
        if good.iter().all(Vec::is_empty) {
            return Err(none_is_usable(self.rows, &bad));
        }
        if !bad.is_empty() && !self.options.skip_bad {
            return Err(refusal(self.rows, &bad));
        }
        Ok(Images { good, bad })
    }

    fn is_stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed) || self.has_failed.load(Ordering::Relaxed)
    }

    fn object(&self, number: usize) -> Result<(Vec<Good>, Vec<Bad>)> {
        let (object, members) = (&self.arranged.objects[number], &self.arranged.rows[number]);
        if self.is_stopped() {
            return Err(Error::Interrupted);
        }
        if !self.options.reference
            && let Some(images) = self.made.images(object, self.rows, members)
        {
            let sum = |path: &PathBuf| Ok(checksums::of(&read_regular(path)?));
            let sums: Vec<u32> = images.iter().map(sum).collect::<Result<_>>()?;
            (self.options.on_images)(members.len() as u64);
            return Ok((sums.into_iter().enumerate().collect(), Vec::new()));
        }
        let read = |&row: &usize| {
            if self.is_stopped() {
                return Err(Error::Interrupted);
            }
            let image = self.image(&self.rows.rows[row]).map_err(|error| Bad::of(row, error));
            (self.options.on_images)(1);
            Ok(image.map(|image| {
                let sum = checksums::of(&image);
                // What stays where it is need not be held.
                (sum, if self.options.reference { Vec::new() } else { image })
            }))
        };
        let outcomes: Vec<Result<Tried>> = members.par_iter().with_max_len(4).map(read).collect();
        let (mut good, mut used, mut files, mut bad) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (view, outcome) in whole(outcomes)?.into_iter().enumerate() {
            match outcome {
                Ok((sum, file)) => {
                    good.push((view, sum));
                    used.push(members[view]);
                    files.push(file);
                }
                Err(one) => bad.push(one),
            }
        }
        if self.options.reference || (!bad.is_empty() && !self.options.skip_bad) {
            return Ok((good, bad));
        }
        let views: Vec<usize> = good.iter().map(|(view, _)| *view).collect();
        match self.arranged.why_unusable(number, &views) {
            Some(_) => self.made.remove(&object.synset, &object.name)?,
            None => self.made.publish(object, self.rows, &used, files)?,
        }
        Ok((good, bad))
    }

    /// The bytes to be stored of an image, or, where it stays where it is, its own; it can be decoded.
    fn image(&self, row: &Row) -> Result<Vec<u8>> {
        let (side, path) = (self.options.size, self.rows.folder.join(&row.file));
        let wrong = |message: String| Error::content(&path, message);
        let bytes = read_regular(&path)?;
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
}

/// All of them, or the first failure in order; an interruption is one only where there is no other.
fn whole<T>(mut outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
    let failed = outcomes.iter().position(|outcome| !matches!(outcome, Ok(_) | Err(Error::Interrupted)));
    match failed {
        Some(failed) => outcomes.swap_remove(failed).map(|one| vec![one]),
        None => outcomes.into_iter().collect(),
    }
}
