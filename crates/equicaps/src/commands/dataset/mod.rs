//! `equicaps dataset`: importing, inspecting, verifying and completing datasets.

mod check;
mod finish;
mod import;
mod preview;
mod stats;

use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps dataset`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps dataset import photos/poses.csv --out photos-dataset
  equicaps dataset preview views --out sheet.png
  equicaps dataset stats views
  equicaps dataset check views")]
pub struct Arguments {
    #[command(subcommand)]
    command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Make a dataset of images that you have: a table with poses, a BOP folder, or folders of classes
    Import(import::Arguments),
    /// Verify every image, latent, split and label, and list what is wrong
    Check(check::Arguments),
    /// Draw a contact sheet: one labelled row of images per class
    Preview(preview::Arguments),
    /// Show the distribution of latents and classes, as text and PNG
    Stats(stats::Arguments),
    /// Write the final lists of a dataset whose shards are all complete
    Finish(finish::Arguments),
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    match &arguments.command {
        Subcommand::Import(arguments) => import::run(arguments, terminal),
        Subcommand::Check(arguments) => check::run(arguments, terminal),
        Subcommand::Preview(arguments) => preview::run(arguments, terminal),
        Subcommand::Stats(arguments) => stats::run(arguments),
        Subcommand::Finish(arguments) => finish::run(arguments),
    }
}

/// The dataset to look at: its folder and, for the published sets, the folder of its split files.
#[derive(Clone, Debug, clap::Args)]
struct DatasetFolder {
    /// The dataset's folder
    #[arg(value_name = "DIR")]
    folder: std::path::PathBuf,
    /// Folder of the split files, where they are not in the same folder
    #[arg(long, value_name = "DIR")]
    lists: Option<std::path::PathBuf>,
}

impl DatasetFolder {
    fn open(&self) -> dataset::Result<dataset::Dataset> {
        dataset::Dataset::open_with_lists(&self.folder, self.lists.as_deref().unwrap_or(&self.folder))
    }
}
