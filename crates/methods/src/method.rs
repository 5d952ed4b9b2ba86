//! What a method is: how it embeds a view, the named terms of its loss, and what it says of itself to probes,
//! retrieval and tables.

use std::fmt::Debug;

use engine::{Result, Tape, Tensor, Var, ops};
use model::MlpHead;

use crate::batch::PairBatch;
use crate::config::Task;

/// One term of a loss: its value before its weight, summed over both views where it is per view.
#[derive(Clone, Debug)]
pub struct Term {
    /// The name under which the published code logs it.
    pub name: &'static str,
    /// The value, a single number.
    pub value: Var,
    /// Its weight in the total.
    pub weight: f32,
}

impl Term {
    /// A term.
    pub fn new(name: &'static str, value: Var, weight: f64) -> Self {
        Self { name, value, weight: weight as f32 }
    }
}

/// A part of an embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartName {
    /// The whole embedding of a method with one projector.
    Embedding,
    /// What stays the same.
    Invariant,
    /// What moves.
    Equivariant,
    /// Activations of capsules.
    Activations,
    /// Pose matrices of capsules, flattened.
    Poses,
}

impl PartName {
    /// The name in metrics and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Invariant => "invariant",
            Self::Equivariant => "equivariant",
            Self::Activations => "activations",
            Self::Poses => "poses",
        }
    }

    /// Whether it is to stay the same when the view changes.
    pub fn is_invariant(self) -> bool {
        matches!(self, Self::Invariant | Self::Activations)
    }

    /// The published names of its online probes: of classes, and of poses.
    fn probes(self) -> (Option<&'static str>, Option<&'static str>) {
        match self {
            Self::Embedding => (Some("emb"), Some("emb")),
            Self::Invariant => (Some("emb_inv"), None),
            Self::Equivariant => (None, Some("equi_emb")),
            Self::Activations => (Some("emb_inv"), Some("inv_emb")),
            Self::Poses => (Some("emb_equiv"), Some("equi_emb")),
        }
    }
}

/// A part of the embedding, and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub name: PartName,
    /// Numbers in it.
    pub width: usize,
}

/// What a network makes of the images of one view.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// The representation h: (n, width).
    pub representation: Var,
    /// The parts of the embedding, raw, before any transformation or normalisation: (n, width) each.
    pub parts: Vec<(PartName, Var)>,
}

impl Embedding {
    /// The part called `name`.
    pub fn part(&self, name: PartName) -> Result<&Var> {
        let found = self.parts.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value).ok_or_else(|| {
            engine::Error::shape(
                "method",
                format!("there is no part of the embedding called {}", name.name()),
            )
        })
    }
}

/// A place in a network that online probes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name in metrics.
    pub name: &'static str,
    /// Numbers there.
    pub width: usize,
    /// The published ending of its classifier's name, where classes are read off it.
    pub class: Option<&'static str>,
    /// The published ending of its pose predictor's name, where poses are read off it.
    pub pose: Option<&'static str>,
    /// Where it is.
    pub source: Source,
}

/// Where a [`Place`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Columns of the representation, from this one on.
    Representation(usize),
    /// A part of the embedding.
    Part(PartName),
    /// All parts of the embedding, one after the other.
    Whole,
}

impl Place {
    /// Columns of the representation from `start` on.
    pub(crate) fn of_representation(
        name: &'static str,
        ending: &'static str,
        start: usize,
        width: usize,
        (class, pose): (bool, bool),
    ) -> Self {
        let source = Source::Representation(start);
        Self { name, width, class: class.then_some(ending), pose: pose.then_some(ending), source }
    }

    /// What is there, cut off from the tape.
    pub fn values(&self, tape: &mut Tape<'_>, view: &Embedding) -> Result<Var> {
        match self.source {
            Source::Part(name) => Ok(view.part(name)?.detach()),
            Source::Whole => {
                let parts: Vec<Var> = view.parts.iter().map(|(_, value)| value.detach()).collect();
                ops::concat(tape, &parts.iter().collect::<Vec<_>>())
            }
            Source::Representation(start) => {
                let h = view.representation.detach();
                if h.shape().last() == Some(&self.width) {
                    return Ok(h);
                }
                ops::columns(tape, &h, start, self.width)
            }
        }
    }
}

/// How a method's equivariant embedding follows a change of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Not at all, as far as is known.
    Unknown,
    /// Its pose matrices are multiplied by the motion's matrix.
    PoseMatrices {
        /// Number of capsules.
        capsules: usize,
        /// Side of a matrix.
        side: usize,
    },
    /// The method predicts it: [`Method::predict`].
    Predictor,
}

/// Layers between a backbone and a part of the embedding, for those who write a network down in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projector {
    /// Capsules on the map: activations and poses.
    Capsules {
        /// What the names of its parameters begin with.
        prefix: &'static str,
        /// Number of capsules.
        capsules: usize,
        /// Side of a pose matrix.
        side: usize,
    },
    /// A perceptron with batch norms on some columns of the representation.
    Perceptron {
        /// What it makes.
        part: PartName,
        /// What the names of its parameters begin with.
        prefix: &'static str,
        /// The first column that it reads.
        first: usize,
        /// So many columns.
        input: usize,
        /// Widths of its layers.
        widths: Vec<usize>,
    },
}

/// An objective on top of a backbone.
pub trait Method: Debug + Send + Sync {
    /// The parts of its embedding, in order; none for a method without.
    fn parts(&self) -> Vec<Part>;

    /// Those parts for one view: from the backbone's map (n, side, side, width) and representation (n, width).
    fn embed(&self, tape: &mut Tape<'_>, map: &Var, representation: &Var) -> Result<Vec<(PartName, Var)>>;

    /// The layers that make those parts, in their order; none for a method that does not say, which cannot be exported
    /// with its projector.
    fn projectors(&self) -> Vec<Projector> {
        Vec::new()
    }

    /// The terms of the loss for both views.
    fn terms(&self, tape: &mut Tape<'_>, views: &[Embedding; 2], batch: &PairBatch) -> Result<Vec<Term>>;

    /// Whether the loss uses the pooled representation (or only the map).
    fn uses_representation(&self) -> bool {
        true
    }

    /// Whether the terms look at representations themselves, besides the parts of the embedding: several ranks then gather
    /// them, too.
    fn terms_use_representation(&self) -> bool {
        self.uses_representation()
    }

    /// Where online probes look, in a network with representations of this width: there, at every part, and at the
    /// whole embedding.
    fn places(&self, representation: usize) -> Vec<Place> {
        places(representation, &[], &self.parts())
    }

    /// Capsules and numbers in a pose, where the published code also routes capsules to classes.
    fn routed_classes(&self) -> Option<(usize, usize)> {
        None
    }

    /// How the equivariant embedding follows a change of view.
    fn motion(&self) -> Motion {
        Motion::Unknown
    }

    /// The equivariant embedding of view 2 from that of view 1 and the transformation's parameters, where
    /// [`Method::motion`] says that it is predicted.
    fn predict(&self, _tape: &mut Tape<'_>, _embedding: &Var, _parameters: &Tensor) -> Result<Var> {
        Err(engine::Error::shape("method", "this method predicts no embeddings"))
    }

    /// The head of a method that is trained end to end, and its task.
    fn head(&self) -> Option<(&MlpHead, Task)> {
        None
    }
}

/// The published places: the representation, `inside` it, every part, and all parts together.
pub(crate) fn places(representation: usize, inside: &[Place], parts: &[Part]) -> Vec<Place> {
    let mut places =
        vec![Place::of_representation("representation", "repr", 0, representation, (true, true))];
    places.extend(inside);
    let (class, pose) = PartName::Embedding.probes();
    let whole = |width, source| Place { name: PartName::Embedding.name(), width, class, pose, source };
    match parts {
        [] => {}
        // A single part is the whole embedding, whatever the method calls it.
        [part] => places.push(whole(part.width, Source::Part(part.name))),
        parts => {
            for part in parts {
                let (class, pose) = part.name.probes();
                let (name, source) = (part.name.name(), Source::Part(part.name));
                places.push(Place { name, width: part.width, class, pose, source });
            }
            places.push(whole(parts.iter().map(|part| part.width).sum(), Source::Whole));
        }
    }
    places
}
