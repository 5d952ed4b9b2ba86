//! The end of an epoch: an evaluation on held-out objects, or on held-out views of the objects; a checkpoint.

use std::sync::Arc;

use dataset::{Split, Views};
use methods::Tallies;

use super::{Trainer, on_device};
use crate::batches::{PairBatch, pair_items};
use crate::error::{Error, Result};
use crate::metrics::Kind;

impl Trainer<'_> {
    /// Does what is due behind the last step of an epoch, and completes it. Says whether it is complete: `stop` may
    /// have ended the evaluation, which is then repeated when the run is resumed.
    pub(super) fn end_epoch(&mut self, stop: &dyn Fn() -> bool) -> Result<bool> {
        let epoch = self.position.epoch + 1;
        let is_last = epoch == self.config.epochs;
        let every = self.config.probes.held_out_every;
        let looks = self.config.probes.enabled && every > 0 && (epoch.is_multiple_of(every) || is_last);
        let checkpoints = &self.config.checkpoints;
        let by_epochs = checkpoints.every_epochs > 0 && epoch.is_multiple_of(checkpoints.every_epochs);
        let saves = by_epochs || self.saver.is_milestone(epoch) || self.is_time_to_save();
        if looks || saves {
            self.collect(true)?;
        }
        if looks {
            let looked = self.look_at_held_out(epoch, stop);
            self.keep_choices()?;
            match looked {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(Error::Dataset(error)) => return Err(self.saved_before(&error)),
                Err(error) => return Err(error),
            }
        }
        self.position.epoch = epoch;
        self.position.step_in_epoch = 0;
        if saves {
            self.save()?;
        }
        if looks || saves {
            self.clock.restart();
        }
        Ok(true)
    }

    /// Scores the probes on held-out pairs: always the same objects and pairs, so that results compare. Says
    /// whether it came to its end before `stop`.
    fn look_at_held_out(&mut self, epoch: u64, stop: &dyn Fn() -> bool) -> Result<bool> {
        let side = self.views.split(Split::Val);
        if side.is_empty() {
            return Ok(true);
        }
        let wanted = self.config.probes.held_out_objects.min(side.len());
        let objects: Vec<usize> = (0..wanted).map(|k| side.start + k * side.len() / wanted).collect();
        let (seed, views) = (self.config.seed, Arc::clone(&self.views));
        // The published batch is of objects; the last one may be small, as nothing is normalised over it.
        let chunks: Vec<Vec<usize>> =
            objects.chunks(self.config.method.batch).map(<[usize]>::to_vec).collect();
        let plan = (0..self.config.probes.held_out_passes).flat_map(move |pass| {
            chunks
                .iter()
                .map(|objects| {
                    let views = |object| views.views_of(Split::Val, object);
                    pair_items(objects.iter().copied(), seed, u64::MAX - pass, views)
                })
                .collect::<Vec<_>>()
        });
        let mut loader = self.start_loader(plan)?;
        let mut tallies = Tallies::default();
        loop {
            if !loader.wait(stop) {
                return Ok(false);
            }
            let Some(batch) = loader.next() else { break };
            if stop() {
                return Ok(false);
            }
            let batch = batch?;
            let mut pairs = PairBatch::new(
                &*self.views,
                |item| self.views.resolve(item),
                &batch,
                self.config.method.transform,
            );
            if let Some(rendered) = &mut self.rendered {
                pairs.images = on_device(rendered.images(&pairs.items)?)?;
            }
            tallies.merge(&self.learner.probe(pairs)?);
            loader.recycle(batch);
        }
        let values = tallies.values().collect();
        self.write_record((Kind::HeldOut, epoch, self.position.step), values, &[])?;
        Ok(true)
    }
}
