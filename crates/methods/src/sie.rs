//! SIE: the representation is split, first half invariant, second half equivariant, each with its own projector.
//!
//! ```text
//! p = hypernetwork(eq_x, z)
//! L = 10 MSE(inv_x, inv_y) + 4.5 MSE(p, eq_y) + 10 REG_V + 10 Vh(p) + 1 REG_C
//! ```
//!
//! REG on [inv, eq] per view, before the transformation is applied.

use engine::ops;
use engine::{Result, StoreBuilder, Tape};
use model::MlpProjector;

use crate::batch::{PairBatch, required};
use crate::config::{LossConfig, MethodConfig};
use crate::regularise::{Predictor, covariance, variance};
use crate::terms::{Embedding, Method, Term, Views, part};
use crate::vicreg;

/// See the module's first lines.
#[derive(Debug)]
pub struct Sie {
    invariant: MlpProjector,
    equivariant: MlpProjector,
    predictor: Predictor,
    half: usize,
    loss: LossConfig,
    divisor: usize,
}

impl Sie {
    /// Declares `projector_inv.*`, `projector_equi.*` and `predictor.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let half = config.backbone.output_width() / 2;
        let projector = vicreg::projector(config, half);
        Self {
            invariant: projector.init(builder, "projector_inv."),
            equivariant: projector.init(builder, "projector_equi."),
            predictor: Predictor::init(config, builder, projector.output_width()),
            half,
            loss: config.loss,
            divisor: config.covariance_divisor(),
        }
    }
}

impl Method for Sie {
    fn embed(&self, tape: &mut Tape<'_>, views: &Views) -> Result<Vec<Embedding>> {
        let mut embed = |name, projector: &MlpProjector, start| -> Result<Embedding> {
            let [h_x, h_y] = &views.representations;
            let x = ops::columns(tape, h_x, start, self.half)?;
            let y = ops::columns(tape, h_y, start, self.half)?;
            Ok(Embedding { name, views: [projector.forward(tape, &x)?, projector.forward(tape, &y)?] })
        };
        Ok(vec![embed("invariant", &self.invariant, 0)?, embed("equivariant", &self.equivariant, self.half)?])
    }

    fn terms(
        &self,
        tape: &mut Tape<'_>,
        _views: &Views,
        embeddings: &[Embedding],
        batch: &PairBatch,
    ) -> Result<Vec<Term>> {
        let [inv_x, inv_y] = part(embeddings, "invariant")?;
        let [eq_x, eq_y] = part(embeddings, "equivariant")?;
        let parameters = required(&batch.targets.parameters, "transformation parameters")?;
        let predicted = self.predictor.forward(tape, eq_x, parameters)?;
        let (z_x, z_y) = (ops::concat(tape, &[inv_x, eq_x])?, ops::concat(tape, &[inv_y, eq_y])?);
        let mut terms = vec![
            Term::new("repr_loss_inv", ops::mse(tape, inv_x, inv_y)?, self.loss.invariance),
            Term::new("repr_loss_equi", ops::mse(tape, &predicted, eq_y)?, self.loss.equivariance),
            Term::new("std_loss", variance(tape, [&z_x, &z_y])?, self.loss.variance),
        ];
        if self.loss.predicted_variance != 0.0 {
            let value = ops::variance_hinge(tape, &predicted)?;
            terms.push(Term::new("pred_std_loss", value, self.loss.predicted_variance));
        }
        terms.push(Term::new(
            "cov_loss",
            covariance(tape, [&z_x, &z_y], self.divisor)?,
            self.loss.covariance,
        ));
        Ok(terms)
    }
}
