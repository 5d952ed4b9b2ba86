//! Probe heads: one linear layer each, or three with ReLU between. Heads with the same layers and the same inputs train
//! side by side, by the same operations of the engine on every device.
//!
//! The first layer of all heads is one matrix product (their inputs are the same); the others are one batched product
//! each. Heads with fewer outputs than the widest have rows of zeros at the end, whose gradients are zero, so that they
//! stay. Losses are summed where they are, and the inputs of a step have a place of their own for each batch size, so
//! that a GPU repeats a step as a whole and is never waited for.

use std::collections::HashMap;

use engine::{
    AdamConfig, DType, Device, Feed, Initialise, Layout, ParameterId, ParameterStore, Part, State, StepGraph,
    StoreBuilder, Tape, Tensor, Var, ops,
};

use crate::error::Result;
use crate::feature_table::FeatureTable;
use crate::probe::Samples;
use crate::protocol::Protocol;

/// Samples of one validation product.
const VALIDATION_SAMPLES: usize = 4096;

/// What heads look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadsConfig {
    /// Rows of the table that make one input.
    pub views: usize,
    /// Widths of hidden layers.
    pub hidden: Vec<usize>,
    /// Outputs of each head.
    pub outputs: Vec<usize>,
    /// Whether the outputs (of a single head) are logits of classes, trained by cross-entropy; else numbers, by mean
    /// squared error.
    pub is_classification: bool,
}

/// Heads that train side by side: default initialisation, Adam without decay.
#[derive(Debug)]
pub struct Heads<'a> {
    config: HeadsConfig,
    table: &'a FeatureTable<'a>,
    store: ParameterStore,
    layers: Vec<(ParameterId, ParameterId)>,
    adam: AdamConfig,
    feed: Feed,
    /// By batch size.
    places: HashMap<usize, Place>,
    /// The outputs of each head, on the device.
    sizes: Tensor,
    /// The gradient of every loss: 1.
    seed: Tensor,
    /// The sum over samples of each head's loss.
    losses: Tensor,
}

/// Where a step finds its inputs.
#[derive(Debug)]
struct Place {
    inputs: Tensor,
    targets: Tensor,
    step: StepGraph<()>,
}

impl<'a> Heads<'a> {
    /// Heads on rows of `table`. Each starts as it would alone.
    pub fn new(
        device: &Device,
        table: &'a FeatureTable<'a>,
        config: HeadsConfig,
        protocol: &Protocol,
    ) -> Result<Self> {
        let (heads, columns) = (config.outputs.len(), config.columns());
        let inputs = config.views * table.width();
        let widths = [&[inputs], &config.hidden[..], &[columns]].concat();
        let mut builder = StoreBuilder::new();
        let mut declare = |name: String, shape: &[usize]| {
            builder.parameter(name, shape, Layout::Published, Initialise::Constant(0.0))
        };
        let layers: Vec<(ParameterId, ParameterId)> = widths
            .windows(2)
            .enumerate()
            .map(|(layer, ends)| {
                let name = format!("probe.{}", 2 * layer);
                let weight = declare(format!("{name}.weight"), &[heads, ends[1], ends[0]]);
                (weight, declare(format!("{name}.bias"), &[heads, ends[1]]))
            })
            .collect();
        let mut store = builder.build(device, protocol.seed)?;
        for (&(weight, bias), ends) in layers.iter().zip(widths.windows(2)) {
            let start = Initialise::default_for(ends[0]);
            let is_last = layers.last() == Some(&(weight, bias));
            for (id, inner) in [(weight, ends[0]), (bias, 1)] {
                let values: Vec<f32> = config
                    .outputs
                    .iter()
                    .flat_map(|&outputs| {
                        let own = if is_last { outputs } else { ends[1] };
                        let mut values = start.values(protocol.seed, store.name(id), own * inner);
                        values.resize(ends[1] * inner, 0.0);
                        values
                    })
                    .collect();
                store.import(State::Value, id, &values)?;
            }
        }
        let sizes: Vec<i32> = config.outputs.iter().map(|&outputs| outputs as i32).collect();
        Ok(Self {
            config,
            table,
            store,
            layers,
            adam: AdamConfig {
                learning_rate: protocol.learning_rate,
                weight_decay: 0.0,
                ..AdamConfig::default()
            },
            feed: Feed::new(device)?,
            places: HashMap::new(),
            sizes: Tensor::from_slice(device, [heads], &sizes)?,
            seed: Tensor::from_slice(device, [heads], &vec![1.0_f32; heads])?,
            losses: Tensor::zeros(device, [heads], DType::F32)?,
        })
    }

    /// Forgets the losses so far.
    pub fn begin_epoch(&mut self) -> Result<()> {
        Ok(self.losses.fill_zero()?)
    }

    /// The sum over samples of each head's loss in this epoch; waits for the device.
    pub fn losses(&self) -> Result<Vec<f64>> {
        Ok(self.losses.to_f32()?.into_iter().map(f64::from).collect())
    }

    /// Steps of Adam over the samples, `batch` at a time; the last partial batch is kept.
    pub fn train(&mut self, samples: &Samples, batch: usize) -> Result<()> {
        let (count, batch) = (samples.count, batch.max(1));
        let targets = if self.config.is_classification {
            Part::new([count], &samples.labels)?
        } else {
            Part::new([count, self.config.outputs.len(), self.config.columns()], &samples.targets)?
        };
        let round = self.feed.upload(&[Part::new([samples.rows.len()], &samples.rows)?, targets])?;
        for first in (0..count).step_by(batch) {
            self.step(samples, &round, first, batch.min(count - first))?;
        }
        drop(round);
        Ok(self.feed.finish()?)
    }

    /// One step on `count` samples from `first` on; `round` has rows and targets of all of them.
    fn step(&mut self, samples: &Samples, round: &[Tensor], first: usize, count: usize) -> Result<()> {
        let Self { config, table, store, layers, places, sizes, seed, losses, .. } = self;
        let (views, device) = (config.views, store.device().clone());
        let place = match places.entry(count) {
            std::collections::hash_map::Entry::Occupied(place) => place.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let shape = [&[count], &round[1].dims()[1..]].concat();
                place.insert(Place {
                    inputs: table.room(&device, count * views)?,
                    targets: Tensor::empty(&device, shape.as_slice(), round[1].dtype())?,
                    step: StepGraph::new(),
                })
            }
        };
        let Place { inputs, targets, step } = place;
        match table {
            FeatureTable::Host(_) => {
                table.fill(inputs, &samples.rows[first * views..(first + count) * views])?;
            }
            FeatureTable::Device(_) => ops::copy_rows(&device, &round[0], first * views, inputs)?,
        }
        ops::copy_rows(&device, &round[1], first, targets)?;
        step.run(store, |store| {
            let features = table.features(&device, inputs, views)?;
            let mut tape = Tape::training(store);
            let outputs = forward(&mut tape, layers, features)?;
            let loss = if config.is_classification {
                let logits = ops::reshape(&mut tape, &outputs, [count, config.columns()])?;
                ops::class_cross_entropy(&mut tape, &logits, targets)?
            } else {
                ops::grouped_mse(&mut tape, &outputs, targets, sizes)?
            };
            ops::add_scaled(&device, loss.value(), count as f32, losses)?;
            tape.backward_from(&loss, seed.clone())
        })?;
        Ok(self.store.update(&self.adam)?)
    }

    /// Outputs (samples, heads, columns); waits for the device.
    pub fn predict(&mut self, samples: &Samples) -> Result<Vec<f32>> {
        self.predict_on(self.table, samples)
    }

    /// Outputs (samples, heads, columns) for rows of another table; waits for the device.
    pub fn predict_on(&mut self, table: &FeatureTable<'_>, samples: &Samples) -> Result<Vec<f32>> {
        let (views, device) = (self.config.views, self.store.device().clone());
        let mut outputs = Vec::new();
        for rows in samples.rows.chunks(VALIDATION_SAMPLES * views.max(1)) {
            let mut inputs = table.room(&device, rows.len())?;
            table.fill(&mut inputs, rows)?;
            let features = table.features(&device, &inputs, views)?;
            let mut tape = Tape::inference(&mut self.store);
            outputs.extend(forward(&mut tape, &self.layers, features)?.value().to_f32()?);
        }
        Ok(outputs)
    }
}

impl HeadsConfig {
    /// Columns of a head's outputs, padding included.
    pub fn columns(&self) -> usize {
        self.outputs.iter().copied().max().unwrap_or(0)
    }
}

/// The outputs (rows, heads, columns) for features (rows, inputs).
fn forward(
    tape: &mut Tape<'_>,
    layers: &[(ParameterId, ParameterId)],
    features: Tensor,
) -> engine::Result<Var> {
    let mut x = Var::constant(features);
    for (index, &(weight, bias)) in layers.iter().enumerate() {
        let (weight, bias) = (tape.parameter(weight), tape.parameter(bias));
        x = if index + 1 < layers.len() {
            ops::batched_linear_relu(tape, &x, &weight, &bias)?
        } else {
            ops::batched_linear(tape, &x, &weight, &bias)?
        };
    }
    Ok(x)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::features::Table;

    fn numbers(hidden: &[usize], outputs: &[usize]) -> HeadsConfig {
        let (hidden, outputs) = (hidden.to_vec(), outputs.to_vec());
        HeadsConfig { views: 1, hidden, outputs, is_classification: false }
    }

    fn protocol(learning_rate: f64) -> Protocol {
        Protocol { learning_rate, ..Protocol::new(crate::Preset::Paper, 3, 3000, 3000) }
    }

    /// Rows of pairs of numbers.
    fn pairs(rows: i32) -> (Table, Vec<i32>) {
        let values = (0..2 * rows).map(|i| (((i * i * 7 + i * 31) % 101) as f32 / 50.0) - 1.0).collect();
        (Table { width: 2, values }, (0..rows).collect())
    }

    fn samples(rows: &[i32], targets: Vec<f32>) -> Samples {
        Samples { count: rows.len(), rows: rows.to_vec(), targets, labels: Vec::new() }
    }

    #[test]
    fn without_a_gradient_nothing_moves() {
        let table = Table { width: 3, values: vec![0.3, -0.7, 1.1] };
        let table = FeatureTable::Host(Cow::Borrowed(&table));
        let mut heads = Heads::new(&Device::cpu(), &table, numbers(&[8], &[2]), &protocol(0.1)).unwrap();
        let before = heads.predict(&samples(&[0], Vec::new())).unwrap();
        heads.train(&samples(&[0], before.clone()), 1).unwrap();
        assert_eq!(heads.predict(&samples(&[0], Vec::new())).unwrap(), before);
        heads.train(&samples(&[0], vec![9.0; 2]), 1).unwrap();
        assert_ne!(heads.predict(&samples(&[0], Vec::new())).unwrap(), before);
    }

    #[test]
    fn the_losses_of_an_epoch_are_sums_over_samples() {
        let table = Table { width: 1, values: vec![0.1, -0.4, 0.7, 0.2] };
        let table = FeatureTable::Host(Cow::Borrowed(&table));
        let samples = samples(&[2, 0, 3], vec![1.0, -1.0, 0.5]);
        // A learning rate of 0: the head is the same before and after.
        let mut heads = Heads::new(&Device::cpu(), &table, numbers(&[], &[1]), &protocol(0.0)).unwrap();
        heads.begin_epoch().unwrap();
        // Batches of two samples and of one.
        heads.train(&samples, 2).unwrap();
        let outputs = heads.predict(&samples).unwrap();
        let wanted: f64 = outputs.iter().zip(&samples.targets).map(|(p, y)| f64::from(p - y).powi(2)).sum();
        let losses = heads.losses().unwrap();
        assert!(losses.len() == 1 && (losses[0] - wanted).abs() < 1e-6, "{losses:?} {wanted}");
        heads.begin_epoch().unwrap();
        assert_eq!(heads.losses().unwrap(), [0.0]);
    }

    #[test]
    fn heads_learn_a_product_only_with_hidden_layers() {
        let (table, rows) = pairs(200);
        let targets = table.values.chunks(2).map(|x| x[0] * x[1]).collect();
        let (table, samples) = (FeatureTable::Host(Cow::Borrowed(&table)), samples(&rows, targets));
        let last = |hidden: &[usize]| {
            let mut heads =
                Heads::new(&Device::cpu(), &table, numbers(hidden, &[1]), &protocol(3e-3)).unwrap();
            for _ in 0..300 {
                heads.begin_epoch().unwrap();
                heads.train(&samples, 200).unwrap();
            }
            heads.losses().unwrap()[0] / 200.0
        };
        let (deep, flat) = (last(&[64, 64]), last(&[]));
        assert!(deep < 0.01 && flat > 0.05, "{deep} {flat}");
    }

    #[test]
    fn heads_side_by_side_learn_what_each_learns_alone() {
        let (table, rows) = pairs(60);
        let wide: Vec<f32> = table.values.chunks(2).flat_map(|x| [x[0] * x[1], x[0], -x[1]]).collect();
        let narrow: Vec<f32> = table.values.chunks(2).map(|x| x[0].abs()).collect();
        let both = wide.chunks(3).zip(&narrow).flat_map(|(a, &b)| [a[0], a[1], a[2], b, 0.0, 0.0]).collect();
        // The same table on the device, with rows found by their numbers, and on the host.
        let device = Device::cpu();
        let on_device = FeatureTable::Device(Tensor::from_slice(&device, [60, 2], &table.values).unwrap());
        let on_host = FeatureTable::Host(Cow::Borrowed(&table));
        let run = |table: &FeatureTable<'_>, outputs: &[usize], targets: Vec<f32>| {
            let mut heads = Heads::new(&device, table, numbers(&[16, 16], outputs), &protocol(1e-2)).unwrap();
            let samples = samples(&rows, targets);
            (0..5).for_each(|_| heads.train(&samples, 16).unwrap());
            (heads.predict(&samples).unwrap(), heads.losses().unwrap())
        };
        let (together, losses) = run(&on_host, &[3, 1], both);
        let alone = [run(&on_host, &[3], wide), run(&on_device, &[1], narrow)];
        for (head, (outputs, (predicted, loss))) in [3, 1].into_iter().zip(&alone).enumerate() {
            assert!((losses[head] - loss[0]).abs() < 1e-3 * loss[0], "{losses:?} {loss:?}");
            for (row, wanted) in together.chunks(6).zip(predicted.chunks(outputs)) {
                let own = &row[3 * head..3 * head + 3];
                assert!(own.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4), "{own:?} {wanted:?}");
                assert!(own[outputs..].iter().all(|&padding| padding == 0.0), "{own:?}");
            }
        }
    }

    #[test]
    fn classes_are_learned() {
        let (table, rows) = pairs(100);
        let labels: Vec<i32> = table.values.chunks(2).map(|x| i32::from(x[0] > x[1])).collect();
        let table = FeatureTable::Host(Cow::Borrowed(&table));
        let config = HeadsConfig { is_classification: true, ..numbers(&[], &[2]) };
        let mut heads = Heads::new(&Device::cpu(), &table, config, &protocol(0.1)).unwrap();
        let samples = Samples { labels: labels.clone(), ..samples(&rows, Vec::new()) };
        (0..40).for_each(|_| heads.train(&samples, 32).unwrap());
        let logits = heads.predict(&samples).unwrap();
        let right = logits.chunks(2).zip(&labels).filter(|(l, label)| i32::from(l[1] > l[0]) == **label);
        assert!(right.count() > 95);
    }
}
