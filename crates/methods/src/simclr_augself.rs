//! SimCLR with AugSelf: L = NCE(e_x, e_y; tau) + MSE(head([h_x, h_y]), z). The head works on representations, so its
//! gradient flows into the backbone.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Var};
use model::{MlpHead, MlpHeadConfig};

use crate::batch::{PairBatch, required};
use crate::config::MethodConfig;
use crate::simclr::SimClr;
use crate::terms::{Embedding, Method, Term, Views};

/// See the module's first lines.
#[derive(Debug)]
pub struct SimClrAugSelf {
    contrast: SimClr,
    head: MlpHead,
    weight: f32,
}

impl SimClrAugSelf {
    /// Declares `projector.*` and `predictor.{0,2,4}.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let contrast = SimClr::init(config, builder);
        let pair = 2 * config.backbone.output_width();
        let head = MlpHeadConfig { input: pair, widths: vec![pair, pair, config.transform.parameters()] };
        Self { contrast, head: head.init(builder, "predictor."), weight: config.loss.equivariance }
    }
}

impl Method for SimClrAugSelf {
    fn embed(&self, tape: &mut Tape<'_>, views: &Views) -> Result<Vec<Embedding>> {
        self.contrast.embed(tape, views)
    }

    fn terms(
        &self,
        tape: &mut Tape<'_>,
        views: &Views,
        embeddings: &[Embedding],
        batch: &PairBatch,
    ) -> Result<Vec<Term>> {
        let mut terms = self.contrast.terms(tape, views, embeddings, batch)?;
        let parameters = required(&batch.targets.parameters, "transformation parameters")?;
        let [h_x, h_y] = &views.representations;
        let pair = ops::concat(tape, &[h_x, h_y])?;
        let predicted = self.head.forward(tape, &pair)?;
        let value = ops::mse(tape, &predicted, &Var::constant(parameters.clone()))?;
        terms.push(Term::new("repr_loss_equi", value, self.weight));
        Ok(terms)
    }
}
