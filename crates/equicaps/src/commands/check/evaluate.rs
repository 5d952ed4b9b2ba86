//! `equicaps check evaluate`: probes and retrieval on a GPU against the CPU.

use std::fmt::Write;
use std::process::ExitCode;

use evaluate::agreement::compare;
use serde_json::json;

use crate::terminal::Terminal;

/// Arguments of `equicaps check evaluate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check evaluate --device cuda:0")]
pub struct Arguments {
    /// The device to check: cpu, cuda:0, ...
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    device: String,
}

/// Runs the check.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let device = crate::device::open(&arguments.device, "f32")?;
    let agreements = compare(&device, |agreement| terminal.note(&agreement.what))?;
    let mut text = format!("{:<66} {:>10} {:>10} {:>8}\n", "value", "cpu", device.name(), "bound");
    for agreement in &agreements {
        let verdict = match (agreement.is_right(), agreement.repeats) {
            (true, _) => "",
            (false, true) => "WRONG",
            (false, false) => "DIFFERENT WHEN REPEATED",
        };
        writeln!(
            text,
            "{:<66} {:>10.6} {:>10.6} {:>8.0e} {verdict}",
            agreement.what, agreement.cpu, agreement.device, agreement.bound
        )?;
    }
    let wrong = agreements.iter().filter(|agreement| !agreement.is_right()).count();
    write!(text, "{} values compared, {wrong} wrong", agreements.len())?;
    terminal.result(text, &json!({ "device": device.name(), "agreements": agreements, "wrong": wrong }));
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
