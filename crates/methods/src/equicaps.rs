//! EquiCaps (arXiv 2506.09895): capsules whose pose matrices are transformed by the relative motion itself.
//!
//! ```text
//! X = P_x M / ||P_x M||,  Y = P_y / ||P_y||        per capsule; norms of whole matrices, or of their linear part
//! L = 0.1 CE(a_x, a_y) + MEMAX(a_x) + MEMAX(a_y) + 5 MSE(X, Y) + 10 REG_V + 1 REG_C
//! ```
//!
//! REG on [a, X] and [a, Y]; view 2 is the target of CE, and gradients flow into both views everywhere.

use engine::ops;
use engine::{Error, Result, StoreBuilder, Tape, Var};
use model::{CapsuleProjector, CapsuleProjectorConfig};

use crate::batch::{PairBatch, required};
use crate::config::{LossConfig, MethodConfig, PoseNorm, Regularise, Transform};
use crate::method::{Embedding, Method, Motion, Part, PartName, Projector, Term};
use crate::registry::Registration;
use crate::regularise::{both, regularisation};

pub(crate) const METHOD: Registration = Registration {
    name: "equicaps",
    title: "EquiCaps",
    summary: "capsules whose pose matrices are transformed by the motion itself",
    preset: include_str!("../presets/paper/equicaps.toml"),
    init: |config, builder| Ok(Box::new(EquiCaps::init(config, builder)?)),
    learns_pose: true,
    recognise: |has| has("projector.fc.W1") && !has("predictor."),
};

/// See the module's first lines.
#[derive(Debug)]
pub struct EquiCaps {
    projector: CapsuleProjector,
    capsules: usize,
    side: usize,
    /// Columns of a pose that its norm sees.
    normed: usize,
    loss: LossConfig,
    divisor: usize,
}

/// What the names of the capsule projector's parameters begin with.
pub(crate) const PREFIX: &str = "projector.";

/// The capsule projector of a configuration.
pub(crate) fn projector(config: &MethodConfig) -> CapsuleProjectorConfig {
    CapsuleProjectorConfig {
        input: config.backbone().output_width(),
        map_size: config.backbone().map_size(config.image_size),
        capsules: config.network.capsules,
        pose: config.pose_side().pow(2),
        routing_std: config.network.routing_std,
    }
}

/// The parts of an embedding of capsules.
pub(crate) fn parts(capsules: usize, pose: usize) -> Vec<Part> {
    vec![
        Part { name: PartName::Activations, width: capsules },
        Part { name: PartName::Poses, width: capsules * pose },
    ]
}

/// Activations and poses of one view.
pub(crate) fn embed(
    tape: &mut Tape<'_>,
    projector: &CapsuleProjector,
    map: &Var,
) -> Result<Vec<(PartName, Var)>> {
    let (activations, poses) = projector.forward(tape, map)?;
    Ok(vec![(PartName::Activations, activations), (PartName::Poses, poses)])
}

impl EquiCaps {
    /// Declares `projector.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Result<Self> {
        let group = config.transform.group();
        let (side, matrix) = (config.pose_side(), group.side);
        if side != matrix {
            let hint = if config.transform == Transform::ROTATION && side == 4 {
                "; transform rotation-4x4 puts rotations in 4x4 matrices"
            } else {
                ""
            };
            let detail =
                format!("poses of side {side} cannot be multiplied by matrices of side {matrix}{hint}");
            return Err(Error::shape("network", detail));
        }
        Ok(Self {
            projector: projector(config).init(builder, PREFIX),
            capsules: config.network.capsules,
            side,
            normed: match config.loss.pose_norm {
                PoseNorm::Linear if group.has_column_left_alone() => side - 1,
                PoseNorm::Linear | PoseNorm::Whole => side,
            },
            loss: config.loss,
            divisor: config.covariance_divisor(),
        })
    }
}

impl Method for EquiCaps {
    fn parts(&self) -> Vec<Part> {
        parts(self.capsules, self.side.pow(2))
    }

    fn embed(&self, tape: &mut Tape<'_>, map: &Var, _: &Var) -> Result<Vec<(PartName, Var)>> {
        embed(tape, &self.projector, map)
    }

    fn projectors(&self) -> Vec<Projector> {
        vec![Projector::Capsules { prefix: PREFIX, capsules: self.capsules, side: self.side }]
    }

    fn terms(&self, tape: &mut Tape<'_>, [x, y]: &[Embedding; 2], batch: &PairBatch) -> Result<Vec<Term>> {
        let (a_x, a_y) = (x.part(PartName::Activations)?, y.part(PartName::Activations)?);
        let (p_x, p_y) = (x.part(PartName::Poses)?, y.part(PartName::Poses)?);
        let (pose, motion) = (self.side.pow(2), required(&batch.targets.matrices, "relative matrices")?);
        let x = ops::pose_transform(tape, p_x, pose, self.normed, Some(motion))?;
        let y = ops::pose_transform(tape, p_y, pose, self.normed, None)?;
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
        terms.extend(regularisation(tape, [&z_x, &z_y], None, &self.loss, self.divisor)?);
        Ok(terms)
    }

    fn uses_representation(&self) -> bool {
        false
    }

    fn routed_classes(&self) -> Option<(usize, usize)> {
        Some((self.capsules, self.side.pow(2)))
    }

    fn motion(&self) -> Motion {
        Motion::PoseMatrices { capsules: self.capsules, side: self.side }
    }
}
