//! A network in training as a [`Learner`]: the step of the `methods` crate, its optimiser and schedule, batches on
//! their way to the device and measurements on their way back. Names no device.

use std::collections::VecDeque;
use std::time::Instant;

use std::sync::Arc;

use dataset::Views;
use engine::{AdamConfig, Collective, Device, Feed};
use methods::{
    Ask, Measurement, MethodConfig, Network, PairBatch, ProbesConfig, Reading, Representations, Step,
    StepOptions,
};
use pose::PerPart;

use crate::batches::{self, check_ranks, training_plan};
use crate::checkpoint::Checkpoint;
use crate::config::{Config, OptimiserName};
use crate::error::{Error, Result};
use crate::learner::{Learner, Look};
use crate::schedule::Schedule;
use crate::weights::{self, Taken};

/// A network, its probes and its optimiser.
#[derive(Debug)]
pub struct NetworkLearner {
    step: Step,
    adam: AdamConfig,
    schedule: Schedule,
    feed: Feed,
    readings: VecDeque<Reading>,
}

impl NetworkLearner {
    /// The network of a rank that is alone.
    #[cfg(test)]
    pub fn new(config: &Config, views: &dyn Views, device: &Device) -> Result<Self> {
        Self::with_ranks(config, views, device, Arc::new(engine::SingleRank))
    }

    /// The network of `config` for `views`, initialised by the run's seed, on one of `ranks`; all weights are those of rank 0 after [`Learner::take_from_first`].
    pub fn with_ranks(
        config: &Config,
        views: &dyn Views,
        device: &Device,
        ranks: Arc<dyn Collective>,
    ) -> Result<Self> {
        let plan = training_plan(config, views)?;
        check_ranks(&plan, ranks.ranks())?;
        let largest = plan.batch_sizes().into_iter().max().unwrap_or(0);
        check_memory(config, largest.div_ceil(ranks.ranks()), device)?;
        Ok(Self {
            step: new_step(config, views, views.classes().len(), device)?.with_ranks(ranks),
            adam: config.adam(),
            schedule: Schedule::of(config, plan.steps_per_epoch()),
            feed: Feed::new(device)?,
            readings: VecDeque::new(),
        })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        self.step.network()
    }

    /// Takes the weights that a checkpoint has, by name and shape, and leaves the rest. A backbone that does not fit is
    /// an error.
    pub fn load_weights(&mut self, checkpoint: &Checkpoint) -> Result<Taken> {
        weights::load_fitting(&mut self.step.network_mut().store, checkpoint)
    }
}

/// The step of a run of `config` on `views`, with so many classes for its probes.
pub(crate) fn new_step(config: &Config, views: &dyn Views, classes: usize, device: &Device) -> Result<Step> {
    // Poses that some views lack are asked of none.
    let group = config.method.transform.group();
    let mut probes = ProbesConfig { classes, space: views.space(), parts: PerPart::default() };
    for part in group.asked().into_iter().filter(|_| group.space == views.space()) {
        probes.parts[part] = views.has(part);
    }
    let options = StepOptions {
        probes: config.probes.enabled.then_some(probes),
        graphs: config.graphs,
        recompute: config.recompute,
        muon: (config.optimiser == OptimiserName::Muon).then_some(config.muon),
    };
    let method = MethodConfig { classes, ..config.method.clone() };
    Ok(Step::new(&method, device, config.seed, options)?)
}

/// Refuses a step that the machine cannot hold, before anything is loaded or computed.
fn check_memory(config: &Config, batch: usize, device: &Device) -> Result<()> {
    let (Device::Cpu(_), Some(free), false) = (device, engine::host_memory::available(), config.recompute)
    else {
        return Ok(());
    };
    let needed = MethodConfig { batch, ..config.method.clone() }.least_step_bytes();
    if needed <= free {
        return Ok(());
    }
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    Err(Error::Setting(format!(
        "a step of batch = {} at image_size = {} needs more than {:.1} GB of memory, and {:.1} GB are free; a smaller \
         batch or image_size, or recompute = true, needs less",
        batch,
        config.method.image_size,
        gigabytes(needed),
        gigabytes(free)
    )))
}

impl Learner for NetworkLearner {
    fn step(&mut self, batch: batches::PairBatch<'_>, ask: Ask) -> Result<()> {
        let start = Instant::now();
        let Network { store, model } = self.step.network();
        let (device, transform) = (store.device().clone(), model.config().transform);
        let factor = self.schedule.factor(store.steps());
        let adam = AdamConfig { learning_rate: self.adam.learning_rate * factor, ..self.adam };
        let mut inputs = PairBatch::upload(&mut self.feed, transform, &batch.targets, batch.images)?;
        inputs.whole = batch.whole;
        let began = device.mark()?;
        let output = self.step.step(&inputs, &adam)?;
        self.readings.push_back(output.read_later(&device, ask, batch.targets, began, start.elapsed())?);
        drop(inputs);
        Ok(self.feed.finish()?)
    }

    fn collect(&mut self, wait: bool) -> Result<Vec<Measurement>> {
        let mut measurements = Vec::new();
        while let Some(reading) = self.readings.front() {
            if !wait && !reading.is_ready()? {
                break;
            }
            measurements.push(reading.finish()?);
            self.readings.pop_front();
        }
        Ok(measurements)
    }

    fn take_remark(&mut self) -> Option<String> {
        self.step.take_remark()
    }

    fn look(&mut self, batch: batches::PairBatch<'_>, representations: bool) -> Result<Look> {
        let transform = self.network().model.config().transform;
        let inputs = PairBatch::upload(&mut self.feed, transform, &batch.targets, batch.images)?;
        let Some((answers, seen)) = self.step.probe(&inputs)? else { return Ok(Look::default()) };
        let tensors = answers.tensors();
        let tallies = answers.questions().tallies(&batch.targets, |index| tensors[index].to_f32())?;
        let mut rows = Representations::default();
        if representations {
            let width = seen[0].dims().last().copied().unwrap_or(0);
            for view in &seen {
                let labels = batch.targets.labels.clone();
                rows.merge(Representations { width, values: view.to_f32()?, labels });
            }
        }
        self.feed.finish()?;
        Ok(Look { tallies, representations: rows })
    }

    fn take_from_first(&mut self) -> Result<()> {
        Ok(self.step.take_from_first()?)
    }

    fn save(&self, checkpoint: &mut Checkpoint) -> Result<()> {
        weights::save(&self.network().store, checkpoint)
    }

    fn load(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        weights::load(&mut self.step.network_mut().store, checkpoint)
    }
}
