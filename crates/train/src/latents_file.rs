//! Ranges and distributions of latents of one's own, over those of a preset: a TOML file that `render --latents FILE` and
//! `procedural.latents` read, or the same on one line, as a run keeps it.

use std::f64::consts::PI;
use std::path::Path;

use scene::{Camera, Distribution, LatentRanges, Range, ScaleRange};
use toml::{Table, Value};

use crate::error::{Error, Result};

/// Latents with one range.
const SINGLE: [&str; 6] =
    ["floor_hue", "spot_theta", "spot_phi", "spot_hue", "camera_distance", "camera_elevation"];
/// All keys of the file.
const KEYS: [&str; 12] = [
    "rotation",
    "rotation_gap",
    "floor_hue",
    "spot_theta",
    "spot_phi",
    "spot_hue",
    "translation",
    "scale",
    "shear",
    "camera_distance",
    "camera_elevation",
    "distribution",
];

/// Latents of one's own: what a file says, without its comments.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnLatents(Table);

impl OwnLatents {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
        let found = Self::parse(&text).and_then(|own| own.over(LatentRanges::BENCH).map(|_| own));
        found.map_err(|message| Error::Setting(format!("{}: {message}", path.display())))
    }

    /// The contents of a file.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        text.parse().map(Self).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    /// What [`Self::to_line`] wrote.
    pub fn of_line(line: &str) -> std::result::Result<Self, String> {
        let Self(mut table) = Self::parse(&format!("latents = {line}"))?;
        match table.remove("latents") {
            Some(Value::Table(table)) => Ok(Self(table)),
            _ => Err(format!("{line} is no table of latents")),
        }
    }

    /// On one line: an inline table.
    pub fn to_line(&self) -> String {
        Value::Table(self.0.clone()).to_string()
    }

    /// These ranges over others, checked.
    pub fn over(&self, mut ranges: LatentRanges) -> std::result::Result<LatentRanges, String> {
        overlay(&self.0, &mut ranges)?;
        ranges.validate().map_err(|error| error.to_string())?;
        Ok(ranges)
    }
}

/// Changes `ranges` by what the file says.
pub fn apply(path: &Path, ranges: &mut LatentRanges) -> Result<()> {
    let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
    let changed = OwnLatents::parse(&text).and_then(|own| own.over(*ranges));
    *ranges = changed.map_err(|message| Error::Setting(format!("{}: {message}", path.display())))?;
    Ok(())
}

fn overlay(table: &Table, ranges: &mut LatentRanges) -> std::result::Result<(), String> {
    for (key, value) in table {
        let one = || range(key, value);
        match key.as_str() {
            "rotation" => ranges.rotation = three(key, value)?,
            "rotation_gap" => ranges.rotation_gap = Some(one()?),
            "floor_hue" => ranges.floor_hue = one()?,
            "spot_theta" => ranges.spot_theta = one()?,
            "spot_phi" => ranges.spot_phi = one()?,
            "spot_hue" => ranges.spot_hue = one()?,
            "translation" => ranges.translation = Some(three(key, value)?),
            // One range is one factor along all axes.
            "scale" if is_pair(value) => ranges.scale = Some(ScaleRange::Uniform(one()?)),
            "scale" => ranges.scale = Some(ScaleRange::Axes(three(key, value)?)),
            "shear" => ranges.shear = Some(three(key, value)?),
            "camera_distance" => ranges.camera_distance = Some(one()?),
            "camera_elevation" => ranges.camera_elevation = Some(one()?),
            "distribution" => distribute(value, ranges)?,
            other => return Err(unknown("latent", other, &KEYS)),
        }
    }
    // What a latent needs of others is there, and changes nothing.
    if ranges.shear.is_some() && ranges.scale.is_none() {
        ranges.scale = Some(ScaleRange::Uniform([1.0, 1.0].into()));
    }
    if ranges.scale.is_some() && ranges.translation.is_none() {
        ranges.translation = Some([[0.0, 0.0].into(); 3]);
    }
    if ranges.camera_distance.is_some() || ranges.camera_elevation.is_some() {
        ranges.camera_distance.get_or_insert(constant(Camera::PUBLISHED.distance));
        ranges.camera_elevation.get_or_insert(constant(Camera::PUBLISHED.elevation));
    }
    Ok(())
}

fn distribute(value: &Value, ranges: &mut LatentRanges) -> std::result::Result<(), String> {
    let table = value.as_table().ok_or("distribution must be a table: [distribution]")?;
    for (key, value) in table {
        let name = value.as_str().unwrap_or_default();
        let kind = match name {
            "uniform" => Distribution::Uniform,
            "log-uniform" => Distribution::LogUniform,
            "normal" => Distribution::Normal,
            _ => {
                return Err(format!(
                    "distribution.{key} is {value}, but must be \"uniform\", \"log-uniform\" or \"normal\""
                ));
            }
        };
        let spread = &mut ranges.distribution;
        match key.as_str() {
            "rotation" => spread.rotation = kind,
            "floor_hue" => spread.floor_hue = kind,
            "spot_theta" => spread.spot_theta = kind,
            "spot_phi" => spread.spot_phi = kind,
            "spot_hue" => spread.spot_hue = kind,
            "translation" => spread.translation = kind,
            "scale" => spread.scale = kind,
            "shear" => spread.shear = kind,
            "camera_distance" => spread.camera_distance = kind,
            "camera_elevation" => spread.camera_elevation = kind,
            other => {
                let known: Vec<&str> =
                    SINGLE.into_iter().chain(["rotation", "translation", "scale", "shear"]).collect();
                return Err(unknown("latent", other, &known));
            }
        }
    }
    Ok(())
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let hint = methods::nearest(name, known.iter().copied());
    let hint = hint.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    format!("there is no {what} {name:?} (those that there are: {}){hint}", known.join(", "))
}

/// A number, or a multiple or fraction of pi: `0.5`, `pi`, `-pi/2`, `2pi`.
pub fn parse_number(text: &str) -> std::result::Result<f64, String> {
    let text = text.trim();
    let wrong = || format!("{text:?} is not a number (0.5, pi, -pi/2, 2pi ...)");
    let value = match text.split_once("pi") {
        None => text.parse().map_err(|_| wrong())?,
        Some((factor, divisor)) => {
            let factor: f64 = match factor.trim_end_matches('*').trim() {
                "" | "+" => 1.0,
                "-" => -1.0,
                factor => factor.parse().map_err(|_| wrong())?,
            };
            let divisor: f64 = match divisor.trim().strip_prefix('/') {
                None if divisor.trim().is_empty() => 1.0,
                None => return Err(wrong()),
                Some(divisor) => divisor.parse().map_err(|_| wrong())?,
            };
            factor * PI / divisor
        }
    };
    if value.is_finite() { Ok(value) } else { Err(wrong()) }
}

/// A range of one value.
pub fn constant(value: f64) -> Range {
    Range { low: value, high: value }
}

/// A number, or text such as "pi/2".
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Float(number) => *number,
        Value::Integer(number) => *number as f64,
        Value::String(text) => parse_number(text).ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

fn is_pair(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|values| values.len() == 2 && values.iter().all(|value| number(value).is_some()))
}

fn range(key: &str, value: &Value) -> std::result::Result<Range, String> {
    let wrong =
        || format!("{key} is {value}, but must be [low, high]: two finite numbers, or text such as \"pi/2\"");
    let [low, high] = value.as_array().map(Vec::as_slice).unwrap_or_default() else { return Err(wrong()) };
    let (low, high) = number(low).zip(number(high)).ok_or_else(wrong)?;
    if low > high {
        return Err(format!("the range of {key} is {low} to {high}: it ends before it begins"));
    }
    Ok(Range { low, high })
}

/// One range for all axes, or one for each.
fn three(key: &str, value: &Value) -> std::result::Result<[Range; 3], String> {
    match value.as_array().map(Vec::as_slice) {
        Some([x, y, z]) => Ok([range(key, x)?, range(key, y)?, range(key, z)?]),
        _ => Ok([range(key, value)?; 3]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> LatentRanges {
        let own = OwnLatents::parse(text).unwrap();
        // The same on one line.
        let line = own.to_line();
        assert!(line.starts_with('{') && !line.contains('\n'), "{line}");
        assert_eq!(OwnLatents::of_line(&line).as_ref(), Ok(&own));
        own.over(LatentRanges::BENCH).unwrap()
    }

    fn refusal(text: &str) -> String {
        OwnLatents::parse(text).and_then(|own| own.over(LatentRanges::BENCH)).unwrap_err()
    }

    #[test]
    fn files_change_what_they_name() {
        let ranges =
            read("rotation = [\"-pi\", \"pi\"]\nfloor_hue = [0, 0.5]\nshear = [[0, 0], [-1, 1], [0, 0.5]]");
        assert_eq!(ranges.rotation, [Range { low: -PI, high: PI }; 3]);
        assert_eq!((ranges.floor_hue.high, ranges.spot_hue.high), (0.5, 1.0));
        assert_eq!(ranges.shear.unwrap()[1], Range { low: -1.0, high: 1.0 });
        // The neutral scale and translation came along.
        let latents = ranges.sample(1, "a", 2);
        assert_eq!((latents.translation, latents.shape.unwrap().scale), (Some([0.0; 3]), [1.0; 3]));
        let scaled = read("scale = [0.5, 2]\n[distribution]\nscale = \"log-uniform\"\nspot_phi = \"normal\"");
        assert_eq!(scaled.scale, Some(ScaleRange::Uniform(Range { low: 0.5, high: 2.0 })));
        assert_eq!(scaled.distribution.scale, Distribution::LogUniform);
        assert_eq!(scaled.distribution.spot_phi, Distribution::Normal);
        assert_eq!(read(""), LatentRanges::BENCH);
        let moved = read("camera_elevation = [0.2, \"pi/2\"]\n[distribution]\ncamera_elevation = \"normal\"");
        assert_eq!(moved.camera_distance, Some(Range { low: 2.5, high: 2.5 }));
        assert_eq!(moved.camera_elevation, Some(Range { low: 0.2, high: PI / 2.0 }));
        assert_eq!(moved.distribution.camera_elevation, Distribution::Normal);
    }

    #[test]
    fn slips_are_named() {
        for (text, expected) in [
            ("rotaton = [0, 1]", "there is no latent \"rotaton\""),
            ("rotaton = [0, 1]", "did you mean \"rotation\"?"),
            ("scale = [2, 1]", "the range of scale is 2 to 1: it ends before it begins"),
            ("floor_hue = 1", "floor_hue is 1, but must be [low, high]"),
            ("floor_hue = [0, nan]", "two finite numbers"),
            ("floor_hue = [0, \"pie\"]", "two finite numbers"),
            ("[distribution]\nscale = \"gauss\"", "distribution.scale is \"gauss\", but must be"),
            ("[distribution]\nscales = \"normal\"", "did you mean \"scale\"?"),
            ("scale =", "value"),
        ] {
            let message = refusal(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert!(refusal("scale = [0, 1]").contains("above 0"));
        assert!(OwnLatents::of_line("3").unwrap_err().contains("is no table of latents"));
        for (text, expected) in [
            ("camera_distance = [0, 2]", "the camera at a distance of 0 and an elevation of"),
            ("camera_elevation = [0, 2]", "the elevation must be from -pi/2 to pi/2"),
            ("camera_elevation = [-1, 1]", "is below the floor"),
            ("camera_distance = [0.5, 2]", "can be inside the object"),
        ] {
            let message = refusal(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
