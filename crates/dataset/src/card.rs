//! The dataset card: what a dataset is, in `dataset.json` for programs and `README.md` for people.
//!
//! The card holds everything that determines the images and nothing else (no times, no hosts, no job counts), so two
//! ways of making the same dataset write the same card.

use std::path::Path;

use scene::{Distributions, LatentRanges, ScaleRange};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counted::counted;
use crate::error::{Error, Result};
use crate::import::Imported;
use crate::jpeg::ChannelOrder;
use crate::latent_table::LatentColumns;
use crate::object::{Split, SplitBy};
use crate::split::held_out_views;

/// The card's file name.
pub(crate) const CARD: &str = "dataset.json";
/// The card for people.
pub(crate) const README: &str = "README.md";

/// How images lie on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The published layout: `SYNSET/OBJECT/image_i.jpg` and `latent_i.npy`.
    #[default]
    Files,
    /// Tar archives with an index beside them.
    Shards,
    /// Images that stay where they are, named in `sources.jsonl`.
    Reference,
}

/// Where the objects come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Origin {
    /// The built-in library.
    Procedural {
        /// Number of classes.
        classes: u32,
        /// Objects of each class.
        objects: u32,
    },
    /// A folder of meshes.
    Meshes {
        /// `y` or `z` where the up axis was given, else the format decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up: Option<String>,
    },
    /// Images that people have.
    Imported(Box<Imported>),
}

/// Everything that determines the bytes of a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// `3diebench`, `3diebench-t` or `3diebench-ood`; `imported` where nothing was rendered.
    pub preset: String,
    /// Where the objects come from.
    pub origin: Origin,
    /// At most so many objects were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Number of objects, before any is skipped.
    pub objects: usize,
    /// FNV-1a of the object list.
    pub objects_digest: String,
    /// Views of each object; where they differ, the largest number.
    pub views: usize,
    /// What is held out; cards that do not say it hold out objects.
    #[serde(default, skip_serializing_if = "SplitBy::is_objects")]
    pub split: SplitBy,
    /// Side of an image in pixels.
    pub size: usize,
    /// Seed of objects, latents and split.
    pub seed: u64,
    /// Quality preset of the renderer; empty where nothing was rendered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quality: String,
    /// What rendered: `cpu`, or a kind of GPU; empty where nothing was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// What else rendered, where that was allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixed_devices: Vec<String>,
    /// Order of the colour channels in the files.
    pub channel_order: ChannelOrder,
    /// Layout on disk.
    pub format: Format,
    /// Objects of one tar archive, skipped ones counted; only with shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_per_tar: Option<usize>,
    /// Ranges of the latents; missing where they were not drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<LatentRanges>,
    /// Version of this software.
    pub version: String,
}

impl Settings {
    /// What was imported, where nothing was rendered.
    pub fn imported(&self) -> Option<&Imported> {
        match &self.origin {
            Origin::Imported(imported) => Some(imported),
            Origin::Procedural { .. } | Origin::Meshes { .. } => None,
        }
    }

    /// How many views of every object one side of the split has.
    pub fn views_of(&self, split: Split) -> usize {
        match (self.split, split) {
            (SplitBy::Objects, _) => self.views,
            (SplitBy::Views, Split::Train) => self.views - held_out_views(self.views),
            (SplitBy::Views, Split::Val) => held_out_views(self.views),
        }
    }

    /// `self`, asked for, as a continuation of `recorded`: where only the device differs, and `recorded` has that device
    /// among its own or `allow` says so, the devices are those of both. `None` where they cannot be one dataset.
    pub fn continuing(&self, recorded: &Self, allow: bool) -> Option<Self> {
        let mut joined = Self {
            device: recorded.device.clone(),
            mixed_devices: recorded.mixed_devices.clone(),
            ..self.clone()
        };
        if joined != *recorded {
            return None;
        }
        if self.device != joined.device && !joined.mixed_devices.contains(&self.device) {
            if !allow {
                return None;
            }
            joined.mixed_devices.push(self.device.clone());
            joined.mixed_devices.sort();
        }
        Some(joined)
    }

    /// The first setting in which `self`, recorded on disk, differs from `asked`, with both values.
    pub fn difference(&self, asked: &Self) -> Option<String> {
        let value = |settings: &Self| serde_json::to_value(settings).unwrap_or_default();
        first_difference("", &value(self), &value(asked))
    }
}

fn first_difference(name: &str, recorded: &Value, asked: &Value) -> Option<String> {
    if recorded == asked {
        return None;
    }
    if let (Value::Object(a), Value::Object(b)) = (recorded, asked) {
        let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        // The list's digest says little; name it only where nothing else differs.
        keys.sort_by_key(|key| (key.ends_with("_digest"), key.as_str() != "kind"));
        return keys.into_iter().find_map(|key| {
            let inner = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
            first_difference(&inner, &of(a), &of(b))
        });
    }
    if name == "objects_digest" {
        return Some("the list of objects is not the same".to_owned());
    }
    if name.ends_with("source_digest") {
        return Some("what is imported says something else now".to_owned());
    }
    let show = |value: &Value| match value {
        Value::Null if name == "split" => SplitBy::Objects.to_string(),
        Value::Null => "not set".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let hint = if name == "device" { " (--allow-mixed-devices permits both)" } else { "" };
    Some(format!("{name} is {} there, {} was asked for{hint}", show(recorded), show(asked)))
}

/// What became of the objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of classes, those without a usable object included.
    pub classes: usize,
    /// Training objects; all of them with the split by views.
    pub train_objects: usize,
    /// Validation objects; all of them with the split by views.
    pub val_objects: usize,
    /// Images.
    pub images: usize,
    /// Images on the training side and on the other, where objects have different numbers of views.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images_of_sides: Option<[usize; 2]>,
    /// Objects that could not be used, listed in `skipped.json`.
    pub skipped_objects: usize,
    /// Images that an import left out, those of skipped objects among them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped_images: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Version of the card's own form.
    pub card: u32,
    /// What determines the dataset.
    pub settings: Settings,
    /// What became of it; missing while the dataset is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

impl Card {
    /// A card without counts.
    pub fn begun(settings: Settings) -> Self {
        Self { card: 1, settings, counts: None }
    }

    /// Whether the dataset is complete.
    pub fn is_complete(&self) -> bool {
        self.counts.is_some()
    }

    /// The card of the dataset in `root`, if it has one.
    pub fn read(root: &Path) -> Result<Option<Self>> {
        let path = root.join(CARD);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::read(&path)(error)),
        };
        let wrong = |what: String| Error::content(&path, format!("not a dataset card: {what}"));
        let card: Self = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if card.settings.ranges.is_none() && card.settings.imported().is_none() {
            return Err(wrong("the ranges of the latents are missing".to_owned()));
        }
        Ok(Some(card))
    }

    /// The bytes of `dataset.json`.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        json(self)
    }

    /// The text of `README.md`; `classes` is how many have objects, skipped ones not counted.
    pub fn to_markdown(&self, classes: usize) -> String {
        let s = &self.settings;
        let mut text = format!("# Views of 3D objects ({})\n\n", s.preset);
        let origin = match &s.origin {
            Origin::Procedural { .. } => format!("{} of the built-in library", counted(s.objects, "object")),
            Origin::Meshes { .. } => counted(s.objects, "mesh file"),
            Origin::Imported(imported) => return imported.readme(self, classes),
        };
        text += &format!(
            "Made by equicaps {} from {origin}: {} each at {size}x{size} pixels, quality `{}`, seed {}.\n\n",
            s.version,
            counted(s.views, "view"),
            s.quality,
            s.seed,
            size = s.size
        );
        if s.device != "cpu" || !s.mixed_devices.is_empty() {
            let devices: Vec<&str> =
                std::iter::once(&s.device).chain(&s.mixed_devices).map(String::as_str).collect();
            text += &format!("Rendered on: {}.\n\n", devices.join(", "));
        }
        if let Some(counts) = &self.counts {
            text += &format!(
                "| | objects | images |\n|---|---|---|\n| train | {} | {} |\n| val | {} | {} |\n\n{}; {} skipped (`skipped.json`).\n\n",
                counts.train_objects,
                counts.train_objects * s.views_of(Split::Train),
                counts.val_objects,
                counts.val_objects * s.views_of(Split::Val),
                counted(classes, "class"),
                counted(counts.skipped_objects, "object")
            );
        }
        if s.split == SplitBy::Views {
            let first = s.views_of(Split::Train);
            text += &format!(
                "The split is by views: both sides have all objects; views 0 to {} are for training, views {first} to {} \
                 are held out.\n\n",
                first.saturating_sub(1),
                s.views.saturating_sub(1)
            );
        }
        text += match s.channel_order {
            ChannelOrder::Rgb => "Channels are true RGB.\n\n",
            ChannelOrder::Bgr => "Red and blue are exchanged, as in the published files.\n\n",
        };
        text += "## Files\n\n";
        text += match s.format {
            Format::Files | Format::Reference => {
                "- `SYNSET/OBJECT/image_i.jpg` (JPEG, quality 95, 4:2:0) and `latent_i.npy` (float64): view i of an object\n\
                 - `checksums_{train,val}.npy`: CRC-32 of every image, int64, in the order of the latents\n"
            }
            Format::Shards => {
                "- `shards/train-NNNNNN.tar`, `shards/val-NNNNNN.tar`: samples `SYNSET/OBJECT/VIEW` of `jpg`, `latent.npy`, `cls` (WebDataset)\n\
                 - `shards/*.npy`: beside each archive, (offset, length, CRC-32) of the images in it, in bytes, int64, one row a view\n"
            }
        };
        text += "- `{train,val}_images.npy`, `{train,val}_labels.npy`: object folders `/SYNSET/OBJECT/` and their class labels\n\
                 - `all_latents_{train,val}.npy`: latents of all views, row = views * object + view, in the order of the lists\n\
                 - `classes.json`: label, synset and name of every class; `skipped.json`: objects left out, and why\n\
                 - `dataset.json`: this card for programs\n\n";
        let spread = s.ranges.map(|ranges| ranges.distribution).unwrap_or_default();
        let evenly = if spread == Distributions::default() {
            "Uniform, in"
        } else {
            "Uniform where nothing else is said, in"
        };
        text += &format!(
            "## Latents\n\n{evenly} this order; angles in radians.\n\n| latent | range |\n|---|---|\n"
        );
        for (name, range) in s.ranges.iter().flat_map(named_ranges) {
            let how = match spread.name_of(name) {
                "uniform" => String::new(),
                other => format!(", {other}"),
            };
            text += &format!("| {name} | {} to {}{how} |\n", range[0], range[1]);
        }
        if matches!(s.ranges.and_then(|ranges| ranges.scale), Some(ScaleRange::Uniform(_))) {
            text += "\nThe three scales of a view are the same number.\n";
        }
        if let Some(gap) = s.ranges.and_then(|ranges| ranges.rotation_gap) {
            text += &format!("\nNo angle of rotation is between {} and {}.\n", gap.low, gap.high);
        }
        text
    }
}

/// Every range under its column's name.
pub fn named_ranges(ranges: &LatentRanges) -> Vec<(&'static str, [f64; 2])> {
    let base = [ranges.floor_hue, ranges.spot_theta, ranges.spot_phi, ranges.spot_hue];
    let scale = ranges.scale.map(ScaleRange::axes);
    let optional = [ranges.translation, scale, ranges.shear].into_iter().flatten().flatten();
    let camera = [ranges.camera_distance, ranges.camera_elevation].into_iter().flatten();
    let all = ranges.rotation.into_iter().chain(base).chain(optional).chain(camera);
    let names = LatentColumns::rendered(ranges.width()).map(LatentColumns::names).unwrap_or_default();
    names.into_iter().zip(all.map(Into::into)).collect()
}

/// JSON as all files of a dataset have it: indented, with a final line break.
pub fn json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn card() -> Card {
        Card::begun(Settings {
            preset: "3diebench-t".to_owned(),
            origin: Origin::Procedural { classes: 5, objects: 4 },
            limit: None,
            objects: 20,
            objects_digest: "0123456789abcdef".to_owned(),
            views: 50,
            split: SplitBy::Objects,
            size: 256,
            seed: u64::MAX,
            quality: "standard".to_owned(),
            device: "cpu".to_owned(),
            mixed_devices: Vec::new(),
            channel_order: ChannelOrder::Rgb,
            format: Format::Files,
            objects_per_tar: None,
            ranges: Some(LatentRanges::BENCH_T),
            version: "0.1.0".to_owned(),
        })
    }

    proptest! {
        /// Latents are drawn from the ranges of the card when a dataset is finished: not a bit may be lost.
        #[test]
        fn ranges_come_back_exactly(low in -10.0..0.0_f64, high in 0.0..10.0_f64, seed: u64) {
            let mut card = card();
            card.settings.ranges = Some(LatentRanges { floor_hue: scene::Range { low, high }, ..LatentRanges::BENCH });
            card.settings.seed = seed;
            let back: Card = serde_json::from_slice(&card.to_json()).unwrap();
            let hue = back.settings.ranges.unwrap().floor_hue;
            prop_assert_eq!((hue.low.to_bits(), hue.high.to_bits()), (low.to_bits(), high.to_bits()));
            prop_assert_eq!(back.settings.difference(&card.settings), None);
            prop_assert_eq!(back, card);
        }
    }

    #[test]
    fn another_device_continues_a_dataset_only_where_that_is_allowed() {
        let recorded = card().settings;
        let asked = Settings { device: "NVIDIA H200".to_owned(), ..recorded.clone() };
        assert_eq!(asked.continuing(&recorded, false), None);
        let joined = asked.continuing(&recorded, true).unwrap();
        assert_eq!(
            (joined.device.as_str(), joined.mixed_devices.as_slice()),
            ("cpu", ["NVIDIA H200".to_owned()].as_slice())
        );
        // What is recorded needs no second permission; what else differs gets none.
        assert_eq!(recorded.continuing(&joined, false), Some(joined.clone()));
        assert_eq!(asked.continuing(&joined, false), Some(joined.clone()));
        assert_eq!(Settings { seed: 1, ..asked }.continuing(&recorded, true), None);
        assert!(Card::begun(joined).to_markdown(5).contains("Rendered on: cpu, NVIDIA H200."));
    }

    #[test]
    fn the_first_difference_is_named() {
        let recorded = card().settings;
        let mut asked = recorded.clone();
        asked.objects_digest = "another".to_owned();
        assert_eq!(recorded.difference(&asked).as_deref(), Some("the list of objects is not the same"));
        asked.origin = Origin::Meshes { up: Some("z".to_owned()) };
        let difference = recorded.difference(&asked).unwrap();
        assert_eq!(difference, "origin.kind is procedural there, meshes was asked for");
    }

    #[test]
    fn people_can_read_it() {
        let mut card = card();
        card.counts = Some(Counts {
            classes: 5,
            train_objects: 16,
            val_objects: 4,
            images: 1000,
            images_of_sides: None,
            skipped_objects: 0,
            skipped_images: 0,
        });
        let text = card.to_markdown(5);
        for part in
            ["20 objects of the built-in library", "| train | 16 | 800 |", "| trans_z | -0.5 to 0.5 |"]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
