//! `equicaps runs plot`: curves of runs as PNG and SVG.

use std::fmt;
use std::path::PathBuf;

use report::run_curves;
use serde::Serialize;

use crate::UsageError;
use crate::outcome::Outcome;
use crate::terminal::shown;

/// Arguments of `equicaps runs plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  What people look at first, on one page (curves/curves.png):
    equicaps runs plot runs/equicaps runs/vicreg
  Some metrics, a chart each:
    equicaps runs plot runs/equicaps runs/vicreg --metric rotation_r2/representation --out curves

runs show explains the names of metrics.")]
pub struct Arguments {
    /// The runs' folders, one curve each
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Folder for the charts
    #[arg(long, value_name = "DIR", default_value = "curves")]
    out: PathBuf,
    /// A chart for each metric whose name contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    metric: Vec<String>,
    /// A chart for every metric
    #[arg(long, conflicts_with = "metric")]
    all: bool,
}

/// Draws the curves.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let runs = super::summaries(&arguments.runs)?;
    let wanted = |name: &str| arguments.all || arguments.metric.iter().any(|text| name.contains(text));
    let files = match arguments.all || !arguments.metric.is_empty() {
        true => run_curves::write(&runs, wanted, &arguments.out)?,
        false => run_curves::write_first(&runs, &arguments.out)?.into_iter().collect(),
    };
    if files.is_empty() && arguments.metric.is_empty() {
        return Err(UsageError("nothing to plot: these runs have no metrics yet".to_owned()).into());
    }
    if files.is_empty() {
        return Err(UsageError("nothing to plot: no metric of these runs has such a name".to_owned()).into());
    }
    Outcome::new(&Curves { files: files.iter().map(shown).collect(), out: shown(&arguments.out) })
}

/// The charts written.
#[derive(Serialize)]
struct Curves {
    files: Vec<String>,
    #[serde(skip)]
    out: String,
}

impl fmt::Display for Curves {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.files[..] {
            [file] => formatter.write_str(file),
            files => write!(formatter, "{} curves in {}", files.len(), self.out),
        }
    }
}
