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
  equicaps runs plot runs/equicaps runs/vicreg --metric rotation_r2/representation --out curves")]
pub struct Arguments {
    /// The runs' folders, one curve each
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Folder for the charts
    #[arg(long, value_name = "DIR", default_value = "curves")]
    out: PathBuf,
    /// Only metrics whose name contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    metric: Vec<String>,
}

/// Draws the curves.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let runs = super::summaries(&arguments.runs)?;
    let wanted =
        |name: &str| arguments.metric.is_empty() || arguments.metric.iter().any(|text| name.contains(text));
    let files = run_curves::write(&runs, wanted, &arguments.out)?;
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
        write!(formatter, "{} curves in {}", self.files.len(), self.out)
    }
}
