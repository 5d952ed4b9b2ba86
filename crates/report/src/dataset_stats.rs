//! A chart of a dataset: how its latents and classes are distributed.

use std::sync::Arc;

use dataset::stats::{BINS, Histogram, latent_values};
use dataset::{Dataset, Views};

use crate::axis::Axis;
use crate::bar_chart::histogram;
use crate::drawing::Mark;
use crate::{Anchor, Drawing, Paint, Result, font};

/// Histograms of the latents, three in a row, above horizontal bars of the classes.
pub fn draw(dataset: &Dataset, latents: &[Histogram], classes: &[(String, [u64; 2])]) -> Result<Drawing> {
    const WIDTH: f64 = 1080.0;
    const CHART: (f64, f64) = (350.0, 220.0);
    const COLUMNS: usize = 3;
    const ROW: f64 = 18.0;
    let top = 50.0;
    let below = top + latents.len().div_ceil(COLUMNS) as f64 * (CHART.1 + 10.0) + 40.0;
    let height = below + classes.len() as f64 * ROW + 20.0;
    let mut drawing = Drawing::new(WIDTH, height, dataset.description());
    drawing.heading((14.0, 28.0), dataset.description(), 16.0, Anchor::Start);
    for (column, latent) in latents.iter().enumerate() {
        let values = latent_values(dataset, column);
        let axis = Axis::new("").with_range(latent.low, latent.high);
        let chart = histogram(&latent.name, &axis, &values, BINS, CHART.0, CHART.1).to_image(1.0)?;
        let x = 10.0 + (column % COLUMNS) as f64 * (CHART.0 + 5.0);
        let y = top + (column / COLUMNS) as f64 * (CHART.1 + 10.0);
        drawing.marks.push(Mark::Bitmap([x, y, CHART.0, CHART.1], Arc::new(chart)));
    }
    let labels = classes.iter().map(|(name, _)| font::width(name, 12.0)).fold(0.0, f64::max);
    let most = classes.iter().map(|(_, [train, val])| train + val).max().unwrap_or(0).max(1) as f64;
    drawing.heading((14.0, below - 14.0), "objects of each class: train, val", 13.0, Anchor::Start);
    for (at, (name, [train, val])) in classes.iter().enumerate() {
        let y = below + at as f64 * ROW;
        let left = 14.0 + labels + 10.0;
        let scale = (WIDTH - left - 120.0) / most;
        let (a, b) = (*train as f64 * scale, *val as f64 * scale);
        drawing.text((left - 10.0, y + 12.0), name.as_str(), 12.0, Anchor::End, Paint::Ink);
        drawing.marks.push(Mark::Rectangle([left, y, a, ROW - 4.0], Paint::Series(0), 1.0));
        drawing.marks.push(Mark::Rectangle([left + a, y, b, ROW - 4.0], Paint::Series(1), 1.0));
        let counts = format!("{train} + {val}");
        drawing.text((left + a + b + 8.0, y + 12.0), counts, 12.0, Anchor::Start, Paint::Muted);
    }
    Ok(drawing)
}
