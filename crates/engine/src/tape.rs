//! The tape: operations write down how to go back, [`Tape::backward`] plays that in reverse.
//!
//! A [`Var`] is a value on the way through a network: a tensor and, where a gradient is wanted, its place on the
//! tape. Memory follows ownership: an activation lives as long as a `Var` or a recorded operation holds it, and its
//! buffer goes back to the pool the moment backward has passed it.

mod backward;
mod gradient_sums;
mod var;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::collective::{Collective, SingleRank};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::operation::{One, Outputs};
use crate::parameters::{BufferId, BufferValue, ParameterId, ParameterStore};
use crate::shape::Shape;
use crate::tensor::{DType, Tensor};

use gradient_sums::GradientSums;

pub use backward::{Backward, Target};
pub use var::{GradientId, Var};

#[derive(Debug)]
enum Node {
    Parameter(ParameterId),
    Activation { shape: Shape, dtype: DType, gradient: Option<Tensor> },
}

type BackwardFn = Box<dyn FnOnce(&mut Backward<'_, '_>, Vec<Option<Tensor>>) -> Result<()>>;

struct Record {
    op: &'static str,
    outputs: Vec<usize>,
    /// Its parameters; none are listed where there is one rank.
    parameters: Vec<usize>,
    backward: BackwardFn,
}

/// Time spent in one kind of operation.
#[derive(Clone, Copy, Debug)]
pub struct ProfileEntry {
    /// The operation; backward passes are listed with `backward` set.
    pub op: &'static str,
    /// Whether this is the backward pass.
    pub backward: bool,
    /// Number of calls.
    pub calls: usize,
    /// Total time.
    pub time: Duration,
}

/// What batch norms do with their statistics around [`Tape::recompute`].
#[derive(Debug, Default)]
enum Statistics {
    /// Compute and forget them.
    #[default]
    Fresh,
    /// Compute them, update running statistics, and note them here.
    Noted(Vec<Tensor>),
    /// Use these, in order, and leave running statistics alone.
    Given(VecDeque<Tensor>),
}

/// Records operations on the parameters of one store. See the module's first lines.
pub struct Tape<'s> {
    store: &'s mut ParameterStore,
    collective: Arc<dyn Collective>,
    /// Where there are several ranks: how their gradients are added up.
    sums: Option<GradientSums>,
    /// Rows of the whole batch, where ranks share it.
    whole: Option<usize>,
    /// Whether all ranks compute the same now, from what was gathered.
    replicated: bool,
    training: bool,
    /// Off while the layers of [`Tape::recompute`] pass for the first time.
    recording: bool,
    statistics: Statistics,
    nodes: Vec<Node>,
    records: Vec<Record>,
    parameters: Vec<(ParameterId, usize)>,
    /// Forms of parameters that operations prepared for themselves; see [`Tape::prepared`].
    prepared: HashMap<(usize, &'static str), (Tensor, Tensor)>,
    profile: Option<Vec<ProfileEntry>>,
    mark: Instant,
}

impl<'s> Tape<'s> {
    /// A tape for a training step: batch norm uses and updates batch statistics, operations are recorded. Gradients
    /// already in the store are added to; see [`ParameterStore::clear_gradients`].
    pub fn training(store: &'s mut ParameterStore) -> Self {
        Self::new(store, true)
    }

    /// A tape for evaluation: batch norm uses running statistics, nothing is recorded.
    pub fn inference(store: &'s mut ParameterStore) -> Self {
        Self::new(store, false)
    }

    fn new(store: &'s mut ParameterStore, training: bool) -> Self {
        Self {
            store,
            collective: Arc::clone(alone()),
            sums: None,
            whole: None,
            replicated: false,
            training,
            recording: training,
            statistics: Statistics::default(),
            nodes: Vec::new(),
            records: Vec::new(),
            parameters: Vec::new(),
            prepared: HashMap::new(),
            profile: None,
            mark: Instant::now(),
        }
    }

    /// Lets batch statistics and gradients go over all ranks of `collective`, which share a batch of `whole` rows; as many
    /// each, where nothing is said. With several of them gradients must be cleared before, and there is one backward pass.
    pub fn with_collective(mut self, collective: &Arc<dyn Collective>, whole: Option<usize>) -> Self {
        if collective.is_shared() {
            self.collective = Arc::clone(collective);
            self.whole = whole;
            if self.training {
                let parameters = self.store.parameters().len();
                self.sums = Some(GradientSums::new(Arc::clone(collective), parameters));
            }
        }
        self
    }

    /// `work` on values that all ranks have gathered: each computes all of it, for the whole batch. Gradients of the
    /// parameters that it uses are whole on every rank, and are not added up.
    pub fn replicated<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.replicated, true);
        let done = work(self);
        self.replicated = before;
        done
    }

    /// Measures the time of every operation from now on.
    pub fn with_profile(mut self) -> Self {
        self.profile = Some(Vec::new());
        self.mark = Instant::now();
        self
    }

    /// The measured times, in order of first use.
    pub fn profile(&self) -> &[ProfileEntry] {
        self.profile.as_deref().unwrap_or_default()
    }

    /// Whether batch norm uses batch statistics and operations are recorded.
    pub(crate) fn is_training(&self) -> bool {
        self.training
    }

    /// The device of all values.
    pub fn device(&self) -> Device {
        self.store.device().clone()
    }

    /// The ranks that share the batch: this one alone where all of them compute the same.
    pub fn collective(&self) -> &Arc<dyn Collective> {
        if self.replicated { alone() } else { &self.collective }
    }

    /// How many rows all ranks have together of something of which this one has `own`.
    pub fn whole_rows(&self, own: usize) -> usize {
        let ranks = self.collective();
        match self.whole {
            Some(whole) if ranks.is_shared() => own * whole / ranks.share(whole).len().max(1),
            _ => own * ranks.ranks(),
        }
    }

    /// Rows of this rank, and of all ranks.
    pub(crate) fn rows_of_all(&self) -> (usize, usize) {
        match self.whole {
            Some(whole) if self.collective.is_shared() => (self.collective.share(whole).len(), whole),
            _ => (1, self.collective.ranks()),
        }
    }

    /// The store.
    pub fn store(&self) -> &ParameterStore {
        self.store
    }

    /// The parameter `id` as a value. Asking twice gives the same place on the tape.
    pub fn parameter(&mut self, id: ParameterId) -> Var {
        let value = self.store.value(id).clone();
        if !self.training {
            return Var::constant(value);
        }
        let node = match self.parameters.iter().find(|(known, _)| *known == id) {
            Some(&(_, node)) => node,
            None => {
                self.nodes.push(Node::Parameter(id));
                self.parameters.push((id, self.nodes.len() - 1));
                self.nodes.len() - 1
            }
        };
        Var { value, rounded: None, gradient: GradientId(Some(node)) }
    }

    /// A value whose gradient is kept until [`Tape::gradient`] asks for it: for tests and for looking into a network.
    pub fn watch(&mut self, value: Tensor) -> Var {
        let gradient = GradientId(self.training.then(|| self.push_activation(&value)));
        Var { value, rounded: None, gradient }
    }

    /// The gradient that [`Tape::backward`] left at a watched value.
    pub fn gradient(&self, var: &Var) -> Option<&Tensor> {
        match var.gradient.0.map(|node| &self.nodes[node]) {
            Some(Node::Activation { gradient, .. }) => gradient.as_ref(),
            _ => None,
        }
    }

    /// A float buffer of the store, for reading.
    pub fn buffer(&self, id: BufferId) -> Result<&Tensor> {
        self.store.buffer_tensor(id)
    }

    /// A float buffer of the store, for writing.
    pub fn buffer_mut(&mut self, id: BufferId) -> Result<&mut Tensor> {
        self.store.buffer_tensor_mut(id)
    }

    /// Adds one to a count of the store.
    pub(crate) fn increment(&mut self, id: BufferId) {
        if let BufferValue::Count(count) = self.store.buffer_mut(id) {
            *count += 1;
        }
    }

    /// `layers(x)`, of which only `x` and the batch statistics are kept: backward computes the rest again. Trades time
    /// for memory; the numbers are the same to the last bit.
    pub fn recompute(
        &mut self,
        x: &Var,
        layers: impl Fn(&mut Tape<'_>, &Var) -> Result<Var> + 'static,
    ) -> Result<Var> {
        if !self.recording {
            return layers(self, x);
        }
        if let Some(sums) = &mut self.sums {
            sums.defer();
        }
        self.recording = false;
        self.statistics = Statistics::Noted(Vec::new());
        let y = layers(self, &x.detach());
        self.recording = true;
        let noted = match std::mem::take(&mut self.statistics) {
            Statistics::Noted(noted) => noted,
            _ => Vec::new(),
        };
        let (x, Var { value, rounded, .. }) = (x.clone(), y?);
        let mut y = self.record("recompute", &[x.gradient], value, move |context, dy| {
            context.tape.statistics = Statistics::Given(noted.into());
            // What this records is played next.
            let y = layers(context.tape, &x);
            context.tape.statistics = Statistics::Fresh;
            context.add(y?.gradient, dy)
        });
        y.set_rounded(rounded);
        Ok(y)
    }

    /// The statistics that a batch norm must use instead of its own, where its layers are computed again.
    pub(crate) fn given_statistics(&mut self) -> Option<Tensor> {
        match &mut self.statistics {
            Statistics::Given(given) => given.pop_front(),
            _ => None,
        }
    }

    /// Notes the statistics of a batch norm, in case its layers are computed again.
    pub(crate) fn note_statistics(&mut self, statistics: &Tensor) {
        if let Statistics::Noted(noted) = &mut self.statistics {
            noted.push(statistics.clone());
        }
    }

    /// Another form of `source` (a weight, packed for a kernel), made by `prepare` the first time it is asked for and
    /// kept as long as the tape: both views and both passes of a step share it.
    pub fn prepared(
        &mut self,
        source: &Tensor,
        form: &'static str,
        prepare: impl FnOnce(&Device, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let key = (std::ptr::from_ref(source.storage()) as usize, form);
        if let Some((_, prepared)) = self.prepared.get(&key) {
            return Ok(prepared.clone());
        }
        let prepared = prepare(self.store.device(), source)?;
        self.prepared.insert(key, (source.clone(), prepared.clone()));
        Ok(prepared)
    }

    fn push_activation(&mut self, value: &Tensor) -> usize {
        self.nodes.push(Node::Activation {
            shape: value.shape(),
            dtype: value.dtype().of_gradient(),
            gradient: None,
        });
        self.nodes.len() - 1
    }

    /// Ends an operation with one output: `backward(context, dy)` will be called with the output's gradient, after
    /// every use of the output has contributed to it; not at all where the output does not matter to the loss.
    /// Where none of `inputs` wants a gradient nothing is recorded.
    pub(crate) fn record(
        &mut self,
        op: &'static str,
        inputs: &[GradientId],
        output: Tensor,
        backward: impl FnOnce(&mut Backward<'_, '_>, Tensor) -> Result<()> + 'static,
    ) -> Var {
        self.record_all::<One>(op, inputs, output, backward)
    }

    /// As [`Tape::record`], for any number of outputs.
    pub(crate) fn record_all<L: Outputs>(
        &mut self,
        op: &'static str,
        inputs: &[GradientId],
        outputs: L::Of<Tensor>,
        backward: impl FnOnce(&mut Backward<'_, '_>, L::Gradients) -> Result<()> + 'static,
    ) -> L::Of<Var> {
        self.clock(op, false);
        if !self.recording || !inputs.iter().any(|input| input.is_wanted()) {
            return L::map(outputs, Var::constant);
        }
        let parameters = self.note_uses(inputs);
        let mut nodes = Vec::new();
        let vars = L::map(outputs, |value| {
            let node = self.push_activation(&value);
            nodes.push(node);
            Var { value, rounded: None, gradient: GradientId(Some(node)) }
        });
        let backward: BackwardFn = Box::new(move |context, gradients| match L::gradients(gradients) {
            Some(gradients) => backward(context, gradients),
            None => Err(Error::shape(op, "wrong number of gradients")),
        });
        self.records.push(Record { op, outputs: nodes, parameters, backward });
        vars
    }

    /// Notes which parameters an operation uses; for nobody where there is one rank.
    fn note_uses(&mut self, inputs: &[GradientId]) -> Vec<usize> {
        let Some(sums) = &mut self.sums else { return Vec::new() };
        let mut parameters = Vec::new();
        for node in inputs.iter().filter_map(|input| input.0) {
            if let Node::Parameter(id) = self.nodes[node] {
                sums.used(id.index(), self.replicated);
                parameters.push(id.index());
            }
        }
        parameters
    }

    fn clock(&mut self, op: &'static str, backward: bool) {
        let Some(profile) = &mut self.profile else { return };
        let time = self.mark.elapsed();
        match profile.iter_mut().find(|entry| entry.op == op && entry.backward == backward) {
            Some(entry) => {
                entry.calls += 1;
                entry.time += time;
            }
            None => profile.push(ProfileEntry { op, backward, calls: 1, time }),
        }
        self.mark = Instant::now();
    }

    /// Plays the tape in reverse from `loss` (a single number): gradients of parameters are added into the store.
    pub fn backward(&mut self, loss: &Var) -> Result<()> {
        let device = self.device();
        if loss.value.len() != 1 {
            return Err(Error::shape(
                "backward",
                format!("the loss has shape {}, not one number", loss.shape()),
            ));
        }
        let seed = Tensor::one(&device, loss.shape())?;
        self.backward_from(loss, seed)
    }

    /// Plays the tape in reverse from `output`, whose gradient is `seed`.
    pub fn backward_from(&mut self, output: &Var, seed: Tensor) -> Result<()> {
        if seed.shape() != output.shape() {
            let detail =
                format!("gradient of shape {} for a value of shape {}", seed.shape(), output.shape());
            return Err(Error::shape("backward", detail));
        }
        self.mark = Instant::now();
        if let Some(sums) = &mut self.sums {
            sums.begin(self.store);
        }
        Backward { tape: self }.add(output.gradient, seed)?;
        while let Some(Record { op, outputs, parameters, backward }) = self.records.pop() {
            let gradients: Vec<_> = outputs.iter().map(|&node| self.take_activation_gradient(node)).collect();
            if gradients.iter().any(Option::is_some) {
                backward(&mut Backward { tape: self }, gradients)?;
                self.clock(op, true);
            }
            if let Some(sums) = &mut self.sums {
                sums.played(&parameters, self.store)?;
            }
        }
        self.sums.as_mut().map_or(Ok(()), |sums| sums.finish(self.store))
    }

    fn take_activation_gradient(&mut self, node: usize) -> Option<Tensor> {
        match &mut self.nodes[node] {
            Node::Activation { gradient, .. } => gradient.take(),
            Node::Parameter(_) => None,
        }
    }
}

/// The collective of a rank that is alone.
fn alone() -> &'static Arc<dyn Collective> {
    static ALONE: OnceLock<Arc<dyn Collective>> = OnceLock::new();
    ALONE.get_or_init(|| Arc::new(SingleRank))
}
