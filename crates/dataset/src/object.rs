//! Objects of a dataset: a class folder, a name, a label, a side of the split; and what a split holds out.

use serde::{Deserialize, Serialize};

/// A side of the 80/20 split: of objects, where all views of an object are on the same side, or of views ([`SplitBy`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Seen during training.
    Train,
    /// Held out.
    Val,
}

impl Split {
    /// Both sides, in the order objects are numbered.
    pub const ALL: [Self; 2] = [Self::Train, Self::Val];

    /// The name used in files: `train` or `val`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Val => "val",
        }
    }
}

impl std::fmt::Display for Split {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What a split holds out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitBy {
    /// Objects never seen: every object is on one side, with all its views.
    #[default]
    Objects,
    /// New views of known objects: both sides have all objects, each other views of them.
    Views,
}

impl SplitBy {
    /// The name used in files and on the command line: `objects` or `views`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Views => "views",
        }
    }

    /// What is held out, for captions.
    pub fn held_out(self) -> &'static str {
        match self {
            Self::Objects => "objects never seen",
            Self::Views => "new views of known objects",
        }
    }

    /// Whether it is the split by objects, of which cards say nothing.
    pub(crate) fn is_objects(&self) -> bool {
        *self == Self::Objects
    }
}

impl std::fmt::Display for SplitBy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// The class folder, a WordNet synset in the published sets (`02691156`).
    pub synset: String,
    /// The object's folder inside it.
    pub name: String,
    /// Rank of the synset among all synsets of the dataset, ascending.
    pub label: u32,
    /// Side of the split by objects; training for all, where views are held out instead.
    pub split: Split,
}

impl Object {
    /// `SYNSET/OBJECT`, with which latents and splits are drawn.
    pub fn id(&self) -> String {
        format!("{}/{}", self.synset, self.name)
    }
}

/// One class, in `classes.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// The label, counted from 0.
    pub label: u32,
    /// The class folder.
    pub synset: String,
    /// What people call it; the folder's name where nothing better is known.
    pub name: String,
}
