//! Pieces that several objectives share: per-view terms added over both views, and predictors by name.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Tensor, Var};
use model::{Hypernetwork, HypernetworkConfig, MlpPredictor, MlpPredictorConfig};

use crate::config::{LossConfig, MethodConfig, PredictorName};
use crate::method::{Motion, Term};

/// The sum of a per-view term over both views.
pub(crate) fn both(
    tape: &mut Tape<'_>,
    views: [&Var; 2],
    term: impl Fn(&mut Tape<'_>, &Var) -> Result<Var>,
) -> Result<Var> {
    let (first, second) = (term(tape, views[0])?, term(tape, views[1])?);
    ops::weighted_sum(tape, &[(&first, 1.0), (&second, 1.0)])
}

/// REG: the variance hinge (REG_V) and the covariance (REG_C) of both views, and between them the variance hinge of
/// what was `predicted`, where it has a weight.
pub(crate) fn regularisation(
    tape: &mut Tape<'_>,
    views: [&Var; 2],
    predicted: Option<&Var>,
    loss: &LossConfig,
    divisor: usize,
) -> Result<Vec<Term>> {
    let variance = both(tape, views, ops::variance_hinge)?;
    let mut terms = vec![Term::new("std_loss", variance, loss.variance)];
    if let Some(predicted) = predicted.filter(|_| loss.predicted_variance != 0.0) {
        let variance = ops::variance_hinge(tape, predicted)?;
        terms.push(Term::new("pred_std_loss", variance, loss.predicted_variance));
    }
    let covariance = both(tape, views, |tape, view| ops::covariance(tape, view, divisor))?;
    terms.push(Term::new("cov_loss", covariance, loss.covariance));
    Ok(terms)
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
        let parameters = config.transform.group().parameters();
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
