//! `equicaps check methods`: one step of every method in every variant, on a GPU against the CPU.

use std::fmt::Write;
use std::process::ExitCode;

use engine::{Device, Precision};
use serde_json::json;

use crate::terminal::Terminal;

/// Arguments of `equicaps check methods`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check methods --device cuda:0
  equicaps check methods --published")]
pub struct Arguments {
    /// The device to check: cpu, cuda:0, ...
    #[arg(long, value_name = "D", default_value = "cuda:0")]
    device: String,
    /// f32 or bf16 (CUDA only)
    #[arg(long, value_name = "P", default_value = "f32", value_parser = ["f32", "bf16"])]
    precision: String,
    /// Compare bf16 with f32 on the device instead: the direction of the gradient of EquiCaps' published networks
    #[arg(long, conflicts_with = "precision")]
    published: bool,
}

/// Runs `equicaps check methods`. Status 0: all agree, 1: some do not.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    if arguments.published {
        return published(&arguments.device, terminal);
    }
    let precision = if arguments.precision == "bf16" { Precision::Mixed } else { Precision::F32 };
    let device = Device::from_name(&arguments.device, Some(precision))?;
    let agreements = methods::agreement::compare(&device)?;
    let mut text = format!("{:<50} {:>10} {:>10} {:>9}\n", "variant", "loss", "gradient", "cosine");
    for agreement in &agreements {
        let verdict = match (&agreement.failure, agreement.right, agreement.repeats) {
            (Some(failure), ..) => failure.as_str(),
            (None, true, _) => "",
            (None, false, false) => "DIFFERENT WHEN REPEATED",
            (None, false, true) => "WRONG",
        };
        let (variant, loss, cosine) = (&agreement.variant, agreement.loss_error, agreement.cosine);
        let gradient = agreement.gradient_error;
        writeln!(text, "{variant:<50} {loss:>10.2e} {gradient:>10.2e} {cosine:>9.5} {verdict}")?;
    }
    let wrong = agreements.iter().filter(|agreement| !agreement.right).count();
    write!(text, "{} variants compared, {wrong} wrong", agreements.len())?;
    let precision = &arguments.precision;
    terminal.result(
        text,
        &json!({ "device": device.name(), "precision": precision, "agreements": agreements, "wrong": wrong }),
    );
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The published networks in both precisions. Status 1 where bf16 loses the direction.
fn published(device: &str, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let devices =
        [Precision::F32, Precision::Mixed].map(|precision| Device::from_name(device, Some(precision)));
    let [f32_device, bf16_device] = devices;
    let (f32_device, bf16_device) = (f32_device?, bf16_device?);
    let mut lines = Vec::new();
    let mut cosines = serde_json::Map::new();
    let mut lost = false;
    for (name, pairs, side) in [("resnet18", 64, 128), ("vit_tiny", 32, 256)] {
        let backbone = name.parse()?;
        let both = [&f32_device, &bf16_device];
        let cosine = methods::agreement::published_cosine(backbone, (pairs, side), both)?;
        lines.push(format!(
            "{name:<10} {pairs} pairs of {side}x{side}: cosine of bf16 and f32 gradients {cosine:.5}"
        ));
        cosines.insert(name.to_owned(), json!(cosine));
        lost |= cosine.is_nan() || cosine < 0.97;
    }
    terminal.result(lines.join("\n"), &json!({ "device": device, "cosines": cosines }));
    Ok(if lost { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
