//! `equicaps dataset finish`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use dataset::work::Finished;
use serde_json::json;

use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps dataset finish`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The last shard of `equicaps render` does this by itself. By hand it is needed where shards were \
rendered into folders of their own: copy them into one folder (with the hidden .equicaps inside), then finish it.\n\nExamples:\n  equicaps dataset finish views"
)]
pub struct Arguments {
    /// The dataset's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    match dataset::work::finish(folder)? {
        Finished::Complete { card, skipped } => {
            let images = card.counts.as_ref().map_or(0, |counts| counts.images);
            let text =
                format!("{}: complete, {images} images, {} objects skipped", folder.display(), skipped.len());
            terminal
                .result(text, &json!({ "folder": shown(folder), "counts": card.counts, "skipped": skipped }));
            Ok(ExitCode::SUCCESS)
        }
        Finished::Missing { objects, first } => {
            bail!("{}: {objects} objects are still missing, {first} among them", folder.display())
        }
    }
}
