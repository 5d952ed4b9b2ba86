//! What a step shows: tensors on the device ([`StepOutput`]), on their way to the host ([`Reading`]), and as numbers
//! ([`Measurement`]). Copies begin when the step is issued and are read once they have arrived, so that the device
//! never waits for the host.

use std::time::Duration;

use std::sync::Arc;

use engine::{Collective, Device, Mark, Readback, Result, Tensor};

use crate::batch::TargetValues;
use crate::health::Health;
use crate::probes::{Answers, Questions};
use crate::tally::Tallies;

/// What is wanted of a step besides the step itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Scores of the online probes on this batch.
    pub probes: bool,
    /// The health of the representation.
    pub health: bool,
}

/// What a step showed.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// The method's loss, without the probes' losses.
    pub loss: f64,
    /// Its terms before their weights, by their published names.
    pub terms: Vec<(&'static str, f64)>,
    /// Where asked for: scores of the online probes.
    pub probes: Tallies,
    /// Where asked for: the health of the representation.
    pub health: Option<Health>,
    /// How long the host was busy with the step.
    pub host: Duration,
    /// How long the device was.
    pub device: Duration,
}

impl Measurement {
    /// All numbers by their names in metrics.
    pub fn values(&self) -> Vec<(String, f64)> {
        let mut values = vec![("loss".to_owned(), self.loss)];
        values.extend(self.terms.iter().map(|(name, value)| (format!("loss/{name}"), *value)));
        values.extend(self.probes.values());
        values.extend(self.health.iter().flat_map(Health::values));
        values
    }
}

/// What a step leaves on the device, until the next one.
#[derive(Clone, Debug)]
pub struct StepOutput {
    pub(crate) loss: Tensor,
    pub(crate) terms: Vec<(&'static str, Tensor)>,
    pub(crate) answers: Option<Answers>,
    pub(crate) representation: Tensor,
    pub(crate) activations: Option<Tensor>,
    /// Who shares the batch: loss and terms are those of all of it, the rest is of this rank's rows.
    pub(crate) ranks: Arc<dyn Collective>,
    /// Rows of all of them.
    pub(crate) rows: usize,
}

impl StepOutput {
    /// The loss and its terms; waits for the device.
    pub fn read(&self) -> Result<Measurement> {
        let scalar = |tensor: &Tensor| tensor.scalar().map(f64::from);
        let mut terms = Vec::new();
        for (name, value) in &self.terms {
            terms.push((*name, scalar(value)?));
        }
        Ok(Measurement { loss: scalar(&self.loss)?, terms, ..Measurement::default() })
    }

    /// With what is asked for of the whole batch.
    fn whole(mut self, device: &Device, ask: Ask) -> Result<Self> {
        if let (true, Some(answers)) = (ask.probes, &mut self.answers) {
            let tensors: Vec<&Tensor> = answers.tensors().iter().collect();
            let whole = self.ranks.gather(device, self.rows, &tensors)?;
            answers.set_tensors(whole);
        }
        if ask.health {
            let own: Vec<&Tensor> = std::iter::once(&self.representation).chain(&self.activations).collect();
            let mut whole = self.ranks.gather(device, self.rows, &own)?.into_iter();
            if let Some(representation) = whole.next() {
                self.representation = representation;
            }
            self.activations = whole.next();
        }
        Ok(self)
    }

    /// Begins to read what is asked for of a step that began at `began` and on which the host spent `host`. Scores of
    /// probes are those on `targets`.
    pub fn read_later(
        mut self,
        device: &Device,
        ask: Ask,
        mut targets: TargetValues,
        began: Mark,
        host: Duration,
    ) -> Result<Reading> {
        let ended = device.mark()?;
        if self.ranks.is_shared() {
            if ask.probes {
                targets = targets.scored_of_all(&*self.ranks)?;
            }
            self = self.whole(device, ask)?;
        }
        let answers = self.answers.filter(|_| ask.probes);
        let width = |tensor: &Tensor| tensor.dims().last().copied().unwrap_or(1);
        let mut tensors = vec![&self.loss];
        tensors.extend(self.terms.iter().map(|(_, value)| value));
        tensors.extend(answers.iter().flat_map(Answers::tensors));
        let mut health = None;
        if ask.health {
            tensors.push(&self.representation);
            tensors.extend(&self.activations);
            health = Some((width(&self.representation), self.activations.as_ref().map(width)));
        }
        Ok(Reading {
            readback: device.read_later(&tensors)?,
            terms: self.terms.iter().map(|(name, _)| *name).collect(),
            questions: answers.map(|answers| (answers.questions(), targets)),
            health,
            marks: [began, ended],
            host,
        })
    }
}

/// A measurement that is being read.
#[derive(Debug)]
pub struct Reading {
    readback: Readback,
    terms: Vec<&'static str>,
    questions: Option<(Questions, TargetValues)>,
    /// Widths of the representation and of the activations.
    health: Option<(usize, Option<usize>)>,
    marks: [Mark; 2],
    host: Duration,
}

impl Reading {
    /// Whether everything has arrived.
    pub fn is_ready(&self) -> Result<bool> {
        self.readback.is_ready()
    }

    /// The measurement; waits for it.
    pub fn finish(&self) -> Result<Measurement> {
        let scalar = |index: usize| -> Result<f64> {
            Ok(self.readback.floats(index)?.first().copied().map_or(f64::NAN, f64::from))
        };
        let mut terms = Vec::new();
        for (index, name) in self.terms.iter().enumerate() {
            terms.push((*name, scalar(1 + index)?));
        }
        let mut next = 1 + self.terms.len();
        let probes = match &self.questions {
            Some((questions, targets)) => {
                let first = next;
                next += questions.len();
                questions.tallies(targets, |index| self.readback.floats(first + index))?
            }
            None => Tallies::default(),
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
