//! Multi-layer perceptrons: the projector (with batch norms) and the head (without).

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Var};

use crate::layers::{BatchNorm, Linear};

/// Sizes of the projector "a-b-c".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MlpProjectorConfig {
    /// Input width.
    pub input: usize,
    /// Widths of the layers; the last is the embedding's.
    pub widths: Vec<usize>,
}

/// Linear, batch norm, ReLU; ...; a last linear without bias. Names count as in a sequential container: 0, 1, 3, 4, 6.
#[derive(Clone, Debug)]
pub struct MlpProjector {
    hidden: Vec<(Linear, BatchNorm)>,
    last: Linear,
}

impl MlpProjectorConfig {
    /// Width of the embedding.
    pub fn output_width(&self) -> usize {
        self.widths.last().copied().unwrap_or(self.input)
    }

    /// Declares the parameters under `prefix` (for example `"projector."`).
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str) -> MlpProjector {
        let mut input = self.input;
        let mut hidden = Vec::new();
        for (index, &width) in self.widths.iter().take(self.widths.len().saturating_sub(1)).enumerate() {
            let linear = Linear::init(builder, &format!("{prefix}{}", 3 * index), input, width, true);
            hidden
                .push((linear, BatchNorm::init(builder, &format!("{prefix}{}", 3 * index + 1), width, 1.0)));
            input = width;
        }
        let name = format!("{prefix}{}", 3 * hidden.len());
        let last = Linear::init(builder, &name, input, self.output_width(), false);
        MlpProjector { hidden, last }
    }
}

impl MlpProjector {
    /// (n, input) -> (n, last width).
    pub fn forward(&self, tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
        let mut x = x.clone();
        for (linear, norm) in &self.hidden {
            let y = linear.forward(tape, &x)?;
            x = norm.forward(tape, &y, true)?;
        }
        self.last.forward(tape, &x)
    }
}

/// Sizes of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MlpHeadConfig {
    /// Input width.
    pub input: usize,
    /// Widths of the layers; the last is the output's.
    pub widths: Vec<usize>,
}

/// Linear layers with biases and ReLU between them. Names count as in a sequential container: 0, 2, 4.
#[derive(Clone, Debug)]
pub struct MlpHead {
    layers: Vec<Linear>,
}

impl MlpHeadConfig {
    /// Declares the parameters under `prefix` (for example `"predictor."`).
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str) -> MlpHead {
        let mut input = self.input;
        let mut layers = Vec::new();
        for (index, &width) in self.widths.iter().enumerate() {
            layers.push(Linear::init(builder, &format!("{prefix}{}", 2 * index), input, width, true));
            input = width;
        }
        MlpHead { layers }
    }
}

impl MlpHead {
    /// (n, input) -> (n, last width).
    pub fn forward(&self, tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
        let mut x = x.clone();
        for (index, layer) in self.layers.iter().enumerate() {
            if index > 0 {
                x = ops::relu(tape, &x)?;
            }
            x = layer.forward(tape, &x)?;
        }
        Ok(x)
    }
}
