//! CapsIE with the settings of the EquiCaps paper: EquiCaps' capsules with SIE's hypernetwork predictor.
//!
//! ```text
//! p = hypernetwork(e_x, z),  e = flattened poses
//! L = 0.1 CE(a_x, a_y) + MEMAX(a_x) + MEMAX(a_y) + 5 MSE(p, e_y) + 10 REG_V + 10 Vh(p) + 1 REG_C
//! ```
//!
//! REG on [a, e] per view, before the transformation. Its own code was not available: 4x4 poses also for rotation,
//! poses not normalised, activations not sharpened and the Vh(p) term kept are readings of the paper, each a setting.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Tensor, Var};
use model::CapsuleProjector;

use crate::batch::{PairBatch, required};
use crate::config::{LossConfig, MethodConfig};
use crate::equicaps;
use crate::method::{Embedding, Method, Motion, Part, PartName, Projector, Term};
use crate::registry::Registration;
use crate::regularise::{Predictor, both, regularisation};

pub(crate) const METHOD: Registration = Registration {
    name: "capsie",
    title: "CapsIE",
    summary: "capsules, with SIE's hypernetwork on the poses",
    preset: include_str!("../presets/paper/capsie.toml"),
    init: |config, builder| Ok(Box::new(CapsIe::init(config, builder))),
    learns_pose: true,
    recognise: |has| has("projector.fc.W1") && has("predictor."),
};

/// See the module's first lines.
#[derive(Debug)]
pub struct CapsIe {
    projector: CapsuleProjector,
    predictor: Predictor,
    capsules: usize,
    pose: usize,
    normalise: bool,
    loss: LossConfig,
    divisor: usize,
}

impl CapsIe {
    /// Declares `projector.*` and `predictor.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let projector = equicaps::projector(config);
        Self {
            capsules: projector.capsules,
            pose: projector.pose,
            predictor: Predictor::init(config, builder, projector.capsules * projector.pose),
            projector: projector.init(builder, equicaps::PREFIX),
            normalise: config.network.normalise_poses,
            loss: config.loss,
            divisor: config.covariance_divisor(),
        }
    }
}

/// `a` at `temperature`; 1 leaves it as it is.
fn sharpened(tape: &mut Tape<'_>, a: &Var, temperature: f64) -> Result<Var> {
    if temperature == 1.0 { Ok(a.clone()) } else { ops::sharpen(tape, a, temperature as f32) }
}

impl Method for CapsIe {
    fn parts(&self) -> Vec<Part> {
        equicaps::parts(self.capsules, self.pose)
    }

    fn embed(&self, tape: &mut Tape<'_>, map: &Var, _: &Var) -> Result<Vec<(PartName, Var)>> {
        equicaps::embed(tape, &self.projector, map)
    }

    fn projectors(&self) -> Vec<Projector> {
        vec![Projector::Capsules {
            prefix: equicaps::PREFIX,
            capsules: self.capsules,
            side: self.pose.isqrt(),
        }]
    }

    fn terms(&self, tape: &mut Tape<'_>, [x, y]: &[Embedding; 2], batch: &PairBatch) -> Result<Vec<Term>> {
        let (a_x, a_y) = (x.part(PartName::Activations)?, y.part(PartName::Activations)?);
        let (mut e_x, mut e_y) = (x.part(PartName::Poses)?.clone(), y.part(PartName::Poses)?.clone());
        if self.normalise {
            e_x = ops::pose_transform(tape, &e_x, self.pose, self.pose.isqrt(), None)?;
            e_y = ops::pose_transform(tape, &e_y, self.pose, self.pose.isqrt(), None)?;
        }
        let parameters = required(&batch.targets.parameters, "transformation parameters")?;
        let predicted = self.predictor.forward(tape, &e_x, parameters)?;
        let (z_x, z_y) = (ops::concat(tape, &[a_x, &e_x])?, ops::concat(tape, &[a_y, &e_y])?);
        let (prediction, target) = (
            sharpened(tape, a_x, self.loss.sharpen_prediction)?,
            sharpened(tape, a_y, self.loss.sharpen_target)?,
        );
        let invariance = ops::activation_cross_entropy(tape, &prediction, &target)?;
        let mean_entropy = both(tape, [a_x, a_y], ops::me_max)?;
        let mut terms = vec![
            Term::new("repr_loss_inv", invariance, self.loss.invariance),
            Term::new("MEMAX_loss", mean_entropy, self.loss.mean_entropy),
            Term::new("repr_loss_equi", ops::mse(tape, &predicted, &e_y)?, self.loss.equivariance),
        ];
        terms.extend(regularisation(tape, [&z_x, &z_y], Some(&predicted), &self.loss, self.divisor)?);
        Ok(terms)
    }

    fn uses_representation(&self) -> bool {
        false
    }

    fn motion(&self) -> Motion {
        self.predictor.motion()
    }

    fn predict(&self, tape: &mut Tape<'_>, embedding: &Var, parameters: &Tensor) -> Result<Var> {
        self.predictor.forward(tape, embedding, parameters)
    }
}
