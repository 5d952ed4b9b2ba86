//! Class accuracy of nearest neighbours, without a probe that is trained: every representation takes the class of its nearest
//! ones in a bank of representations of training views. The 20 nearest by cosine vote with weight exp(cosine / 0.07), as
//! is usual since Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018.

use std::collections::BTreeMap;

use engine::nearest::{Neighbour, Similarity};
use engine::{Device, Result};

use crate::tally::Tally;

/// Neighbours that vote.
const NEIGHBOURS: usize = 20;
/// Softness of the votes.
const TEMPERATURE: f64 = 0.07;

/// Representations and the classes of what they show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Representations {
    /// Numbers in a row.
    pub width: usize,
    /// `[labels, width]`.
    pub values: Vec<f32>,
    /// The class of every row.
    pub labels: Vec<i32>,
}

impl Representations {
    /// Adds all rows of `other`, which are as wide.
    pub fn merge(&mut self, other: Self) {
        self.width = other.width;
        self.values.extend(other.values);
        self.labels.extend(other.labels);
    }

    /// Rows of length 1; rows of zeros stay.
    fn normalised(mut self) -> Self {
        self.values.chunks_exact_mut(self.width.max(1)).for_each(|row| {
            let square: f64 = row.iter().map(|&value| f64::from(value).powi(2)).sum();
            let scale = if square > 0.0 { square.sqrt().recip() } else { 0.0 };
            row.iter_mut().for_each(|value| *value = (f64::from(*value) * scale) as f32);
        });
        self
    }

    /// How many of these rows have the class that their neighbours in `bank` vote for; none where there are no rows or no
    /// neighbours. On the host, with the same bits for any number of threads.
    pub fn neighbour_accuracy(self, bank: Self) -> Result<Option<Tally>> {
        if self.labels.is_empty() || bank.labels.is_empty() {
            return Ok(None);
        }
        let (rows, bank) = (self.normalised(), bank.normalised());
        let mut similarity = Similarity::new(&Device::cpu())?;
        let found = similarity.nearest(&rows.values, &bank.values, rows.width, NEIGHBOURS, |_, _| false)?;
        let right = found
            .iter()
            .zip(&rows.labels)
            .filter(|(neighbours, label)| vote(neighbours, &bank.labels) == Some(**label))
            .count();
        Ok(Some(Tally::Accuracy { right: right as f64, count: rows.labels.len() as f64 }))
    }
}

/// The class with most votes; the lowest among equals. Nothing where there are no neighbours.
fn vote(neighbours: &[Neighbour], labels: &[i32]) -> Option<i32> {
    let mut votes: BTreeMap<i32, f64> = BTreeMap::new();
    for neighbour in neighbours {
        let weight = (f64::from(neighbour.similarity) / TEMPERATURE).exp();
        *votes.entry(labels[neighbour.row]).or_default() += weight;
    }
    let most = votes.values().copied().fold(f64::NEG_INFINITY, f64::max);
    votes.into_iter().find(|(_, votes)| *votes == most).map(|(label, _)| label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::{Random, Stream};

    fn table(rows: usize, width: usize, classes: i32, index: u64) -> Representations {
        let mut random = Random::new(3, Stream::new("knn"), index);
        let labels: Vec<i32> = (0..rows as i32).map(|row| row % classes).collect();
        // Classes lie around directions of their own, close enough to be taken for each other.
        let centre = |label: i32, column: usize| ((label * 31 + column as i32 * 17) as f64).sin();
        let mut values = Vec::new();
        for &label in &labels {
            let length = random.range(0.1, 9.0);
            values.extend((0..width).map(|k| (length * (centre(label, k) + 0.9 * random.normal())) as f32));
        }
        Representations { width, values, labels }
    }

    /// The same in float64, by sorting everything.
    fn brute_force(rows: &Representations, bank: &Representations) -> f64 {
        let unit = |row: &[f32]| -> Vec<f64> {
            let length = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
            row.iter().map(|&v| f64::from(v) / length).collect()
        };
        let mut right = 0;
        for (row, label) in rows.values.chunks(rows.width).zip(&rows.labels) {
            let mut all: Vec<(f64, i32)> = bank
                .values
                .chunks(bank.width)
                .map(|other| unit(row).iter().zip(unit(other)).map(|(a, b)| a * b).sum())
                .zip(bank.labels.iter().copied())
                .collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut votes = [0.0; 16];
            all.iter().take(20).for_each(|(cosine, label)| votes[*label as usize] += (cosine / 0.07).exp());
            let best = (0..16).max_by(|&a, &b| votes[a].total_cmp(&votes[b])).unwrap();
            right += usize::from(best as i32 == *label);
        }
        right as f64 / rows.labels.len() as f64
    }

    #[test]
    fn agrees_with_brute_force() {
        let (rows, bank) = (table(300, 12, 7, 0), table(500, 12, 7, 1));
        let wanted = brute_force(&rows, &bank);
        assert!((0.3..0.95).contains(&wanted), "a test that cannot tell: {wanted}");
        let accuracy = rows.neighbour_accuracy(bank).unwrap().unwrap();
        assert_eq!(accuracy.score(), wanted);
    }

    #[test]
    fn near_ones_outvote_many_far_ones() {
        let labels = vec![0, 1, 1, 1, 1];
        let values = [vec![1.0, 0.05], [0.0, 1.0].repeat(4)].concat();
        let bank = Representations { width: 2, values, labels };
        let row =
            |x: f32, y: f32, label| Representations { width: 2, values: vec![x, y], labels: vec![label] };
        let score = |row: Representations| row.neighbour_accuracy(bank.clone()).unwrap().unwrap().score();
        // All five are among the twenty nearest, and only directions count.
        assert_eq!([score(row(50.0, 0.0, 0)), score(row(50.0, 0.0, 1))], [1.0, 0.0]);
        assert_eq!(score(row(0.001, 1.0, 1)), 1.0);
        // What points nowhere, and what is not a number, is no answer of any class but the most common one's.
        assert_eq!(score(row(0.0, 0.0, 1)), 1.0);
        assert_eq!(score(row(f32::NAN, 0.0, 1)), 0.0);
    }

    #[test]
    fn nothing_to_compare_with_is_no_score() {
        let none = Representations::default();
        assert_eq!(none.clone().neighbour_accuracy(table(4, 3, 2, 0)).unwrap(), None);
        assert_eq!(table(4, 3, 2, 0).neighbour_accuracy(none).unwrap(), None);
    }
}
