//! `equicaps report`: everything about some runs on one page.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use report::run_material::RunMaterial;
use report::run_names;
use report::run_page::{self, Beginning};
use serde::Serialize;

use crate::out;
use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps report runs/equicaps runs/vicreg --out report.html
  equicaps report runs/* --out paper/report.html --title 'Run 7'

For every run: its curves and configuration, and of every checkpoint the evaluation that was made
last (RUN/evaluation/*/results.json; see equicaps evaluate). The tables are also written as .md, .tex and .csv next to the page, the
drawings as PNG and SVG in a folder with the name of the page.")]
pub struct Arguments {
    /// Folders of runs, or of evaluations
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The HTML file to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Title of the page
    #[arg(long, default_value = "EquiCaps report")]
    title: String,
}

/// A page that was written.
#[derive(Serialize)]
struct Written {
    out: String,
    runs: usize,
    evaluations: usize,
    files: Vec<String>,
}

impl fmt::Display for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { out, runs, evaluations, .. } = self;
        write!(formatter, "{}, {}: {out}", count(*runs, "run"), count(*evaluations, "evaluation"))
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    out::check_ending(&arguments.out, &["html", "htm"])?;
    // A folder that is named twice stands there once.
    let mut seen = BTreeSet::new();
    let is_new = |path: &&PathBuf| seen.insert(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()));
    let paths: Vec<&PathBuf> = arguments.runs.iter().filter(is_new).collect();
    let mut runs: Vec<RunMaterial> =
        paths.iter().map(|path| RunMaterial::read(path)).collect::<report::Result<_>>()?;
    run_names::distinguish(
        runs.iter_mut().map(|run| &mut run.name).zip(paths.iter().map(|path| path.as_path())),
    );
    runs.iter().filter_map(|run| run.damage.as_ref()).for_each(|damage| terminal.warn(damage));
    let evaluations: usize = runs.iter().map(|run| run.evaluations.len()).sum();
    if evaluations == 0 {
        terminal.warn("none of these runs has been evaluated (equicaps evaluate RUN --data DIR); the report has no tables");
    }
    let written = run_page::write(
        &runs,
        &arguments.out,
        Beginning { title: &arguments.title, ..Beginning::default() },
    )?;
    written.warning.iter().for_each(|warning| terminal.warn(warning));
    Outcome::new(&Written {
        out: shown(&arguments.out),
        runs: runs.len(),
        evaluations,
        files: written.files.iter().map(shown).collect(),
    })
}
