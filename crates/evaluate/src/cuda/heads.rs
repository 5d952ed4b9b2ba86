//! Probe heads on the device: several heads with the same layers and the same inputs train as one, side by side.
//!
//! The first layer of all heads is one matrix product (their inputs are the same); the others are one batched product
//! each. A step is about fifteen launches without waiting for the device. Arithmetic is float32 throughout, never TF32.
//!
//! Layouts, `H` heads: parameters layer by layer, weights `(H, out, in)` then biases `(H, out)`, each part starting at a
//! multiple of 64 numbers; activations `(rows, H, out)`. Heads with fewer outputs than the widest have rows of zeros at
//! the end, whose gradients are zero, so that they stay.

use engine::{AdamConfig, Initialise};
use gpu::matmul::MatmulShape;
use gpu::{Buffer, Launch, Precision};

use super::{DeviceTable, Session};
use crate::error::Result;

/// What the heads are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objective {
    /// One head: logits of this many classes.
    Classes(usize),
    /// Mean squared error; numbers that each head predicts, at most 15.
    Numbers(Vec<usize>),
}

impl Objective {
    /// Number of heads.
    pub fn heads(&self) -> usize {
        match self {
            Self::Classes(_) => 1,
            Self::Numbers(outputs) => outputs.len(),
        }
    }

    /// Columns of a head's outputs, padding included.
    pub fn columns(&self) -> usize {
        match self {
            Self::Classes(classes) => *classes,
            Self::Numbers(outputs) => outputs.iter().copied().max().unwrap_or(1),
        }
    }

    /// Columns of a head that count.
    fn outputs(&self, head: usize) -> usize {
        match self {
            Self::Classes(classes) => *classes,
            Self::Numbers(outputs) => outputs.get(head).copied().unwrap_or(0),
        }
    }
}

/// One layer of all heads: sizes, and where its parameters start.
#[derive(Clone, Copy, Debug)]
struct Layer {
    inputs: usize,
    outputs: usize,
    weight: usize,
    bias: usize,
}

/// Parts of the flat parameters start at multiples of this many numbers.
const ALIGNMENT: usize = 64;

/// Heads that train side by side.
#[derive(Debug)]
pub struct HeadGroup {
    session: Session,
    objective: Objective,
    layers: Vec<Layer>,
    /// Values, gradients, first and second moments.
    parameters: [Buffer; 4],
    len: usize,
    /// Inputs, then the outputs of each layer; gradients of the latter.
    activations: Vec<Buffer>,
    gradients: Vec<Buffer>,
    losses: Buffer,
    adam: AdamConfig,
    step: u64,
    capacity: usize,
}

impl HeadGroup {
    /// Heads from `inputs` through `hidden` layers to the objective, started as [`crate::head::Head`] starts them, for
    /// as many as `capacity` rows at a time.
    pub fn new(
        session: &Session,
        seed: u64,
        inputs: usize,
        hidden: &[usize],
        objective: Objective,
        learning_rate: f64,
        capacity: usize,
    ) -> Result<Self> {
        let heads = objective.heads();
        let widths: Vec<usize> =
            std::iter::once(inputs).chain(hidden.iter().copied()).chain([objective.columns()]).collect();
        let mut layers = Vec::new();
        let mut values: Vec<f32> = Vec::new();
        for (index, ends) in widths.windows(2).enumerate() {
            let is_last = index + 2 == widths.len();
            let start = Initialise::default_for(ends[0]);
            let mut part = |kind: &str, inner: usize| {
                let at = values.len();
                for head in 0..heads {
                    let outputs = if is_last { objective.outputs(head) } else { ends[1] };
                    let name = format!("probe.{}.{kind}", 2 * index);
                    let mut own = start.values(seed, &name, outputs * inner);
                    own.resize(ends[1] * inner, 0.0);
                    values.extend(own);
                }
                values.resize(values.len().next_multiple_of(ALIGNMENT), 0.0);
                at
            };
            let (weight, bias) = (part("weight", ends[0]), part("bias", 1));
            layers.push(Layer { inputs: ends[0], outputs: ends[1], weight, bias });
        }
        let context = session.context();
        let zeros = || context.allocate_zeroed(values.len() * 4);
        let parameters = [session.upload(&values)?, zeros()?, zeros()?, zeros()?];
        let mut activations = vec![context.allocate(capacity * inputs * 4)?];
        let mut gradients = Vec::new();
        for layer in &layers {
            activations.push(context.allocate(capacity * heads * layer.outputs * 4)?);
            gradients.push(context.allocate(capacity * heads * layer.outputs * 4)?);
        }
        Ok(Self {
            session: session.clone(),
            objective,
            layers,
            parameters,
            len: values.len(),
            activations,
            gradients,
            losses: context.allocate_zeroed(heads * 8)?,
            adam: AdamConfig { learning_rate, weight_decay: 0.0, ..AdamConfig::default() },
            step: 0,
            capacity,
        })
    }

    /// Most rows at a time.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// What the heads are asked for.
    pub fn objective(&self) -> &Objective {
        &self.objective
    }

    fn parameter(&self, kind: usize, at: usize) -> u64 {
        self.parameters[kind].address() + at as u64 * 4
    }

    /// The product of one layer for all heads: forward, by the weights, by the inputs.
    fn shape(&self, index: usize, rows: usize, pass: Pass) -> MatmulShape {
        let Layer { inputs, outputs, .. } = self.layers[index];
        let heads = self.objective.heads();
        let plain =
            |rows, columns, inner| MatmulShape::new(rows, columns, inner, Precision::F32, Precision::F32);
        // The first layer's heads share their inputs: one product with all weights below each other.
        if index == 0 {
            return match pass {
                Pass::Forward => plain(rows, heads * outputs, inputs).transposed(false, true),
                Pass::Weights => plain(heads * outputs, inputs, rows).transposed(true, false),
                Pass::Inputs => plain(rows, inputs, heads * outputs),
            };
        }
        let (of_x, of_w, of_y) =
            ((heads * inputs, inputs), (inputs, outputs * inputs), (heads * outputs, outputs));
        let batched = |shape: MatmulShape, parts: [(usize, usize); 3]| MatmulShape {
            batch: heads,
            row_strides: parts.map(|part| part.0),
            batch_strides: parts.map(|part| part.1),
            ..shape
        };
        match pass {
            Pass::Forward => {
                batched(plain(rows, outputs, inputs).transposed(false, true), [of_x, of_w, of_y])
            }
            Pass::Weights => {
                batched(plain(outputs, inputs, rows).transposed(true, false), [of_y, of_x, of_w])
            }
            Pass::Inputs => batched(plain(rows, inputs, outputs), [of_y, of_w, of_x]),
        }
    }

    fn multiply(&self, shape: &MatmulShape, a: u64, b: u64, c: u64) -> Result<()> {
        let context = self.session.context();
        // SAFETY: buffers were made for these layers and `capacity` rows; `gather` checks the rows.
        unsafe { context.matmuls()?.multiply(context, shape, (1.0, 0.0), a, b, c)? };
        Ok(())
    }

    /// Inputs of the samples from `first` on: `rows` has `views` rows of the table for each.
    fn gather(&self, table: &DeviceTable, rows: &Buffer, first: usize, count: usize) -> Result<()> {
        let views = self.layers.first().map_or(1, |layer| layer.inputs) / table.width.max(1);
        debug_assert!(count <= self.capacity);
        let indices = rows.view().part(first * views * 4, count * views * 4)?;
        let sample_rows = count * views;
        let arguments = [
            (&table.buffer).into(),
            indices.into(),
            (&self.activations[0]).into(),
            (sample_rows as i64).into(),
            table.width.into(),
        ];
        let work = if table.width.is_multiple_of(4) {
            sample_rows * table.width / 4
        } else {
            sample_rows * table.width
        };
        self.session.launch("gather", self.session.elementwise(work), &arguments)
    }

    /// The layers up to the last product; its bias is added by what follows.
    fn forward(&self, count: usize) -> Result<()> {
        let last = self.layers.len() - 1;
        for (index, layer) in self.layers.iter().enumerate() {
            let (x, y) = (self.activations[index].address(), &self.activations[index + 1]);
            self.multiply(
                &self.shape(index, count, Pass::Forward),
                x,
                self.parameter(0, layer.weight),
                y.address(),
            )?;
            if index < last {
                self.add_bias(index, count, true)?;
            }
        }
        Ok(())
    }

    fn add_bias(&self, index: usize, count: usize, relu: bool) -> Result<()> {
        let layer = self.layers[index];
        let columns = self.objective.heads() * layer.outputs;
        let bias = gpu::Argument::Address(self.parameter(0, layer.bias));
        let arguments = [
            (&self.activations[index + 1]).into(),
            bias,
            ((count * columns) as i64).into(),
            columns.into(),
            i32::from(relu).into(),
        ];
        self.session.launch("add_bias", self.session.elementwise(count * columns), &arguments)
    }

    /// One step of Adam on the samples `first .. first + count`. `rows`: indices into the table; `targets`: labels, or
    /// numbers `(samples, heads, columns)`.
    pub fn train(
        &mut self,
        table: &DeviceTable,
        rows: &Buffer,
        targets: &Buffer,
        first: usize,
        count: usize,
    ) -> Result<()> {
        self.gather(table, rows, first, count)?;
        self.forward(count)?;
        self.loss(targets, first, count)?;
        let heads = self.objective.heads();
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (x, dy) = (self.activations[index].address(), self.gradients[index].address());
            let dw = self.parameter(1, layer.weight);
            self.multiply(&self.shape(index, count, Pass::Weights), dy, x, dw)?;
            if index > 0 {
                let dx = &self.gradients[index - 1];
                let w = self.parameter(0, layer.weight);
                self.multiply(&self.shape(index, count, Pass::Inputs), dy, w, dx.address())?;
                let sums = gpu::Argument::Address(self.parameter(1, self.layers[index - 1].bias));
                let columns = heads * layer.inputs;
                let arguments =
                    [dx.into(), (&self.activations[index]).into(), sums, count.into(), columns.into()];
                let launch = Launch::linear(columns.div_ceil(32), 1024);
                self.session.launch("relu_backward", launch, &arguments)?;
            }
        }
        self.update()
    }

    fn loss(&self, targets: &Buffer, first: usize, count: usize) -> Result<()> {
        let last = self.layers.len() - 1;
        let (heads, columns) = (self.objective.heads(), self.objective.columns());
        let (y, dy) = (&self.activations[last + 1], &self.gradients[last]);
        let bias = gpu::Argument::Address(self.parameter(0, self.layers[last].bias));
        let sums = gpu::Argument::Address(self.parameter(1, self.layers[last].bias));
        match &self.objective {
            Objective::Classes(_) => {
                let labels = targets.view().part(first * 4, count * 4)?;
                let arguments = [
                    y.into(),
                    bias,
                    labels.into(),
                    dy.into(),
                    (&self.losses).into(),
                    count.into(),
                    columns.into(),
                ];
                self.session.launch("cross_entropy", Launch::linear(1, 1024), &arguments)?;
                let nothing = gpu::Argument::Address(0);
                let arguments = [dy.into(), nothing, sums, count.into(), columns.into()];
                self.session.launch("relu_backward", Launch::linear(columns.div_ceil(32), 1024), &arguments)
            }
            Objective::Numbers(outputs) => {
                let width = heads * columns;
                let wanted = targets.view().part(first * width * 4, count * width * 4)?;
                let digits = outputs.iter().rev().fold(0, |digits, &outputs| digits * 16 + outputs);
                let arguments = [
                    y.into(),
                    bias,
                    wanted.into(),
                    dy.into(),
                    sums,
                    (&self.losses).into(),
                    count.into(),
                    heads.into(),
                    columns.into(),
                    digits.into(),
                ];
                self.session.launch("mean_squared_error", Launch::linear(1, 1024), &arguments)
            }
        }
    }

    fn update(&mut self) -> Result<()> {
        self.step += 1;
        let numbers = self.adam.at(self.step);
        let [values, gradients, first, second] = &self.parameters;
        let quads = self.len / 4;
        let arguments = [
            values.into(),
            gradients.into(),
            first.into(),
            second.into(),
            (quads as i64).into(),
            numbers.beta1.0.into(),
            numbers.beta1.1.into(),
            numbers.beta2.0.into(),
            numbers.beta2.1.into(),
            numbers.step_size.into(),
            numbers.root_scale.into(),
            numbers.epsilon.into(),
        ];
        self.session.launch("adam", self.session.elementwise(quads), &arguments)
    }

    /// Forgets the losses so far.
    pub fn reset_losses(&mut self) -> Result<()> {
        // SAFETY: the buffer is ours.
        unsafe { self.session.context().fill(self.losses.view(), 0)? };
        Ok(())
    }

    /// The sum over samples of each head's loss since the last reset; waits for the device.
    pub fn losses(&self) -> Result<Vec<f64>> {
        self.session.download(&self.losses, self.objective.heads())
    }

    /// Outputs `(count, heads, columns)` for samples, at most `capacity` of them; waits for the device.
    pub fn predict(
        &self,
        table: &DeviceTable,
        rows: &Buffer,
        first: usize,
        count: usize,
    ) -> Result<Vec<f32>> {
        self.gather(table, rows, first, count)?;
        self.forward(count)?;
        let last = self.layers.len() - 1;
        self.add_bias(last, count, false)?;
        let columns = self.objective.heads() * self.objective.columns();
        self.session.download(&self.activations[last + 1], count * columns)
    }
}

/// The three products of a linear layer.
#[derive(Clone, Copy, Debug)]
enum Pass {
    /// `y = x W^T`
    Forward,
    /// `dW = dy^T x`
    Weights,
    /// `dx = dy W`
    Inputs,
}
