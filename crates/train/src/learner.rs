//! What the loop trains, as the loop sees it: steps go in, measurements come out, and the state can be stored. The
//! loop itself knows no tensors, so it can be tested with a learner of a few lines.

use methods::{Ask, Measurement, Representations, Tallies};

use crate::batches::PairBatch;
use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// What was seen of pairs that are not trained on.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Scores of the online probes.
    pub tallies: Tallies,
    /// Representations of all views, where they were asked for.
    pub representations: Representations,
}

impl Look {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: Self) {
        self.tallies.merge(&other.tallies);
        self.representations.merge(other.representations);
    }

    /// As it travels between ranks: length of the scores, scores, width, count, classes, values.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Representations { width, values, labels } = &self.representations;
        let tallies = self.tallies.to_bytes();
        let mut bytes = (tallies.len() as u64).to_le_bytes().to_vec();
        bytes.extend(tallies);
        bytes.extend([*width, labels.len()].map(|number| (number as u64).to_le_bytes()).concat());
        labels.iter().for_each(|label| bytes.extend(label.to_le_bytes()));
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        bytes
    }

    /// What [`Self::to_bytes`] wrote; nothing where it is something else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        fn count(bytes: &[u8]) -> Option<(usize, &[u8])> {
            let (number, rest) = bytes.split_first_chunk::<8>()?;
            Some((usize::try_from(u64::from_le_bytes(*number)).ok()?, rest))
        }
        let (length, rest) = count(bytes)?;
        let (tallies, rest) = rest.split_at_checked(length)?;
        let (width, rest) = count(rest)?;
        let (rows, rest) = count(rest)?;
        let (labels, values) = rest.split_at_checked(rows.checked_mul(4)?)?;
        let labels: Vec<i32> =
            labels.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect();
        let values: Vec<f32> =
            values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if values.len() != rows.checked_mul(width)? {
            return None;
        }
        let representations = Representations { width, values, labels };
        Some(Self { tallies: Tallies::from_bytes(tallies)?, representations })
    }
}

/// A network in training.
pub trait Learner {
    /// Does one step, or sets it going: what it showed is had by [`Learner::collect`].
    fn step(&mut self, batch: PairBatch<'_>, ask: Ask) -> Result<()>;

    /// The measurements of steps since the last call, in order: those that the device is done with, or, with `wait`,
    /// those of all steps so far.
    fn collect(&mut self, wait: bool) -> Result<Vec<Measurement>>;

    /// What a person should know of the steps so far; said once.
    fn take_remark(&mut self) -> Option<String> {
        None
    }

    /// A look at pairs that are not trained on; nothing changes. Representations are given where they are asked for.
    fn look(&mut self, batch: PairBatch<'_>, representations: bool) -> Result<Look>;

    /// Takes over what rank 0 has. All ranks that train together call it.
    fn take_from_first(&mut self) -> Result<()> {
        Ok(())
    }

    /// Adds the whole state to a checkpoint.
    fn save(&self, checkpoint: &mut Checkpoint) -> Result<()>;

    /// Takes the whole state from a checkpoint; anything missing or misshapen is an error.
    fn load(&mut self, checkpoint: &Checkpoint) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use methods::Tally;

    #[test]
    fn looks_travel_whole_and_nothing_else_is_taken_for_one() {
        let mut look = Look::default();
        look.tallies.add("class_accuracy/representation", Tally::Accuracy { right: 3.0, count: 7.0 });
        look.representations =
            Representations { width: 2, values: vec![0.5, -1.0, 3.0, 1e-9], labels: vec![4, -1] };
        let bytes = look.to_bytes();
        let again = Look::from_bytes(&bytes).unwrap();
        assert_eq!(again.to_bytes(), bytes);
        assert_eq!((again.representations.width, &again.representations.labels[..]), (2, &[4, -1][..]));
        assert!((0..bytes.len()).all(|length| Look::from_bytes(&bytes[..length]).is_none()));
    }
}
