//! A network in training: a method of the `methods` crate with its online probes, one optimiser over both, as a
//! [`Learner`]. Names no device.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dataset::cuda::RenderPool;
use dataset::{Allocate, Split, Views};
use engine::ops;
use engine::{AdamConfig, Device, Feed, Tape, Tensor, Var};
use methods::{MethodName, Network, Outputs};

use crate::batches::{Item, PairBatch};
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::error::Result;
use crate::inputs::{self, Inputs};
use crate::learner::{Ask, Learner, Measurement, Taken};
use crate::network_config::{adam_config, places};
use crate::network_state;
use crate::probes::{Answers, Probes, ProbesConfig, Targets};
use crate::readout::{Pending, Shown};
use crate::repeated::{Repeated, Way};
use crate::schedule::Schedule;
use crate::tally::Tallies;

pub use crate::network_config::method_config;

/// Normalisation of pixels, scaled to 0..1 before: the published mean and standard deviation of each channel.
pub const MEAN: [f32; 3] = [0.5016, 0.5037, 0.5060];
/// See [`MEAN`].
pub const STD: [f32; 3] = [0.1030, 0.0999, 0.0969];

/// The network of `config` for `views`, initialised by the run's seed.
pub fn build(config: &Config, views: &dyn Views, device: &Device) -> Result<NetworkLearner> {
    let method = method_config(config, views.classes().len())?;
    let probes = config.probes.enabled.then(|| ProbesConfig {
        classes: views.classes().len(),
        translation: views.has_translation().then(|| method.transform.frame()),
        places: places(&method),
        capsules: matches!(method.method, MethodName::EquiCaps)
            .then(|| (method.capsules, method.pose_matrix_side().pow(2))),
    });
    let (mut network, probes) = Network::build_with(&method, device, config.seed, |builder| {
        Ok(probes.map(|probes| probes.init(builder)))
    })?;
    network.model.set_recompute(config.recompute);
    let adam = adam_config(config);
    let schedule = Schedule::of(config, views.split(Split::Train).len());
    Ok(NetworkLearner {
        schedule,
        core: Core { network, probes },
        repeated: Repeated::new(!config.graphs || !device.has_graphs()),
        adam,
        feed: Feed::new(device)?,
        views: None,
        pending: VecDeque::new(),
        replaced: 0,
    })
}

/// A network and its probes.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) network: Network,
    probes: Option<Probes>,
}

/// A network, its probes and its optimiser.
#[derive(Debug)]
pub struct NetworkLearner {
    core: Core,
    repeated: Repeated,
    adam: AdamConfig,
    schedule: Schedule,
    feed: Feed,
    views: Option<RenderPool>,
    pending: VecDeque<Pending>,
    /// Stored choices of convolutions that could not be used, as far as this was said.
    replaced: usize,
}

impl NetworkLearner {
    /// The network.
    pub fn network(&self) -> &Network {
        &self.core.network
    }

    /// Lets pictures be rendered where they are needed, instead of being brought there.
    pub fn render_by(&mut self, views: RenderPool) {
        self.views = Some(views);
    }

    /// Issues forward, loss and backward, or repeats them.
    fn pass(&mut self, inputs: &Inputs, pairs: usize) -> Result<Passed> {
        match self.repeated.repeat(&mut self.core.network.store, inputs, pairs)? {
            Way::Done(passed) => return Ok(*passed),
            Way::Capture => {
                if let Some(passed) = self.repeated.capture(&mut self.core, inputs, pairs)? {
                    return Ok(passed);
                }
            }
            Way::Issue => {}
        }
        let device = self.core.network.store.device().clone();
        Ok(device.scratch(|| self.core.gradients(inputs))?)
    }

    /// What the probes are to find in a batch, where there are any.
    pub(crate) fn probe_targets(&self, batch: &PairBatch<'_>) -> Option<Targets> {
        self.core.probes.as_ref().map(|probes| Targets::new(batch, probes.frame()))
    }
}

impl Core {
    /// Forward, loss and backward: leaves the gradients in the store.
    pub(crate) fn gradients(&mut self, inputs: &Inputs) -> engine::Result<Passed> {
        let model = &self.network.model;
        let method = model.config().method;
        self.network.store.clear_gradients();
        let mut tape = Tape::training(&mut self.network.store);
        let loss = model.loss(&mut tape, &inputs.pairs)?;
        let mut answers = None;
        let total = match (&self.probes, &inputs.probes) {
            (Some(probes), Some(targets)) => {
                let features = features(&mut tape, &loss.outputs, method)?;
                let (losses, said) = probes.forward(&mut tape, &features, targets)?;
                answers = Some(said);
                let mut all: Vec<(&Var, f32)> = vec![(&loss.total, 1.0)];
                all.extend(losses.iter().map(|(loss, weight)| (loss, *weight)));
                ops::weighted_sum(&mut tape, &all)?
            }
            _ => loss.total.clone(),
        };
        tape.backward(&total)?;
        let activations = loss.outputs.embeddings.iter().find(|part| part.name == "activations");
        Ok(Passed {
            representation: loss.outputs.representations[0].value().clone(),
            activations: activations.map(|part| part.views[0].value().clone()),
            terms: loss.terms.iter().map(|term| (term.name, term.value.value().clone())).collect(),
            loss: loss.total.value().clone(),
            answers,
        })
    }
}

/// What a pass leaves to look at.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    loss: Tensor,
    terms: Vec<(&'static str, Tensor)>,
    answers: Option<Answers>,
    representation: Tensor,
    activations: Option<Tensor>,
}

impl Passed {
    /// Of it, what was asked for.
    fn show(self, ask: Ask, targets: Option<Targets>) -> Shown {
        Shown {
            loss: self.loss,
            terms: self.terms,
            answers: if ask.probes { self.answers.zip(targets) } else { None },
            health: ask.health.then_some((self.representation, self.activations)),
        }
    }
}

/// What the probes look at, cut off from the tape: the representation, its halves, the parts of the embedding, and
/// all parts together.
fn features(
    tape: &mut Tape<'_>,
    outputs: &Outputs,
    method: MethodName,
) -> engine::Result<Vec<(&'static str, [Var; 2])>> {
    let representations = outputs.representations.each_ref().map(Var::detach);
    let mut features = Vec::new();
    if method == MethodName::Sie {
        let width = representations[0].shape().last().copied().unwrap_or(0);
        let mut half = |start: usize, count: usize| -> engine::Result<[Var; 2]> {
            let [first, second] = &representations;
            Ok([ops::columns(tape, first, start, count)?, ops::columns(tape, second, start, count)?])
        };
        features.push(("invariant_half", half(0, width / 2)?));
        features.push(("equivariant_half", half(width / 2, width - width / 2)?));
    }
    features.push(("representation", representations));
    for part in &outputs.embeddings {
        // A single part is the whole embedding, whatever the method calls it.
        let name = if outputs.embeddings.len() == 1 { "embedding" } else { part.name };
        features.push((name, part.views.each_ref().map(Var::detach)));
    }
    if outputs.embeddings.len() > 1 {
        let mut whole = |view: usize| {
            let parts: Vec<Var> = outputs.embeddings.iter().map(|part| part.views[view].detach()).collect();
            ops::concat(tape, &parts.iter().collect::<Vec<_>>())
        };
        features.push(("embedding", [whole(0)?, whole(1)?]));
    }
    Ok(features)
}

impl Learner for NetworkLearner {
    fn step(&mut self, batch: &PairBatch<'_>, ask: Ask) -> Result<()> {
        let start = Instant::now();
        let device = self.core.network.store.device().clone();
        let targets = self.probe_targets(batch);
        let transform = self.core.network.model.config().transform;
        let images = self.views.as_mut().map(|views| views.announced_images(&batch.items)).transpose()?;
        let inputs = inputs::upload(&mut self.feed, batch, images, transform, targets.as_ref())?;
        let began = device.mark()?;
        let passed = self.pass(&inputs, batch.len())?;
        drop(inputs);
        let factor = self.schedule.factor(self.core.network.store.steps());
        let adam = AdamConfig { learning_rate: self.adam.learning_rate * factor, ..self.adam };
        self.core.network.store.adam_step(&adam)?;
        let shown = passed.show(ask, targets);
        self.pending.push_back(Pending::begin(&device, shown, began, start.elapsed())?);
        Ok(self.feed.finish()?)
    }

    fn collect(&mut self, wait: bool) -> Result<Vec<Measurement>> {
        let mut measurements = Vec::new();
        while let Some(pending) = self.pending.front() {
            if !wait && !pending.is_ready()? {
                break;
            }
            measurements.push(pending.read()?);
            self.pending.pop_front();
        }
        Ok(measurements)
    }

    fn probe(&mut self, batch: &PairBatch<'_>) -> Result<Tallies> {
        let Some(targets) = self.probe_targets(batch) else { return Ok(Tallies::default()) };
        let transform = self.core.network.model.config().transform;
        let images = self.views.as_mut().map(|views| views.images(&batch.items)).transpose()?;
        let inputs = inputs::upload(&mut self.feed, batch, images, transform, Some(&targets))?;
        let model = &self.core.network.model;
        let mut tape = Tape::inference(&mut self.core.network.store);
        let [first, second] = &inputs.pairs.views;
        let outputs = model.outputs(&mut tape, [first, second])?;
        let features = features(&mut tape, &outputs, model.config().method)?;
        let (Some(probes), Some(tensors)) = (&self.core.probes, &inputs.probes) else {
            return Ok(Tallies::default());
        };
        let (_, answers) = probes.forward(&mut tape, &features, tensors)?;
        let tensors = answers.tensors();
        let tallies = answers.questions().tallies(&targets, |index| tensors[index].to_f32())?;
        self.feed.finish()?;
        Ok(tallies)
    }

    fn memory(&self) -> Option<Arc<Allocate>> {
        let device = self.core.network.store.device().clone();
        Some(Arc::new(move |bytes| match device.host_memory(bytes) {
            Ok(memory) => Ok(Box::new(memory)),
            Err(error) => Err(dataset::Error::Request(format!("no memory for a batch: {error}"))),
        }))
    }

    fn makes_pictures(&self) -> bool {
        self.views.is_some()
    }

    fn announce(&mut self, items: &[Item]) -> Result<()> {
        Ok(self.views.as_mut().map_or(Ok(()), |views| views.announce(items))?)
    }

    fn waited(&self) -> Duration {
        self.views.as_ref().map_or(Duration::ZERO, RenderPool::waited)
    }

    fn remark(&mut self) -> Option<String> {
        let (_, replaced) = self.core.network.store.device().choice_counts();
        let new = replaced - std::mem::replace(&mut self.replaced, replaced);
        (new > 0).then(|| {
            format!(
                "{new} convolutions cannot be computed here as they were before (by another cuDNN or GPU); \
                 another way was chosen, and the run goes on, but not bit for bit"
            )
        })
    }

    fn choice_count(&self) -> usize {
        let (made, replaced) = self.core.network.store.device().choice_counts();
        made + replaced
    }

    fn choices(&self) -> Option<String> {
        self.core.network.store.device().choices()
    }

    fn set_choices(&mut self, choices: &str) -> Result<()> {
        Ok(self.core.network.store.device().set_choices(choices)?)
    }

    fn save(&self, checkpoint: &mut Checkpoint) -> Result<()> {
        network_state::save(&self.core.network.store, checkpoint)
    }

    fn load(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        network_state::load(&mut self.core.network.store, checkpoint)
    }

    fn load_weights(&mut self, checkpoint: &Checkpoint) -> Result<Taken> {
        network_state::load_weights(&mut self.core.network.store, checkpoint)
    }
}
