//! VICReg: L = 10 MSE(e_x, e_y) + 10 REG_V + 1 REG_C on the embeddings.

use engine::ops;
use engine::{Result, StoreBuilder, Tape};
use model::{MlpProjector, MlpProjectorConfig};

use crate::batch::PairBatch;
use crate::config::{LossConfig, MethodConfig};
use crate::regularise::{covariance, variance};
use crate::terms::{Embedding, Method, Term, Views, part};

/// See the module's first lines.
#[derive(Debug)]
pub struct VicReg {
    projector: MlpProjector,
    loss: LossConfig,
    divisor: usize,
}

/// The MLP projector of a configuration on `input` numbers.
pub(crate) fn projector(config: &MethodConfig, input: usize) -> MlpProjectorConfig {
    MlpProjectorConfig { input, widths: config.projector.clone() }
}

/// The projection of both representations as one embedding.
pub(crate) fn embed(
    tape: &mut Tape<'_>,
    name: &'static str,
    projector: &MlpProjector,
    views: &Views,
) -> Result<Embedding> {
    let [h_x, h_y] = &views.representations;
    Ok(Embedding { name, views: [projector.forward(tape, h_x)?, projector.forward(tape, h_y)?] })
}

impl VicReg {
    /// Declares `projector.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        Self {
            projector: projector(config, config.backbone.output_width()).init(builder, "projector."),
            loss: config.loss,
            divisor: config.covariance_divisor(),
        }
    }
}

impl Method for VicReg {
    fn embed(&self, tape: &mut Tape<'_>, views: &Views) -> Result<Vec<Embedding>> {
        Ok(vec![embed(tape, "embedding", &self.projector, views)?])
    }

    fn terms(
        &self,
        tape: &mut Tape<'_>,
        _views: &Views,
        embeddings: &[Embedding],
        _batch: &PairBatch,
    ) -> Result<Vec<Term>> {
        let [e_x, e_y] = part(embeddings, "embedding")?;
        Ok(vec![
            Term::new("repr_loss_inv", ops::mse(tape, e_x, e_y)?, self.loss.invariance),
            Term::new("std_loss", variance(tape, [e_x, e_y])?, self.loss.variance),
            Term::new("cov_loss", covariance(tape, [e_x, e_y], self.divisor)?, self.loss.covariance),
        ])
    }
}
