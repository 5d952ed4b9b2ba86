//! Bar charts: groups of bars side by side, and histograms.

use crate::axis::Axis;
use crate::drawing::{Anchor, Drawing, Mark, Paint};
use crate::font;
use crate::line_chart::{horizontal_axis, reference, title_and_legend, vertical_axis};

/// One colour of bars: a value for every group, missing where `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    /// Its name in the legend.
    pub name: String,
    /// A value for every group.
    pub values: Vec<Option<f64>>,
    /// Half-length of the error bars; empty for none.
    pub spread: Vec<f64>,
}

/// Groups of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarChart {
    /// The heading.
    pub title: String,
    /// The vertical axis; it always includes 0 unless a range is given.
    pub y: Axis,
    /// The groups' names.
    pub groups: Vec<String>,
    /// The bars.
    pub series: Vec<BarSeries>,
    /// Horizontal lines with a name.
    pub references: Vec<(f64, String)>,
    /// Decimals of the numbers written above bars; none where `None`.
    pub decimals: Option<usize>,
}

impl BarChart {
    /// Draws the chart at this size in pixels.
    pub fn draw(&self, width: f64, height: f64) -> Drawing {
        let (width, height) = (width.max(160.0), height.max(120.0));
        let mut drawing = Drawing::new(width, height, self.title.clone());
        let values = self.series.iter().flat_map(|s| {
            s.values.iter().enumerate().flat_map(|(i, value)| {
                let spread = s.spread.get(i).copied().unwrap_or(0.0);
                value.iter().flat_map(move |v| [v - spread, v + spread])
            })
        });
        let y = self.y.fit(values.chain(self.references.iter().map(|r| r.0)).chain([0.0]));
        let names: Vec<(usize, &str)> = self.series.iter().map(|s| s.name.as_str()).enumerate().collect();
        let top = title_and_legend(&mut drawing, &self.title, &names);
        let plot = vertical_axis(&mut drawing, &self.y.label, &y, top, false);
        let place =
            |value: f64| plot.top + (1.0 - y.place(value).unwrap_or(0.0).clamp(0.0, 1.0)) * plot.height;
        let base = place(0.0);
        let slot = plot.width / self.groups.len().max(1) as f64;
        let bar = (slot * 0.8 / self.series.len().max(1) as f64).min(60.0);
        for (g, group) in self.groups.iter().enumerate() {
            let centre = plot.left + (g as f64 + 0.5) * slot;
            let size = (12.0 * slot / font::width(group, 12.0).max(1.0)).clamp(8.0, 12.0);
            let under = (centre, plot.top + plot.height + 17.0);
            drawing.text(under, group.as_str(), size, Anchor::Middle, Paint::Ink);
            for (s, series) in self.series.iter().enumerate() {
                let Some(value) = series.values.get(g).copied().flatten() else { continue };
                let x = centre + (s as f64 - self.series.len() as f64 / 2.0) * bar;
                let (high, low) = (place(value).min(base), place(value).max(base));
                let area = [x + 1.0, high, bar - 2.0, low - high];
                drawing.marks.push(Mark::Rectangle(area, Paint::Series(s), 1.0));
                let middle = x + bar / 2.0;
                let mut label_at = high;
                if let Some(spread) = series.spread.get(g).filter(|spread| **spread > 0.0) {
                    let ends = vec![(middle, place(value - spread)), (middle, place(value + spread))];
                    label_at = label_at.min(ends[1].1);
                    drawing.line(ends, Paint::Ink, 1.2, false);
                }
                if let Some(decimals) = self.decimals {
                    let text = format!("{value:.decimals$}");
                    drawing.text((middle, label_at - 4.0), text, 10.0, Anchor::Middle, Paint::Ink);
                }
            }
        }
        drawing.line(vec![(plot.left, base), (plot.left + plot.width, base)], Paint::Ink, 1.2, false);
        for (value, name) in &self.references {
            reference(&mut drawing, &plot, &y, *value, name);
        }
        drawing
    }
}

/// A histogram of `values` over `x` (its range, or that of the data) in `bins` bins.
pub fn histogram(title: &str, x: &Axis, values: &[f64], bins: usize, width: f64, height: f64) -> Drawing {
    let mut drawing = Drawing::new(width.max(160.0), height.max(120.0), title);
    let fitted = x.fit(values.iter().copied());
    let bins = bins.max(1);
    let mut counts = vec![0_u64; bins];
    for along in values.iter().filter_map(|&v| fitted.place(v)).filter(|u| (0.0..=1.0).contains(u)) {
        counts[((along * bins as f64) as usize).min(bins - 1)] += 1;
    }
    let y = Axis::new("count").fit(counts.iter().map(|&c| c as f64).chain([0.0]));
    let top = title_and_legend(&mut drawing, title, &[]);
    let plot = vertical_axis(&mut drawing, "count", &y, top, !x.label.is_empty());
    let bar = plot.width / bins as f64;
    for (i, &count) in counts.iter().enumerate() {
        let share = y.place(count as f64).unwrap_or(0.0) * plot.height;
        let area = [plot.left + i as f64 * bar + 0.5, plot.top + plot.height - share, bar - 1.0, share];
        drawing.marks.push(Mark::Rectangle(area, Paint::Series(0), 1.0));
    }
    horizontal_axis(&mut drawing, &x.label, &fitted, &plot);
    drawing
}
