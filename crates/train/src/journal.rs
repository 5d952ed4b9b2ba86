//! What is written down of a run while it goes on: lines of metrics, and the same numbers for TensorBoard.

use serde_json::Map;

use crate::error::Result;
use crate::metrics::{Kind, MetricsFile, Record, number};
use crate::pairs_image;
use crate::run_folder::RunFolder;
use crate::tensorboard::EventFile;

/// The open files.
#[derive(Debug)]
pub struct Journal {
    metrics: MetricsFile,
    events: EventFile,
    /// The last step whose timing TensorBoard knows.
    timed: Option<u64>,
}

impl Journal {
    /// Opens the files of a run to go on after `step`; lines later than that are taken back. Says what was damaged.
    pub fn open(folder: &RunFolder, step: u64) -> Result<(Self, Option<String>)> {
        let (metrics, damage) = MetricsFile::open(&folder.metrics_path(), step)?;
        let events = EventFile::create(&folder.tensorboard_path(), step)?;
        Ok((Self { metrics, events, timed: None }, damage))
    }

    /// Writes down numbers; those in `timing` depend on the machine.
    pub fn write(
        &mut self,
        (kind, epoch, step): (Kind, u64, u64),
        values: Vec<(String, f64)>,
        timing: &[(&str, f64)],
    ) -> Result<Record> {
        let group = match kind {
            Kind::Step => "step",
            Kind::Epoch => "epoch",
            Kind::HeldOut => "held_out",
        };
        let tagged = values.iter().map(|(name, value)| (format!("{group}/{name}"), *value));
        // The last step of an epoch and the epoch itself have the same.
        let new = if self.timed.replace(step) == Some(step) { &[] } else { timing };
        let timed = new.iter().map(|&(name, value)| (format!("timing/{name}"), value));
        let tagged: Vec<(String, f64)> = tagged.chain(timed).collect();
        self.events.scalars(step, tagged.iter().map(|(name, value)| (name.as_str(), *value)))?;
        let values = values.into_iter().map(|(name, value)| (name, number(value))).collect();
        let timing: Map<_, _> =
            timing.iter().map(|&(name, value)| (name.to_owned(), number(value))).collect();
        let record = Record { kind, epoch, step, values, timing };
        self.metrics.write(&record)?;
        Ok(record)
    }

    /// Shows pairs in TensorBoard: all first views, then all second ones.
    pub fn show_pairs(&mut self, images: &[Vec<u8>], side: usize) -> Result<()> {
        if images.is_empty() {
            return Ok(());
        }
        let image = pairs_image::draw(images, side)?;
        self.events.image(0, &image.for_tensorboard("pairs"))
    }

    /// Makes all lines durable; to be done before a checkpoint that is later than they are.
    pub fn sync(&self) -> Result<()> {
        self.metrics.sync()
    }
}
