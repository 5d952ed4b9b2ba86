//! `equicaps bench step --all`: one table of all methods, each beside EquiCaps of the same run.

use std::fmt;

use engine::Device;
use methods::{BackboneName, MethodName};
use serde::Serialize;

use super::step::{Arguments, Figures, measure_steps, random_batch};
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
#[derive(Clone, Serialize)]
struct Row {
    method: MethodName,
    backbone: BackboneName,
    #[serde(flatten)]
    figures: Option<Figures>,
    /// Speed as a multiple of EquiCaps' with the same backbone; NaN where that could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_equicaps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Runs `equicaps bench step --all`; fails where a method could not be measured.
pub(super) fn run(arguments: &Arguments, device: &Device) -> anyhow::Result<Outcome> {
    let batch = random_batch(device, arguments)?;
    let with_resnet = MethodName::all().into_iter().map(|method| (method, BackboneName::ResNet18));
    let with_vit = [MethodName::SIE, MethodName::CAPSIE, MethodName::EQUICAPS];
    let with_vit = with_vit.map(|method| (method, BackboneName::VitTiny));
    let mut rows = Vec::new();
    for (method, backbone) in with_resnet.chain(with_vit) {
        let config = arguments.config(method, backbone);
        let measured = config.and_then(|config| measure_steps(arguments, device, &config, &batch));
        let (figures, error) = match measured {
            Ok(measured) => (Some(measured.figures), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        rows.push(Row { method, backbone, figures, ratio_to_equicaps: None, error });
    }
    let equicaps: Vec<Row> = rows.iter().filter(|row| row.method == MethodName::EQUICAPS).cloned().collect();
    for row in &mut rows {
        let beside = equicaps.iter().find(|other| other.backbone == row.backbone);
        let rate = beside.and_then(|other| other.figures).map_or(f64::NAN, |figures| figures.images_per_s);
        row.ratio_to_equicaps = row.figures.map(|figures| figures.images_per_s / rate);
    }
    let failed = rows.iter().any(|row| row.error.is_some());
    let (mode, device, size) = (arguments.mode(), device.name(), arguments.size);
    Ok(Outcome::new(&Speeds { mode, device, batch: arguments.batch, size, rows })?
        .failed_if(failed, "a network could not be measured"))
}

impl fmt::Display for Speeds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, device, batch, size, rows } = self;
        writeln!(formatter, "{mode}: {batch} pairs of {size}x{size} on {device}")?;
        let row = |row: &Row| {
            let number = |decimals: usize, value: Option<f64>| {
                value.map_or("\u{2013}".to_owned(), |value| format!("{value:.decimals$}"))
            };
            vec![
                row.method.to_string(),
                row.backbone.to_string(),
                number(1, row.figures.map(|figures| figures.images_per_s)),
                number(2, row.figures.map(|figures| figures.step_ms)),
                number(2, row.figures.map(|figures| figures.peak_bytes as f64 / 1e9)),
                number(0, row.ratio_to_equicaps.map(|ratio| 100.0 * ratio)),
                row.error.clone().unwrap_or_default(),
            ]
        };
        let headings = ["method", "backbone", "images/s", "ms/step", "peak GB", "% of EquiCaps", ""];
        formatter.write_str(text_table(&headings, rows.iter().map(row)).trim_end())
    }
}
