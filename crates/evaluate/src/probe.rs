//! Probes on frozen features by the published protocol: every epoch each object contributes random views (one, or an
//! ordered pair of distinct ones), fixed by (seed, epoch, object); Adam without decay; validation on all held-out
//! objects with views drawn afresh.
//!
//! The published scripts print the value after the last epoch, with one random pair a held-out object. Ours is the
//! mean over several such passes, with their standard deviation.
//!
//! Tasks whose heads have the same layers see the same samples and train side by side. Heads that were trained on one dataset
//! can be asked about the held-out views of others.

use std::collections::BTreeMap;
use std::ops::Range;

use dataset::{Split, order};
use engine::Device;
use rayon::prelude::*;

use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::feature_table::FeatureTable;
use crate::features::Table;
use crate::ground_truth::GroundTruth;
use crate::head::{Heads, HeadsConfig};
use crate::metrics;
use crate::object_scores::{RotationScore, RotationSums};
use crate::protocol::{Protocol, Task};
use crate::results::{Measured, ProbeResult};

/// Points along the way that are kept of a probe's training.
const CURVE_POINTS: u32 = 20;

/// What heads learn from in one round, or are validated on in one pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// How many.
    pub count: usize,
    /// Rows of the table of features, one a view.
    pub rows: Vec<i32>,
    /// Numbers to predict, `(samples, tasks, columns)`, zeros where a task has fewer than the others.
    pub targets: Vec<f32>,
    /// Classes, for classification.
    pub labels: Vec<i32>,
}

impl Samples {
    /// Adds others after these.
    fn append(&mut self, others: Samples) {
        let Samples { count, rows, targets, labels } = others;
        self.count += count;
        self.rows.extend(rows);
        self.targets.extend(targets);
        self.labels.extend(labels);
    }
}

/// Asks heads for their outputs (samples, tasks, columns).
type Predict<'a> = dyn FnMut(&Samples) -> Result<Vec<f32>> + 'a;

/// Tasks that train together, in order: those whose heads have hidden layers.
pub fn groups(tasks: &[Task]) -> Vec<Vec<Task>> {
    let mut groups: Vec<Vec<Task>> = Vec::new();
    for &task in tasks {
        let deep = |group: &&mut Vec<Task>| !task.has_linear_head() && !group[0].has_linear_head();
        match groups.iter_mut().find(deep) {
            Some(group) => group.push(task),
            None => groups.push(vec![task]),
        }
    }
    groups
}

/// The features of another dataset, on whose held-out views trained heads are tested.
#[derive(Clone, Copy, Debug)]
pub struct Tested<'a> {
    /// Its features.
    pub table: &'a FeatureTable<'a>,
    /// What is known about them.
    pub truth: &'a GroundTruth,
    /// Whether its classes are those that the heads were trained for.
    pub has_same_classes: bool,
}

/// Trains and validates the probes of `tasks`, one of [`groups`], on `device`. `progress` is called after every epoch.
pub fn run_group(
    tasks: &[Task],
    table: &FeatureTable<'_>,
    device: &Device,
    truth: &GroundTruth,
    protocol: &Protocol,
    progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<BTreeMap<Task, ProbeResult>> {
    let tested = train_and_test(tasks, table, device, truth, protocol, &[], progress, stop)?;
    Ok(tested.into_iter().next().unwrap_or_default())
}

/// Whether the targets of `task` differ among what is held out; where they are all the same, there is nothing to probe, and
/// the results lack it.
pub fn has_spread(task: Task, truth: &GroundTruth, protocol: &Protocol) -> bool {
    let group = Group { tasks: &[task], truth, protocol };
    let first = u64::from(protocol.epochs_of(task));
    let differs = |pass: u32| {
        let targets = group.held_out_samples(first + u64::from(pass)).1.targets;
        metrics::r2(&targets, &targets).is_some()
    };
    group.is_classification() || (0..protocol.passes.max(1)).all(differs)
}

/// As [`run_group`], and tests the heads on the held-out views of other datasets `also`: the results on the first one, then on
/// each of these, where what they do not have is missing.
#[allow(clippy::too_many_arguments)]
pub fn train_and_test(
    tasks: &[Task],
    table: &FeatureTable<'_>,
    device: &Device,
    truth: &GroundTruth,
    protocol: &Protocol,
    also: &[Tested<'_>],
    mut progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<BTreeMap<Task, ProbeResult>>> {
    let Some(&first) = tasks.first() else { return Ok(vec![BTreeMap::new(); 1 + also.len()]) };
    if truth.split(Split::Train).is_empty() || truth.split(Split::Val).is_empty() {
        return Err(Error::Request(
            "probes need training and held-out objects; the dataset lacks one".to_owned(),
        ));
    }
    if first != Task::Classification && Split::ALL.iter().any(|&split| truth.paired(split).next().is_none()) {
        return Err(Error::Request(format!(
            "the {first} probe needs two views of every object, there is one"
        )));
    }
    let group = Group { tasks, truth, protocol };
    let inputs = group.views() * table.width();
    let mut heads = Heads::new(device, table, group.heads(), protocol)?;
    let epochs = protocol.epochs_of(first);
    let every = epochs.div_ceil(CURVE_POINTS).max(1);
    let mut curves = vec![Vec::new(); tasks.len()];
    for epoch in 0..epochs {
        if stop() {
            return Err(Error::Interrupted);
        }
        heads.begin_epoch()?;
        let samples = group.training_samples(epoch);
        heads.train(&samples, protocol.batch)?;
        if (epoch + 1) % every == 0 || epoch + 1 == epochs {
            let losses = heads.losses()?;
            let values = group.validate(&mut |samples| heads.predict(samples), u64::from(epoch))?.values;
            for ((curve, loss), value) in curves.iter_mut().zip(losses).zip(values) {
                if let Some((value, _)) = value {
                    curve.push((epoch + 1, loss / samples.count.max(1) as f64, value));
                }
            }
        }
        progress(1);
    }
    let passes = group.passes(&mut |samples| heads.predict(samples))?;
    let mut found = vec![group.results(&passes, inputs, curves)];
    for tested in also {
        let group = Group { tasks, truth: tested.truth, protocol };
        found.push(match tested.has_same_classes || !group.is_classification() {
            true => {
                let passes = group.passes(&mut |samples| heads.predict_on(tested.table, samples))?;
                group.results(&passes, inputs, vec![Vec::new(); tasks.len()])
            }
            false => BTreeMap::new(),
        });
    }
    Ok(found)
}

/// Why a task without a spread ([`has_spread`]) has no value: the first half of a sentence.
pub(crate) fn all_the_same(task: Task) -> String {
    format!("the {task} targets of what is held out are all the same")
}

/// Why such a task has no probe.
pub fn nothing_to_probe(task: Task) -> String {
    format!("{}, so there is nothing to probe", all_the_same(task))
}

/// The value of a network's own head for the task it was trained for end to end; nothing where its targets are all the same, or no
/// object has a pair of views. No probe is trained.
pub(crate) fn end_to_end(
    encoder: &mut dyn Encoder,
    task: Task,
    table: &Table,
    truth: &GroundTruth,
    protocol: &Protocol,
) -> Result<Option<ProbeResult>> {
    if truth.split(Split::Val).is_empty() {
        return Err(Error::Request("there are no held-out objects".to_owned()));
    }
    let group = Group { tasks: &[task], truth, protocol };
    let (columns, views) = (group.heads().columns(), group.views());
    let mut answer = |samples: &Samples| {
        let mut outputs = Vec::with_capacity(samples.count * columns);
        for rows in samples.rows.chunks((protocol.batch * views).max(1)) {
            outputs.extend(encoder.answer(&table.gather(rows), rows.len() / views)?);
        }
        if outputs.len() != samples.count * columns {
            return Err(Error::Request(format!(
                "the network's head has {} outputs, the data need {columns}",
                outputs.len() / samples.count.max(1),
            )));
        }
        Ok(outputs)
    };
    let passes = group.passes(&mut answer)?;
    let mut found = group.results(&passes, views * table.width, vec![Vec::new()]);
    Ok(found.remove(&task))
}

/// A task's value in one pass, and top-5 for classification.
type Value = (f64, Option<f64>);

/// What heads reach in one pass.
struct Pass {
    /// Of every task; none where its targets are all the same.
    values: Vec<Option<Value>>,
    /// Predicted and true rotations of all objects, where rotation is among the tasks.
    rotations: Option<(Vec<f32>, Vec<f32>)>,
}

/// Tasks with the same layers and the same samples.
struct Group<'a> {
    tasks: &'a [Task],
    truth: &'a GroundTruth,
    protocol: &'a Protocol,
}

impl Group<'_> {
    fn is_classification(&self) -> bool {
        self.tasks == [Task::Classification]
    }

    /// Views of a sample.
    fn views(&self) -> usize {
        if self.is_classification() { 1 } else { 2 }
    }

    /// What the tasks' heads look like.
    fn heads(&self) -> HeadsConfig {
        let is_classification = self.is_classification();
        let is_linear = self.tasks.iter().any(|task| task.has_linear_head());
        HeadsConfig {
            views: self.views(),
            hidden: if is_linear { Vec::new() } else { vec![self.protocol.hidden; 2] },
            outputs: match is_classification {
                true => vec![self.truth.classes],
                false => self.tasks.iter().map(|task| task.outputs(self.truth.space)).collect(),
            },
            is_classification,
        }
    }

    /// The samples of an epoch: rounds over the training objects, each in an order of its own.
    fn training_samples(&self, epoch: u32) -> Samples {
        let repeats = u64::from(self.protocol.samples_per_object.max(1));
        let train = self.truth.split(Split::Train);
        let has_sample =
            |object: &usize| self.is_classification() || self.truth.has_pair(Split::Train, *object);
        let mut all = Samples::default();
        for draw in u64::from(epoch) * repeats..u64::from(epoch + 1) * repeats {
            let shuffled = order::epoch_order(self.protocol.seed, draw, train.len());
            let objects: Vec<usize> =
                shuffled.iter().map(|&index| train.start + index as usize).filter(has_sample).collect();
            all.append(self.samples(Split::Train, &objects, draw));
        }
        all
    }

    /// The samples of some objects of one side in one round or pass; `draw` numbers the random views.
    fn samples(&self, split: Split, objects: &[usize], draw: u64) -> Samples {
        let (seed, truth) = (self.protocol.seed, self.truth);
        let views = |object: usize| truth.views_of(split, object);
        let row = |object: usize, view: usize| truth.row(object, views(object).start + view) as i32;
        let count = objects.len();
        if self.is_classification() {
            let one = |&object: &usize| {
                (
                    row(object, order::single(seed, draw, object, views(object).len())),
                    truth.labels[object] as i32,
                )
            };
            let (rows, labels) = objects.par_iter().map(one).unzip();
            return Samples { count, rows, targets: Vec::new(), labels };
        }
        let (tasks, columns) = (self.tasks, self.heads().columns());
        let mut rows = vec![0; 2 * count];
        let mut targets = vec![0.0; count * tasks.len() * columns];
        let places = rows.par_chunks_exact_mut(2).zip(targets.par_chunks_exact_mut(tasks.len() * columns));
        objects.par_iter().zip(places).for_each(|(&object, (rows, targets))| {
            let Range { start, end } = views(object);
            let (first, second) = order::pair(seed, draw, object, end - start);
            rows.copy_from_slice(&[row(object, first), row(object, second)]);
            for (&task, target) in tasks.iter().zip(targets.chunks_exact_mut(columns)) {
                let wanted = truth.target(task, object, start + first, start + second);
                target[..wanted.len()].copy_from_slice(&wanted);
            }
        });
        Samples { count, rows, targets, labels: Vec::new() }
    }

    /// One task's own numbers out of those of all.
    fn of_task(&self, index: usize, values: &[f32]) -> Vec<f32> {
        let columns = self.heads().columns();
        let outputs = self.tasks[index].outputs(self.truth.space);
        let rows = values.chunks_exact((self.tasks.len() * columns).max(1));
        rows.flat_map(|row| row[index * columns..index * columns + outputs].iter().copied()).collect()
    }

    /// The samples of one pass over the held-out objects, and the object of each.
    fn held_out_samples(&self, draw: u64) -> (Vec<usize>, Samples) {
        let objects: Vec<usize> = match self.is_classification() {
            true => self.truth.split(Split::Val).collect(),
            false => self.truth.paired(Split::Val).collect(),
        };
        let repeats = u64::from(self.protocol.held_out_samples.max(1));
        let mut all = Samples::default();
        for round in 0..repeats {
            all.append(self.samples(Split::Val, &objects, draw * repeats + round));
        }
        (objects.repeat(repeats as usize), all)
    }

    /// One pass over the held-out objects: each task's value, and top-5 for classification.
    fn validate(&self, predict: &mut Predict<'_>, draw: u64) -> Result<Pass> {
        let (objects, samples) = self.held_out_samples(draw);
        let outputs = predict(&samples)?;
        if self.is_classification() {
            let labels: Vec<u32> = objects.iter().map(|&object| self.truth.labels[object]).collect();
            let share = |k| metrics::top_k(&outputs, self.truth.classes, &labels, k);
            return Ok(Pass { values: vec![Some((share(1), Some(share(5))))], rotations: None });
        }
        let mut pass = Pass { values: Vec::new(), rotations: None };
        for (index, &task) in self.tasks.iter().enumerate() {
            let (outputs, targets) = (self.of_task(index, &outputs), self.of_task(index, &samples.targets));
            pass.values.push(metrics::r2(&outputs, &targets).map(|value| (value, None)));
            if task == Task::Rotation {
                pass.rotations = Some((outputs, targets));
            }
        }
        Ok(pass)
    }

    /// Several validation passes after the last epoch.
    fn passes(&self, predict: &mut Predict<'_>) -> Result<Vec<Pass>> {
        let epochs = u64::from(self.tasks.first().map_or(0, |&task| self.protocol.epochs_of(task)));
        (0..self.protocol.passes.max(1))
            .map(|pass| self.validate(predict, epochs + u64::from(pass)))
            .collect()
    }

    /// The results of all tasks that have a value in every pass.
    fn results(
        &self,
        passes: &[Pass],
        input_width: usize,
        curves: Vec<Vec<(u32, f64, f64)>>,
    ) -> BTreeMap<Task, ProbeResult> {
        let result = |(index, (&task, curve)): (usize, (&Task, _))| {
            let values: Vec<Value> = passes.iter().map(|pass| pass.values[index]).collect::<Option<_>>()?;
            let top5: Vec<f64> = values.iter().filter_map(|value| value.1).collect();
            let values: Vec<f64> = values.iter().map(|value| value.0).collect();
            let result = ProbeResult {
                value: Measured::over(&values),
                top5: (!top5.is_empty()).then(|| Measured::over(&top5)),
                floor: self.floor(task, u64::from(self.protocol.epochs_of(task))),
                input_width,
                curve,
                by_object: if task == Task::Rotation {
                    by_object(passes, self.truth.paired(Split::Val).count(), self.truth.space)
                } else {
                    Vec::new()
                },
            };
            Some((task, result))
        };
        self.tasks.iter().zip(curves).enumerate().filter_map(result).collect()
    }

    /// What is reached without information, on the views of four passes.
    fn floor(&self, task: Task, draw: u64) -> f64 {
        let val = self.truth.split(Split::Val);
        if task == Task::Classification {
            return metrics::majority(val.map(|object| self.truth.labels[object]));
        }
        let alone = Group { tasks: &[task], ..*self };
        let targets: Vec<f32> =
            (0..4).flat_map(|pass| alone.held_out_samples(draw + pass).1.targets).collect();
        metrics::constant_floor(&targets, task.outputs(self.truth.space)).unwrap_or(0.0)
    }
}

/// Scores of each of `objects` held-out objects that have pairs over all passes, which are rounds over all of them.
fn by_object(passes: &[Pass], objects: usize, space: pose::Space) -> Vec<RotationScore> {
    let mut sums = RotationSums::default();
    let width = Task::Rotation.outputs(space);
    let round = (objects * width).max(1);
    for (said, wanted) in passes.iter().filter_map(|pass| pass.rotations.as_ref()) {
        said.chunks_exact(round)
            .zip(wanted.chunks_exact(round))
            .for_each(|(said, wanted)| sums.add(width, said, wanted));
    }
    sums.finish()
}

#[cfg(test)]
mod tests;
