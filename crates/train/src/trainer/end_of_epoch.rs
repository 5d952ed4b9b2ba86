//! The end of an epoch: an evaluation on held-out objects, or on held-out views of the objects; a checkpoint.

use std::sync::Arc;

use dataset::{Loader, Split, Views};

use super::{Trainer, on_device};
use crate::batches::{PairBatch, pair_items};
use crate::error::{Error, Result};
use crate::learner::Look;
use crate::metrics::Kind;

/// Training objects whose views are the bank of nearest neighbours, at most.
const BANK_OBJECTS: usize = 1024;
/// Pairs that the bank should have, where there are fewer objects and every look has several passes.
const BANK_PAIRS: usize = 256;

/// What a rank says of its looks: that they follow, that it was asked to stop, or why it failed.
const LOOKED: u8 = 0;
const STOPPED: u8 = 1;
const FAILED: u8 = 2;

/// Looks that another rank wrote.
fn read(mut bytes: &[u8]) -> Vec<Look> {
    let mut all = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let (look, rest) = rest.split_at((u64::from_le_bytes(*length) as usize).min(rest.len()));
        all.push(Look::from_bytes(look).unwrap_or_default());
        bytes = rest;
    }
    all
}

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
        let saves = by_epochs || self.is_milestone(epoch) || self.is_time_to_save();
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
        self.tell_noticed();
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

    /// Scores the probes on held-out pairs, and the classes of their nearest neighbours among training views. Says whether it
    /// came to its end before `stop`.
    fn look_at_held_out(&mut self, epoch: u64, stop: &dyn Fn() -> bool) -> Result<bool> {
        if self.views.split(Split::Val).is_empty() {
            return Ok(true);
        }
        let Some(Look { mut tallies, representations }) = self.look_at(Split::Val, stop)? else {
            return Ok(false);
        };
        if self.config.probes.knn {
            let Some(bank) = self.look_at(Split::Train, stop)? else { return Ok(false) };
            let tally = representations.neighbour_accuracy(bank.representations)?;
            tally.into_iter().for_each(|tally| tallies.add("knn_accuracy/representation", tally));
        }
        let values = tallies.values().collect();
        self.write_record((Kind::HeldOut, epoch, self.position.step), values, &[])?;
        Ok(true)
    }

    /// A look at one side of the split: always the same objects and pairs, so that results compare. Nothing where `stop`
    /// ended it.
    fn look_at(&mut self, split: Split, stop: &dyn Fn() -> bool) -> Result<Option<Look>> {
        let (side, batch) = (self.views.split(split), self.config.method.batch);
        let mut wanted = self.config.probes.held_out_objects.min(side.len());
        let mut passes = self.config.probes.held_out_passes;
        if split == Split::Train {
            wanted = wanted.min(BANK_OBJECTS);
            passes = passes.min((BANK_PAIRS / wanted.max(1)).max(1) as u64);
            // Any training objects will do: whole batches, which the device knows.
            wanted -= if wanted > batch { wanted % batch } else { 0 };
        }
        let objects: Vec<usize> = (0..wanted).map(|k| side.start + k * side.len() / wanted).collect();
        let (seed, views) = (self.config.seed, Arc::clone(&self.views));
        // The published batch is of objects; the last one may be small, as nothing is normalised over it.
        let chunks: Vec<Vec<usize>> = objects.chunks(batch).map(<[usize]>::to_vec).collect();
        let plan = (0..passes).flat_map(move |pass| {
            chunks
                .iter()
                .map(|objects| {
                    let views = |object| views.views_of(split, object);
                    pair_items(objects.iter().copied(), seed, u64::MAX - pass, views)
                })
                .collect::<Vec<_>>()
        });
        // Ranks take turns.
        let mut loader = self.start_loader(plan.skip(self.ranks.rank()).step_by(self.ranks.ranks()))?;
        let looked = self.look_at_batches(&mut loader, stop);
        self.of_all_ranks(looked)
    }

    /// Looks at batches, one by one; `None` where `stop` came before the end.
    fn look_at_batches(&mut self, loader: &mut Loader, stop: &dyn Fn() -> bool) -> Result<Option<Vec<Look>>> {
        let mut all = Vec::new();
        loop {
            if !loader.wait(stop) {
                return Ok(None);
            }
            let Some(batch) = loader.next() else { return Ok(Some(all)) };
            if stop() {
                return Ok(None);
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
            all.push(self.learner.look(pairs, self.config.probes.knn)?);
            loader.recycle(batch);
        }
    }

    /// The looks of all ranks, put together in the order of batches; `None` where one of them was asked to stop.
    fn of_all_ranks(&self, looked: Result<Option<Vec<Look>>>) -> Result<Option<Look>> {
        let mut sum = Look::default();
        if !self.ranks.is_shared() {
            let Some(all) = looked? else { return Ok(None) };
            all.into_iter().for_each(|look| sum.merge(look));
            return Ok(Some(sum));
        }
        let told = match &looked {
            Ok(None) => vec![STOPPED],
            Err(error) => [&[FAILED], error.to_string().as_bytes()].concat(),
            Ok(Some(all)) => {
                let mut told = vec![LOOKED];
                for look in all.iter().map(Look::to_bytes) {
                    told.extend((look.len() as u64).to_le_bytes());
                    told.extend(look);
                }
                told
            }
        };
        let mut found = Vec::new();
        let mut stopped = false;
        for (rank, told) in self.ranks.exchange(&told)?.iter().enumerate() {
            match told.split_first() {
                Some((&LOOKED, bytes)) => found.push(read(bytes)),
                Some((&STOPPED, _)) => stopped = true,
                Some((&FAILED, text)) => {
                    let text = String::from_utf8_lossy(text);
                    return Err(Error::Everywhere(format!("rank {rank}: {text}")));
                }
                _ => return Err(Error::Request(format!("rank {rank} does other work than this one"))),
            }
        }
        looked?;
        if stopped {
            return Ok(None);
        }
        let mut turns: Vec<_> = found.into_iter().map(Vec::into_iter).collect();
        loop {
            let looks: Vec<Look> = turns.iter_mut().filter_map(Iterator::next).collect();
            if looks.is_empty() {
                return Ok(Some(sum));
            }
            looks.into_iter().for_each(|look| sum.merge(look));
        }
    }
}
