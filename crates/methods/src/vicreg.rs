//! VICReg: L = 10 MSE(e_x, e_y) + 10 REG_V + 1 REG_C on the embeddings.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Var};

use crate::batch::PairBatch;
use crate::config::{LossConfig, MethodConfig};
use crate::method::{Embedding, Method, Part, PartName, Projector, Term};
use crate::projection::Projection;
use crate::registry::{HasTensor, Registration};
use crate::regularise::regularisation;

pub(crate) const METHOD: Registration = Registration {
    name: "vicreg",
    title: "VICReg",
    summary: "invariance between the views, variance and covariance regularised",
    preset: include_str!("../presets/paper/vicreg.toml"),
    init: |config, builder| Ok(Box::new(VicReg::init(config, builder))),
    learns_pose: false,
    recognise: is_plain,
};

/// Whether a file has one projector and nothing else besides the backbone: VICReg and SimCLR look the same.
pub(crate) fn is_plain(has: HasTensor<'_>) -> bool {
    has("projector.") && !has("projector.fc.W1") && !has("predictor.")
}

/// See the module's first lines.
#[derive(Debug)]
pub struct VicReg {
    projector: Projection,
    loss: LossConfig,
    divisor: usize,
}

impl VicReg {
    /// Declares `projector.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let (place, input) = ((PartName::Embedding, "projector."), config.backbone().output_width());
        Self {
            projector: Projection::init(config, builder, place, input),
            loss: config.loss,
            divisor: config.covariance_divisor(),
        }
    }
}

impl Method for VicReg {
    fn parts(&self) -> Vec<Part> {
        vec![self.projector.part()]
    }

    fn embed(&self, tape: &mut Tape<'_>, _: &Var, h: &Var) -> Result<Vec<(PartName, Var)>> {
        Ok(vec![self.projector.forward(tape, h)?])
    }

    fn projectors(&self) -> Vec<Projector> {
        vec![self.projector.describe(0)]
    }

    fn terms(&self, tape: &mut Tape<'_>, [x, y]: &[Embedding; 2], _batch: &PairBatch) -> Result<Vec<Term>> {
        let (e_x, e_y) = (x.part(PartName::Embedding)?, y.part(PartName::Embedding)?);
        let invariance = ops::mse(tape, e_x, e_y)?;
        let mut terms = vec![Term::new("repr_loss_inv", invariance, self.loss.invariance)];
        terms.extend(regularisation(tape, [e_x, e_y], None, &self.loss, self.divisor)?);
        Ok(terms)
    }

    fn terms_use_representation(&self) -> bool {
        false
    }
}
