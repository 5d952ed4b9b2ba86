//! Bar charts: lying bars, one below the other with its name at the left, and histograms.

use crate::axis::Axis;
use crate::drawing::{Anchor, Drawing, Mark, Paint};
use crate::font;
use crate::line_chart::{Level, Plot, horizontal_axis, short, title_and_legend, vertical_axis};

/// One bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// Half-length of the error bar; 0 for none.
    pub spread: f64,
}

/// Bars one below the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarChart {
    /// The heading.
    pub title: String,
    /// The horizontal axis; it always includes 0 unless a range is given.
    pub x: Axis,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// Vertical dashed lines, named in the legend.
    pub references: Vec<(f64, String)>,
    /// Decimals of the numbers written beside the bars.
    pub decimals: usize,
}

/// Height of a bar with the space around it.
const ROW: f64 = 28.0;
const TEXT: f64 = 12.0;

impl BarChart {
    /// Draws the chart at this width in pixels; its height follows from the bars.
    pub fn draw(&self, width: f64) -> Drawing {
        let width = width.max(200.0);
        let mut drawing = Drawing::new(width, 0.0, self.title.clone());
        let ends = self.bars.iter().flat_map(|bar| [bar.value - bar.spread, bar.value + bar.spread]);
        let x = self.x.fit(ends.chain(self.references.iter().map(|r| r.0)).chain([0.0]));
        let top = title_and_legend(&mut drawing, &self.title, &[], &Level::of(&self.references));
        let widest = self.bars.iter().map(|bar| font::width(&bar.name, TEXT) * 1.1).fold(0.0, f64::max);
        let left = 14.0 + widest.min(width * 0.42) + 8.0;
        // The numbers are a column of their own at the right, where no line crosses them.
        let longest = self.bars.iter().map(|bar| font::width(&self.number(bar), TEXT)).fold(0.0, f64::max);
        let room = (width - left - longest - 22.0).max(20.0);
        let plot = Plot { left, top, width: room, height: ROW * self.bars.len() as f64 };
        drawing.height = top + plot.height + 28.0 + if self.x.label.is_empty() { 0.0 } else { 20.0 };
        let place = |value: f64| left + x.place(value).unwrap_or(0.0).clamp(0.0, 1.0) * room;
        let bottom = top + plot.height;
        for (value, _) in &x.ticks {
            drawing.line(vec![(place(*value), top), (place(*value), bottom)], Paint::Grid, 1.0, false);
        }
        for (index, bar) in self.bars.iter().enumerate() {
            let middle = top + (index as f64 + 0.5) * ROW;
            let (name, size) = font::fitted(&bar.name, (left - 22.0) / 1.1, TEXT, 9.0);
            drawing.text((left - 8.0, middle + 4.0), name, size, Anchor::End, Paint::Ink);
            let (from, to) = (place(0.0).min(place(bar.value)), place(0.0).max(place(bar.value)));
            let mark = Mark::Rectangle([from, middle - 8.0, to - from, 16.0], Paint::Series(0), 1.0);
            let spread =
                if bar.spread > 0.0 { format!(" \u{b1} {}", short(bar.spread)) } else { String::new() };
            let said = format!("{}: {}{spread}", bar.name, short(bar.value));
            drawing.marks.push(mark.told(said, bar.name.as_str()));
            if bar.spread > 0.0 {
                let whisker =
                    vec![(place(bar.value - bar.spread), middle), (place(bar.value + bar.spread), middle)];
                drawing.line(whisker, Paint::Ink, 1.2, false);
            }
            drawing.text((width - 8.0, middle + 4.0), self.number(bar), TEXT, Anchor::End, Paint::Ink);
        }
        drawing.line(vec![(place(0.0), top), (place(0.0), bottom)], Paint::Ink, 1.2, false);
        horizontal_axis(&mut drawing, &self.x.label, &x, &plot);
        for (value, _) in &self.references {
            drawing.line(vec![(place(*value), top), (place(*value), bottom)], Paint::Muted, 1.5, true);
        }
        drawing
    }

    fn number(&self, bar: &Bar) -> String {
        format!("{:.*}", self.decimals, bar.value)
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
    let top = title_and_legend(&mut drawing, title, &[], &[]);
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
