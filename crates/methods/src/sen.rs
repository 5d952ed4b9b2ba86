//! SEN with SimCLR's loss in place of its triplet loss: L = NCE(predictor(e_x, z), e_y; tau).

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Tensor, Var};

use crate::batch::{PairBatch, required};
use crate::config::{LossConfig, MethodConfig};
use crate::method::{Embedding, Method, Motion, Part, PartName, Projector, Term};
use crate::projection::Projection;
use crate::registry::Registration;
use crate::regularise::Predictor;

pub(crate) const METHOD: Registration = Registration {
    name: "sen",
    title: "SEN",
    summary: "contrastive between a predictor's output and the other view",
    preset: include_str!("../presets/paper/sen.toml"),
    init: |config, builder| Ok(Box::new(Sen::init(config, builder))),
    learns_pose: true,
    recognise: |has| has("projector_equi.") && !has("projector_inv."),
};

/// See the module's first lines.
#[derive(Debug)]
pub struct Sen {
    projector: Projection,
    predictor: Predictor,
    loss: LossConfig,
}

impl Sen {
    /// Declares `projector_equi.*` and `predictor.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let (place, input) = ((PartName::Equivariant, "projector_equi."), config.backbone().output_width());
        let projector = Projection::init(config, builder, place, input);
        Self {
            predictor: Predictor::init(config, builder, projector.part().width),
            projector,
            loss: config.loss,
        }
    }
}

impl Method for Sen {
    fn parts(&self) -> Vec<Part> {
        vec![self.projector.part()]
    }

    fn embed(&self, tape: &mut Tape<'_>, _: &Var, h: &Var) -> Result<Vec<(PartName, Var)>> {
        Ok(vec![self.projector.forward(tape, h)?])
    }

    fn projectors(&self) -> Vec<Projector> {
        vec![self.projector.describe(0)]
    }

    fn terms(&self, tape: &mut Tape<'_>, [x, y]: &[Embedding; 2], batch: &PairBatch) -> Result<Vec<Term>> {
        let (e_x, e_y) = (x.part(PartName::Equivariant)?, y.part(PartName::Equivariant)?);
        let parameters = required(&batch.targets.parameters, "transformation parameters")?;
        let predicted = self.predictor.forward(tape, e_x, parameters)?;
        let value = ops::info_nce(
            tape,
            &predicted,
            e_y,
            batch.targets.objects.as_ref(),
            self.loss.temperature as f32,
        )?;
        Ok(vec![Term::new("repr_loss_equi", value, self.loss.equivariance)])
    }

    fn terms_use_representation(&self) -> bool {
        false
    }

    fn motion(&self) -> Motion {
        self.predictor.motion()
    }

    fn predict(&self, tape: &mut Tape<'_>, embedding: &Var, parameters: &Tensor) -> Result<Var> {
        self.predictor.forward(tape, embedding, parameters)
    }
}
