//! Predictors: from the embedding of view 1 and the transformation to the embedding of view 2.

use engine::ops;
use engine::{Initialise, Layout, ParameterId, Result, StoreBuilder, Tape, Tensor, Var};

use crate::mlp::{MlpHead, MlpHeadConfig};

/// Sizes of the hypernetwork of SIE and CapsIE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HypernetworkConfig {
    /// Numbers that describe a transformation: 4, or 7 with translation.
    pub parameters: usize,
    /// Width of the embedding.
    pub width: usize,
}

/// A bias-free linear map from the transformation to the matrix that is applied to the embedding.
#[derive(Clone, Debug)]
pub struct Hypernetwork {
    weight: ParameterId,
}

impl HypernetworkConfig {
    /// Declares `{prefix}hypernet.net.0.weight`.
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str) -> Hypernetwork {
        let shape = [self.width * self.width, self.parameters];
        let start = Initialise::default_for(self.parameters);
        let name = format!("{prefix}hypernet.net.0.weight");
        Hypernetwork { weight: builder.parameter(name, shape, Layout::Published, start) }
    }
}

impl Hypernetwork {
    /// (n, width), (n, parameters) -> (n, width).
    pub fn forward(&self, tape: &mut Tape<'_>, embedding: &Var, parameters: &Tensor) -> Result<Var> {
        let weight = tape.parameter(self.weight);
        ops::hypernetwork(tape, embedding, parameters, &weight)
    }
}

/// Sizes of the MLP predictor of SEN and EquiMod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MlpPredictorConfig {
    /// Numbers that describe a transformation.
    pub parameters: usize,
    /// Width of the embedding.
    pub width: usize,
    /// Linear layers (1).
    pub layers: usize,
}

/// Linear layers on the transformation and the embedding side by side.
#[derive(Clone, Debug)]
pub struct MlpPredictor {
    layers: MlpHead,
}

impl MlpPredictorConfig {
    /// Declares `{prefix}pred.0.weight`, ...
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str) -> MlpPredictor {
        let widths = vec![self.width; self.layers.max(1)];
        let head = MlpHeadConfig { input: self.parameters + self.width, widths };
        MlpPredictor { layers: head.init(builder, &format!("{prefix}pred.")) }
    }
}

impl MlpPredictor {
    /// (n, width), (n, parameters) -> (n, width).
    pub fn forward(&self, tape: &mut Tape<'_>, embedding: &Var, parameters: &Tensor) -> Result<Var> {
        let both = ops::concat(tape, &[&Var::constant(parameters.clone()), embedding])?;
        self.layers.forward(tape, &both)
    }
}
