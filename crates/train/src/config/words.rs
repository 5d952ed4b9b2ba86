//! Settings that are words, or types of other crates: how they are spelled.

use std::path::PathBuf;

use dataset::SplitBy;
use dataset::order::Cut;
use engine::Precision;
use methods::names;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::latents_file::OwnLatents;

names! {
    /// What is held out of the data.
    SplitName, "split" {
        /// What the dataset's card says; objects where there is none.
        Auto = "auto",
        /// Objects, with all their views.
        Objects = "objects",
        /// Views of every object.
        Views = "views",
    }
}

impl SplitName {
    /// The split that is meant, where `auto` is the one that the data have.
    pub fn or(self, of_data: SplitBy) -> SplitBy {
        match self {
            Self::Auto => of_data,
            Self::Objects => SplitBy::Objects,
            Self::Views => SplitBy::Views,
        }
    }
}

impl From<SplitBy> for SplitName {
    fn from(split: SplitBy) -> Self {
        match split {
            SplitBy::Objects => Self::Objects,
            SplitBy::Views => Self::Views,
        }
    }
}

names! {
    /// The element type of activations.
    PrecisionName, "precision" {
        /// What is best on the device: f32 on the CPU, mixed on CUDA.
        Auto = "auto",
        /// float32 throughout.
        F32 = "f32",
        /// 16-bit activations, float32 parameters, statistics and losses. CUDA only.
        Mixed = "mixed" | "bf16",
    }
}

impl PrecisionName {
    /// As the engine takes it; none where the device decides.
    pub fn of_engine(self) -> Option<Precision> {
        match self {
            Self::Auto => None,
            Self::F32 => Some(Precision::F32),
            Self::Mixed => Some(Precision::Mixed),
        }
    }
}

names! {
    /// How an epoch is cut into batches.
    BatchesName, "batches" {
        /// Of nearly equal size.
        Whole = "whole",
        /// Of exactly `batch` pairs, and the rest, however small.
        Published = "published",
    }
}

impl BatchesName {
    /// As the plan takes it.
    pub fn cut(self) -> Cut {
        match self {
            Self::Whole => Cut::Whole,
            Self::Published => Cut::Published,
        }
    }
}

names! {
    /// What updates the weights.
    OptimiserName, "optimiser" {
        /// Muon on a GPU, Adam on the CPU, where an update by Muon costs as much as the rest of a small step.
        Auto = "auto",
        /// Adam, as published.
        Adam = "adam",
        /// Muon for matrices and convolutions between hidden layers, Adam for all else.
        Muon = "muon",
    }
}

names! {
    /// How the learning rate goes.
    ScheduleName, "schedule" {
        /// It stays, as published.
        Constant = "constant",
        /// It falls by half a cosine to 0 at the end of the run.
        Cosine = "cosine",
    }
}

names! {
    /// What to do about an image or a mesh that cannot be read.
    OnBadSample, "loader.on_bad_sample" {
        /// End the run, by name.
        Fail = "fail",
        /// Take another view instead, and count it.
        Skip = "skip",
    }
}

names! {
    /// Which latents views rendered on the fly have.
    LatentsName, "procedural.latents" {
        /// What the transform needs.
        Auto = "auto",
        /// Rotations, hues and light.
        Bench = "3diebench",
        /// The same and translations.
        BenchT = "3diebench-t",
        /// The same and sizes.
        BenchS = "3diebench-s",
        /// Translations, sizes along every axis and shears.
        BenchA = "3diebench-a",
    }
}

/// The latents of views rendered on the fly: those of a preset, or one's own.
#[derive(Clone, Debug, PartialEq)]
pub enum LatentsSetting {
    /// By the name of a preset.
    Named(LatentsName),
    /// A file that is still to be read.
    File(PathBuf),
    /// What was in a file.
    Own(OwnLatents),
}

impl LatentsSetting {
    /// With the contents in place of a file.
    pub(super) fn read(self) -> crate::Result<Self> {
        match self {
            Self::File(path) => OwnLatents::read(&path).map(Self::Own),
            other => Ok(other),
        }
    }
}

impl Serialize for LatentsSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(name) => serializer.serialize_str(name.name()),
            Self::File(path) => serializer.serialize_str(&path.to_string_lossy()),
            Self::Own(own) => serializer.serialize_str(&own.to_line()),
        }
    }
}

impl<'de> Deserialize<'de> for LatentsSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.ends_with(super::FILE_ENDING) {
            return Ok(Self::File(PathBuf::from(text)));
        }
        if text.starts_with('{') {
            let own = OwnLatents::of_line(&text);
            let named = |message| de::Error::custom(format!("procedural.latents: {message}"));
            return own.map(Self::Own).map_err(named);
        }
        text.parse().map(Self::Named).map_err(de::Error::custom)
    }
}

/// The curriculum of the plan as a table.
pub(super) mod curriculum {
    use dataset::Curriculum;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        candidates: usize,
        epochs: u64,
    }

    pub fn serialize<S: Serializer>(curriculum: &Curriculum, serializer: S) -> Result<S::Ok, S::Error> {
        let &Curriculum { candidates, epochs } = curriculum;
        Settings { candidates, epochs }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Curriculum, D::Error> {
        let Settings { candidates, epochs } = Settings::deserialize(deserializer)?;
        Ok(Curriculum { candidates, epochs })
    }
}

/// The quality of rendering by its name.
pub(super) mod quality {
    use render::Quality;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(quality: &Quality, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(quality.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Quality, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(|_| {
            let known = Quality::ALL.map(Quality::name).to_vec();
            de::Error::custom(methods::UnknownName { what: "procedural.quality", name, known })
        })
    }
}
