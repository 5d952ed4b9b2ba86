//! The training step: forward of both views, loss, online probes where there are any, backward, Adam. What trains, what
//! is measured and what is compared with the published code are this one.

use engine::{AdamConfig, Device, Result, Tape, Var, ops};

use crate::batch::PairBatch;
use crate::config::MethodConfig;
use crate::measurement::StepOutput;
use crate::method::PartName;
use crate::network::Network;
use crate::probes::{Answers, Probes, ProbesConfig};
use crate::step_graph::StepGraph;

/// What a step may do besides the step itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepOptions {
    /// Online probes beside the method.
    pub probes: Option<ProbesConfig>,
    /// Issue a step once and repeat it as a whole, where the device can: the same bits, less work for the host.
    pub graphs: bool,
    /// Keep only the inputs of blocks and compute the rest again in backward: less memory, more time, the same bits.
    pub recompute: bool,
}

/// A network and how it is trained.
#[derive(Debug)]
pub struct Step {
    pass: Pass,
    graph: StepGraph,
}

/// Forward, loss, probes and backward of a network.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) network: Network,
    probes: Option<Probes>,
}

impl Step {
    /// A network with the published initialisation by `seed`.
    pub fn new(config: &MethodConfig, device: &Device, seed: u64, options: StepOptions) -> Result<Self> {
        let (mut network, probes) = Network::build_with(config, device, seed, |model, builder| {
            options.probes.map(|probes| probes.init(model, builder))
        })?;
        network.model.set_recompute(options.recompute);
        let graph = StepGraph::new(options.graphs && device.has_graphs());
        Ok(Self { pass: Pass { network, probes }, graph })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.pass.network
    }

    /// The network, to be changed.
    pub fn network_mut(&mut self) -> &mut Network {
        &mut self.pass.network
    }

    /// The online probes, where there are any.
    pub fn probes(&self) -> Option<&Probes> {
        self.pass.probes.as_ref()
    }

    /// One training step. What it shows must be read, or begun to be read, before the next.
    pub fn step(&mut self, batch: &PairBatch, adam: &AdamConfig) -> Result<StepOutput> {
        let output = self.gradients(batch)?;
        self.pass.network.store.adam_step(adam)?;
        Ok(output)
    }

    /// All of a step but the update: leaves the gradients in the store.
    pub fn gradients(&mut self, batch: &PairBatch) -> Result<StepOutput> {
        if let Some(output) = self.graph.step(&mut self.pass, batch)? {
            return Ok(output);
        }
        let device = self.pass.network.store.device().clone();
        device.scratch(|| self.pass.gradients(batch))
    }

    /// What the probes say of pairs that are not trained on; nothing changes. `None` where there are no probes.
    pub fn probe(&mut self, batch: &PairBatch) -> Result<Option<Answers>> {
        let Pass { network: Network { store, model }, probes: Some(probes) } = &mut self.pass else {
            return Ok(None);
        };
        let mut tape = Tape::inference(store);
        let [first, second] = &batch.views;
        let views = model.views(&mut tape, [first, second])?;
        let (_, answers) = probes.forward(&mut tape, &views, &batch.targets)?;
        Ok(Some(answers))
    }
}

impl Pass {
    /// Forward, loss and backward: leaves the gradients in the store.
    pub(crate) fn gradients(&mut self, batch: &PairBatch) -> Result<StepOutput> {
        self.network.store.clear_gradients();
        let mut tape = Tape::training(&mut self.network.store);
        let loss = self.network.model.loss(&mut tape, batch)?;
        let mut answers = None;
        let total = match &self.probes {
            Some(probes) => {
                let (losses, said) = probes.forward(&mut tape, &loss.views, &batch.targets)?;
                answers = Some(said);
                let mut all: Vec<(&Var, f32)> = vec![(&loss.total, 1.0)];
                all.extend(losses.iter().map(|(loss, weight)| (loss, *weight)));
                ops::weighted_sum(&mut tape, &all)?
            }
            None => loss.total.clone(),
        };
        tape.backward(&total)?;
        let [first, _] = &loss.views;
        Ok(StepOutput {
            representation: first.representation.value().clone(),
            activations: first.part(PartName::Activations).ok().map(|part| part.value().clone()),
            terms: loss.terms.iter().map(|term| (term.name, term.value.value().clone())).collect(),
            loss: loss.total.value().clone(),
            answers,
        })
    }
}
