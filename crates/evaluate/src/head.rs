//! A probe's head: one linear layer, or three with ReLU between, on the engine's device.

use engine::{
    AdamConfig, Device, Initialise, Layout, ParameterId, ParameterStore, StoreBuilder, Tape, Tensor, Var, ops,
};

use crate::error::Result;
use crate::features::Table;
use crate::probe::{Heads, Samples};
use crate::protocol::Protocol;

/// Linear layers with ReLU between, default initialisation, Adam without decay.
#[derive(Debug)]
pub struct Head {
    store: ParameterStore,
    layers: Vec<(ParameterId, ParameterId)>,
    inputs: usize,
    outputs: usize,
    adam: AdamConfig,
}

impl Head {
    /// A head through `widths`: inputs, hidden layers, outputs.
    pub fn new(device: &Device, seed: u64, widths: &[usize], learning_rate: f64) -> Result<Self> {
        let mut builder = StoreBuilder::new();
        let layers = widths
            .windows(2)
            .enumerate()
            .map(|(layer, ends)| {
                let start = Initialise::default_for(ends[0]);
                let name = format!("probe.{}", 2 * layer);
                let weight =
                    builder.parameter(format!("{name}.weight"), [ends[1], ends[0]], Layout::Published, start);
                let bias = builder.parameter(format!("{name}.bias"), [ends[1]], Layout::Published, start);
                (weight, bias)
            })
            .collect();
        Ok(Self {
            store: builder.build(device, seed)?,
            layers,
            inputs: widths.first().copied().unwrap_or(0),
            outputs: widths.last().copied().unwrap_or(0),
            adam: AdamConfig { learning_rate, weight_decay: 0.0, ..AdamConfig::default() },
        })
    }

    /// Numbers out for each row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Numbers in for each row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    fn forward(tape: &mut Tape<'_>, layers: &[(ParameterId, ParameterId)], input: Tensor) -> Result<Var> {
        let mut x = Var::constant(input);
        for (index, &(weight, bias)) in layers.iter().enumerate() {
            if index > 0 {
                x = ops::relu(tape, &x)?;
            }
            let (weight, bias) = (tape.parameter(weight), tape.parameter(bias));
            x = ops::linear(tape, &x, &weight, Some(&bias))?;
        }
        Ok(x)
    }

    fn input(&self, rows: &[f32]) -> Result<Tensor> {
        let device = self.store.device();
        Ok(Tensor::from_slice(device, [rows.len() / self.inputs.max(1), self.inputs], rows)?)
    }

    /// The outputs for rows of inputs.
    pub fn predict(&mut self, rows: &[f32]) -> Result<Vec<f32>> {
        let input = self.input(rows)?;
        let mut tape = Tape::inference(&mut self.store);
        Ok(Self::forward(&mut tape, &self.layers, input)?.value().to_f32()?)
    }

    /// One step of Adam. `loss` gets the outputs and returns the loss with its gradient by the outputs.
    pub fn step(&mut self, rows: &[f32], loss: impl FnOnce(&[f32]) -> (f64, Vec<f32>)) -> Result<f64> {
        let input = self.input(rows)?;
        let device = self.store.device().clone();
        let mut tape = Tape::training(&mut self.store);
        let output = Self::forward(&mut tape, &self.layers, input)?;
        let (value, gradient) = loss(&output.value().to_f32()?);
        let seed = Tensor::from_slice(&device, output.shape(), &gradient)?;
        tape.backward_from(&output, seed)?;
        drop((tape, output));
        self.store.adam_step(&self.adam)?;
        Ok(value)
    }
}

/// One head that learns from a table in the host's memory.
#[derive(Debug)]
pub struct HostHeads<'a> {
    head: Head,
    table: &'a Table,
    classes: Option<usize>,
    loss: f64,
}

impl<'a> HostHeads<'a> {
    /// A head through `widths` on rows of `table`, on `device`.
    pub fn new(
        device: &Device,
        table: &'a Table,
        protocol: &Protocol,
        widths: &[usize],
        is_classification: bool,
    ) -> Result<Self> {
        let head = Head::new(device, protocol.seed, widths, protocol.learning_rate)?;
        let classes = is_classification.then(|| head.outputs());
        Ok(Self { head, table, classes, loss: 0.0 })
    }

    fn inputs(&self, rows: &[i32]) -> Vec<f32> {
        rows.iter().flat_map(|&row| self.table.row(row as usize)).copied().collect()
    }

    fn views(&self) -> usize {
        self.head.inputs() / self.table.width.max(1)
    }
}

impl Heads for HostHeads<'_> {
    fn begin_epoch(&mut self) -> Result<()> {
        self.loss = 0.0;
        Ok(())
    }

    fn train(&mut self, samples: &Samples, batch: usize) -> Result<()> {
        let (batch, outputs) = (batch.max(1), self.head.outputs());
        for (index, rows) in samples.rows.chunks(batch * self.views().max(1)).enumerate() {
            let inputs = self.inputs(rows);
            let first = index * batch;
            let last = samples.count.min(first + batch);
            let classes = self.classes;
            let loss = self.head.step(&inputs, |output| match classes {
                Some(classes) => cross_entropy(output, classes, &samples.labels[first..last]),
                None => mean_squared_error(output, &samples.targets[first * outputs..last * outputs]),
            })?;
            self.loss += loss * (last - first) as f64;
        }
        Ok(())
    }

    fn losses(&mut self) -> Result<Vec<f64>> {
        Ok(vec![self.loss])
    }

    fn predict(&mut self, samples: &Samples, batch: usize) -> Result<Vec<f32>> {
        let mut outputs = Vec::new();
        for rows in samples.rows.chunks((batch * self.views()).max(1)) {
            let inputs = self.inputs(rows);
            outputs.extend(self.head.predict(&inputs)?);
        }
        Ok(outputs)
    }
}

/// Mean squared error over all entries, and its gradient by the predictions.
pub fn mean_squared_error(predictions: &[f32], targets: &[f32]) -> (f64, Vec<f32>) {
    let n = predictions.len().max(1) as f64;
    let gradient =
        predictions.iter().zip(targets).map(|(p, y)| ((f64::from(*p) - f64::from(*y)) * 2.0 / n) as f32);
    let loss: f64 =
        predictions.iter().zip(targets).map(|(p, y)| (f64::from(*p) - f64::from(*y)).powi(2)).sum();
    (loss / n, gradient.collect())
}

/// Cross-entropy, mean over rows of `classes` logits, and its gradient by the logits.
pub fn cross_entropy(logits: &[f32], classes: usize, labels: &[i32]) -> (f64, Vec<f32>) {
    let n = labels.len().max(1) as f64;
    let mut loss = 0.0;
    let mut gradient = Vec::with_capacity(logits.len());
    for (row, &label) in logits.chunks_exact(classes.max(1)).zip(labels) {
        let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|&x| f64::from(x - highest).exp()).sum();
        for (class, &x) in row.iter().enumerate() {
            let log_probability = f64::from(x - highest) - sum.ln();
            let own = class == label as usize;
            if own {
                loss -= log_probability / n;
            }
            gradient.push(((log_probability.exp() - f64::from(u8::from(own))) / n) as f32);
        }
    }
    (loss, gradient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_their_gradients() {
        let (loss, gradient) = mean_squared_error(&[1.0, 2.0], &[0.0, 4.0]);
        assert_eq!((loss, gradient), (2.5, vec![1.0, -2.0]));
        let logits = [0.3_f32, -1.2, 2.0, 0.1, 0.2, 0.3];
        let labels = [2, 0];
        let (loss, gradient) = cross_entropy(&logits, 3, &labels);
        for index in 0..logits.len() {
            let moved = |by: f32| {
                let mut logits = logits;
                logits[index] += by;
                cross_entropy(&logits, 3, &labels).0
            };
            let slope = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            assert!((slope - f64::from(gradient[index])).abs() < 1e-4, "{index}: {slope}");
        }
        let first = -(2.0_f64.exp() / (0.3_f64.exp() + (-1.2_f64).exp() + 2.0_f64.exp())).ln();
        let second = -(0.1_f64.exp() / (0.1_f64.exp() + 0.2_f64.exp() + 0.3_f64.exp())).ln();
        assert!((loss - 0.5 * (first + second)).abs() < 1e-6);
    }

    #[test]
    fn without_a_gradient_nothing_moves() {
        let mut head = Head::new(&Device::cpu(), 0, &[3, 8, 2], 1e-1).unwrap();
        let rows = [0.3, -0.7, 1.1];
        let before = head.predict(&rows).unwrap();
        head.step(&rows, |outputs| (0.0, vec![0.0; outputs.len()])).unwrap();
        assert_eq!(head.predict(&rows).unwrap(), before);
    }

    #[test]
    fn the_losses_of_an_epoch_are_sums_over_samples() {
        let table = Table { width: 1, values: vec![0.1, -0.4, 0.7, 0.2] };
        let samples =
            Samples { count: 3, rows: vec![2, 0, 3], targets: vec![1.0, -1.0, 0.5], labels: Vec::new() };
        // A learning rate of 0: the head is the same before and after.
        let protocol = Protocol { learning_rate: 0.0, ..Protocol::new(crate::Preset::Paper, 3, 3) };
        let mut heads = HostHeads::new(&Device::cpu(), &table, &protocol, &[1, 1], false).unwrap();
        heads.begin_epoch().unwrap();
        // Batches of two samples and of one.
        heads.train(&samples, 2).unwrap();
        let outputs = heads.predict(&samples, 2).unwrap();
        let wanted: f64 = outputs.iter().zip(&samples.targets).map(|(p, y)| f64::from(p - y).powi(2)).sum();
        let losses = heads.losses().unwrap();
        assert!(losses.len() == 1 && (losses[0] - wanted).abs() < 1e-6, "{losses:?} {wanted}");
        heads.begin_epoch().unwrap();
        assert_eq!(heads.losses().unwrap(), [0.0]);
    }

    #[test]
    fn a_head_learns_a_linear_map_and_a_product() {
        let device = Device::cpu();
        let rows: Vec<f32> = (0..400).map(|i| (((i * i * 7 + i * 31) % 101) as f32 / 50.0) - 1.0).collect();
        let targets: Vec<f32> = rows.chunks(2).map(|x| x[0] * x[1]).collect();
        let mut deep = Head::new(&device, 0, &[2, 64, 64, 1], 3e-3).unwrap();
        let mut flat = Head::new(&device, 0, &[2, 1], 3e-3).unwrap();
        let (mut last_deep, mut last_flat) = (0.0, 0.0);
        for _ in 0..300 {
            last_deep = deep.step(&rows, |y| mean_squared_error(y, &targets)).unwrap();
            last_flat = flat.step(&rows, |y| mean_squared_error(y, &targets)).unwrap();
        }
        assert!(last_deep < 0.01 && last_flat > 0.05, "{last_deep} {last_flat}");
    }
}
