//! EquiCaps (arXiv 2506.09895): capsules whose pose matrices are transformed by the relative motion itself.
//!
//! ```text
//! X = P_x M / ||P_x M||,  Y = P_y / ||P_y||        per capsule
//! L = 0.1 CE(a_x, a_y) + MEMAX(a_x) + MEMAX(a_y) + 5 MSE(X, Y) + 10 REG_V + 1 REG_C
//! ```
//!
//! REG on [a, X] and [a, Y]; view 2 is the target of CE, and gradients flow into both views everywhere.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Var};
use model::{CapsuleProjector, CapsuleProjectorConfig};

use crate::batch::{PairBatch, required};
use crate::config::{LossConfig, MethodConfig, Regularise};
use crate::regularise::{both, covariance, variance};
use crate::terms::{Embedding, Method, Term, Views, part};

/// See the module's first lines.
#[derive(Debug)]
pub struct EquiCaps {
    projector: CapsuleProjector,
    pose: usize,
    loss: LossConfig,
    divisor: usize,
}

/// The capsule projector of a configuration.
pub(crate) fn projector(config: &MethodConfig) -> CapsuleProjectorConfig {
    CapsuleProjectorConfig {
        input: config.backbone.output_width(),
        map_size: config.backbone.map_size(config.image_size),
        capsules: config.capsules,
        pose: config.pose_matrix_side().pow(2),
    }
}

/// Activations and poses of both views.
pub(crate) fn embed(
    tape: &mut Tape<'_>,
    projector: &CapsuleProjector,
    views: &Views,
) -> Result<Vec<Embedding>> {
    let (a_x, p_x) = projector.forward(tape, &views.maps[0])?;
    let (a_y, p_y) = projector.forward(tape, &views.maps[1])?;
    Ok(vec![
        Embedding { name: "activations", views: [a_x, a_y] },
        Embedding { name: "poses", views: [p_x, p_y] },
    ])
}

impl EquiCaps {
    /// Declares `projector.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let projector = projector(config);
        Self {
            pose: projector.pose,
            projector: projector.init(builder, "projector."),
            loss: config.loss,
            divisor: config.covariance_divisor(),
        }
    }
}

impl Method for EquiCaps {
    fn embed(&self, tape: &mut Tape<'_>, views: &Views) -> Result<Vec<Embedding>> {
        embed(tape, &self.projector, views)
    }

    fn terms(
        &self,
        tape: &mut Tape<'_>,
        _views: &Views,
        embeddings: &[Embedding],
        batch: &PairBatch,
    ) -> Result<Vec<Term>> {
        let [a_x, a_y] = part(embeddings, "activations")?;
        let [p_x, p_y] = part(embeddings, "poses")?;
        let motion = required(&batch.targets.matrices, "relative matrices")?;
        let x = ops::pose_transform(tape, p_x, self.pose, Some(motion))?;
        let y = ops::pose_transform(tape, p_y, self.pose, None)?;
        let (z_x, z_y): (Var, Var) = match self.loss.regularise {
            Regularise::Both => (ops::concat(tape, &[a_x, &x])?, ops::concat(tape, &[a_y, &y])?),
            Regularise::Poses => (x.clone(), y.clone()),
        };
        let mut terms = Vec::new();
        if self.loss.invariance != 0.0 {
            let value = ops::activation_cross_entropy(tape, a_x, a_y)?;
            terms.push(Term::new("repr_loss_inv", value, self.loss.invariance));
        }
        if self.loss.mean_entropy != 0.0 {
            let value = both(tape, [a_x, a_y], ops::me_max)?;
            terms.push(Term::new("MEMAX_loss", value, self.loss.mean_entropy));
        }
        terms.push(Term::new("repr_loss_equi", ops::mse(tape, &x, &y)?, self.loss.equivariance));
        terms.push(Term::new("std_loss", variance(tape, [&z_x, &z_y])?, self.loss.variance));
        terms.push(Term::new(
            "cov_loss",
            covariance(tape, [&z_x, &z_y], self.divisor)?,
            self.loss.covariance,
        ));
        Ok(terms)
    }

    fn uses_representation(&self) -> bool {
        false
    }
}
