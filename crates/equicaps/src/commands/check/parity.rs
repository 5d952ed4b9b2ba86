//! `equicaps check parity`: runs the tiny network of a fixture and compares losses, gradients, running statistics and
//! an update with the results of the published code.

use std::fmt;
use std::path::{Path, PathBuf};

use methods::MethodName;
use methods::parity::{self, Fixture, ParityReport};
use serde::Serialize;
use train::config::PrecisionName;

use crate::UsageError;
use crate::outcome::Outcome;

/// Arguments of `equicaps check parity`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check parity --fixture step.safetensors --inputs inputs.safetensors
  equicaps check parity --fixture step.safetensors --inputs inputs.safetensors --device cuda:0")]
pub struct Arguments {
    /// Fixture: weights before a step and the results of the published code (safetensors)
    #[arg(long, value_name = "FILE")]
    fixture: PathBuf,
    /// Inputs of the step (safetensors with in/view1, in/view2, ...)
    #[arg(long, value_name = "FILE")]
    inputs: PathBuf,
    /// Method [default: the one in the fixture's metadata]
    #[arg(long, value_name = "NAME")]
    method: Option<MethodName>,
    /// Device: cpu, cuda:0, ...
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: String,
    /// Precision of activations: f32, or mixed (CUDA only)
    #[arg(long, value_name = "P", default_value = "f32")]
    precision: PrecisionName,
}

/// Runs `equicaps check parity`. Status 0: within bounds, 1: outside, 2: unusable files.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let device = crate::device::open(&arguments.device, arguments.precision)?;
    let read =
        |path: &Path| std::fs::read(path).map_err(|error| UsageError(format!("{}: {error}", path.display())));
    let unusable = |error: parity::FixtureError| match error {
        // A failure of the device is no fault of the file.
        parity::FixtureError::Engine(error @ engine::Error::Device(_)) => anyhow::Error::new(error),
        error => UsageError(format!("{}: {error}", arguments.fixture.display())).into(),
    };
    let fixture = Fixture::parse(&read(&arguments.fixture)?, &read(&arguments.inputs)?).map_err(unusable)?;
    let report = parity::check(&fixture, arguments.method, &device).map_err(unusable)?;
    let (within, outside) =
        (report.within(), report.comparisons.iter().filter(|comparison| !comparison.within).count());
    Ok(Outcome::new(&Parity { within, outside, report })?
        .failed_if(!within, "results differ from the published code by more than the tolerance"))
}

/// A comparison with the published code, and its verdict.
#[derive(Serialize)]
struct Parity {
    #[serde(flatten)]
    report: ParityReport,
    within: bool,
    outside: usize,
}

impl fmt::Display for Parity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParityReport { method, device, precision, comparisons } = &self.report;
        for comparison in comparisons {
            let mark = if comparison.within { "" } else { "   OUTSIDE" };
            write!(formatter, "{:17} {:45} {:9.2e}", comparison.group, comparison.name, comparison.error)?;
            match comparison.bound {
                f64::MAX => writeln!(formatter)?,
                bound => writeln!(formatter, "  (bound {bound:.0e}){mark}")?,
            }
        }
        write!(formatter, "{method} on {device} in {precision}: ")?;
        match self.outside {
            0 => write!(formatter, "all {} tensors within bounds", comparisons.len()),
            outside => write!(formatter, "{outside} of {} tensors outside their bounds", comparisons.len()),
        }
    }
}
