//! `equicaps runs plot`: curves of runs as PNG and SVG.

use std::fmt;
use std::path::PathBuf;

use report::run_curves;
use serde::Serialize;
use train::metrics::Over;

use crate::UsageError;
use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps runs plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  What people look at first, on one page (curves/curves.png):
    equicaps runs plot runs/equicaps runs/vicreg
  Some metrics, a chart each:
    equicaps runs plot runs/equicaps runs/vicreg --metric rotation_r2/representation --out curves
  Runs with other batches or other numbers of objects, after as many steps:
    equicaps runs plot runs/small runs/large --over steps

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
    /// What curves are drawn over [default: epochs, or steps where epochs of these runs have different numbers of them]
    #[arg(long, value_enum, value_name = "WHAT")]
    over: Option<OverWord>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OverWord {
    Epochs,
    Steps,
}

/// Draws the curves.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let runs = super::summaries(&arguments.runs, terminal)?;
    let over = match arguments.over {
        Some(OverWord::Epochs) => Over::Epochs,
        Some(OverWord::Steps) => Over::Steps,
        None => run_curves::over(&runs),
    };
    let wanted = |name: &str| arguments.all || arguments.metric.iter().any(|text| name.contains(text));
    let files = match arguments.all || !arguments.metric.is_empty() {
        true => run_curves::write(&runs, over, wanted, &arguments.out)?,
        false => run_curves::write_first(&runs, over, &arguments.out)?.into_iter().collect(),
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
