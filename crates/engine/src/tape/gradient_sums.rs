//! Gradients over all ranks: those of a few million parameters at a time, as soon as no recorded operation will add to
//! them any more, so that they travel while the rest of the backward pass is computed.

use std::ops::Range;
use std::sync::Arc;

use crate::collective::Collective;
use crate::error::Result;
use crate::parameters::ParameterStore;

/// Parameters are summed together until there are so many numbers.
const BUCKET: usize = 2 << 20;

/// What is known of every parameter while a step is recorded. Only where there are several ranks.
#[derive(Debug)]
pub(super) struct GradientSums {
    collective: Arc<dyn Collective>,
    /// Recorded operations that have yet to add to its gradient.
    uses: Vec<usize>,
    /// Whether all ranks compute its whole gradient, each for itself.
    replicated: Vec<bool>,
    /// Whether operations are recorded during backward, so that nothing is final before its end.
    deferred: bool,
    /// Neighbours in the flat buffer, the last ones first, with the parameters of each that are not final.
    buckets: Vec<(Range<usize>, usize)>,
    bucket_of: Vec<usize>,
}

impl GradientSums {
    pub(super) fn new(collective: Arc<dyn Collective>, parameters: usize) -> Self {
        Self {
            collective,
            uses: vec![0; parameters],
            replicated: vec![false; parameters],
            deferred: false,
            buckets: Vec::new(),
            bucket_of: Vec::new(),
        }
    }

    /// An operation that uses a parameter was recorded.
    pub(super) fn used(&mut self, parameter: usize, replicated: bool) {
        self.uses[parameter] += 1;
        self.replicated[parameter] |= replicated;
    }

    /// Gradients are not final before the end of backward.
    pub(super) fn defer(&mut self) {
        self.deferred = true;
    }

    /// Backward begins.
    pub(super) fn begin(&mut self, store: &ParameterStore) {
        let sizes: Vec<usize> = store.parameters().map(|id| store.shape(id).len()).collect();
        self.bucket_of = vec![0; sizes.len()];
        self.buckets.clear();
        let (mut end, mut numbers, mut open) = (sizes.len(), 0, 0);
        for index in (0..sizes.len()).rev() {
            numbers += sizes[index];
            open += usize::from(self.uses[index] > 0);
            self.bucket_of[index] = self.buckets.len();
            if numbers >= BUCKET || index == 0 {
                self.buckets.push((index..end, open));
                (end, numbers, open) = (index, 0, 0);
            }
        }
    }

    /// A recorded operation that uses these parameters was played.
    pub(super) fn played(&mut self, parameters: &[usize], store: &mut ParameterStore) -> Result<()> {
        if self.deferred {
            return Ok(());
        }
        for &parameter in parameters {
            self.uses[parameter] -= 1;
            if self.uses[parameter] == 0 {
                let bucket = self.bucket_of[parameter];
                self.buckets[bucket].1 -= 1;
                if self.buckets[bucket].1 == 0 {
                    self.sum(self.buckets[bucket].0.clone(), store)?;
                }
            }
        }
        Ok(())
    }

    /// Backward has come to its end: gradients are those of all ranks for whatever is issued next.
    pub(super) fn finish(&mut self, store: &mut ParameterStore) -> Result<()> {
        if self.deferred {
            for (range, _) in self.buckets.clone() {
                if store.written()[range.clone()].iter().any(|&written| written) {
                    self.sum(range, store)?;
                }
            }
        }
        self.collective.join()
    }

    fn sum(&self, range: Range<usize>, store: &mut ParameterStore) -> Result<()> {
        // What every rank has whole counts once.
        let silent = |index: usize| self.replicated[index] && self.collective.rank() > 0;
        self.collective.sum_beside(store.gradients_to_sum(range, silent)?)
    }
}
