//! What several ranks agree on before every step: that all have their share of the batch and that nobody was asked to
//! stop. A signal to any of them, or an image that one cannot read, ends all of them at the same step.

use dataset::{Batch, Loader};

use super::Trainer;
use crate::error::{Error, Result};

/// What a rank says before a step.
#[derive(Debug, Default, PartialEq)]
struct Word {
    stop: bool,
    /// Images of its share that were replaced.
    bad: u64,
    /// Why it has no batch.
    problem: String,
}

impl Word {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.stop)];
        bytes.extend(self.bad.to_le_bytes());
        bytes.extend(self.problem.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&stop, rest) = bytes.split_first()?;
        let (bad, problem) = rest.split_first_chunk::<8>()?;
        let problem = String::from_utf8_lossy(problem).into_owned();
        Some(Self { stop: stop != 0, bad: u64::from_le_bytes(*bad), problem })
    }
}

impl Trainer<'_> {
    /// The next batch of this rank and how many images of it were replaced (on all ranks); `None` when anybody is asked
    /// to stop.
    pub(super) fn next_batch(
        &mut self,
        loader: &mut Loader,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<(Batch, usize)>> {
        let is_shared = self.ranks.is_shared();
        let mut word = Word { stop: stop(), ..Word::default() };
        // A rank does not leave the others for itself: it says that it was asked to.
        if !is_shared && (word.stop || !loader.wait(stop)) {
            return Ok(None);
        }
        let batch = match loader.next() {
            None if is_shared => Err("the loader ended before the run".to_owned()),
            None => return Err(Error::Request("the loader ended before the run".to_owned())),
            Some(Err(error)) if is_shared => Err(error.to_string()),
            Some(Err(error)) => return Err(self.saved_before(&error)),
            Some(Ok(batch)) => Ok(batch),
        };
        let bad = batch.as_ref().map_or(0, |batch| self.views.count(&batch.items));
        if !is_shared {
            return Ok(batch.ok().map(|batch| (batch, bad)));
        }
        (word.bad, word.problem) = (bad as u64, batch.as_ref().err().cloned().unwrap_or_default());
        let mut sum = Word::default();
        for (rank, bytes) in self.ranks.exchange(&word.to_bytes())?.iter().enumerate() {
            let Some(word) = Word::from_bytes(bytes) else {
                return Err(Error::Request(format!("rank {rank} does other work than this one")));
            };
            sum.stop |= word.stop;
            sum.bad += word.bad;
            if sum.problem.is_empty() && !word.problem.is_empty() {
                sum.problem = format!("rank {rank}: {}", word.problem);
            }
        }
        match batch {
            Ok(batch) if sum.problem.is_empty() => Ok((!sum.stop).then_some((batch, sum.bad as usize))),
            _ => Err(match self.saved_before(&dataset::Error::Request(sum.problem)) {
                // What the others know, too.
                Error::Request(text) => Error::Everywhere(text),
                other => other,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        let word = Word { stop: true, bad: 3, problem: "no image".to_owned() };
        assert_eq!(Word::from_bytes(&word.to_bytes()), Some(word));
        assert_eq!(Word::from_bytes(&[1, 2]), None);
    }
}
