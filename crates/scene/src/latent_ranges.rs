//! Where the latents of a dataset are drawn from: the ranges of the published sets, of our own, and of a user's file.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};

use random::{Random, Stream};
use serde::{Deserialize, Serialize};

use crate::camera::Camera;
use crate::latents::{LatentError, Latents, OBJECT_RADIUS, Shape};

/// Values from `low` to `high`; a constant where both are equal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
pub struct Range {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl From<[f64; 2]> for Range {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

impl From<Range> for [f64; 2] {
    fn from(range: Range) -> Self {
        [range.low, range.high]
    }
}

/// How values are spread over a [`Range`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All values are as likely: `[low, high)`.
    #[default]
    Uniform,
    /// All ratios are as likely; bounds must be above zero.
    LogUniform,
    /// Around the middle, with a standard deviation of a quarter of the width; what falls outside is drawn again.
    Normal,
}

impl Distribution {
    fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }

    fn draw(self, range: Range, random: &mut Random) -> f64 {
        let Range { low, high } = range;
        match self {
            Self::Uniform => random.range(low, high),
            Self::LogUniform => random.range(low.ln(), high.ln()).exp().clamp(low, high),
            Self::Normal => loop {
                // Box and Muller; 1 - u is never 0.
                let (u, turn) = (random.uniform(), TAU * random.uniform());
                let value = (-2.0 * (1.0 - u).ln()).sqrt() * turn.cos();
                if value.abs() <= 2.0 {
                    break 0.5 * (low + high) + value * 0.25 * (high - low);
                }
            },
        }
    }
}

/// The distribution of every latent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Distributions {
    pub rotation: Distribution,
    pub floor_hue: Distribution,
    pub spot_theta: Distribution,
    pub spot_phi: Distribution,
    pub spot_hue: Distribution,
    pub translation: Distribution,
    pub scale: Distribution,
    pub shear: Distribution,
    #[serde(skip_serializing_if = "Distribution::is_uniform")]
    pub camera_distance: Distribution,
    #[serde(skip_serializing_if = "Distribution::is_uniform")]
    pub camera_elevation: Distribution,
}

impl Distributions {
    fn is_uniform(&self) -> bool {
        *self == Self::default()
    }

    /// The distribution of a latent by the name of its column, in words.
    pub fn name_of(&self, column: &str) -> &'static str {
        let distribution = match column {
            "floor_hue" => self.floor_hue,
            "spot_theta" => self.spot_theta,
            "spot_phi" => self.spot_phi,
            "spot_hue" => self.spot_hue,
            "camera_distance" => self.camera_distance,
            "camera_elevation" => self.camera_elevation,
            name if name.starts_with("rot") => self.rotation,
            name if name.starts_with("trans") => self.translation,
            name if name.starts_with("scale") => self.scale,
            _ => self.shear,
        };
        match distribution {
            Distribution::Uniform => "uniform",
            Distribution::LogUniform => "log-uniform",
            Distribution::Normal => "normal",
        }
    }
}

/// Scales of an object: one factor along all axes, or one along each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ScaleRange {
    /// The same along all axes.
    Uniform(Range),
    /// Along X, Y and Z.
    Axes([Range; 3]),
}

impl ScaleRange {
    /// The range along each axis.
    pub fn axes(self) -> [Range; 3] {
        match self {
            Self::Uniform(range) => [range; 3],
            Self::Axes(axes) => axes,
        }
    }
}

/// From where the latents of a data set are drawn. The defaults are the published ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatentRanges {
    /// Angles about X, Y and Z in radians: `[-pi/2, pi/2]` each.
    pub rotation: [Range; 3],
    /// Angles that are left out of all three ranges; `None` in the published sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_gap: Option<Range>,
    /// `[0, 1]`.
    pub floor_hue: Range,
    /// Radians from +Z: `[0, pi/4]`.
    pub spot_theta: Range,
    /// Radians: `[0, 2 pi]`.
    pub spot_phi: Range,
    /// `[0, 1]`.
    pub spot_hue: Range,
    /// `[-0.5, 0.5]` each in 3DIEBench-T, `None` in 3DIEBench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<[Range; 3]>,
    /// Factors; `None` in the published sets. Needs `translation`, which may be zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleRange>,
    /// Shears xy, xz, yz; `None` in the published sets. Needs `scale`, which may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shear: Option<[Range; 3]>,
    /// Distance of the camera from the origin; `None` in the published sets, whose camera is [`Camera::PUBLISHED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera_distance: Option<Range>,
    /// Angle of the camera above the floor in radians. It goes with `camera_distance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera_elevation: Option<Range>,
    /// How values are spread over their ranges: evenly in the published sets.
    #[serde(default, skip_serializing_if = "Distributions::is_uniform")]
    pub distribution: Distributions,
}

impl LatentRanges {
    /// 3DIEBench: the object is rotated only.
    pub const BENCH: Self = Self {
        rotation: [Range { low: -FRAC_PI_2, high: FRAC_PI_2 }; 3],
        rotation_gap: None,
        floor_hue: Range { low: 0.0, high: 1.0 },
        spot_theta: Range { low: 0.0, high: FRAC_PI_4 },
        spot_phi: Range { low: 0.0, high: TAU },
        spot_hue: Range { low: 0.0, high: 1.0 },
        translation: None,
        scale: None,
        shear: None,
        camera_distance: None,
        camera_elevation: None,
        distribution: Distributions {
            rotation: Distribution::Uniform,
            floor_hue: Distribution::Uniform,
            spot_theta: Distribution::Uniform,
            spot_phi: Distribution::Uniform,
            spot_hue: Distribution::Uniform,
            translation: Distribution::Uniform,
            scale: Distribution::Uniform,
            shear: Distribution::Uniform,
            camera_distance: Distribution::Uniform,
            camera_elevation: Distribution::Uniform,
        },
    };

    /// 3DIEBench-T: the object is translated, then rotated.
    pub const BENCH_T: Self = Self { translation: Some([Range { low: -0.5, high: 0.5 }; 3]), ..Self::BENCH };

    /// 3DIEBench-T with objects of other sizes: factors from 5/8 to 8/5, all ratios as likely.
    pub const BENCH_S: Self = Self {
        scale: Some(ScaleRange::Uniform(Range { low: 0.625, high: 1.6 })),
        distribution: Distributions { scale: Distribution::LogUniform, ..Self::BENCH.distribution },
        ..Self::BENCH_T
    };

    /// 3DIEBench-T with objects of other shapes: factors from 5/7 to 7/5 along each axis, all ratios as likely, and shears.
    pub const BENCH_A: Self = Self {
        scale: Some(ScaleRange::Axes([Range { low: 5.0 / 7.0, high: 1.4 }; 3])),
        shear: Some([Range { low: -0.4, high: 0.4 }; 3]),
        ..Self::BENCH_S
    };

    /// 3DIEBench's other rotations: every angle is outside of the range that 3DIEBench has, uniformly from `[-pi, -pi/2]` and
    /// `[pi/2, pi]`.
    pub const BENCH_OOD: Self = Self {
        rotation: [Range { low: -PI, high: PI }; 3],
        rotation_gap: Some(Range { low: -FRAC_PI_2, high: FRAC_PI_2 }),
        ..Self::BENCH
    };

    /// Refuses bounds that are not finite or in the wrong order, and a gap that is not inside the range of an angle.
    pub fn validate(&self) -> Result<(), LatentError> {
        let [x, y, z] = self.rotation;
        let mut named = vec![
            ("rotation about x", x),
            ("rotation about y", y),
            ("rotation about z", z),
            ("floor hue", self.floor_hue),
            ("spot theta", self.spot_theta),
            ("spot phi", self.spot_phi),
            ("spot hue", self.spot_hue),
        ];
        if let Some([x, y, z]) = self.translation {
            named.extend([("translation x", x), ("translation y", y), ("translation z", z)]);
        }
        if let Some([x, y, z]) = self.scale.map(ScaleRange::axes) {
            named.extend([("scale x", x), ("scale y", y), ("scale z", z)]);
            if self.translation.is_none() {
                return Err(LatentError::Needs { name: "scale", needs: "translation", neutral: "[0, 0]" });
            }
            if let Some(Range { low, high }) = [x, y, z].into_iter().find(|range| range.low <= 0.0) {
                return Err(LatentError::NotPositive { name: "scale", low, high });
            }
        }
        if let Some([xy, xz, yz]) = self.shear {
            named.extend([("shear xy", xy), ("shear xz", xz), ("shear yz", yz)]);
            if self.scale.is_none() {
                return Err(LatentError::Needs { name: "shear", needs: "scale", neutral: "[1, 1]" });
            }
        }
        match (self.camera_distance, self.camera_elevation) {
            (Some(distance), Some(elevation)) => {
                named.extend([("camera distance", distance), ("camera elevation", elevation)]);
            }
            (Some(_), None) => {
                let (name, needs, neutral) = ("camera distance", "camera elevation", "[\"pi/4\", \"pi/4\"]");
                return Err(LatentError::Needs { name, needs, neutral });
            }
            (None, Some(_)) => {
                let (name, needs, neutral) = ("camera elevation", "camera distance", "[2.5, 2.5]");
                return Err(LatentError::Needs { name, needs, neutral });
            }
            (None, None) => {}
        }
        for &(name, Range { low, high }) in &named {
            let column = name.replace("rotation about", "rot").replace(' ', "_");
            if self.distribution.name_of(&column) == "log-uniform" && low <= 0.0 {
                return Err(LatentError::NotPositive { name, low, high });
            }
        }
        if self.rotation_gap.is_some() && self.distribution.rotation != Distribution::Uniform {
            return Err(LatentError::GapDistribution);
        }
        if let Some(gap) = self.rotation_gap {
            let is_inside = |range: &Range| {
                range.low <= gap.low && gap.high <= range.high && gap.high - gap.low < range.high - range.low
            };
            if !(gap.low <= gap.high && self.rotation.iter().all(is_inside)) {
                return Err(LatentError::Gap { low: gap.low, high: gap.high });
            }
        }
        match named.into_iter().find(|(_, r)| !(r.low.is_finite() && r.high.is_finite() && r.low <= r.high)) {
            Some((name, Range { low, high })) => Err(LatentError::Range { name, low, high }),
            None => self.validate_camera(),
        }
    }

    /// Refuses a camera that can stand below the floor, or in an object that is as large and as far from the origin as it
    /// can be.
    fn validate_camera(&self) -> Result<(), LatentError> {
        let Some((distance, elevation)) = self.camera_distance.zip(self.camera_elevation) else {
            return Ok(());
        };
        let farthest = |range: Range| range.low.abs().max(range.high.abs());
        let translation = self.translation.map_or([0.0; 3], |axes| axes.map(farthest));
        let shape = self.scale.map_or(1.0, |scale| {
            let shear = self.shear.map(|axes| axes.map(farthest));
            Shape { scale: scale.axes().map(|range| range.high), shear }.longest()
        });
        let reach = translation.iter().map(|t| t * t).sum::<f64>().sqrt() + OBJECT_RADIUS * shape;
        for distance in [distance.low, distance.high] {
            for elevation in [elevation.low, elevation.high] {
                Camera { distance, elevation }.check(reach)?;
            }
        }
        Ok(())
    }

    /// The latents of view `view` of the object named `object_id` (`CLASS/OBJECT`): a pure function of its
    /// arguments. The first seven do not depend on whether there is a translation.
    pub fn sample(&self, seed: u64, object_id: &str, view: u64) -> Latents {
        // An odd factor spreads the views of an object over all indices and keeps them distinct.
        let index =
            random::fnv1a(object_id.as_bytes()).wrapping_add(view.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut random = Random::new(seed, Stream::new("latents"), index);
        let mut draw = |range: Range, distribution: Distribution| distribution.draw(range, &mut random);
        let (gap, spread) = (self.rotation_gap, self.distribution);
        Latents {
            rotation: self.rotation.map(|range| match gap {
                None => draw(range, spread.rotation),
                // Uniform over what is left: as if the upper part began where the gap does.
                Some(gap) => {
                    let width = gap.high - gap.low;
                    let angle =
                        draw(Range { low: range.low, high: range.high - width }, Distribution::Uniform);
                    if angle < gap.low { angle } else { angle + width }
                }
            }),
            floor_hue: draw(self.floor_hue, spread.floor_hue),
            spot_theta: draw(self.spot_theta, spread.spot_theta),
            spot_phi: draw(self.spot_phi, spread.spot_phi),
            spot_hue: draw(self.spot_hue, spread.spot_hue),
            translation: self.translation.map(|axes| axes.map(|range| draw(range, spread.translation))),
            shape: self.scale.map(|scale| Shape {
                scale: match scale {
                    ScaleRange::Uniform(range) => [draw(range, spread.scale); 3],
                    ScaleRange::Axes(axes) => axes.map(|range| draw(range, spread.scale)),
                },
                shear: self.shear.map(|axes| axes.map(|range| draw(range, spread.shear))),
            }),
            camera: self.camera_distance.zip(self.camera_elevation).map(|(distance, elevation)| Camera {
                distance: draw(distance, spread.camera_distance),
                elevation: draw(elevation, spread.camera_elevation),
            }),
        }
    }

    /// Columns of the latents.
    pub fn width(&self) -> usize {
        let optional = [self.translation.is_some(), self.scale.is_some(), self.shear.is_some()];
        let camera = if self.camera_distance.is_some() { 2 } else { 0 };
        7 + 3 * optional.into_iter().filter(|is_there| *is_there).count() + camera
    }
}

#[cfg(test)]
mod tests;
