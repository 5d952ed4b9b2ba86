//! `dataset stats`: how latents and classes are distributed.

use crate::card::named_ranges;
use crate::object::Split;
use crate::reader::Dataset;
use crate::views::Views;

/// Counts of values in equal bins over a range.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
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
        let bins = bins.max(1);
        let mut counts = vec![0; bins];
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
                counts[(((value - low) / width * bins as f64) as usize).min(bins - 1)] += 1;
            }
        }
        let mean = if number > 0.0 { sum / number } else { 0.0 };
        let deviation = if number > 0.0 { (squares / number - mean * mean).max(0.0).sqrt() } else { 0.0 };
        Self { name: name.to_owned(), low, high, counts, outside, mean, deviation }
    }

    /// One line: name (of `width` letters), range, bars, mean.
    pub fn to_line(&self, width: usize) -> String {
        const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1);
        let bars: String =
            self.counts.iter().map(|&count| LEVELS[(count * 8).div_ceil(most) as usize]).collect();
        let outside = if self.outside > 0 { format!("  {} outside", self.outside) } else { String::new() };
        format!(
            "{:<width$} {:>7.3} |{bars}| {:<6.3} mean {:>6.3}, sd {:.3}{outside}",
            self.name, self.low, self.high, self.mean, self.deviation
        )
    }
}

/// Bins of a latent's histogram.
pub const BINS: usize = 24;

/// One histogram for each latent, over its range in the card or, without a card, the published range; of imported
/// data, over the values that there are.
pub fn latent_histograms(dataset: &Dataset) -> Vec<Histogram> {
    let table = dataset.latent_table();
    if dataset.is_imported() {
        let names = table.columns().names().into_iter().enumerate();
        return names.map(|(column, name)| of_values(name, latent_values(dataset, column))).collect();
    }
    let ranges = match dataset.card() {
        Some(card) => card.settings.ranges.unwrap_or(scene::LatentRanges::BENCH),
        None => match table.columns() {
            // Nothing is published about where a camera could be.
            columns if columns.camera => {
                let names = columns.names().into_iter().enumerate();
                return names.map(|(column, name)| of_values(name, latent_values(dataset, column))).collect();
            }
            columns if columns.shear => scene::LatentRanges::BENCH_A,
            columns if columns.scale => scene::LatentRanges::BENCH_S,
            columns if columns.translation => scene::LatentRanges::BENCH_T,
            _ => scene::LatentRanges::BENCH,
        },
    };
    let histogram = |(column, (name, [low, high])): (usize, (&str, [f64; 2]))| {
        Histogram::new(name, low, high, BINS, (0..table.rows()).map(|row| table.row(row)[column]))
    };
    named_ranges(&ranges).into_iter().take(table.width()).enumerate().map(histogram).collect()
}

/// The known values of a column of latents.
pub fn latent_values(dataset: &Dataset, column: usize) -> Vec<f64> {
    let table = dataset.latent_table();
    (0..table.rows()).map(|row| table.row(row)[column]).filter(|value| value.is_finite()).collect()
}

/// A histogram from the smallest to the largest value; angles over a whole turn.
fn of_values(name: &str, values: Vec<f64>) -> Histogram {
    let (low, high) = match name.starts_with("rot_") {
        true => (-std::f64::consts::PI, std::f64::consts::PI),
        false => {
            values.iter().fold((f64::MAX, f64::MIN), |(low, high), &value| (low.min(value), high.max(value)))
        }
    };
    Histogram::new(name, low, high, BINS, values.into_iter())
}

/// For every class: its name and its objects in training and validation.
pub fn class_counts(dataset: &Dataset) -> Vec<(String, [u64; 2])> {
    let mut counts: Vec<(String, [u64; 2])> =
        dataset.classes().iter().map(|class| (class.name.clone(), [0, 0])).collect();
    for (side, split) in Split::ALL.into_iter().enumerate() {
        for object in &dataset.objects()[dataset.split(split)] {
            if let Some((_, sides)) = counts.get_mut(object.label as usize) {
                sides[side] += 1;
            }
        }
    }
    counts
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
        assert!(histogram.to_line(10).contains("3 outside"));
        assert!((histogram.mean - 3.99 / 7.0).abs() < 1e-12);
        let empty = Histogram::new("y", 1.0, 1.0, 3, [1.0].into_iter());
        assert_eq!(empty.counts.iter().sum::<u64>(), 1);
    }
}
