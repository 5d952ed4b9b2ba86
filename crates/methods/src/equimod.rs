//! EquiMod: two projectors on the same representation, one invariant, one equivariant through a predictor.
//!
//! L = NCE(inv_x, inv_y; tau) + NCE(predictor(eq_x, z), eq_y; tau)

use engine::ops;
use engine::{Result, StoreBuilder, Tape};
use model::MlpProjector;

use crate::batch::{PairBatch, required};
use crate::config::{LossConfig, MethodConfig};
use crate::regularise::Predictor;
use crate::terms::{Embedding, Method, Term, Views, part};
use crate::vicreg;

/// See the module's first lines.
#[derive(Debug)]
pub struct EquiMod {
    invariant: MlpProjector,
    equivariant: MlpProjector,
    predictor: Predictor,
    loss: LossConfig,
}

impl EquiMod {
    /// Declares `projector_inv.*`, `projector_equi.*` and `predictor.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let projector = vicreg::projector(config, config.backbone.output_width());
        Self {
            invariant: projector.init(builder, "projector_inv."),
            equivariant: projector.init(builder, "projector_equi."),
            predictor: Predictor::init(config, builder, projector.output_width()),
            loss: config.loss,
        }
    }
}

impl Method for EquiMod {
    fn embed(&self, tape: &mut Tape<'_>, views: &Views) -> Result<Vec<Embedding>> {
        Ok(vec![
            vicreg::embed(tape, "invariant", &self.invariant, views)?,
            vicreg::embed(tape, "equivariant", &self.equivariant, views)?,
        ])
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
        let tau = self.loss.temperature;
        let invariance = ops::info_nce(tape, inv_x, inv_y, tau)?;
        let equivariance = ops::info_nce(tape, &predicted, eq_y, tau)?;
        Ok(vec![
            Term::new("repr_loss_inv", invariance, self.loss.invariance),
            Term::new("repr_loss_equi", equivariance, self.loss.equivariance),
        ])
    }
}
