//! Steps that are issued once and then repeated as a whole: the second step of a batch size is captured, later ones are
//! its repetitions. The kernels and their order are the same, and so are all bits; only the host's work is less.

use std::collections::HashMap;

use engine::{Graph, Result};

use crate::batch::PairBatch;
use crate::measurement::StepOutput;
use crate::step::Pass;

/// The captured steps of a network, by batch size.
#[derive(Debug)]
pub(crate) struct StepGraph {
    known: HashMap<usize, Known>,
    is_on: bool,
}

#[derive(Debug)]
enum Known {
    /// It was done once, so nothing is chosen or compiled any more.
    Once,
    /// It is captured.
    Captured(Box<Captured>),
}

#[derive(Debug)]
struct Captured {
    graph: Graph,
    /// Where the graph expects its inputs.
    inputs: PairBatch,
    /// Where it leaves what it shows.
    output: StepOutput,
    /// The gradients it writes.
    written: Vec<bool>,
    /// How much it adds to each count.
    counted: Vec<u64>,
}

impl StepGraph {
    /// No steps yet; without `is_on` there never are any.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { known: HashMap::new(), is_on }
    }

    /// Does the step for `batch` by a graph, where there is one or can be one; `None` says that it is still to be done.
    pub(crate) fn step(&mut self, pass: &mut Pass, batch: &PairBatch) -> Result<Option<StepOutput>> {
        if !self.is_on {
            return Ok(None);
        }
        match self.known.get(&batch.len()) {
            None => {
                self.known.insert(batch.len(), Known::Once);
                Ok(None)
            }
            Some(Known::Once) => self.capture(pass, batch),
            Some(Known::Captured(captured)) => captured.repeat(pass, batch).map(Some),
        }
    }

    /// Captures the step for `batch`, and does it once. Where that is not possible, steps are issued one by one from
    /// then on, and `None` says that this one still has to be.
    fn capture(&mut self, pass: &mut Pass, batch: &PairBatch) -> Result<Option<StepOutput>> {
        let device = pass.network.store.device().clone();
        let inputs = batch.copy(&device)?;
        let before = pass.network.store.counts();
        let captured = device.capture(|| pass.gradients(&inputs));
        let store = &mut pass.network.store;
        let Ok((output, graph)) = captured else {
            // A graph is never needed, only fast.
            self.is_on = false;
            store.set_counts(&before);
            return Ok(None);
        };
        graph.launch()?;
        let counted = store.counts().iter().zip(&before).map(|(after, before)| after - before).collect();
        let written = store.written().to_vec();
        let captured = Captured { graph, inputs, output: output.clone(), written, counted };
        self.known.insert(batch.len(), Known::Captured(Box::new(captured)));
        Ok(Some(output))
    }
}

impl Captured {
    fn repeat(&self, pass: &mut Pass, batch: &PairBatch) -> Result<StepOutput> {
        let store = &mut pass.network.store;
        let device = store.device().clone();
        for (target, source) in self.inputs.tensors().zip(batch.tensors()) {
            // SAFETY: nobody but the graph uses its inputs.
            unsafe { device.refill(target, source)? };
        }
        self.graph.launch()?;
        store.set_written(&self.written);
        let counts: Vec<u64> =
            store.counts().iter().zip(&self.counted).map(|(count, added)| count + added).collect();
        store.set_counts(&counts);
        Ok(self.output.clone())
    }
}
