//! Means over an epoch. They are part of a checkpoint, so that an epoch that was interrupted has the same means as one
//! that was not.

use std::collections::BTreeMap;

use crate::checkpoint::{Checkpoint, Numbers};

const SUMS: &str = "progress.sums";
const NAMES: &str = "progress_names";

/// Sums and counts by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Means(BTreeMap<String, (f64, f64)>);

impl Means {
    /// Adds one value.
    pub fn add(&mut self, name: &str, value: f64) {
        let (sum, count) = self.0.entry(name.to_owned()).or_default();
        *sum += value;
        *count += 1.0;
    }

    /// Adds all values of a step's measurement.
    pub fn add_measurement(&mut self, values: &[(String, f64)]) {
        values.iter().for_each(|(name, value)| self.add(name, *value));
    }

    /// The sum of the values called `name`; 0 where there are none.
    pub fn sum(&self, name: &str) -> f64 {
        self.0.get(name).map_or(0.0, |(sum, _)| *sum)
    }

    /// The means by name.
    pub fn means(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        self.0.iter().map(|(name, (sum, count))| (name.clone(), sum / count))
    }

    /// Adds the sums to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        let names: Vec<&String> = self.0.keys().collect();
        checkpoint.metadata.insert(NAMES.to_owned(), serde_json::json!(names).to_string());
        let sums: Vec<f64> = self.0.values().flat_map(|(sum, count)| [*sum, *count]).collect();
        checkpoint.insert(SUMS, &[self.0.len(), 2], Numbers::F64(sums));
    }

    /// The sums of a checkpoint.
    pub fn load(checkpoint: &Checkpoint) -> Option<Self> {
        let names: Vec<String> = serde_json::from_str(checkpoint.metadata.get(NAMES)?).ok()?;
        let Numbers::F64(sums) = &checkpoint.tensors.get(SUMS)?.numbers else { return None };
        let pairs = sums.as_chunks::<2>().0;
        (pairs.len() == names.len())
            .then(|| Self(names.into_iter().zip(pairs.iter().map(|&[sum, count]| (sum, count))).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_survive_a_checkpoint_to_the_last_bit() {
        let mut means = Means::default();
        (0..7).for_each(|i| means.add("loss", 1.0 / f64::from(i + 1)));
        means.add("loss/variance", 0.1);
        let sum: f64 = (1..=7).map(|i| 1.0 / f64::from(i)).sum();
        let mean = means.means().find(|(name, _)| name == "loss").unwrap().1;
        assert!((mean - sum / 7.0).abs() < 1e-15 && means.sum("loss") == sum);
        let mut checkpoint = Checkpoint::default();
        means.save(&mut checkpoint);
        assert_eq!(Means::load(&checkpoint), Some(means));
        assert_eq!(Means::load(&Checkpoint::default()), None);
    }
}
