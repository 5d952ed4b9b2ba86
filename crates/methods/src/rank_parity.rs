//! Whether N ranks compute what one rank computes: a few steps of a network on random pairs, of which every rank makes
//! its own, and how far two such courses are apart.

use std::sync::Arc;

use engine::ops::Images;
use engine::{AdamConfig, Collective, Device, Result, State, Tensor};
use pose::ViewPose;
use random::{Random, Stream};
use serde::{Deserialize, Serialize};

use crate::batch::{PairBatch, PairTargets};
use crate::config::MethodConfig;
use crate::probes::ProbesConfig;
use crate::step::{Step, StepOptions};

/// Largest difference of losses, relative to them.
pub const LOSS_BOUND: f64 = 1e-5;
/// Largest difference of gradients, relative to the norm of the tensor.
pub const GRADIENT_BOUND: f64 = 1e-4;
/// How many times as far apart as two orders of the same sums weights may be in the end.
pub const DRIFT_BOUND: f64 = 4.0;

/// Drift below this does not count: rounding moves a weight near a kink by as much, or does not, as it happens.
pub const LEAST_DRIFT: f64 = 5e-3;

/// In which order the pairs of a batch come: it changes nothing but the order of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Forward,
    /// From the last to the first.
    Backward,
    /// Those at odd places, then those at even ones.
    Odd,
}

/// The course of a few steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// The loss of every step.
    pub losses: Vec<f64>,
    /// The gradients of the first step, tensor by tensor.
    pub gradients: Vec<Vec<f32>>,
    /// The weights after the last step, one after the other.
    pub weights: Vec<f32>,
}

/// How far two courses are apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Apart {
    /// Of the losses of the first step, relative.
    pub first_loss: f64,
    /// Of the losses of any step, relative.
    pub losses: f64,
    /// Of the gradients of the first step: the largest over all tensors, relative to the tensor's norm.
    pub gradients: f64,
    /// Of the weights after the last step, relative to how large they are.
    pub weights: f64,
}

/// What a course is of.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The network; its batch is that of all ranks.
    pub config: &'a MethodConfig,
    /// So many steps.
    pub steps: usize,
    /// With online probes.
    pub probes: bool,
    /// Steps as graphs.
    pub graphs: bool,
    /// Blocks computed again in backward.
    pub recompute: bool,
}

/// The course of one rank with others.
pub fn course(task: &Task<'_>, device: &Device, ranks: &Arc<dyn Collective>, order: Order) -> Result<Course> {
    let config = task.config;
    let probes = task.probes.then(|| ProbesConfig::of_objects(config.classes, &[pose::Part::Rotation]));
    let options = StepOptions { probes, graphs: task.graphs, recompute: task.recompute, muon: None };
    let mut step = Step::new(config, device, 11, options)?.with_ranks(Arc::clone(ranks));
    step.take_from_first()?;
    let adam = AdamConfig::default();
    let mut course = Course::default();
    for number in 0..task.steps {
        let place = |pair: usize| match order {
            Order::Forward => pair,
            Order::Backward => config.batch - 1 - pair,
            Order::Odd if pair < config.batch / 2 => 2 * pair + 1,
            Order::Odd => 2 * (pair - config.batch / 2),
        };
        let pairs: Vec<usize> = ranks.share(config.batch).map(place).collect();
        let batch = batch(config, device, number, &pairs)?;
        if number == 0 {
            step.gradients(&batch)?;
            let store = &step.network().store;
            for id in store.parameters() {
                course.gradients.push(store.export(State::Gradient, id)?);
            }
        }
        course.losses.push(step.step(&batch, &adam)?.read()?.loss);
    }
    let store = &step.network().store;
    for id in store.parameters() {
        course.weights.extend(store.export(State::Value, id)?);
    }
    Ok(course)
}

/// Some pairs of the batch of step `number`: each is the same whoever makes it.
fn batch(config: &MethodConfig, device: &Device, number: usize, pairs: &[usize]) -> Result<PairBatch> {
    let (side, index) = (config.image_size, |pair: usize| (number * config.batch + pair) as u64);
    let view = |which: &'static str| {
        let mut bytes = Vec::with_capacity(pairs.len() * side * side * 3);
        for &pair in pairs {
            let mut random = Random::new(3, Stream::new(which), index(pair));
            // Smooth images with a colour of their own: noise alone all looks alike to a convolution.
            let base: [f64; 3] = std::array::from_fn(|_| random.range(60.0, 190.0));
            let slope: [f64; 2] = std::array::from_fn(|_| random.range(-60.0, 60.0) / side as f64);
            for place in 0..side * side {
                let tone = slope[0] * (place % side) as f64 + slope[1] * (place / side) as f64;
                bytes.extend(base.map(|base| (base + tone + random.range(-20.0, 20.0)) as u8));
            }
        }
        Images::from_bytes(device, [pairs.len(), side, side], &bytes, [0.5; 3], [0.25; 3])
    };
    let pose = |pair: usize, which: u64| {
        let mut random = Random::new(3, Stream::new("rank-parity-poses"), 2 * index(pair) + which);
        let mut three = |bound: f64| std::array::from_fn(|_| random.range(-bound, bound));
        ViewPose::published_precision(three(1.5), three(0.5))
    };
    let poses: Vec<_> = pairs.iter().map(|&pair| [pose(pair, 0), pose(pair, 1)]).collect();
    let numbers = |of: usize| pairs.iter().map(|&pair| (pair % of) as i32).collect::<Vec<i32>>();
    let mut targets = PairTargets::from_poses(device, config.transform, &poses)?
        .with_labels(device, &numbers(config.classes))?
        .with_hues(device, &pairs.iter().map(|&pair| [pair as f32 * 0.1, 0.3]).collect::<Vec<_>>())?;
    // Two pairs of every object, half a batch apart, and so on different ranks.
    let objects = numbers((config.batch / 2).max(1));
    targets.objects = Some(Tensor::from_slice(device, [pairs.len()], &objects)?);
    let views = [view("rank-parity-first")?, view("rank-parity-second")?];
    Ok(PairBatch { views, targets, whole: Some(config.batch) })
}

impl Course {
    /// How far `other` is from this one.
    pub fn apart(&self, other: &Self) -> Apart {
        let relative = |(a, b): (&f64, &f64)| (a - b).abs() / a.abs().max(1e-12);
        let losses: Vec<f64> = self.losses.iter().zip(&other.losses).map(relative).collect();
        let norm = |values: &[f32]| values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
        let difference = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum::<f64>().sqrt()
        };
        let whole = self.gradients.iter().map(|gradient| norm(gradient).powi(2)).sum::<f64>().sqrt();
        // A gradient that is zero but for rounding (of a bias before a batch norm) is compared with all of them.
        let gradients = self.gradients.iter().zip(&other.gradients);
        let gradients = gradients.map(|(a, b)| difference(a, b) / norm(a).max(1e-3 * whole));
        let largest = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(0.0, |largest: f64, value| if value.is_nan() { value } else { largest.max(value) })
        };
        Apart {
            first_loss: losses.first().copied().unwrap_or(f64::NAN),
            losses: largest(&mut losses.into_iter()),
            gradients: largest(&mut gradients.into_iter()),
            weights: difference(&self.weights, &other.weights) / norm(&self.weights),
        }
    }
}

impl Apart {
    /// Whether it is within the bounds, where other orders of the same sums move weights by `drift`.
    pub fn is_within(&self, drift: f64) -> bool {
        self.first_loss <= LOSS_BOUND
            && self.gradients <= GRADIENT_BOUND
            && self.weights <= DRIFT_BOUND * drift.max(LEAST_DRIFT)
    }
}
