//! What people look at: charts, grids of images and tables, each made once and written in several forms.
//!
//! A chart or a grid becomes a [`Drawing`] (a list of shapes), which is written as SVG or painted as PNG by the same
//! description, so both always show the same thing. A [`Table`] is written as Markdown, LaTeX, CSV, HTML or plain
//! text. [`paper`] holds the published tables, so that our numbers can stand beside them. [`run_page`] puts everything
//! about some runs on one page.

pub mod axis;
pub mod bar_chart;
mod baseline;
pub mod compare;
pub mod contact_sheet;
pub mod convergence;
pub mod dataset_stats;
pub mod drawing;
pub mod entry;
pub mod evaluation_folder;
mod figures;
mod font;
mod image_grid;
mod line_chart;
pub mod nearest_images;
mod neighbour_grid;
mod not_learnt;
pub mod object_axes;
pub mod objects;
pub mod ours;
pub mod over_seeds;
mod page;
pub mod paper;
mod pictures;
pub mod pose_sweep;
mod raster;
pub mod run_comparison;
pub mod run_curves;
mod run_images;
pub mod run_material;
pub mod run_names;
pub mod run_page;
mod scatter;
mod svg;
mod table;
mod training_data;

pub use bar_chart::{Bar, BarChart};
pub use drawing::{Anchor, Bitmap, Drawing, Paint};
pub use entry::Entry;
pub use image_grid::{GridCell, ImageGrid};
pub use line_chart::{LineChart, Series};
pub use svg::{SvgUse, inline};
pub use table::{About, Cell, Column, Row, Table};

/// What can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An image could not be written as PNG.
    #[error("an image of {width} x {height} pixels cannot be written as PNG: {message}")]
    Png {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// What the encoder said.
        message: String,
    },
    /// The pixels do not fit the size.
    #[error("an image of {width} x {height} pixels needs {expected} bytes, {found} were given")]
    ImageSize {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// `width * height * 3`.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// Views or files.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] dataset::error::FileError),
    /// Runs.
    #[error(transparent)]
    Train(#[from] train::Error),
    /// Evaluations.
    #[error(transparent)]
    Evaluate(#[from] evaluate::Error),
    /// Something could not be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The request cannot be met.
    #[error("{0}")]
    Request(String),
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
