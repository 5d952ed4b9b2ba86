//! Options of `equicaps render` that need more than a number: presets, ranges, shards.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use dataset::jpeg::ChannelOrder;
use dataset::latent_table::ALL_NAMES as NAMES;
use dataset::work::Shard;
use scene::{Camera, LatentRanges, Range, ScaleRange};
use train::latents_file::{constant, parse_number};

/// The published datasets, and one beyond their range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Rotations only
    #[value(name = "3diebench")]
    Bench,
    /// Rotations and translations
    #[value(name = "3diebench-t")]
    BenchT,
    /// Rotations, translations and sizes
    #[value(name = "3diebench-s")]
    BenchS,
    /// Rotations, translations, sizes along every axis and shears
    #[value(name = "3diebench-a")]
    BenchA,
    /// Rotations that 3DIEBench never has: angles of 90 to 180 degrees either way
    #[value(name = "3diebench-ood")]
    BenchOod,
}

impl Preset {
    /// The published ranges.
    pub fn ranges(self) -> LatentRanges {
        match self {
            Self::Bench => LatentRanges::BENCH,
            Self::BenchT => LatentRanges::BENCH_T,
            Self::BenchS => LatentRanges::BENCH_S,
            Self::BenchA => LatentRanges::BENCH_A,
            Self::BenchOod => LatentRanges::BENCH_OOD,
        }
    }
}

/// What is held out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Split {
    /// Objects that training never sees
    Objects,
    /// The last fifth of the views of every object
    Views,
}

impl From<Split> for dataset::SplitBy {
    fn from(split: Split) -> Self {
        match split {
            Split::Objects => Self::Objects,
            Split::Views => Self::Views,
        }
    }
}

/// Layouts on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// SYNSET/OBJECT/image_i.jpg and latent_i.npy
    Files,
    /// Tar archives for WebDataset, with an index for random access
    Shards,
}

impl From<Format> for dataset::card::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Files => Self::Files,
            Format::Shards => Self::Shards,
        }
    }
}

/// Orders of colour channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// True colours
    Rgb,
    /// Red and blue exchanged, as in the published files
    Bgr,
}

impl From<Order> for ChannelOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Rgb => Self::Rgb,
            Order::Bgr => Self::Bgr,
        }
    }
}

/// Axes that may point up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Up {
    /// The y axis
    Y,
    /// The z axis
    Z,
}

impl From<Up> for scene::Up {
    fn from(up: Up) -> Self {
        match up {
            Up::Y => Self::Y,
            Up::Z => Self::Z,
        }
    }
}

/// The names that the command line uses are those that cards show.
macro_rules! display_as_value {
    ($($kind:ty),*) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let value = self.to_possible_value();
                formatter.write_str(value.as_ref().map_or("", |value| value.get_name()))
            }
        }
    )*};
}
display_as_value!(Preset, Split, Format, Order, Up);

/// `I/N`: part I of N, I from 0.
pub fn parse_shard(text: &str) -> Result<Shard, String> {
    let expected = "expected I/N with I from 0 to N-1, for example 0/8";
    let (index, count) = text.split_once('/').ok_or(expected)?;
    let shard =
        Shard { index: index.parse().map_err(|_| expected)?, count: count.parse().map_err(|_| expected)? };
    if shard.index < shard.count { Ok(shard) } else { Err(expected.to_owned()) }
}

/// `NAME=LOW,HIGH`: the range of one latent, or of three at once (`rotation`, `translation`).
#[derive(Clone, Debug, PartialEq)]
pub struct RangeOption {
    name: String,
    range: Range,
}

impl FromStr for RangeOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected NAME=LOW,HIGH, for example rot_x=-pi/4,pi/4".to_owned();
        let (name, bounds) = text.split_once('=').ok_or_else(expected)?;
        let (low, high) = bounds.split_once(',').ok_or_else(expected)?;
        let known = NAMES.contains(&name) || ["rotation", "translation", "scale", "shear"].contains(&name);
        if !known {
            return Err(format!(
                "there is no latent {name:?}; there are {}, rotation, translation, scale and shear",
                NAMES.join(", ")
            ));
        }
        let range = Range { low: parse_number(low)?, high: parse_number(high)? };
        if range.low > range.high {
            return Err(format!("the range of {name} ends before it begins"));
        }
        Ok(Self { name: name.to_owned(), range })
    }
}

impl RangeOption {
    /// Changes `ranges`.
    pub fn apply(&self, ranges: &mut LatentRanges) -> Result<(), String> {
        let no_translation = || format!("this preset has no {}; use --preset 3diebench-t", self.name);
        let no_scale = || format!("this preset has no {}; use --preset 3diebench-a", self.name);
        match self.name.as_str() {
            "rotation" => ranges.rotation = [self.range; 3],
            "translation" => *ranges.translation.as_mut().ok_or_else(no_translation)? = [self.range; 3],
            "rot_x" => ranges.rotation[0] = self.range,
            "rot_y" => ranges.rotation[1] = self.range,
            "rot_z" => ranges.rotation[2] = self.range,
            "floor_hue" => ranges.floor_hue = self.range,
            "spot_theta" => ranges.spot_theta = self.range,
            "spot_phi" => ranges.spot_phi = self.range,
            "spot_hue" => ranges.spot_hue = self.range,
            // One range of a uniform scale is that of all axes.
            "scale" => match ranges.scale.as_mut().ok_or_else(no_scale)? {
                ScaleRange::Uniform(range) => *range = self.range,
                ScaleRange::Axes(axes) => *axes = [self.range; 3],
            },
            "shear" => *ranges.shear.as_mut().ok_or_else(no_scale)? = [self.range; 3],
            "camera_distance" | "camera_elevation" => {
                // The other one stays where it is.
                let distance = ranges.camera_distance.get_or_insert(constant(Camera::PUBLISHED.distance));
                let elevation = ranges.camera_elevation.get_or_insert(constant(Camera::PUBLISHED.elevation));
                *if self.name == "camera_distance" { distance } else { elevation } = self.range;
            }
            column => {
                let place = NAMES.iter().position(|name| *name == column).unwrap_or(0);
                let axis = (place + 2) % 3;
                match column {
                    name if name.starts_with("trans") => {
                        ranges.translation.as_mut().ok_or_else(no_translation)?[axis] = self.range;
                    }
                    name if name.starts_with("shear") => {
                        ranges.shear.as_mut().ok_or_else(no_scale)?[axis] = self.range;
                    }
                    _ => match ranges.scale.as_mut().ok_or_else(no_scale)? {
                        ScaleRange::Axes(axes) => axes[axis] = self.range,
                        ScaleRange::Uniform(_) => {
                            return Err(format!(
                                "this preset has one scale along all axes; use --range scale=..., not {}",
                                self.name
                            ));
                        }
                    },
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn ranges_are_read_with_pi() {
        let apply = |text: &str| {
            let mut ranges = LatentRanges::BENCH_A;
            text.parse::<RangeOption>().unwrap().apply(&mut ranges).unwrap();
            ranges
        };
        assert_eq!(apply("rot_y=-pi/4,2pi").rotation[1], Range { low: -PI / 4.0, high: 2.0 * PI });
        assert_eq!(apply("translation=-0.25,1e-1").translation, Some([Range { low: -0.25, high: 0.1 }; 3]));
        assert_eq!(apply("trans_z=0,0").translation.unwrap()[2], Range { low: 0.0, high: 0.0 });
        assert_eq!(apply("rotation=0.5*pi,pi").rotation[2].low, PI / 2.0);
        for name in NAMES {
            let changed = apply(&format!("{name}=0.125,0.25"));
            let named = dataset::card::named_ranges(&changed);
            assert_eq!(changed.width(), if name.starts_with("camera") { 18 } else { 16 });
            let moved: Vec<_> = named.iter().filter(|(_, range)| *range == [0.125, 0.25]).collect();
            assert!(moved.len() == 1 && moved[0].0 == name);
        }
    }

    #[test]
    fn wrong_ranges_and_shards_are_refused() {
        let refusal = |text: &str| text.parse::<RangeOption>().unwrap_err();
        assert!(refusal("rot_x").contains("expected NAME=LOW,HIGH"));
        assert!(refusal("rotx=0,1").contains("there is no latent \"rotx\""));
        assert!(refusal("rot_x=1,0").contains("ends before it begins"));
        assert!(refusal("rot_x=a,0").contains("is not a number"));
        assert!(refusal("rot_x=inf,0").contains("is not a number"));
        assert!(refusal("rot_x=pi/0,0").contains("is not a number"));
        let mut ranges = LatentRanges::BENCH;
        assert!("trans_x=0,1".parse::<RangeOption>().unwrap().apply(&mut ranges).is_err());
        assert_eq!(parse_shard("2/3"), Ok(Shard { index: 2, count: 3 }));
        for wrong in ["3/3", "1", "-1/3", "a/b", "0/0"] {
            assert!(parse_shard(wrong).is_err());
        }
    }
}
