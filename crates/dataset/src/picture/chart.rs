//! Histograms and bar charts, as text and as pictures.

use crate::picture::canvas::{Canvas, Rgb};

const PAPER: Rgb = [250, 250, 248];
const INK: Rgb = [30, 30, 34];
const FAINT: Rgb = [215, 215, 210];
const BAR: Rgb = [66, 110, 168];
const MARGIN: usize = 16;

/// Counts of values in equal bins over a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// What is counted.
    pub name: String,
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// Values in each bin.
    pub counts: Vec<u64>,
    /// Values outside the range or not finite.
    pub outside: u64,
    /// Mean of the finite values.
    pub mean: f64,
    /// Standard deviation of the finite values.
    pub deviation: f64,
}

impl Histogram {
    /// Counts `values` in `bins` bins over `[low, high]`.
    pub fn new(name: &str, low: f64, high: f64, bins: usize, values: impl Iterator<Item = f64>) -> Self {
        let mut counts = vec![0; bins.max(1)];
        let (mut outside, mut number, mut sum, mut squares) = (0, 0.0, 0.0, 0.0);
        let width = (high - low).max(f64::MIN_POSITIVE);
        for value in values {
            if !value.is_finite() {
                outside += 1;
                continue;
            }
            number += 1.0;
            sum += value;
            squares += value * value;
            if value < low || value > high {
                outside += 1;
            } else {
                let bin = ((value - low) / width * bins as f64) as usize;
                counts[bin.min(bins.saturating_sub(1))] += 1;
            }
        }
        let mean = if number > 0.0 { sum / number } else { 0.0 };
        let deviation = if number > 0.0 { (squares / number - mean * mean).max(0.0).sqrt() } else { 0.0 };
        Self { name: name.to_owned(), low, high, counts, outside, mean, deviation }
    }

    /// One line: name, bars, range, mean.
    pub fn to_line(&self) -> String {
        const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1);
        let bars: String =
            self.counts.iter().map(|&count| LEVELS[(count * 8).div_ceil(most) as usize]).collect();
        let outside = if self.outside > 0 { format!("  {} outside", self.outside) } else { String::new() };
        format!(
            "{:<10} {:>6.3} |{bars}| {:<6.3}  mean {:>6.3}  sd {:.3}{outside}",
            self.name, self.low, self.high, self.mean, self.deviation
        )
    }
}

/// Draws histograms in a grid, three in a row.
pub fn histograms(title: &str, all: &[Histogram]) -> Canvas {
    const COLUMNS: usize = 3;
    const WIDTH: usize = 300;
    const HEIGHT: usize = 150;
    let rows = all.len().div_ceil(COLUMNS);
    let top = MARGIN * 2 + Canvas::text_height(3);
    let mut canvas =
        Canvas::new(MARGIN + COLUMNS * (WIDTH + MARGIN), top + rows * (HEIGHT + 64 + MARGIN), PAPER);
    canvas.text(MARGIN, MARGIN, 3, title, INK);
    for (at, histogram) in all.iter().enumerate() {
        let x = MARGIN + at % COLUMNS * (WIDTH + MARGIN);
        let y = top + at / COLUMNS * (HEIGHT + 64 + MARGIN);
        canvas.text(x, y, 2, &histogram.name, INK);
        let frame = y + 22;
        canvas.fill(x, frame, WIDTH, HEIGHT, [240, 240, 236]);
        let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
        let bins = histogram.counts.len();
        for (bin, &count) in histogram.counts.iter().enumerate() {
            let (left, right) = (bin * WIDTH / bins, (bin + 1) * WIDTH / bins);
            let height = (count * HEIGHT as u64 / most) as usize;
            canvas.fill(
                x + left,
                frame + HEIGHT - height,
                (right - left).saturating_sub(1).max(1),
                height,
                BAR,
            );
        }
        canvas.fill(x, frame + HEIGHT, WIDTH, 1, INK);
        let (low, high) = (format!("{:.3}", histogram.low), format!("{:.3}", histogram.high));
        canvas.text(x, frame + HEIGHT + 6, 2, &low, INK);
        canvas.text(x + WIDTH - Canvas::text_width(&high, 2), frame + HEIGHT + 6, 2, &high, INK);
        let mean = format!("mean {:.3}  sd {:.3}", histogram.mean, histogram.deviation);
        canvas.text(x, frame + HEIGHT + 26, 1, &mean, INK);
    }
    canvas
}

/// Draws one horizontal bar an entry: (label, stacked counts). `parts` names the stacked counts.
pub fn bar_chart(title: &str, parts: [&str; 2], entries: &[(String, [u64; 2])]) -> Canvas {
    const LENGTH: usize = 600;
    const ROW: usize = 18;
    const LIGHT: Rgb = [226, 158, 79];
    let labels = entries.iter().map(|(label, _)| Canvas::text_width(label, 2)).max().unwrap_or(0);
    let top = MARGIN * 3 + Canvas::text_height(3) + Canvas::text_height(2);
    let mut canvas =
        Canvas::new(labels + LENGTH + MARGIN * 3 + 160, top + entries.len() * ROW + MARGIN, PAPER);
    canvas.text(MARGIN, MARGIN, 3, title, INK);
    let legend = MARGIN * 2 + Canvas::text_height(3);
    canvas.fill(MARGIN, legend, 14, 14, BAR);
    canvas.text(MARGIN + 20, legend, 2, parts[0], INK);
    let second = MARGIN * 3 + 20 + Canvas::text_width(parts[0], 2);
    canvas.fill(second, legend, 14, 14, LIGHT);
    canvas.text(second + 20, legend, 2, parts[1], INK);
    let most = entries.iter().map(|(_, counts)| counts[0] + counts[1]).max().unwrap_or(0).max(1);
    for (at, (label, [first, second])) in entries.iter().enumerate() {
        let y = top + at * ROW;
        canvas.text(MARGIN + labels - Canvas::text_width(label, 2), y, 2, label, INK);
        let x = MARGIN * 2 + labels;
        canvas.fill(x, y + ROW - 3, LENGTH, 1, FAINT);
        let a = (first * LENGTH as u64 / most) as usize;
        let b = ((first + second) * LENGTH as u64 / most) as usize;
        canvas.fill(x, y, a, 14, BAR);
        canvas.fill(x + a, y, b - a, 14, LIGHT);
        canvas.text(x + b + 8, y, 2, &format!("{first}+{second}"), INK);
    }
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_take_both_ends_and_count_what_is_outside() {
        let values = [0.0, 0.1, 0.5, 0.99, 1.0, 1.5, -0.1, f64::NAN];
        let histogram = Histogram::new("x", 0.0, 1.0, 4, values.into_iter());
        assert_eq!(histogram.counts, [2, 0, 1, 2]);
        assert_eq!(histogram.outside, 3);
        assert!(histogram.to_line().contains("3 outside"));
        assert!((histogram.mean - 3.99 / 7.0).abs() < 1e-12);
        let empty = Histogram::new("y", 1.0, 1.0, 3, [1.0].into_iter());
        assert_eq!(empty.counts.iter().sum::<u64>(), 1);
        assert!(histograms("t", &[histogram, empty]).height() > 100);
    }
}
