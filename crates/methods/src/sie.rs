//! SIE: the representation is split, first half invariant, second half equivariant, each with its own projector.
//!
//! ```text
//! p = hypernetwork(eq_x, z)
//! L = 10 MSE(inv_x, inv_y) + 4.5 MSE(p, eq_y) + 10 REG_V + 10 Vh(p) + 1 REG_C
//! ```
//!
//! REG on [inv, eq] per view, before the transformation is applied.

use engine::ops;
use engine::{Error, Result, StoreBuilder, Tape, Tensor, Var};

use crate::batch::{PairBatch, required};
use crate::config::{LossConfig, MethodConfig};
use crate::method::{Embedding, Method, Motion, Part, PartName, Place, Projector, Term, places};
use crate::projection::Projection;
use crate::registry::Registration;
use crate::regularise::{Predictor, regularisation};

pub(crate) const METHOD: Registration = Registration {
    name: "sie",
    title: "SIE",
    summary: "split representation: invariant half, equivariant half with a hypernetwork",
    preset: include_str!("../presets/paper/sie.toml"),
    init: |config, builder| Ok(Box::new(Sie::init(config, builder)?)),
    learns_pose: true,
    recognise: |has| has("projector_inv.") && has("predictor.hypernet."),
};

/// See the module's first lines.
#[derive(Debug)]
pub struct Sie {
    invariant: Projection,
    equivariant: Projection,
    predictor: Predictor,
    half: usize,
    loss: LossConfig,
    divisor: usize,
}

impl Sie {
    /// Declares `projector_inv.*`, `projector_equi.*` and `predictor.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Result<Self> {
        let whole = config.backbone().output_width();
        if !whole.is_multiple_of(2) {
            return Err(Error::shape("network", "SIE needs a representation of even width"));
        }
        let half = whole / 2;
        let mut project = |name, prefix| Projection::init(config, builder, (name, prefix), half);
        let invariant = project(PartName::Invariant, "projector_inv.");
        let equivariant = project(PartName::Equivariant, "projector_equi.");
        Ok(Self {
            predictor: Predictor::init(config, builder, equivariant.part().width),
            invariant,
            equivariant,
            half,
            loss: config.loss,
            divisor: config.covariance_divisor(),
        })
    }
}

impl Method for Sie {
    fn parts(&self) -> Vec<Part> {
        vec![self.invariant.part(), self.equivariant.part()]
    }

    fn embed(&self, tape: &mut Tape<'_>, _: &Var, h: &Var) -> Result<Vec<(PartName, Var)>> {
        let invariant = ops::columns(tape, h, 0, self.half)?;
        let invariant = self.invariant.forward(tape, &invariant)?;
        let equivariant = ops::columns(tape, h, self.half, self.half)?;
        Ok(vec![invariant, self.equivariant.forward(tape, &equivariant)?])
    }

    fn projectors(&self) -> Vec<Projector> {
        vec![self.invariant.describe(0), self.equivariant.describe(self.half)]
    }

    fn terms(&self, tape: &mut Tape<'_>, [x, y]: &[Embedding; 2], batch: &PairBatch) -> Result<Vec<Term>> {
        let (inv_x, inv_y) = (x.part(PartName::Invariant)?, y.part(PartName::Invariant)?);
        let (eq_x, eq_y) = (x.part(PartName::Equivariant)?, y.part(PartName::Equivariant)?);
        let parameters = required(&batch.targets.parameters, "transformation parameters")?;
        let predicted = self.predictor.forward(tape, eq_x, parameters)?;
        let (z_x, z_y) = (ops::concat(tape, &[inv_x, eq_x])?, ops::concat(tape, &[inv_y, eq_y])?);
        let mut terms = vec![
            Term::new("repr_loss_inv", ops::mse(tape, inv_x, inv_y)?, self.loss.invariance),
            Term::new("repr_loss_equi", ops::mse(tape, &predicted, eq_y)?, self.loss.equivariance),
        ];
        terms.extend(regularisation(tape, [&z_x, &z_y], Some(&predicted), &self.loss, self.divisor)?);
        Ok(terms)
    }

    fn terms_use_representation(&self) -> bool {
        false
    }

    fn places(&self, representation: usize) -> Vec<Place> {
        let (name, ending) = ("invariant_half", "repr_inv");
        let invariant = Place::of_representation(name, ending, 0, self.half, (true, false));
        let (name, ending) = ("equivariant_half", "repr_equi");
        let equivariant = Place::of_representation(name, ending, self.half, self.half, (false, true));
        places(representation, &[invariant, equivariant], &self.parts())
    }

    fn motion(&self) -> Motion {
        self.predictor.motion()
    }

    fn predict(&self, tape: &mut Tape<'_>, embedding: &Var, parameters: &Tensor) -> Result<Var> {
        self.predictor.forward(tape, embedding, parameters)
    }
}
