//! What a configuration may say: the ranges of its numbers.

use methods::{MethodConfig, MethodName, Task, Transform};
use pose::Space;

use super::Config;
use crate::error::{Error, Result};

/// More threads or waiting batches than any machine has use for; beyond it a number is a slip of the finger.
const MOST_WORKERS: usize = 4096;
/// Pairs of one object in an epoch.
const MOST_PAIRS: usize = 65_536;
/// Candidates for the second view of a pair.
const MOST_CANDIDATES: usize = 1024;
/// Beyond it routing is decided before anything is learnt.
const MOST_ROUTING_STD: f64 = 100.0;
/// Views of an object, as many as a dataset may have.
const MOST_VIEWS: usize = 1_000_000;
/// Pairs of a held-out object in one evaluation.
const MOST_PASSES: u64 = 100_000;
/// A pebibyte.
const MOST_MEMORY_MIB: usize = 1 << 30;

impl Config {
    /// Refuses settings that make no sense, whatever the data.
    pub(crate) fn check(&self) -> Result<()> {
        let rule =
            |holds: bool, text: &str| holds.then_some(()).ok_or_else(|| Error::Setting(text.to_owned()));
        rule(self.epochs <= 99_999, "epochs must be at most 99999")?;
        // One that is still to be chosen is in range.
        let image_size = if self.method.image_size == 0 { 32 } else { self.method.image_size };
        let sizes = MethodConfig { image_size, ..self.method.clone() };
        rule(self.method.batch != 1, "batch must be at least 2: variances over one object are undefined")?;
        sizes.size_problem().map_or(Ok(()), |problem| Err(Error::Setting(problem)))?;
        rule(self.learning_rate >= 0.0, "learning_rate must be positive, or 0 to be chosen")?;
        rule(self.refresh <= 1.0, "refresh must be between 0 and 1, or below 0 to be chosen")?;
        rule(
            self.pairs_per_object <= MOST_PAIRS,
            &format!("pairs_per_object must be at most {MOST_PAIRS}; 0 chooses as many as fill a batch"),
        )?;
        rule(
            (1..=MOST_CANDIDATES).contains(&self.curriculum.candidates),
            &format!("curriculum.candidates must be between 1 and {MOST_CANDIDATES}"),
        )?;
        rule(
            (0.0..=MOST_ROUTING_STD).contains(&self.method.network.routing_std),
            &format!("network.routing_std must be between 0 and {MOST_ROUTING_STD}"),
        )?;
        rule(
            self.method.loss.sharpen_prediction > 0.0 && self.method.loss.sharpen_target > 0.0,
            "loss.sharpen_prediction and loss.sharpen_target must be positive",
        )?;
        let loss = &self.method.loss;
        for (name, weight) in [
            ("invariance", loss.invariance),
            ("equivariance", loss.equivariance),
            ("variance", loss.variance),
            ("covariance", loss.covariance),
            ("predicted_variance", loss.predicted_variance),
            ("mean_entropy", loss.mean_entropy),
        ] {
            // With a minus the opposite would be learnt.
            rule(weight >= 0.0 && weight.is_finite(), &format!("loss.{name} must be a number from 0 on"))?;
        }
        rule(self.weight_decay >= 0.0, "weight_decay must not be negative")?;
        let fraction = |beta: f64| (0.0..1.0).contains(&beta);
        rule(
            fraction(self.adam.beta1) && fraction(self.adam.beta2),
            "adam.beta1 and adam.beta2 must be in [0, 1)",
        )?;
        rule(self.adam.epsilon > 0.0, "adam.epsilon must be positive")?;
        rule(fraction(self.muon.momentum), "muon.momentum must be in [0, 1)")?;
        rule(self.muon.rate > 0.0 && self.muon.rate.is_finite(), "muon.rate must be positive")?;
        let width = self.method.network.width;
        rule(width.is_multiple_of(8), "network.width must be a positive multiple of 8")?;
        self.check_task()?;
        rule(self.method.network.capsules > 0, "network.capsules must be positive")?;
        rule(self.method.network.predictor_layers > 0, "network.predictor_layers must be positive")?;
        rule(
            matches!(self.method.network.pose, 0 | 3 | 4),
            "network.pose must be 3, 4, or 0 for what the transform needs",
        )?;
        rule(
            self.method.network.projector.len() == 3
                && self.method.network.projector.iter().all(|&width| width > 0),
            "network.projector must be three widths such as [2048, 2048, 2048]",
        )?;
        rule(self.method.loss.temperature > 0.0, "loss.temperature must be positive")?;
        rule(self.checkpoints.keep >= 1, "checkpoints.keep must be at least 1")?;
        rule(self.checkpoints.every_minutes >= 0.0, "checkpoints.every_minutes must not be negative")?;
        rule(
            self.procedural.views != 1 && self.procedural.views <= MOST_VIEWS,
            &format!("procedural.views must be between 2 and {MOST_VIEWS}"),
        )?;
        rule(
            self.procedural.memory_mib <= MOST_MEMORY_MIB,
            &format!("procedural.memory_mib must be at most {MOST_MEMORY_MIB}"),
        )?;
        self.photos.validate().map_err(Error::Setting)?;
        crate::data::ranges(self)?;
        rule(
            (1..=MOST_WORKERS).contains(&self.loader.queue),
            &format!("loader.queue must be between 1 and {MOST_WORKERS}"),
        )?;
        rule(
            self.loader.workers <= MOST_WORKERS,
            &format!("loader.workers must be at most {MOST_WORKERS}, or 0 for all cores"),
        )?;
        rule(
            self.probes.held_out_objects >= 1 && self.probes.held_out_passes >= 1,
            "probes.held_out_objects and probes.held_out_passes must be at least 1 (probes.held_out_every = 0 never looks)",
        )?;
        rule(
            self.probes.held_out_passes <= MOST_PASSES,
            &format!("probes.held_out_passes must be at most {MOST_PASSES}"),
        )?;
        rule(self.logging.every_steps >= 1, "logging.every_steps must be at least 1")?;
        rule(self.guards.explosion > 0.0, "guards.explosion must be positive")
    }

    /// A supervised network can be asked only for what its transform changes, or all data of that kind have.
    fn check_task(&self) -> Result<()> {
        let (transform, task) = (self.method.transform, self.method.network.task);
        let group = transform.group();
        let is_known = match task.part() {
            Some(part) => group.asked().contains(&part),
            None => task == Task::Classification || group.space == Space::Object,
        };
        if is_known || self.method.name != MethodName::SUPERVISED {
            return Ok(());
        }
        let has_it = |other: &Transform| {
            task.part().map_or(other.group().space == Space::Object, |part| other.group().has(part))
        };
        let others: Vec<&str> = Transform::all().filter(has_it).map(Transform::name).collect();
        Err(Error::Setting(format!(
            "network.task {task} needs a transform that has it, not {transform}: {}",
            others.join(", ")
        )))
    }
}
