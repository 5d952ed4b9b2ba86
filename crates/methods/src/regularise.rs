//! Pieces that several objectives share: per-view terms added over both views, and predictors by name.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Tensor, Var};
use model::{Hypernetwork, HypernetworkConfig, MlpPredictor, MlpPredictorConfig};

use crate::config::{MethodConfig, PredictorName};
use crate::method::Motion;

/// The sum of a per-view term over both views.
pub(crate) fn both(
    tape: &mut Tape<'_>,
    views: [&Var; 2],
    term: impl Fn(&mut Tape<'_>, &Var) -> Result<Var>,
) -> Result<Var> {
    let (first, second) = (term(tape, views[0])?, term(tape, views[1])?);
    ops::weighted_sum(tape, &[(&first, 1.0), (&second, 1.0)])
}

/// REG_V: the variance hinge of both views.
pub(crate) fn variance(tape: &mut Tape<'_>, views: [&Var; 2]) -> Result<Var> {
    both(tape, views, ops::variance_hinge)
}

/// REG_C: the covariance term of both views.
pub(crate) fn covariance(tape: &mut Tape<'_>, views: [&Var; 2], divisor: usize) -> Result<Var> {
    both(tape, views, |tape, view| ops::covariance(tape, view, divisor))
}

/// A predictor chosen by name.
#[derive(Clone, Debug)]
pub(crate) enum Predictor {
    None,
    Mlp(MlpPredictor),
    Hypernetwork(Hypernetwork),
}

impl Predictor {
    /// Declares `predictor.*` for embeddings of `width`.
    pub(crate) fn init(config: &MethodConfig, builder: &mut StoreBuilder, width: usize) -> Self {
        let parameters = config.transform.parameters();
        match config.network.predictor {
            PredictorName::None => Self::None,
            PredictorName::Mlp => {
                let config =
                    MlpPredictorConfig { parameters, width, layers: config.network.predictor_layers };
                Self::Mlp(config.init(builder, "predictor."))
            }
            PredictorName::Hypernetwork => {
                Self::Hypernetwork(HypernetworkConfig { parameters, width }.init(builder, "predictor."))
            }
        }
    }

    /// Whether it predicts anything.
    pub(crate) fn motion(&self) -> Motion {
        match self {
            Self::None => Motion::Unknown,
            Self::Mlp(_) | Self::Hypernetwork(_) => Motion::Predictor,
        }
    }

    /// The predicted embedding of view 2.
    pub(crate) fn forward(&self, tape: &mut Tape<'_>, embedding: &Var, parameters: &Tensor) -> Result<Var> {
        match self {
            Self::None => Ok(embedding.clone()),
            Self::Mlp(predictor) => predictor.forward(tape, embedding, parameters),
            Self::Hypernetwork(predictor) => predictor.forward(tape, embedding, parameters),
        }
    }
}
