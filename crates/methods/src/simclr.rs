//! SimCLR: L = NCE(e_x, e_y; tau).

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Var};

use crate::batch::PairBatch;
use crate::config::{LossConfig, MethodConfig};
use crate::method::{Embedding, Method, Part, PartName, Projector, Term};
use crate::projection::Projection;
use crate::registry::Registration;
use crate::vicreg;

pub(crate) const METHOD: Registration = Registration {
    name: "simclr",
    title: "SimCLR",
    summary: "contrastive: a view finds the other view of its object among all others",
    preset: include_str!("../presets/paper/simclr.toml"),
    init: |config, builder| Ok(Box::new(SimClr::init(config, builder))),
    learns_pose: false,
    recognise: vicreg::is_plain,
};

/// See the module's first lines.
#[derive(Debug)]
pub struct SimClr {
    projector: Projection,
    loss: LossConfig,
}

impl SimClr {
    /// Declares `projector.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let (place, input) = ((PartName::Embedding, "projector."), config.backbone().output_width());
        Self { projector: Projection::init(config, builder, place, input), loss: config.loss }
    }
}

impl Method for SimClr {
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
        let (e_x, e_y) = (x.part(PartName::Embedding)?, y.part(PartName::Embedding)?);
        let value =
            ops::info_nce(tape, e_x, e_y, batch.targets.objects.as_ref(), self.loss.temperature as f32)?;
        Ok(vec![Term::new("repr_loss_inv", value, self.loss.invariance)])
    }

    fn terms_use_representation(&self) -> bool {
        false
    }
}
