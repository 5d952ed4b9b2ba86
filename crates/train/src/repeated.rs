//! Steps that are issued once and then repeated as a whole: the second step of a batch size is captured, later ones are
//! its repetitions. The kernels and their order are the same, and so are all bits; only the host's work is less.

use std::collections::HashMap;

use engine::{Graph, ParameterStore};

use crate::error::Result;
use crate::inputs::Inputs;
use crate::network::{Core, Passed};

/// The captured steps of a learner, by batch size.
#[derive(Debug, Default)]
pub struct Repeated {
    known: HashMap<usize, Known>,
    is_off: bool,
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
    inputs: Inputs,
    /// Where it leaves what it shows.
    passed: Passed,
    /// The gradients it writes.
    written: Vec<bool>,
    /// How much it adds to each count.
    counted: Vec<u64>,
}

/// What to do about a step.
pub enum Way {
    /// Issue it.
    Issue,
    /// Issue it by [`Repeated::capture`].
    Capture,
    /// It has been issued; this is what it shows.
    Done(Box<Passed>),
}

impl Repeated {
    /// No steps yet; with `is_off` there never are any.
    pub fn new(is_off: bool) -> Self {
        Self { known: HashMap::new(), is_off }
    }

    /// Repeats the step for `inputs` of `pairs` pairs, if it is known.
    pub fn repeat(&mut self, store: &mut ParameterStore, inputs: &Inputs, pairs: usize) -> Result<Way> {
        if self.is_off {
            return Ok(Way::Issue);
        }
        match self.known.get(&pairs) {
            None => {
                self.known.insert(pairs, Known::Once);
                Ok(Way::Issue)
            }
            Some(Known::Once) => Ok(Way::Capture),
            Some(Known::Captured(captured)) => {
                let device = store.device().clone();
                for (target, source) in captured.inputs.tensors().into_iter().zip(inputs.tensors()) {
                    // SAFETY: nobody but the graph uses its inputs.
                    unsafe { device.refill(target, source)? };
                }
                captured.graph.launch()?;
                store.set_written(&captured.written);
                let counts: Vec<u64> = store
                    .counts()
                    .iter()
                    .zip(&captured.counted)
                    .map(|(count, added)| count + added)
                    .collect();
                store.set_counts(&counts);
                Ok(Way::Done(Box::new(captured.passed.clone())))
            }
        }
    }

    /// Captures the step for `inputs`, and does it once. Where that is not possible, steps are issued one by one from
    /// then on, and `None` says that this one still has to be.
    pub fn capture(&mut self, core: &mut Core, inputs: &Inputs, pairs: usize) -> Result<Option<Passed>> {
        let device = core.network.store.device().clone();
        let own = inputs.copy(&device)?;
        let before = core.network.store.counts();
        let captured = device.capture(|| core.gradients(&own));
        let (passed, graph) = match captured {
            Ok(captured) => captured,
            Err(_) => {
                // A graph is never needed, only fast.
                self.is_off = true;
                core.network.store.set_counts(&before);
                return Ok(None);
            }
        };
        graph.launch()?;
        let store = &core.network.store;
        let counted = store.counts().iter().zip(&before).map(|(after, before)| after - before).collect();
        let written = store.written().to_vec();
        let captured = Captured { graph, inputs: own, passed: passed.clone(), written, counted };
        self.known.insert(pairs, Known::Captured(Box::new(captured)));
        Ok(Some(passed))
    }
}
