//! EquiMod: two projectors on the same representation, one invariant, one equivariant through a predictor.
//!
//! L = NCE(inv_x, inv_y; tau) + NCE(predictor(eq_x, z), eq_y; tau)

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Tensor, Var};

use crate::batch::{PairBatch, required};
use crate::config::{LossConfig, MethodConfig};
use crate::method::{Embedding, Method, Motion, Part, PartName, Projector, Term};
use crate::projection::Projection;
use crate::registry::Registration;
use crate::regularise::Predictor;

pub(crate) const METHOD: Registration = Registration {
    name: "equimod",
    title: "EquiMod",
    summary: "SimCLR twice: an invariant embedding, and one with a predictor",
    preset: include_str!("../presets/paper/equimod.toml"),
    init: |config, builder| Ok(Box::new(EquiMod::init(config, builder))),
    learns_pose: true,
    recognise: |has| has("projector_inv.") && !has("predictor.hypernet."),
};

/// See the module's first lines.
#[derive(Debug)]
pub struct EquiMod {
    invariant: Projection,
    equivariant: Projection,
    predictor: Predictor,
    loss: LossConfig,
}

impl EquiMod {
    /// Declares `projector_inv.*`, `projector_equi.*` and `predictor.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let input = config.backbone().output_width();
        let mut project = |name, prefix| Projection::init(config, builder, (name, prefix), input);
        let invariant = project(PartName::Invariant, "projector_inv.");
        let equivariant = project(PartName::Equivariant, "projector_equi.");
        Self {
            predictor: Predictor::init(config, builder, equivariant.part().width),
            invariant,
            equivariant,
            loss: config.loss,
        }
    }
}

impl Method for EquiMod {
    fn parts(&self) -> Vec<Part> {
        vec![self.invariant.part(), self.equivariant.part()]
    }

    fn embed(&self, tape: &mut Tape<'_>, _: &Var, h: &Var) -> Result<Vec<(PartName, Var)>> {
        Ok(vec![self.invariant.forward(tape, h)?, self.equivariant.forward(tape, h)?])
    }

    fn projectors(&self) -> Vec<Projector> {
        vec![self.invariant.describe(0), self.equivariant.describe(0)]
    }

    fn terms(&self, tape: &mut Tape<'_>, [x, y]: &[Embedding; 2], batch: &PairBatch) -> Result<Vec<Term>> {
        let (inv_x, inv_y) = (x.part(PartName::Invariant)?, y.part(PartName::Invariant)?);
        let (eq_x, eq_y) = (x.part(PartName::Equivariant)?, y.part(PartName::Equivariant)?);
        let parameters = required(&batch.targets.parameters, "transformation parameters")?;
        let predicted = self.predictor.forward(tape, eq_x, parameters)?;
        let (objects, tau) = (batch.targets.objects.as_ref(), self.loss.temperature as f32);
        let invariance = ops::info_nce(tape, inv_x, inv_y, objects, tau)?;
        let equivariance = ops::info_nce(tape, &predicted, eq_y, objects, tau)?;
        Ok(vec![
            Term::new("repr_loss_inv", invariance, self.loss.invariance),
            Term::new("repr_loss_equi", equivariance, self.loss.equivariance),
        ])
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
