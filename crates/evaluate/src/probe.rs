//! Probes on frozen features by the published protocol: every epoch each object contributes random views (one, or an
//! ordered pair of distinct ones), fixed by (seed, epoch, object); Adam without decay; validation on all held-out
//! objects with views drawn afresh.
//!
//! The published scripts print the value after the last epoch, with one random pair a held-out object. Ours is the
//! mean over several such passes, with their standard deviation.

use std::ops::Range;

use dataset::{Split, order};
use engine::Device;

use crate::error::{Error, Result};
use crate::features::Table;
use crate::ground_truth::GroundTruth;
use crate::head::{Head, cross_entropy, mean_squared_error};
use crate::metrics;
use crate::protocol::{Protocol, Task};
use crate::results::{Measured, ProbeResult};

/// Points along the way that are kept of a probe's training.
const CURVE_POINTS: u32 = 20;

/// Inputs and targets of some samples.
struct Samples {
    inputs: Vec<f32>,
    targets: Vec<f32>,
    labels: Vec<u32>,
}

/// Trains and validates the probe of `task` on the rows of `table`. `progress` is told of every epoch.
pub fn run(
    task: Task,
    table: &Table,
    truth: &GroundTruth,
    protocol: &Protocol,
    device: &Device,
    mut progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<ProbeResult> {
    let (train, val) = (truth.split(Split::Train), truth.split(Split::Val));
    if train.is_empty() || val.is_empty() {
        return Err(Error::Request(
            "probes need training and held-out objects; the dataset lacks one".to_owned(),
        ));
    }
    if task != Task::Classification && truth.views < 2 {
        return Err(Error::Request(format!(
            "the {task} probe needs two views of every object, there is one"
        )));
    }
    let probe = Probe { task, table, truth, protocol };
    let mut head = Head::new(device, protocol.seed, &probe.head_widths(), protocol.learning_rate)?;
    let epochs = protocol.epochs_of(task);
    let every = epochs.div_ceil(CURVE_POINTS).max(1);
    let mut curve = Vec::new();
    for epoch in 0..epochs {
        if stop() {
            return Err(Error::Interrupted);
        }
        let loss = probe.train_epoch(&mut head, &train, epoch)?;
        if (epoch + 1) % every == 0 || epoch + 1 == epochs {
            let value = probe.validate(&mut head, &val, u64::from(epoch))?.0;
            curve.push((epoch + 1, loss, value));
        }
        progress(1);
    }
    let (mut values, mut top5) = (Vec::new(), Vec::new());
    for pass in 0..protocol.passes.max(1) {
        let (value, fifth) = probe.validate(&mut head, &val, u64::from(epochs) + u64::from(pass))?;
        values.push(value);
        top5.extend(fifth);
    }
    Ok(ProbeResult {
        value: Measured::over(&values),
        top5: (!top5.is_empty()).then(|| Measured::over(&top5)),
        floor: probe.floor(&val, u64::from(epochs)),
        input_width: head.inputs(),
        curve,
    })
}

struct Probe<'a> {
    task: Task,
    table: &'a Table,
    truth: &'a GroundTruth,
    protocol: &'a Protocol,
}

impl Probe<'_> {
    fn head_widths(&self) -> Vec<usize> {
        let outputs =
            if self.task == Task::Classification { self.truth.classes } else { self.task.outputs() };
        let views = if self.task == Task::Classification { 1 } else { 2 };
        let inputs = views * self.table.width;
        if self.task.has_linear_head() {
            vec![inputs, outputs]
        } else {
            vec![inputs, self.protocol.hidden, self.protocol.hidden, outputs]
        }
    }

    /// The samples of some objects in one epoch or pass; `draw` numbers the random views.
    fn samples(&self, objects: &[usize], draw: u64) -> Samples {
        let (seed, views) = (self.protocol.seed, self.truth.views);
        let mut samples = Samples { inputs: Vec::new(), targets: Vec::new(), labels: Vec::new() };
        samples.inputs.reserve(objects.len() * self.table.width * 2);
        for &object in objects {
            let row = |view: usize| self.table.row(object * views + view);
            if self.task == Task::Classification {
                samples.inputs.extend_from_slice(row(order::single(seed, draw, object, views)));
                samples.labels.push(self.truth.labels[object]);
            } else {
                let (first, second) = order::pair(seed, draw, object, views);
                samples.inputs.extend_from_slice(row(first));
                samples.inputs.extend_from_slice(row(second));
                samples.targets.extend(self.truth.target(self.task, object, first, second));
            }
        }
        samples
    }

    fn train_epoch(&self, head: &mut Head, train: &Range<usize>, epoch: u32) -> Result<f64> {
        let (mut total, mut count) = (0.0, 0);
        for repeat in 0..self.protocol.samples_per_object.max(1) {
            let draw =
                u64::from(epoch) * u64::from(self.protocol.samples_per_object.max(1)) + u64::from(repeat);
            let shuffled = order::epoch_order(self.protocol.seed, draw, train.len());
            let objects: Vec<usize> = shuffled.iter().map(|&index| train.start + index as usize).collect();
            for batch in objects.chunks(self.protocol.batch.max(1)) {
                let samples = self.samples(batch, draw);
                let loss = head.step(&samples.inputs, |output| match self.task {
                    Task::Classification => cross_entropy(output, self.truth.classes, &samples.labels),
                    _ => mean_squared_error(output, &samples.targets),
                })?;
                total += loss * batch.len() as f64;
                count += batch.len();
            }
        }
        Ok(total / count.max(1) as f64)
    }

    /// One pass over the held-out objects: the task's value, and top-5 for classification.
    fn validate(&self, head: &mut Head, val: &Range<usize>, draw: u64) -> Result<(f64, Option<f64>)> {
        let objects: Vec<usize> = val.clone().collect();
        let (mut outputs, mut targets, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for batch in objects.chunks(self.protocol.batch.max(1)) {
            let samples = self.samples(batch, draw);
            outputs.extend(head.predict(&samples.inputs)?);
            targets.extend(samples.targets);
            labels.extend(samples.labels);
        }
        if self.task == Task::Classification {
            let share = |k| metrics::top_k(&outputs, self.truth.classes, &labels, k);
            return Ok((share(1), Some(share(5))));
        }
        let value = metrics::r2(&outputs, &targets).ok_or_else(|| {
            Error::Request(format!("the {} targets of the held-out objects are all the same", self.task))
        })?;
        Ok((value, None))
    }

    /// What is reached without information, on the views of one pass (of as many as four for small sets).
    fn floor(&self, val: &Range<usize>, draw: u64) -> f64 {
        if self.task == Task::Classification {
            return metrics::majority(val.clone().map(|object| self.truth.labels[object]));
        }
        let objects: Vec<usize> = val.clone().collect();
        let targets: Vec<f32> = (0..4).flat_map(|pass| self.samples(&objects, draw + pass).targets).collect();
        metrics::constant_floor(&targets, self.task.outputs()).unwrap_or(0.0)
    }
}
