//! `equicaps check parity`: runs the tiny network of a fixture and compares losses, gradients, running statistics and
//! an update with what the published code made of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::Device;
use methods::MethodName;
use methods::parity::{self, Fixture};
use serde_json::json;
use train::config::PrecisionName;

use crate::UsageError;
use crate::terminal::Terminal;

/// Arguments of `equicaps check parity`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check parity --fixture step.safetensors --inputs inputs.safetensors
  equicaps check parity --fixture step.safetensors --inputs inputs.safetensors --device cuda:0")]
pub struct Arguments {
    /// Fixture: weights before a step and what the published code made of them (safetensors)
    #[arg(long, value_name = "FILE")]
    fixture: PathBuf,
    /// Inputs of the step (safetensors with in/view1, in/view2, ...)
    #[arg(long, value_name = "FILE")]
    inputs: PathBuf,
    /// Method, where the file's metadata does not name it
    #[arg(long, value_name = "NAME")]
    method: Option<MethodName>,
    /// Where to compute: cpu, cuda:0, ...
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: String,
    /// f32 or mixed (CUDA only)
    #[arg(long, value_name = "P", default_value = "f32")]
    precision: PrecisionName,
}

/// Runs `equicaps check parity`. Status 0: within bounds, 1: outside, 2: unusable files.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let device = Device::from_name(&arguments.device, arguments.precision.of_engine())?;
    let read =
        |path: &Path| std::fs::read(path).map_err(|error| UsageError(format!("{}: {error}", path.display())));
    let unusable = |error: parity::FixtureError| match error {
        // A failure of the device is no fault of the file.
        parity::FixtureError::Engine(error @ engine::Error::Device(_)) => anyhow::Error::new(error),
        error => UsageError(format!("{}: {error}", arguments.fixture.display())).into(),
    };
    let fixture = Fixture::parse(&read(&arguments.fixture)?, &read(&arguments.inputs)?).map_err(unusable)?;
    let report = parity::check(&fixture, arguments.method, &device).map_err(unusable)?;
    let within = report.within();
    let mut text = String::new();
    for comparison in &report.comparisons {
        let mark = if comparison.within { "" } else { "   OUTSIDE" };
        let (group, name, error) = (comparison.group, &comparison.name, comparison.error);
        let _ = if comparison.bound == f64::MAX {
            writeln!(text, "{group:17} {name:45} {error:9.2e}")
        } else {
            writeln!(text, "{group:17} {name:45} {error:9.2e}  (bound {:.0e}){mark}", comparison.bound)
        };
    }
    let outside = report.comparisons.iter().filter(|comparison| !comparison.within).count();
    let verdict = match outside {
        0 => format!("all {} tensors within bounds", report.comparisons.len()),
        _ => format!("{outside} of {} tensors outside their bounds", report.comparisons.len()),
    };
    let _ = write!(text, "{} on {} in {}: {verdict}", report.method, report.device, report.precision);
    terminal.result(
        text,
        &json!({
            "method": report.method,
            "device": report.device,
            "precision": report.precision,
            "within": within,
            "outside": outside,
            "comparisons": report.comparisons,
        }),
    );
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
