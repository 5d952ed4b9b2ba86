//! `equicaps dataset check`.

use std::fmt;

use dataset::Views;
use serde::Serialize;

use super::DatasetFolder;
use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps dataset check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 no problems, 1 problems found.

Examples:
  equicaps dataset check views
  equicaps dataset check 3DIEBench --lists splits")]
pub struct Arguments {
    #[command(flatten)]
    dataset: DatasetFolder,
}

/// Problems shown as text; with `--json` all of them are in the object.
const SHOWN: usize = 50;

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let report = match arguments.dataset.open() {
        Ok(dataset) => {
            let progress = terminal.progress(dataset.objects().len() as u64, "objects");
            let report = dataset::check::check(&dataset, &|| progress.advance(1));
            progress.finish();
            report
        }
        // What cannot even be opened has one problem.
        Err(error) => dataset::check::Report { problems: vec![error.to_string()], ..Default::default() },
    };
    let dataset::check::Report { objects, images, images_with_checksum, problems } = report;
    let folder = shown(&arguments.dataset.folder);
    let why = match &problems[..] {
        [only] => format!("{folder} has a problem: {only}"),
        all => format!("{folder} has {}", count(all.len(), "problem")),
    };
    let failed = !problems.is_empty();
    let checked = Checked { folder, objects, images, images_with_checksum, problems };
    Ok(Outcome::new(&checked)?.failed_if(failed, why))
}

/// What is wrong with a dataset.
#[derive(Serialize)]
struct Checked {
    folder: String,
    objects: usize,
    images: usize,
    images_with_checksum: usize,
    problems: Vec<String>,
}

impl fmt::Display for Checked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.problems.iter().take(SHOWN) {
            writeln!(formatter, "{problem}")?;
        }
        if self.problems.len() > SHOWN {
            writeln!(formatter, "... and {} more", self.problems.len() - SHOWN)?;
        }
        let Self { folder, objects, images, .. } = self;
        let verdict = match self.problems.len() {
            0 => "no problems".to_owned(),
            problems => count(problems, "problem"),
        };
        let (objects, images) = (count(objects, "object"), count(images, "image"));
        write!(formatter, "{folder}: {objects}, {images}, {verdict}")?;
        if self.images_with_checksum == 0 && self.images > 0 {
            write!(
                formatter,
                "\nThe dataset has no checksums: an image with other pixels than it was made with goes unnoticed if it \
                 can be decoded."
            )?;
        }
        Ok(())
    }
}
