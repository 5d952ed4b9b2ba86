//! A step that is done again and again on tensors that stay where they are: the first time it is issued, the second time
//! captured as a [`Graph`], later the graph is repeated. The kernels and their order are the same, and so are all bits;
//! only the host's work is less. Devices without graphs do the step every time.

use crate::error::Result;
use crate::graph::Graph;
use crate::parameters::ParameterStore;

/// One step; what it leaves is a `T`, whose tensors hold until the next work is issued.
#[derive(Debug)]
pub struct StepGraph<T>(State<T>);

#[derive(Debug)]
enum State<T> {
    /// It was never done.
    Unknown,
    /// It was done once, so nothing is chosen or compiled any more.
    Once,
    /// It is captured.
    Captured(Captured<T>),
    /// It cannot be captured; why not, where a device that has graphs refused it.
    Issued(Option<String>),
}

#[derive(Debug)]
struct Captured<T> {
    graph: Graph,
    left: T,
    /// The gradients it writes.
    written: Vec<bool>,
    /// How much it adds to each count.
    counted: Vec<u64>,
}

impl<T: Clone> StepGraph<T> {
    /// A step that was not done yet.
    pub fn new() -> Self {
        Self(State::Unknown)
    }

    /// Whether the step was done before: from then on its tensors have to stay where they are.
    pub fn is_known(&self) -> bool {
        !matches!(self.0, State::Unknown)
    }

    /// Why the step is issued every time although the device has graphs; said once.
    pub fn take_refusal(&mut self) -> Option<String> {
        match &mut self.0 {
            State::Issued(why) => why.take(),
            _ => None,
        }
    }

    /// Does the step with scratch memory ([`Device::scratch`](crate::Device::scratch)). From the second time on it must
    /// be the same `work` on the same tensors: gradients of `store`, or anything else that neither waits for the device
    /// nor copies from the host.
    pub fn run(
        &mut self,
        store: &mut ParameterStore,
        mut work: impl FnMut(&mut ParameterStore) -> Result<T>,
    ) -> Result<T> {
        let device = store.device().clone();
        match &self.0 {
            State::Unknown => {
                self.0 = if device.has_graphs() { State::Once } else { State::Issued(None) };
                device.scratch(|| work(store))
            }
            State::Issued(_) => device.scratch(|| work(store)),
            State::Captured(Captured { graph, left, written, counted }) => {
                graph.launch()?;
                store.set_written(written);
                let counts: Vec<u64> = store.counts().iter().zip(counted).map(|(a, b)| a + b).collect();
                store.set_counts(&counts);
                Ok(left.clone())
            }
            State::Once => {
                let (written, before) = (store.written().to_vec(), store.counts());
                let (left, graph) = match device.capture(|| work(store)) {
                    Ok(captured) => captured,
                    Err(error) => {
                        // A graph is never needed, only fast.
                        self.0 = State::Issued(Some(error.to_string()));
                        store.set_written(&written);
                        store.set_counts(&before);
                        return device.scratch(|| work(store));
                    }
                };
                graph.launch()?;
                let counted =
                    store.counts().iter().zip(&before).map(|(after, before)| after - before).collect();
                let written = store.written().to_vec();
                self.0 = State::Captured(Captured { graph, left: left.clone(), written, counted });
                Ok(left)
            }
        }
    }
}

impl<T: Clone> Default for StepGraph<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, StoreBuilder};

    #[test]
    fn without_graphs_the_step_is_done_every_time() {
        let mut store = StoreBuilder::new().build(&Device::cpu(), 0).unwrap();
        let (mut step, mut done) = (StepGraph::new(), 0);
        for wanted in 1..=4 {
            let mut work = |_: &mut ParameterStore| {
                done += 1;
                Ok(done)
            };
            assert_eq!(step.run(&mut store, &mut work).unwrap(), wanted);
        }
        let failing = step.run(&mut store, |_| Err(crate::Error::shape("step", "fails")));
        assert!(failing.is_err(), "an error of the step is the caller's");
    }
}
