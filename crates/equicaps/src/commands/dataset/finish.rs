//! `equicaps dataset finish`.

use std::fmt;
use std::path::PathBuf;

use anyhow::bail;
use dataset::card::Counts;
use dataset::work::{Finished, Skipped};
use serde::Serialize;

use crate::outcome::{Outcome, count};
use crate::terminal::shown;

/// Arguments of `equicaps dataset finish`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The last shard of `equicaps render` does this by itself. It is needed where shards were rendered \
into separate folders: copy them into one folder (with the hidden .equicaps inside), then run this command.\n\nExamples:\n  equicaps dataset finish views"
)]
pub struct Arguments {
    /// The dataset's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let folder = &arguments.folder;
    match dataset::work::finish(folder)? {
        Finished::Complete { card, skipped } => {
            Outcome::new(&Completed { folder: shown(folder), counts: card.counts, skipped })
        }
        Finished::Missing { objects, first } => {
            let (objects, are) = (count(objects, "object"), if objects == 1 { "is" } else { "are" });
            bail!("{}: {objects} {are} still missing, {first} among them", folder.display())
        }
    }
}

/// A complete dataset.
#[derive(Serialize)]
struct Completed {
    folder: String,
    counts: Option<Counts>,
    skipped: Vec<Skipped>,
}

impl fmt::Display for Completed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images = self.counts.as_ref().map_or(0, |counts| counts.images);
        write!(
            formatter,
            "{}: complete, {}, {} skipped",
            self.folder,
            count(images, "image"),
            count(self.skipped.len(), "object")
        )
    }
}
