//! `equicaps dataset preview`: a contact sheet of a dataset, or of the built-in library.

use std::fmt;
use std::path::PathBuf;

use dataset::Dataset;
use render::Quality;
use report::contact_sheet::{DatasetSheet, LibrarySheet, of_dataset, of_library};
use serde::Serialize;

use crate::out;
use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps dataset preview`.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["folder", "procedural"]),
    after_help = "Examples:
  equicaps dataset preview views --out sheet.png
  equicaps dataset preview views --axes --out axes.png
  equicaps dataset preview --procedural --out classes.png

--axes draws the object's x axis in red, y in green and z in blue, as the stored rotations have them. If they do
not turn with the objects, the rotations were read in another way than they were written (see dataset import).
In imported images they start in the middle of the image, whose camera is not known."
)]
pub struct Arguments {
    /// The dataset's folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Folder of the split files, where they are not in the same folder
    #[arg(long, value_name = "DIR", requires = "folder")]
    lists: Option<PathBuf>,
    /// Show instances of every class of the built-in library instead
    #[arg(long)]
    procedural: bool,
    /// The PNG file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Draw the object's axes onto the images: x red, y green, z blue
    #[arg(long, requires = "folder")]
    axes: bool,
    /// Images of each class
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    per_class: u32,
    /// Width and height of an image on the sheet in pixels
    #[arg(long, default_value_t = 112, value_name = "PX", value_parser = clap::value_parser!(u16).range(16..=1024))]
    cell: u16,
    /// Seed of the built-in objects
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Quality of the images of built-in objects: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t = Quality::Standard)]
    quality: Quality,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let (cell, per_class) = (usize::from(arguments.cell), arguments.per_class as usize);
    out::check_ending(&arguments.out, &["png"])?;
    let (images, what) = match &arguments.folder {
        Some(folder) => {
            let dataset = Dataset::open_with_lists(folder, arguments.lists.as_deref().unwrap_or(folder))?;
            if arguments.axes
                && dataset.latent_table().rows() > 0
                && !dataset.latent_table().columns().rotation
            {
                anyhow::bail!("{} has no rotations, so there are no axes to draw", folder.display());
            }
            let sheet = DatasetSheet { cell, per_class, axes: arguments.axes };
            (of_dataset(&dataset, &arguments.out, sheet)?, folder.display().to_string())
        }
        None => {
            let sheet = LibrarySheet { seed: arguments.seed, quality: arguments.quality, cell, per_class };
            let progress = terminal.progress((procedural::classes().len() * per_class) as u64, "images");
            let images = of_library(sheet, &arguments.out, &|| progress.advance(1))?;
            progress.finish();
            (images, "the built-in library".to_owned())
        }
    };
    Outcome::new(&Sheet { out: shown(&arguments.out), images, what })
}

/// A contact sheet.
#[derive(Serialize)]
struct Sheet {
    out: String,
    #[serde(rename = "pictures")]
    images: usize,
    #[serde(skip)]
    what: String,
}

impl fmt::Display for Sheet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} of {}", self.out, count(self.images, "image"), self.what)
    }
}
