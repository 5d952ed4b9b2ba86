//! Scores of probes, summed over batches: accuracy, and R2 with one scalar mean over all samples and components, as
//! published.

use std::collections::BTreeMap;

use crate::floor::{constant_floor, has_spread};

/// The sums of one score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tally {
    /// Right answers.
    Accuracy {
        /// How many were right.
        right: f64,
        /// Of how many.
        count: f64,
    },
    /// Squared errors and the targets' moments.
    R2 {
        /// Sum of squared errors.
        error: f64,
        /// Sum of targets.
        sum: f64,
        /// Sum of squared targets.
        squares: f64,
        /// Number of target components.
        count: f64,
    },
}

impl Tally {
    /// Counts rows of `logits` (`[rows, classes]`) whose largest entry is their label's; the first one among equals.
    pub fn accuracy(logits: &[f32], labels: &[i32]) -> Self {
        let classes = logits.len() / labels.len().max(1);
        let right = logits.chunks_exact(classes.max(1)).zip(labels).filter(|(row, label)| {
            let best = row.iter().enumerate().fold((0, f32::NEG_INFINITY), |best, (index, &value)| {
                if value > best.1 { (index, value) } else { best }
            });
            best.0 as i32 == **label
        });
        Self::Accuracy { right: right.count() as f64, count: labels.len() as f64 }
    }

    /// Sums over predictions and targets of the same shape.
    pub fn r2(predictions: &[f32], targets: &[f32]) -> Self {
        let (mut error, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (&prediction, &target) in predictions.iter().zip(targets) {
            let (prediction, target) = (f64::from(prediction), f64::from(target));
            error += (prediction - target).powi(2);
            sum += target;
            squares += target * target;
        }
        Self::R2 { error, sum, squares, count: targets.len() as f64 }
    }

    fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Accuracy { right, count }, Self::Accuracy { right: r, count: c }) => {
                *right += r;
                *count += c;
            }
            (
                Self::R2 { error, sum, squares, count },
                Self::R2 { error: e, sum: s, squares: q, count: c },
            ) => {
                *error += e;
                *sum += s;
                *squares += q;
                *count += c;
            }
            (slot, other) => *slot = *other,
        }
    }

    /// The score. An R2 of targets without spread is none, see [`Self::has_score`].
    pub fn score(&self) -> f64 {
        match *self {
            Self::Accuracy { right, count } => right / count.max(1.0),
            Self::R2 { error, sum, squares, count } => 1.0 - error / (squares - sum * sum / count.max(1.0)),
        }
    }

    /// Whether there is anything to score: targets of an R2 that are all the same say nothing.
    pub fn has_score(&self) -> bool {
        match *self {
            Self::Accuracy { .. } => true,
            Self::R2 { sum, squares, count, .. } => has_spread(squares - sum * sum / count.max(1.0), squares),
        }
    }
}

/// Tallies by the probe's name, and the targets of each task, which say what is reached without information.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tallies {
    scores: BTreeMap<String, Tally>,
    /// By task: components of a target, and all targets.
    targets: BTreeMap<String, (usize, Vec<f32>)>,
}

impl Tallies {
    /// Adds to the tally called `name`.
    pub fn add(&mut self, name: impl Into<String>, tally: Tally) {
        self.scores.entry(name.into()).and_modify(|sum| sum.add(&tally)).or_insert(tally);
    }

    /// Adds targets of `width` components each of the R2 called `task`, once however many probes are asked for them.
    pub fn add_targets(&mut self, task: &str, width: usize, targets: &[f32]) {
        let (_, all) = self.targets.entry(task.to_owned()).or_insert((width, Vec::new()));
        all.extend_from_slice(targets);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.scores.iter().for_each(|(name, tally)| self.add(name.clone(), *tally));
        other.targets.iter().for_each(|(task, (width, all))| self.add_targets(task, *width, all));
    }

    /// Everything, for another rank.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        bytes.extend((self.scores.len() as u64).to_le_bytes());
        for (name, tally) in &self.scores {
            text(&mut bytes, name);
            let numbers = match *tally {
                Tally::Accuracy { right, count } => [0.0, right, count, 0.0, 0.0],
                Tally::R2 { error, sum, squares, count } => [1.0, error, sum, squares, count],
            };
            numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        for (task, (width, all)) in &self.targets {
            text(&mut bytes, task);
            bytes.extend((*width as u64).to_le_bytes());
            bytes.extend((all.len() as u64).to_le_bytes());
            all.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        bytes
    }

    /// What [`Self::to_bytes`] wrote; `None` where it is anything else.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
            let (taken, rest) = bytes.split_at_checked(count)?;
            *bytes = rest;
            Some(taken)
        }
        fn count(bytes: &mut &[u8]) -> Option<usize> {
            usize::try_from(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?)).ok()
        }
        fn text(bytes: &mut &[u8]) -> Option<String> {
            let length = count(bytes)?;
            String::from_utf8(take(bytes, length)?.to_vec()).ok()
        }
        fn number(bytes: &mut &[u8]) -> Option<f64> {
            Some(f64::from_le_bytes(take(bytes, 8)?.try_into().ok()?))
        }
        let mut tallies = Self::default();
        for _ in 0..count(&mut bytes)? {
            let name = text(&mut bytes)?;
            let mut next = || number(&mut bytes);
            let (kind, a, b, c, d) = (next()?, next()?, next()?, next()?, next()?);
            let tally = match kind {
                0.0 => Tally::Accuracy { right: a, count: b },
                _ => Tally::R2 { error: a, sum: b, squares: c, count: d },
            };
            tallies.scores.insert(name, tally);
        }
        while !bytes.is_empty() {
            let (task, width, length) = (text(&mut bytes)?, count(&mut bytes)?, count(&mut bytes)?);
            let all = take(&mut bytes, length.checked_mul(4)?)?.as_chunks::<4>().0;
            tallies
                .targets
                .insert(task, (width, all.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()));
        }
        Some(tallies)
    }

    /// The scores by name, where there is anything to score.
    pub fn scores(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        let scored = self.scores.iter().filter(|(_, tally)| tally.has_score());
        scored.map(|(name, tally)| (name.clone(), tally.score()))
    }

    /// What is reached without information, by task.
    pub fn floors(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        let floor = |(task, (width, all)): (&String, &(usize, Vec<f32>))| {
            Some((task.clone(), constant_floor(all, *width)?))
        };
        self.targets.iter().filter_map(floor)
    }

    /// All numbers by their names in metrics: `probe/TASK/PLACE`, and `floor/TASK`.
    pub fn values(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        let scores = self.scores().map(|(name, score)| (format!("probe/{name}"), score));
        scores.chain(self.floors().map(|(task, floor)| (format!("floor/{task}"), floor)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_batches_equal_the_whole() {
        let predictions: Vec<f32> = (0..24).map(|i| (i as f32 * 0.7).sin()).collect();
        let targets: Vec<f32> =
            (0..24).map(|i| (i as f32 * 0.7).sin() + 0.1 * (i % 3) as f32 + 0.5).collect();
        let whole = Tally::r2(&predictions, &targets).score();
        let mut tallies = Tallies::default();
        for (p, t) in predictions.chunks(8).zip(targets.chunks(8)) {
            tallies.add("rotation", Tally::r2(p, t));
        }
        assert!((tallies.scores().next().unwrap().1 - whole).abs() < 1e-12);
        let mean = targets.iter().sum::<f32>() / 24.0;
        let total: f32 = targets.iter().map(|t| (t - mean).powi(2)).sum();
        let error: f32 = predictions.iter().zip(&targets).map(|(p, t)| (p - t).powi(2)).sum();
        assert!((whole - f64::from(1.0 - error / total)).abs() < 1e-5);
    }

    #[test]
    fn the_mean_of_quaternion_targets_is_one_number() {
        // A constant prediction that is right per component scores above 0, as in the published protocol.
        let targets = [0.0, 1.0, 0.0, 1.0];
        assert_eq!(Tally::r2(&[0.0, 1.0, 0.0, 1.0], &targets).score(), 1.0);
        assert_eq!(Tally::r2(&[0.5; 4], &targets).score(), 0.0);
    }

    #[test]
    fn floors_are_of_all_batches() {
        let targets = [1.0, 10.0, -1.0, 10.0];
        let mut tallies = Tallies::default();
        tallies.add("rotation_r2/h", Tally::r2(&targets, &targets));
        tallies.add_targets("rotation_r2", 2, &targets[..2]);
        let mut second = Tallies::default();
        second.add_targets("rotation_r2", 2, &targets[2..]);
        tallies.merge(&second);
        let values: Vec<(String, f64)> = tallies.values().collect();
        assert_eq!(values[0], ("probe/rotation_r2/h".to_owned(), 1.0));
        assert_eq!(values[1].0, "floor/rotation_r2");
        assert!((values[1].1 - (1.0 - 2.0 / 102.0)).abs() < 1e-12);
    }

    #[test]
    fn targets_that_are_all_the_same_have_no_score() {
        let mut tallies = Tallies::default();
        for (name, targets) in
            [("scale_r2/h", [0.0; 4]), ("shear_r2/h", [0.7; 4]), ("rotation_r2/h", [0.0, 1.0, 2.0, 3.0])]
        {
            tallies.add(name, Tally::r2(&[0.5; 4], &targets));
            tallies.add_targets(name.trim_end_matches("/h"), 2, &targets);
        }
        let names: Vec<String> = tallies.values().map(|(name, _)| name).collect();
        assert_eq!(names, ["probe/rotation_r2/h", "floor/rotation_r2"]);
    }

    #[test]
    fn accuracy_counts_the_largest() {
        let tally = Tally::accuracy(&[0.1, 0.9, 0.8, 0.2, 0.5, 0.5], &[1, 1, 0]);
        assert!((tally.score() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(Tally::accuracy(&[f32::NAN, f32::NAN], &[1]).score(), 0.0);
    }
}
