//! Processes the results of issued steps in order: means, lines of metrics, guards, choices of algorithms.

use methods::Measurement;

use super::Trainer;
use crate::checkpoint::{self, Checkpoint};
use crate::error::{Error, Result};
use crate::event::{Event, Progress};
use crate::metrics::Kind;

impl Trainer<'_> {
    /// Processes the results of issued steps. Without `wait`, only of those that the device has finished, so that it is
    /// never idle; the others follow later, in order.
    pub(super) fn collect(&mut self, wait: bool) -> Result<()> {
        let measurements = self.learner.collect(wait)?;
        if measurements.is_empty() {
            return Ok(());
        }
        measurements.iter().for_each(|measurement| self.clock.done(measurement.host, measurement.device));
        self.clock.look();
        let (_, replaced) = self.device.choice_counts();
        let anew = replaced - std::mem::replace(&mut self.replaced, replaced);
        if anew > 0 {
            (self.tell)(Event::Warning(format!(
                "{anew} convolutions cannot be computed here as they were before (by another cuDNN or GPU); \
                 other algorithms were chosen; the run continues, but not bit for bit"
            )));
        }
        if let Some(text) = self.learner.take_remark() {
            (self.tell)(Event::Warning(text));
        }
        self.keep_choices()?;
        let first = self.position.step + 1 - self.pending.len() as u64;
        for (step, measurement) in (first..).zip(&measurements) {
            let bad = self.pending.pop_front().unwrap_or(0);
            self.process(step, measurement, bad)?;
        }
        if let Some(last) = measurements.into_iter().last() {
            let steps_left = self.plan.steps_per_epoch() * self.config.epochs - self.position.step;
            let images_left = steps_left as f64 * self.plan.images_per_step();
            (self.tell)(Event::Progress(&Progress {
                position: self.position,
                steps_per_epoch: self.plan.steps_per_epoch(),
                epochs: self.config.epochs,
                loss: last.loss,
                terms: last.terms,
                images_per_second: self.clock.rate,
                waited_share: self.clock.waited_share,
                left: self.clock.time_for(images_left),
            }));
        }
        Ok(())
    }

    fn process(&mut self, step: u64, measurement: &Measurement, bad: usize) -> Result<()> {
        let values = measurement.values();
        self.means.add_measurement(&values);
        self.means.add("bad_samples", bad as f64);
        let trouble = self.guard.check(step, measurement.loss, measurement.health.as_ref());
        if let Some(text) = self.guard.shrunk(step, measurement.health.as_ref()) {
            (self.tell)(Event::Warning(text));
        }
        let per_epoch = self.plan.steps_per_epoch();
        if self.is_logged(step) || trouble.is_some() {
            let timing = self.clock.timing();
            self.write_record((Kind::Step, (step - 1) / per_epoch + 1, step), values, &timing)?;
        }
        match trouble {
            Some(what) => Err(self.unhealthy(step, &what)),
            None if step.is_multiple_of(per_epoch) => self.write_epoch(step / per_epoch, step),
            None => Ok(()),
        }
    }

    /// Writes down the means of an epoch, whose last step is `step`.
    fn write_epoch(&mut self, epoch: u64, step: u64) -> Result<()> {
        let means = std::mem::take(&mut self.means);
        let bad = means.sum("bad_samples");
        let mut values: Vec<(String, f64)> =
            means.means().filter(|(name, _)| name != "bad_samples").collect();
        if bad > 0.0 {
            values.push(("bad_samples".to_owned(), bad));
            let found = self.views.found();
            if let Some((_, what)) = found.first() {
                let text = format!("images replaced in epoch {epoch}: {bad}; the first bad one: {what}");
                (self.tell)(Event::Warning(text));
            }
        }
        let timing = self.clock.timing();
        self.write_record((Kind::Epoch, epoch, step), values, &timing)
    }

    /// Writes down new choices of the device, before anything that depends on them.
    pub(super) fn keep_choices(&mut self) -> Result<()> {
        let (made, replaced) = self.device.choice_counts();
        let count = made + replaced;
        if count != self.choices
            && let Some(text) = self.device.choices()
        {
            if let Some(books) = &self.books {
                books.run.folder().write_choices(&text)?;
            }
            self.choices = count;
        }
        Ok(())
    }

    /// Why the run ends, and where it was well for the last time.
    pub(super) fn unhealthy(&mut self, step: u64, what: &str) -> Error {
        if let Err(error) = self.wait_for_saver() {
            return error;
        }
        let per_epoch = self.plan.steps_per_epoch();
        let all = checkpoint::list(&self.checkpoints).unwrap_or_default();
        // A collapse must last before it counts; what was saved meanwhile is not good.
        let good = all.iter().rev().find_map(|(_, path)| {
            let saved = Checkpoint::read_metadata(path).ok()?;
            saved.metadata.get("guard_strikes").is_none_or(|strikes| strikes == "0").then_some((path, saved))
        });
        let good = match good {
            Some((path, saved)) => {
                format!("the last good checkpoint is {} ({})", path.display(), saved.position.describe())
            }
            None => "there is no good checkpoint before it".to_owned(),
        };
        Error::Unhealthy(format!("{what} at step {step} (epoch {}); {good}", (step - 1) / per_epoch + 1))
    }

    pub(super) fn write_record(
        &mut self,
        what: (Kind, u64, u64),
        values: Vec<(String, f64)>,
        timing: &[(&str, f64)],
    ) -> Result<()> {
        let Some(books) = &mut self.books else { return Ok(()) };
        let record = books.journal.write(what, values, timing)?;
        (self.tell)(Event::Record(&record));
        Ok(())
    }
}
