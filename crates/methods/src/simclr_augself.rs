//! SimCLR with AugSelf: L = NCE(e_x, e_y; tau) + MSE(head([h_x, h_y]), z). The head works on representations, so its
//! gradient flows into the backbone.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Var};
use model::{MlpHead, MlpHeadConfig};

use crate::batch::{PairBatch, required};
use crate::config::MethodConfig;
use crate::method::{Embedding, Method, Part, PartName, Projector, Term};
use crate::registry::Registration;
use crate::simclr::SimClr;

pub(crate) const METHOD: Registration = Registration {
    name: "simclr_augself",
    title: "SimCLR + AugSelf",
    summary: "SimCLR, and a head that predicts the transformation from both representations",
    preset: include_str!("../presets/paper/simclr_augself.toml"),
    init: |config, builder| Ok(Box::new(SimClrAugSelf::init(config, builder))),
    learns_pose: true,
    recognise: |has| {
        let other = ["projector.fc.W1", "projector_inv.", "projector_equi."];
        has("predictor.") && !other.into_iter().any(has)
    },
};

/// See the module's first lines.
#[derive(Debug)]
pub struct SimClrAugSelf {
    contrast: SimClr,
    head: MlpHead,
    weight: f64,
}

impl SimClrAugSelf {
    /// Declares `projector.*` and `predictor.{0,2,4}.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let contrast = SimClr::init(config, builder);
        let pair = 2 * config.backbone().output_width();
        let head =
            MlpHeadConfig { input: pair, widths: vec![pair, pair, config.transform.group().parameters()] };
        Self { contrast, head: head.init(builder, "predictor."), weight: config.loss.equivariance }
    }
}

impl Method for SimClrAugSelf {
    fn parts(&self) -> Vec<Part> {
        self.contrast.parts()
    }

    fn embed(&self, tape: &mut Tape<'_>, map: &Var, h: &Var) -> Result<Vec<(PartName, Var)>> {
        self.contrast.embed(tape, map, h)
    }

    fn projectors(&self) -> Vec<Projector> {
        self.contrast.projectors()
    }

    fn terms(&self, tape: &mut Tape<'_>, views: &[Embedding; 2], batch: &PairBatch) -> Result<Vec<Term>> {
        let mut terms = self.contrast.terms(tape, views, batch)?;
        let parameters = required(&batch.targets.parameters, "transformation parameters")?;
        let [h_x, h_y] = views.each_ref().map(|view| &view.representation);
        let pair = ops::concat(tape, &[h_x, h_y])?;
        let predicted = self.head.forward(tape, &pair)?;
        let value = ops::mse(tape, &predicted, &Var::constant(parameters.clone()))?;
        terms.push(Term::new("repr_loss_equi", value, self.weight));
        Ok(terms)
    }
}
