//! Probes on frozen features by the published protocol: every epoch each object contributes random views (one, or an
//! ordered pair of distinct ones), fixed by (seed, epoch, object); Adam without decay; validation on all held-out
//! objects with views drawn afresh.
//!
//! The published scripts print the value after the last epoch, with one random pair a held-out object. Ours is the
//! mean over several such passes, with their standard deviation.
//!
//! Tasks whose heads have the same layers see the same samples, so that a GPU can train them side by side; the CPU
//! trains one after the other. The protocol is the same.

use std::collections::BTreeMap;

use dataset::{Split, order};
use engine::Device;
use rayon::prelude::*;

use crate::cuda::probes::DeviceHeads;
use crate::cuda::{self, DeviceTable, Session};
use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::features::Table;
use crate::ground_truth::GroundTruth;
use crate::head::HostHeads;
use crate::metrics;
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

/// The heads of a group of tasks, on some device.
pub trait Heads {
    /// Forgets the losses so far.
    fn begin_epoch(&mut self) -> Result<()>;
    /// Steps of Adam over the samples, `batch` at a time; the last partial batch is kept.
    fn train(&mut self, samples: &Samples, batch: usize) -> Result<()>;
    /// Sums over samples of each task's loss in this epoch.
    fn losses(&mut self) -> Result<Vec<f64>>;
    /// Outputs `(samples, tasks, columns)`.
    fn predict(&mut self, samples: &Samples, batch: usize) -> Result<Vec<f32>>;
}

/// Where the features are.
#[derive(Debug)]
pub enum Place<'a> {
    /// In the host's memory, with heads on any device.
    Host(&'a Table, Device),
    /// In a GPU's memory.
    Device(&'a DeviceTable, Session),
}

impl Place<'_> {
    fn width(&self) -> usize {
        match self {
            Self::Host(table, _) => table.width,
            Self::Device(table, _) => table.width,
        }
    }

    /// Tasks that train together, in order.
    pub fn groups(&self, tasks: &[Task]) -> Vec<Vec<Task>> {
        let mut groups: Vec<Vec<Task>> = Vec::new();
        for &task in tasks {
            let deep = |group: &&mut Vec<Task>| !task.has_linear_head() && !group[0].has_linear_head();
            match groups.iter_mut().find(deep).filter(|_| matches!(self, Self::Device(..))) {
                Some(group) => group.push(task),
                None => groups.push(vec![task]),
            }
        }
        groups
    }
}

/// Trains and validates the probe of one `task` on the rows of `table`. `progress` is told of every epoch.
pub fn run(
    task: Task,
    table: &Table,
    truth: &GroundTruth,
    protocol: &Protocol,
    device: &Device,
    progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<ProbeResult> {
    let session = Session::of(device)?;
    let on_device = place_on_device(session.as_ref(), table)?;
    let place = place(table, device, session, on_device.as_ref());
    let mut found = run_group(&[task], &place, truth, protocol, progress, stop)?;
    found.remove(&task).ok_or_else(|| Error::Request(format!("there is no result of the {task} probe")))
}

/// A copy of the table in the GPU's memory, where there is a GPU with room for it.
pub fn place_on_device(session: Option<&Session>, table: &Table) -> Result<Option<DeviceTable>> {
    let Some(session) = session else { return Ok(None) };
    if !session.has_room(table.values.len() * 4)? {
        return Ok(None);
    }
    DeviceTable::upload(session, table).map(Some)
}

/// Where heads find the features of `table`.
pub fn place<'a>(
    table: &'a Table,
    device: &Device,
    session: Option<Session>,
    on_device: Option<&'a DeviceTable>,
) -> Place<'a> {
    match (on_device, session) {
        (Some(on_device), Some(session)) => Place::Device(on_device, session),
        _ => Place::Host(table, device.clone()),
    }
}

/// Trains and validates the probes of `tasks`, one of [`Place::groups`]. `progress` is told of every epoch.
pub fn run_group(
    tasks: &[Task],
    place: &Place<'_>,
    truth: &GroundTruth,
    protocol: &Protocol,
    mut progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<BTreeMap<Task, ProbeResult>> {
    let Some(&first) = tasks.first() else { return Ok(BTreeMap::new()) };
    if truth.split(Split::Train).is_empty() || truth.split(Split::Val).is_empty() {
        return Err(Error::Request(
            "probes need training and held-out objects; the dataset lacks one".to_owned(),
        ));
    }
    if first != Task::Classification && truth.views < 2 {
        return Err(Error::Request(format!(
            "the {first} probe needs two views of every object, there is one"
        )));
    }
    let group = Group { tasks, truth, protocol };
    let inputs = group.views() * place.width();
    let hidden: &[usize] = if first.has_linear_head() { &[] } else { &[protocol.hidden, protocol.hidden] };
    let mut heads: Box<dyn Heads> = match place {
        Place::Host(table, device) => Box::new(HostHeads::new(
            device,
            table,
            protocol,
            &[&[inputs], hidden, &[group.columns()]].concat(),
            first == Task::Classification,
        )?),
        Place::Device(table, session) => {
            Box::new(DeviceHeads::new(session, table, group.views(), hidden, group.objective(), protocol)?)
        }
    };
    let epochs = protocol.epochs_of(first);
    let every = epochs.div_ceil(CURVE_POINTS).max(1);
    let mut curves = vec![Vec::new(); tasks.len()];
    for epoch in 0..epochs {
        if stop() {
            return Err(Error::Interrupted);
        }
        heads.begin_epoch()?;
        let mut count = 0;
        for repeat in 0..protocol.samples_per_object.max(1) {
            let samples = group.training_samples(epoch, repeat);
            heads.train(&samples, protocol.batch)?;
            count += samples.count;
        }
        if (epoch + 1) % every == 0 || epoch + 1 == epochs {
            let losses = heads.losses()?;
            let values = group.validate(&mut *heads, u64::from(epoch))?;
            for ((curve, loss), value) in curves.iter_mut().zip(losses).zip(values) {
                curve.push((epoch + 1, loss / count.max(1) as f64, value.0));
            }
        }
        progress(1);
    }
    let passes = group.passes(&mut *heads)?;
    let results = tasks
        .iter()
        .zip(curves)
        .enumerate()
        .map(|(index, (&task, curve))| (task, group.result(index, &passes, inputs, curve)));
    Ok(results.collect())
}

/// The value of a network's own head for the task it was trained for end to end; no probe is trained.
pub fn end_to_end(
    encoder: &mut dyn Encoder,
    task: Task,
    table: &Table,
    truth: &GroundTruth,
    protocol: &Protocol,
) -> Result<ProbeResult> {
    if truth.split(Split::Val).is_empty() {
        return Err(Error::Request("there are no held-out objects".to_owned()));
    }
    let group = Group { tasks: &[task], truth, protocol };
    let mut head = OwnHead { encoder, table, columns: group.columns() };
    let passes = group.passes(&mut head)?;
    Ok(group.result(0, &passes, group.views() * table.width, Vec::new()))
}

/// A head that is asked only.
struct OwnHead<'a> {
    encoder: &'a mut dyn Encoder,
    table: &'a Table,
    columns: usize,
}

impl Heads for OwnHead<'_> {
    fn begin_epoch(&mut self) -> Result<()> {
        Ok(())
    }
    fn train(&mut self, _: &Samples, _: usize) -> Result<()> {
        Ok(())
    }
    fn losses(&mut self) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
    fn predict(&mut self, samples: &Samples, batch: usize) -> Result<Vec<f32>> {
        let views = samples.rows.len() / samples.count.max(1);
        let mut outputs = Vec::with_capacity(samples.count * self.columns);
        for rows in samples.rows.chunks((batch * views).max(1)) {
            let inputs: Vec<f32> =
                rows.iter().flat_map(|&row| self.table.row(row as usize)).copied().collect();
            outputs.extend(self.encoder.answer(&inputs, rows.len() / views.max(1))?);
        }
        if outputs.len() != samples.count * self.columns {
            return Err(Error::Request(format!(
                "the network's head has {} outputs, the data ask for {}",
                outputs.len() / samples.count.max(1),
                self.columns
            )));
        }
        Ok(outputs)
    }
}

/// A task's value in one pass, and top-5 for classification.
type Value = (f64, Option<f64>);

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

    /// Columns of a head's outputs.
    fn columns(&self) -> usize {
        if self.is_classification() {
            return self.truth.classes;
        }
        self.tasks.iter().map(|task| task.outputs()).max().unwrap_or(0)
    }

    fn objective(&self) -> cuda::Objective {
        if self.is_classification() {
            cuda::Objective::Classes(self.truth.classes)
        } else {
            cuda::Objective::Numbers(self.tasks.iter().map(|task| task.outputs()).collect())
        }
    }

    /// One sample of every training object, in the order of the epoch's `repeat`-th round.
    fn training_samples(&self, epoch: u32, repeat: u32) -> Samples {
        let repeats = u64::from(self.protocol.samples_per_object.max(1));
        let draw = u64::from(epoch) * repeats + u64::from(repeat);
        let train = self.truth.split(Split::Train);
        let shuffled = order::epoch_order(self.protocol.seed, draw, train.len());
        let objects: Vec<usize> = shuffled.iter().map(|&index| train.start + index as usize).collect();
        self.samples(&objects, draw)
    }

    /// The samples of some objects in one round or pass; `draw` numbers the random views.
    fn samples(&self, objects: &[usize], draw: u64) -> Samples {
        let (seed, views, truth) = (self.protocol.seed, self.truth.views, self.truth);
        let row = |object: usize, view: usize| (object * views + view) as i32;
        let count = objects.len();
        if self.is_classification() {
            let one = |&object: &usize| {
                (row(object, order::single(seed, draw, object, views)), truth.labels[object] as i32)
            };
            let (rows, labels) = objects.par_iter().map(one).unzip();
            return Samples { count, rows, targets: Vec::new(), labels };
        }
        let (tasks, columns) = (self.tasks, self.columns());
        let mut rows = vec![0; 2 * count];
        let mut targets = vec![0.0; count * tasks.len() * columns];
        let places = rows.par_chunks_exact_mut(2).zip(targets.par_chunks_exact_mut(tasks.len() * columns));
        objects.par_iter().zip(places).for_each(|(&object, (rows, targets))| {
            let (first, second) = order::pair(seed, draw, object, views);
            rows.copy_from_slice(&[row(object, first), row(object, second)]);
            for (&task, target) in tasks.iter().zip(targets.chunks_exact_mut(columns)) {
                let wanted = truth.target(task, object, first, second);
                target[..wanted.len()].copy_from_slice(&wanted);
            }
        });
        Samples { count, rows, targets, labels: Vec::new() }
    }

    /// One task's own numbers out of those of all.
    fn of_task(&self, index: usize, values: &[f32]) -> Vec<f32> {
        let columns = self.columns();
        let outputs = self.tasks[index].outputs();
        let rows = values.chunks_exact((self.tasks.len() * columns).max(1));
        rows.flat_map(|row| row[index * columns..index * columns + outputs].iter().copied()).collect()
    }

    /// One pass over the held-out objects: each task's value, and top-5 for classification.
    fn validate(&self, heads: &mut dyn Heads, draw: u64) -> Result<Vec<Value>> {
        let objects: Vec<usize> = self.truth.split(Split::Val).collect();
        let samples = self.samples(&objects, draw);
        let outputs = heads.predict(&samples, self.protocol.batch)?;
        if self.is_classification() {
            let labels: Vec<u32> = objects.iter().map(|&object| self.truth.labels[object]).collect();
            let share = |k| metrics::top_k(&outputs, self.truth.classes, &labels, k);
            return Ok(vec![(share(1), Some(share(5)))]);
        }
        let value = |(index, task): (usize, &Task)| {
            let (outputs, targets) = (self.of_task(index, &outputs), self.of_task(index, &samples.targets));
            let value = metrics::r2(&outputs, &targets).ok_or_else(|| {
                Error::Request(format!("the {task} targets of the held-out objects are all the same"))
            })?;
            Ok((value, None))
        };
        self.tasks.iter().enumerate().map(value).collect()
    }

    /// Several validation passes after the last epoch.
    fn passes(&self, heads: &mut dyn Heads) -> Result<Vec<Vec<Value>>> {
        let epochs = u64::from(self.tasks.first().map_or(0, |&task| self.protocol.epochs_of(task)));
        (0..self.protocol.passes.max(1)).map(|pass| self.validate(heads, epochs + u64::from(pass))).collect()
    }

    fn result(
        &self,
        index: usize,
        passes: &[Vec<Value>],
        input_width: usize,
        curve: Vec<(u32, f64, f64)>,
    ) -> ProbeResult {
        let task = self.tasks[index];
        let values: Vec<f64> = passes.iter().map(|pass| pass[index].0).collect();
        let top5: Vec<f64> = passes.iter().filter_map(|pass| pass[index].1).collect();
        ProbeResult {
            value: Measured::over(&values),
            top5: (!top5.is_empty()).then(|| Measured::over(&top5)),
            floor: self.floor(task, u64::from(self.protocol.epochs_of(task))),
            input_width,
            curve,
        }
    }

    /// What is reached without information, on the views of four passes.
    fn floor(&self, task: Task, draw: u64) -> f64 {
        let val = self.truth.split(Split::Val);
        if task == Task::Classification {
            return metrics::majority(val.map(|object| self.truth.labels[object]));
        }
        let objects: Vec<usize> = val.collect();
        let alone = Group { tasks: &[task], ..*self };
        let targets: Vec<f32> =
            (0..4).flat_map(|pass| alone.samples(&objects, draw + pass).targets).collect();
        metrics::constant_floor(&targets, task.outputs()).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests;
