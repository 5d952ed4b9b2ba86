//! `equicaps bench step --all`: one table of all methods, each beside EquiCaps of the same run.

use std::fmt;

use engine::Device;
use methods::{BackboneName, MethodName};
use serde::Serialize;

use super::step::{Arguments, measure_steps, random_batch};
use crate::commands::frame::text_table;
use crate::outcome::Outcome;

/// The speed of all methods.
#[derive(Serialize)]
struct Speeds {
    mode: &'static str,
    device: String,
    batch: usize,
    size: usize,
    rows: Vec<Row>,
}

/// Method, backbone and what was measured, or why not.
#[derive(Serialize)]
struct Row {
    method: MethodName,
    backbone: BackboneName,
    #[serde(flatten)]
    figures: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Figures {
    images_per_s: f64,
    step_ms: f64,
    peak_bytes: usize,
    parameters: usize,
    /// Speed as a multiple of EquiCaps' with the same backbone; none where that could not be measured.
    ratio_to_equicaps: Option<f64>,
}

/// Runs `equicaps bench step --all`; fails where a method could not be measured.
pub(super) fn run(arguments: &Arguments, device: &Device) -> anyhow::Result<Outcome> {
    let batch = random_batch(device, arguments)?;
    let with_resnet = MethodName::all().into_iter().map(|method| (method, BackboneName::ResNet18));
    let with_vit = [MethodName::SIE, MethodName::CAPSIE, MethodName::EQUICAPS];
    let with_vit = with_vit.map(|method| (method, BackboneName::VitTiny));
    let mut rows = Vec::new();
    for (method, backbone) in with_resnet.chain(with_vit) {
        let outcome = arguments.config(method, backbone).and_then(|config| {
            let measured = measure_steps(arguments, device, &config, &batch)?;
            Ok(Figures {
                images_per_s: arguments.images_per_s(measured.median),
                step_ms: measured.median.as_secs_f64() * 1e3,
                peak_bytes: measured.memory.peak,
                parameters: measured.step.network().store.parameter_count(),
                ratio_to_equicaps: None,
            })
        });
        let error = outcome.as_ref().err().map(|error| format!("{error:#}"));
        rows.push(Row { method, backbone, figures: outcome.ok(), error });
    }
    let equicaps = rows.iter().filter(|row| row.method == MethodName::EQUICAPS);
    let equicaps: Vec<(BackboneName, f64)> =
        equicaps.filter_map(|row| Some((row.backbone, row.figures.as_ref()?.images_per_s))).collect();
    for Row { backbone, figures, .. } in &mut rows {
        if let (Some(figures), Some((_, rate))) = (figures, equicaps.iter().find(|(of, _)| of == backbone)) {
            figures.ratio_to_equicaps = Some(figures.images_per_s / rate);
        }
    }
    let failed = rows.iter().any(|row| row.error.is_some());
    let (mode, device, size) = (arguments.mode(), device.name(), arguments.size);
    Ok(Outcome::new(&Speeds { mode, device, batch: arguments.batch, size, rows })?.failed_if(failed))
}

impl fmt::Display for Speeds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, device, batch, size, rows } = self;
        writeln!(formatter, "{mode}: {batch} pairs of {size}x{size} on {device}")?;
        let row = |row: &Row| {
            let number = |decimals: usize, of: fn(&Figures) -> Option<f64>| {
                let value = row.figures.as_ref().and_then(of);
                value.map_or("\u{2013}".to_owned(), |value| format!("{value:.decimals$}"))
            };
            vec![
                row.method.to_string(),
                row.backbone.to_string(),
                number(1, |figures| Some(figures.images_per_s)),
                number(2, |figures| Some(figures.step_ms)),
                number(2, |figures| Some(figures.peak_bytes as f64 / 1e9)),
                number(0, |figures| figures.ratio_to_equicaps.map(|ratio| 100.0 * ratio)),
                row.error.clone().unwrap_or_default(),
            ]
        };
        let headings = ["method", "backbone", "images/s", "ms/step", "peak GB", "% of EquiCaps", ""];
        formatter.write_str(text_table(&headings, rows.iter().map(row)).trim_end())
    }
}
