//! `equicaps check ops`: every operation of the engine, forward and backward, on a GPU against the CPU.

use std::fmt::Write;
use std::process::ExitCode;

use engine::agreement::compare;
use engine::{Device, Precision};
use serde_json::json;

use crate::terminal::Terminal;

/// Arguments of `equicaps check ops`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check ops
  equicaps check ops --device cuda:1 --precision bf16")]
pub struct Arguments {
    /// The device to check: cpu, cuda:0, ...
    #[arg(long, default_value = "cuda:0")]
    device: String,
    /// How activations are stored on a GPU
    #[arg(long, value_enum, default_value = "f32")]
    precision: PrecisionArgument,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PrecisionArgument {
    F32,
    Bf16,
}

/// Runs `equicaps check ops`.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let precision = match arguments.precision {
        PrecisionArgument::F32 => Precision::F32,
        PrecisionArgument::Bf16 => Precision::Mixed,
    };
    let device = Device::from_name(&arguments.device, Some(precision))?;
    let agreements = compare(&device);
    let mut text = format!("{:<52} {:<22} {:>10} {:>8}\n", "operation", "tensor", "error", "bound");
    for agreement in &agreements {
        let verdict = match (&agreement.failure, agreement.is_right()) {
            (Some(failure), _) => failure.as_str(),
            (None, true) => "",
            (None, false) if !agreement.repeats => "DIFFERENT WHEN REPEATED",
            (None, false) => "WRONG",
        };
        writeln!(
            text,
            "{:<52} {:<22} {:>10.2e} {:>8.0e} {verdict}",
            agreement.operation, agreement.tensor, agreement.error, agreement.bound
        )?;
    }
    let wrong = agreements.iter().filter(|agreement| !agreement.is_right()).count();
    write!(text, "{} tensors compared, {wrong} wrong", agreements.len())?;
    terminal.result(text, &json!({ "device": device.name(), "agreements": agreements, "wrong": wrong }));
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
