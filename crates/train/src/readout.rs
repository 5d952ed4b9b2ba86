//! What a step showed, on its way from the device: copies begin when the step is issued and are read once they have
//! arrived, so that the device never waits for the host.

use std::time::Duration;

use engine::{Device, Mark, Readback, Tensor};

use crate::error::Result;
use crate::health::Health;
use crate::learner::Measurement;
use crate::probes::{Answers, Questions, Targets};

/// What a step leaves on the device.
#[derive(Debug)]
pub struct Shown {
    /// The method's loss.
    pub loss: Tensor,
    /// Its terms.
    pub terms: Vec<(&'static str, Tensor)>,
    /// What the probes said, and what they should have said.
    pub answers: Option<(Answers, Targets)>,
    /// The representation, and the activations of capsules where there are any.
    pub health: Option<(Tensor, Option<Tensor>)>,
}

/// A measurement that is being read.
#[derive(Debug)]
pub struct Pending {
    readback: Readback,
    terms: Vec<&'static str>,
    questions: Option<(Questions, Targets)>,
    /// Widths of the representation and of the activations.
    health: Option<(usize, Option<usize>)>,
    marks: [Mark; 2],
    host: Duration,
}

impl Pending {
    /// Begins to read what a step shows. It began at `began`; the host spent `host` on it.
    pub fn begin(device: &Device, shown: Shown, began: Mark, host: Duration) -> Result<Self> {
        let mut tensors = vec![&shown.loss];
        tensors.extend(shown.terms.iter().map(|(_, value)| value));
        if let Some((answers, _)) = &shown.answers {
            tensors.extend(answers.tensors());
        }
        if let Some((rows, activations)) = &shown.health {
            tensors.push(rows);
            tensors.extend(activations);
        }
        let width = |tensor: &Tensor| tensor.dims().last().copied().unwrap_or(1);
        let health =
            shown.health.as_ref().map(|(rows, activations)| (width(rows), activations.as_ref().map(width)));
        let ended = device.mark()?;
        Ok(Self {
            readback: device.read_later(&tensors)?,
            terms: shown.terms.iter().map(|(name, _)| *name).collect(),
            questions: shown.answers.map(|(answers, targets)| (answers.questions(), targets)),
            health,
            marks: [began, ended],
            host,
        })
    }

    /// Whether everything has arrived.
    pub fn is_ready(&self) -> Result<bool> {
        Ok(self.readback.is_ready()?)
    }

    /// The measurement; waits for it.
    pub fn read(&self) -> Result<Measurement> {
        let scalar = |index: usize| -> Result<f64> {
            Ok(self.readback.floats(index)?.first().copied().map_or(f64::NAN, f64::from))
        };
        let mut terms = Vec::new();
        for (index, name) in self.terms.iter().enumerate() {
            terms.push(((*name).to_owned(), scalar(1 + index)?));
        }
        let mut next = 1 + self.terms.len();
        let probes = match &self.questions {
            Some((questions, targets)) => {
                let first = next;
                next += questions.len();
                questions.tallies(targets, |index| self.readback.floats(first + index))?
            }
            None => Default::default(),
        };
        let health = match self.health {
            Some((width, capsules)) => {
                let rows = self.readback.floats(next)?;
                let activations = match capsules {
                    Some(capsules) => Some((self.readback.floats(next + 1)?, capsules)),
                    None => None,
                };
                let activations =
                    activations.as_ref().map(|(values, capsules)| (values.as_slice(), *capsules));
                Some(Health::of(&rows, width, activations))
            }
            None => None,
        };
        let device = self.marks[1].since(&self.marks[0])?;
        Ok(Measurement { loss: scalar(0)?, terms, probes, health, host: self.host, device })
    }
}
