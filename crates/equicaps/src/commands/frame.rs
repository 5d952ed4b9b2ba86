//! The frame that `bench` and `check` share: the device to work on, how long to measure, tables of what was found, and
//! the verdict of a comparison with the exit status that follows from it.

use std::fmt;

use clap::builder::RangedU64ValueParser;
use engine::Device;
use report::{Cell, Column, Table};
use serde::Serialize;
use train::config::PrecisionName;

use crate::outcome::Outcome;

/// The device that is checked, and its arithmetic.
#[derive(Debug, clap::Args)]
pub struct CheckedDevice {
    /// The device to check: cpu, cuda:0, ...
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub device: String,
    /// Storage of activations: f32, or mixed (CUDA only)
    #[arg(long, value_name = "P", default_value = "f32")]
    pub precision: PrecisionName,
}

impl CheckedDevice {
    /// Opens it.
    pub fn open(&self) -> anyhow::Result<Device> {
        crate::device::open(&self.device, self.precision)
    }
}

/// `--seconds`: a positive number.
pub fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds < 1e6);
    number.ok_or_else(|| "expected a positive number of seconds".to_owned())
}

/// The size of a network's images in pixels, within what makes sense.
pub fn image_size() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(32..=methods::LARGEST_IMAGE as u64)
}

/// Sizes of things that a benchmark makes up; beyond it a number is a slip of the finger.
pub fn amount() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1_000_000)
}

/// Something that a device computed, beside what the CPU computes.
pub trait Compared: Serialize {
    /// What it is: `tensors`.
    const WHAT: &'static str;
    /// Headings of its cells.
    const HEADINGS: &'static [&'static str];
    /// Its row in the table.
    fn cells(&self) -> Vec<String>;
    /// Whether both agree, twice.
    fn is_right(&self) -> bool;
    /// Whether computing it again gave the same bits.
    fn repeats(&self) -> bool;
    /// Why it could not be computed.
    fn failure(&self) -> Option<&str>;
}

/// A comparison of a device with the CPU.
#[derive(Serialize)]
pub struct Comparison<T> {
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<String>,
    agreements: Vec<T>,
    wrong: usize,
}

impl<T: Compared> Comparison<T> {
    /// The outcome of a check: status 1 where anything is wrong.
    pub fn outcome(device: &Device, precision: Option<&str>, agreements: Vec<T>) -> anyhow::Result<Outcome> {
        let wrong = agreements.iter().filter(|agreement| !agreement.is_right()).count();
        let precision = precision.map(str::to_owned);
        let comparison = Self { device: device.name(), precision, agreements, wrong };
        Ok(Outcome::new(&comparison)?.failed_if(wrong > 0, "results disagree with their reference"))
    }
}

impl<T: Compared> fmt::Display for Comparison<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |agreement: &T| {
            let verdict = match (agreement.failure(), agreement.is_right(), agreement.repeats()) {
                (Some(failure), ..) => failure,
                (None, true, _) => "",
                (None, false, true) => "WRONG",
                (None, false, false) => "DIFFERENT WHEN REPEATED",
            };
            let mut cells = agreement.cells();
            cells.push(verdict.to_owned());
            cells
        };
        let headings = [T::HEADINGS, &[""]].concat();
        write!(formatter, "{}", text_table(&headings, self.agreements.iter().map(row)))?;
        write!(formatter, "{} {} compared, {} wrong", self.agreements.len(), T::WHAT, self.wrong)
    }
}

/// A plain table: the first column to the left, the others to the right.
pub fn text_table(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns = headings.iter().map(|heading| Column::new(*heading)).collect();
    let rows = rows.map(|row| row.into_iter().map(Cell::from).collect()).collect();
    Table { columns, rows, ..Table::default() }.to_text()
}
