//! `equicaps bench step --all`: one table of all methods, each beside EquiCaps of the same run.

use std::fmt::Write as _;
use std::process::ExitCode;

use engine::Device;
use methods::{BackboneName, MethodName};
use serde_json::json;

use super::step::{Arguments, measure_steps, random_batch};
use crate::terminal::Terminal;

/// Method, backbone and what was measured, or why not.
struct Row {
    method: MethodName,
    backbone: BackboneName,
    outcome: anyhow::Result<Figures>,
}

#[derive(Clone, Copy)]
struct Figures {
    images_per_s: f64,
    step_ms: f64,
    peak_bytes: usize,
    parameters: usize,
}

/// Runs `equicaps bench step --all`; fails where a method could not be measured.
pub(super) fn run(arguments: &Arguments, device: &Device, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let batch = random_batch(device, arguments)?;
    let with_resnet = MethodName::all().into_iter().map(|method| (method, BackboneName::ResNet18));
    let with_vit = [MethodName::SIE, MethodName::CAPSIE, MethodName::EQUICAPS];
    let with_vit = with_vit.map(|method| (method, BackboneName::VitTiny));
    let mut rows = Vec::new();
    for (method, backbone) in with_resnet.chain(with_vit) {
        let outcome = arguments.config(method, backbone).and_then(|config| {
            let measured = measure_steps(arguments, device, &config, &batch)?;
            Ok(Figures {
                images_per_s: arguments.images() / measured.median.as_secs_f64(),
                step_ms: measured.median.as_secs_f64() * 1e3,
                peak_bytes: measured.memory.peak,
                parameters: measured.step.network().store.parameter_count(),
            })
        });
        rows.push(Row { method, backbone, outcome });
    }
    let figures = |method: MethodName, backbone: BackboneName| {
        let row = rows.iter().find(|row| row.method == method && row.backbone == backbone)?;
        row.outcome.as_ref().ok().copied()
    };
    let mut text = format!(
        "{}: {} pairs of {}x{} on {}\n{:<16} {:<9} {:>10} {:>9} {:>8} {:>12}",
        arguments.mode(),
        arguments.images() / 2.0,
        arguments.size,
        arguments.size,
        device.name(),
        "method",
        "backbone",
        "images/s",
        "ms/step",
        "peak GB",
        "of EquiCaps"
    );
    let mut listed = Vec::new();
    for row in &rows {
        let (method, backbone) = (row.method, row.backbone);
        match &row.outcome {
            Ok(found) => {
                let equicaps = figures(MethodName::EQUICAPS, backbone);
                let ratio = equicaps.map_or(f64::NAN, |equicaps| found.images_per_s / equicaps.images_per_s);
                let Figures { images_per_s, step_ms, peak_bytes, parameters } = *found;
                let gigabytes = peak_bytes as f64 / 1e9;
                let _ = write!(
                    text,
                    "\n{method:<16} {backbone:<9} {images_per_s:>10.1} {step_ms:>9.2} {gigabytes:>8.2} {:>11.0}%",
                    100.0 * ratio
                );
                listed.push(json!({
                    "method": method.name(),
                    "backbone": backbone.name(),
                    "images_per_s": images_per_s,
                    "step_ms": step_ms,
                    "peak_bytes": peak_bytes,
                    "parameters": parameters,
                    "ratio_to_equicaps": ratio,
                }));
            }
            Err(error) => {
                let _ = write!(text, "\n{method:<16} {backbone:<9} {error:#}");
                listed.push(json!({ "method": method.name(), "backbone": backbone.name(), "error": format!("{error:#}") }));
            }
        }
    }
    let json = json!({
        "mode": arguments.mode(),
        "device": device.name(),
        "batch": arguments.images() / 2.0,
        "size": arguments.size,
        "rows": listed,
    });
    terminal.result(text, &json);
    let failed = rows.iter().any(|row| row.outcome.is_err());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
