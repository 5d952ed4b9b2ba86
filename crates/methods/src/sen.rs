//! SEN with SimCLR's loss in place of its triplet loss: L = NCE(predictor(e_x, z), e_y; tau).

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
pub struct Sen {
    projector: MlpProjector,
    predictor: Predictor,
    loss: LossConfig,
}

impl Sen {
    /// Declares `projector_equi.*` and `predictor.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let projector = vicreg::projector(config, config.backbone.output_width());
        Self {
            predictor: Predictor::init(config, builder, projector.output_width()),
            projector: projector.init(builder, "projector_equi."),
            loss: config.loss,
        }
    }
}

impl Method for Sen {
    fn embed(&self, tape: &mut Tape<'_>, views: &Views) -> Result<Vec<Embedding>> {
        Ok(vec![vicreg::embed(tape, "equivariant", &self.projector, views)?])
    }

    fn terms(
        &self,
        tape: &mut Tape<'_>,
        _views: &Views,
        embeddings: &[Embedding],
        batch: &PairBatch,
    ) -> Result<Vec<Term>> {
        let [e_x, e_y] = part(embeddings, "equivariant")?;
        let parameters = required(&batch.targets.parameters, "transformation parameters")?;
        let predicted = self.predictor.forward(tape, e_x, parameters)?;
        let value = ops::info_nce(tape, &predicted, e_y, self.loss.temperature)?;
        Ok(vec![Term::new("repr_loss_equi", value, self.loss.equivariance)])
    }
}
