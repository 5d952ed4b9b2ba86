//! The training step: forward of both views, loss, online probes where there are any, backward, Adam. What trains, what
//! is measured and what is compared with the published code are this one.

use std::collections::HashMap;
use std::sync::Arc;

use engine::{
    AdamConfig, Collective, Device, MuonConfig, ParameterStore, Result, Shape, SingleRank, StepGraph, Tape,
    Tensor, Var, ops,
};

use crate::batch::PairBatch;
use crate::config::MethodConfig;
use crate::measurement::StepOutput;
use crate::method::PartName;
use crate::network::{Model, Network};
use crate::probes::{Answers, PROBES, Probes, ProbesConfig};

/// What a step may do besides the step itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepOptions {
    /// Online probes beside the method.
    pub probes: Option<ProbesConfig>,
    /// Issue a step once and repeat it as a whole, where the device can: the same bits, less work for the host.
    pub graphs: bool,
    /// Keep only the inputs of blocks and compute the rest again in backward: less memory, more time, the same bits.
    pub recompute: bool,
    /// Muon instead of Adam for the matrices and convolutions inside the backbone and the projectors.
    pub muon: Option<MuonConfig>,
}

/// A network and how it is trained.
#[derive(Debug)]
pub struct Step {
    network: Network,
    probes: Option<Probes>,
    ranks: Arc<dyn Collective>,
    /// By batch size; none where steps are issued one by one.
    graphs: Option<HashMap<(usize, Option<usize>), Captured>>,
}

/// A step that is repeated, and where it finds its batch.
#[derive(Debug, Default)]
struct Captured {
    graph: StepGraph<StepOutput>,
    inputs: Option<PairBatch>,
}

impl Step {
    /// A network with the published initialisation by `seed`.
    pub fn new(config: &MethodConfig, device: &Device, seed: u64, options: StepOptions) -> Result<Self> {
        let (mut network, probes) = Network::build_with(config, device, seed, |model, builder| {
            options.probes.map(|probes| probes.init(model, builder))
        })?;
        network.model.set_recompute(options.recompute);
        if let Some(muon) = options.muon {
            network.store.orthogonalise(muon, is_hidden_matrix);
            // Muon's learning rate is for its updates, which are so much smaller than Adam's. Probes of small numbers do not
            // survive Adam's at that rate.
            network.store.slow_down(muon.rate, |name| name.starts_with(PROBES));
        }
        let graphs = (options.graphs && device.has_graphs()).then(HashMap::new);
        Ok(Self { network, probes, ranks: Arc::new(SingleRank), graphs })
    }

    /// Shares every batch with others: a step is given this rank's rows, and does what one rank does with all of them.
    pub fn with_ranks(mut self, ranks: Arc<dyn Collective>) -> Self {
        self.ranks = ranks;
        self
    }

    /// Takes over what rank 0 has: weights, optimiser and running statistics. All ranks call it together.
    pub fn take_from_first(&mut self) -> Result<()> {
        if self.ranks.is_shared() {
            self.network.store.take_from_first(&*self.ranks)?;
        }
        Ok(())
    }

    /// Who shares the batch.
    pub fn ranks(&self) -> &Arc<dyn Collective> {
        &self.ranks
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network, to be changed.
    pub fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// A sentence where steps are issued kernel by kernel although they were to be repeated as graphs; said once for every
    /// batch size.
    pub fn take_remark(&mut self) -> Option<String> {
        let why = self
            .graphs
            .iter_mut()
            .flat_map(HashMap::values_mut)
            .find_map(|made| made.graph.take_refusal())?;
        Some(format!(
            "steps cannot be repeated as CUDA graphs here, so their kernels are issued one by one: slower where steps are \
             short, and otherwise the same ({why})"
        ))
    }

    /// One training step. Its output must be read, or its transfer started, before the next.
    pub fn step(&mut self, batch: &PairBatch, adam: &AdamConfig) -> Result<StepOutput> {
        let output = self.gradients(batch)?;
        self.network.store.update(adam)?;
        Ok(output)
    }

    /// All of a step but the update: leaves the gradients in the store.
    pub fn gradients(&mut self, batch: &PairBatch) -> Result<StepOutput> {
        let Self { network: Network { store, model }, probes, ranks, graphs } = self;
        let device = store.device().clone();
        let pass =
            |store: &mut ParameterStore, batch: &PairBatch| pass(store, model, probes.as_ref(), ranks, batch);
        let Some(graphs) = graphs else { return device.scratch(|| pass(store, batch)) };
        let Captured { graph, inputs } = graphs.entry((batch.len(), batch.whole)).or_default();
        if !graph.is_known() {
            return graph.run(store, |store| pass(store, batch));
        }
        let inputs = match inputs {
            Some(inputs) => {
                for (target, source) in inputs.tensors().zip(batch.tensors()) {
                    // SAFETY: nobody but the graph uses its inputs.
                    unsafe { device.refill(target, source)? };
                }
                inputs
            }
            None => inputs.insert(batch.copy(&device)?),
        };
        graph.run(store, |store| pass(store, inputs))
    }

    /// What the probes say of pairs that are not trained on, and the representations of both views; nothing changes. `None`
    /// where there are no probes.
    pub fn probe(&mut self, batch: &PairBatch) -> Result<Option<(Answers, [Tensor; 2])>> {
        let Self { network: Network { store, model }, probes: Some(probes), .. } = self else {
            return Ok(None);
        };
        let mut tape = Tape::inference(store);
        let [first, second] = &batch.views;
        let views = model.views(&mut tape, [first, second])?;
        let (_, answers) = probes.forward(&mut tape, &views, &batch.targets)?;
        Ok(Some((answers, views.map(|view| view.representation.value().clone()))))
    }
}

/// Whether a parameter is a matrix or a convolution between hidden layers, which Muon is for. What first sees pixels, the
/// many small matrices of routing and their biases, probes and all vectors are Adam's.
fn is_hidden_matrix(name: &str, shape: Shape) -> bool {
    let first = ["backbone.conv1.", "backbone.patch_embed."];
    (name.starts_with("backbone.") || name.starts_with("projector"))
        && !first.iter().any(|first| name.starts_with(first))
        && matches!(shape.dims(), [rows, _] | [rows, _, _, _] if *rows > 1)
}

/// Forward of both views, loss, probes and backward: leaves the gradients in the store, of all ranks.
fn pass(
    store: &mut ParameterStore,
    model: &Model,
    probes: Option<&Probes>,
    ranks: &Arc<dyn Collective>,
    batch: &PairBatch,
) -> Result<StepOutput> {
    store.clear_gradients();
    let mut tape = Tape::training(store).with_collective(ranks, batch.whole);
    let rows = tape.whole_rows(batch.len());
    let loss = model.loss(&mut tape, batch)?;
    let mut answers = None;
    let total = match probes {
        Some(probes) => {
            let (losses, said) = probes.forward(&mut tape, &loss.views, &batch.targets)?;
            answers = Some(said);
            let mut all: Vec<(&Var, f32)> = vec![(&loss.total, 1.0)];
            // Each is the mean over this rank's rows; gradients are added up over the ranks.
            let share = batch.len() as f32 / rows as f32;
            all.extend(losses.iter().map(|(loss, weight)| (loss, *weight * share)));
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
        ranks: Arc::clone(ranks),
        rows,
    })
}
