//! Objects of a dataset: a class folder, a name, a label, a side of the split.

use serde::{Deserialize, Serialize};

/// The side of the 80/20 split an object is on; all its views are on the same side.
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

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// The class folder, a WordNet synset in the published sets (`02691156`).
    pub synset: String,
    /// The object's folder inside it.
    pub name: String,
    /// Rank of the synset among all synsets of the dataset, ascending.
    pub label: u32,
    /// Side of the split.
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
