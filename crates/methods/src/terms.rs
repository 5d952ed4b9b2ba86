//! What a method gives: named terms of its loss, and the values that probes look at.

use std::fmt::Debug;

use engine::{Result, Tape, Var};

use crate::batch::PairBatch;

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
    pub fn new(name: &'static str, value: Var, weight: f32) -> Self {
        Self { name, value, weight }
    }
}

/// A part of the embedding of both views.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// `embedding`, `invariant`, `equivariant`, `activations`, `poses`.
    pub name: &'static str,
    /// View 1 and view 2, (n, width) each.
    pub views: [Var; 2],
}

/// What probes look at.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// The representation h of both views, (n, width) each.
    pub representations: [Var; 2],
    /// The parts of the embedding; raw, before any transformation or normalisation.
    pub embeddings: Vec<Embedding>,
}

/// What the backbone made of both views.
#[derive(Clone, Debug)]
pub struct Views {
    /// Maps, (n, side, side, width) each.
    pub maps: [Var; 2],
    /// Representations, (n, width) each.
    pub representations: [Var; 2],
}

/// An objective.
pub trait Method: Debug + Send + Sync {
    /// The parts of the embedding of both views, named. Made in the published order: view 1 first.
    fn embed(&self, tape: &mut Tape<'_>, views: &Views) -> Result<Vec<Embedding>>;

    /// The terms of the loss for what [`Self::embed`] gave.
    fn terms(
        &self,
        tape: &mut Tape<'_>,
        views: &Views,
        embeddings: &[Embedding],
        batch: &PairBatch,
    ) -> Result<Vec<Term>>;

    /// Whether the loss uses the pooled representation (or only the map).
    fn uses_representation(&self) -> bool {
        true
    }
}

/// The part called `name`.
pub(crate) fn part<'a>(embeddings: &'a [Embedding], name: &'static str) -> Result<&'a [Var; 2]> {
    let found = embeddings.iter().find(|embedding| embedding.name == name);
    found
        .map(|embedding| &embedding.views)
        .ok_or_else(|| engine::Error::shape("method", format!("there is no embedding called {name}")))
}
