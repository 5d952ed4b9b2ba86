//! SimCLR: L = NCE(e_x, e_y; tau).

use engine::ops;
use engine::{Result, StoreBuilder, Tape};
use model::MlpProjector;

use crate::batch::PairBatch;
use crate::config::{LossConfig, MethodConfig};
use crate::terms::{Embedding, Method, Term, Views, part};
use crate::vicreg;

/// See the module's first lines.
#[derive(Debug)]
pub struct SimClr {
    projector: MlpProjector,
    loss: LossConfig,
}

impl SimClr {
    /// Declares `projector.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let projector = vicreg::projector(config, config.backbone.output_width());
        Self { projector: projector.init(builder, "projector."), loss: config.loss }
    }
}

impl Method for SimClr {
    fn embed(&self, tape: &mut Tape<'_>, views: &Views) -> Result<Vec<Embedding>> {
        Ok(vec![vicreg::embed(tape, "embedding", &self.projector, views)?])
    }

    fn terms(
        &self,
        tape: &mut Tape<'_>,
        _views: &Views,
        embeddings: &[Embedding],
        _batch: &PairBatch,
    ) -> Result<Vec<Term>> {
        let [e_x, e_y] = part(embeddings, "embedding")?;
        let value = ops::info_nce(tape, e_x, e_y, self.loss.temperature)?;
        Ok(vec![Term::new("repr_loss_inv", value, self.loss.invariance)])
    }
}
