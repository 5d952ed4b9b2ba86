//! The latents of a view: the scene parameters that 3DIEBench and 3DIEBench-T vary, and how they are drawn.

use pose::{BaseFrame, Motion, ViewPose};
use random::{Random, Stream};
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};

/// Scene parameters of one view, in radians and scene units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latents {
    /// Object rotation about X, Y, Z: Tait-Bryan angles, extrinsic xyz.
    pub rotation: [f64; 3],
    /// Hue of the floor in `[0, 1]`.
    pub floor_hue: f64,
    /// Polar angle of the spot light from +Z.
    pub spot_theta: f64,
    /// Azimuth of the spot light.
    pub spot_phi: f64,
    /// Hue of the spot light in `[0, 1]`.
    pub spot_hue: f64,
    /// Object-frame translation `t`, applied before the rotation; `None` in 3DIEBench.
    pub translation: Option<[f64; 3]>,
}

/// Latents or ranges that make no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LatentError {
    /// Neither 7 nor 10 numbers.
    #[error("expected 7 latents (3DIEBench) or 10 (3DIEBench-T), found {0}")]
    Count(usize),
    /// NaN or infinity.
    #[error("latent {index} is {value}, expected a finite number")]
    NotFinite {
        /// Position in the array.
        index: usize,
        /// What was there.
        value: f64,
    },
    /// A gap that is not inside the range of every angle.
    #[error("the angles left out, {low} to {high}, are not inside the range of every rotation")]
    Gap {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Bounds that are not finite or in the wrong order.
    #[error("the range of {name} is {low} to {high}, expected finite bounds in ascending order")]
    Range {
        /// Which latent.
        name: &'static str,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
}

impl Latents {
    /// The entries of `latent_i.npy`: `[rot_x, rot_y, rot_z, floor_hue, spot_theta, spot_phi, spot_hue]`, followed by
    /// `[trans_x, trans_y, trans_z]` where there is a translation.
    pub fn to_vec(&self) -> Vec<f64> {
        let [x, y, z] = self.rotation;
        let mut entries = vec![x, y, z, self.floor_hue, self.spot_theta, self.spot_phi, self.spot_hue];
        entries.extend(self.translation.iter().flatten());
        entries
    }

    /// Rotation and translation (zero where there is none) for the pose algebra.
    pub fn pose(&self) -> ViewPose {
        ViewPose { rotation: self.rotation.into(), translation: self.translation.unwrap_or_default() }
    }

    /// `p_world = R (p_object + t)`.
    pub fn world_from_object(&self) -> Motion<BaseFrame> {
        self.pose().motion()
    }
}

impl TryFrom<&[f64]> for Latents {
    type Error = LatentError;

    /// Reads the entries in the order of [`Latents::to_vec`].
    fn try_from(entries: &[f64]) -> Result<Self, LatentError> {
        let (base, translation) = match *entries {
            [ref base @ .., x, y, z] if entries.len() == 10 => (base, Some([x, y, z])),
            _ => (entries, None),
        };
        let &[x, y, z, floor_hue, spot_theta, spot_phi, spot_hue] = base else {
            return Err(LatentError::Count(entries.len()));
        };
        if let Some(index) = entries.iter().position(|entry| !entry.is_finite()) {
            return Err(LatentError::NotFinite { index, value: entries[index] });
        }
        Ok(Self { rotation: [x, y, z], floor_hue, spot_theta, spot_phi, spot_hue, translation })
    }
}

/// A uniform distribution over `[low, high)`; a constant where both are equal.
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
    };

    /// 3DIEBench-T: the object is translated, then rotated.
    pub const BENCH_T: Self = Self { translation: Some([Range { low: -0.5, high: 0.5 }; 3]), ..Self::BENCH };

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
            None => Ok(()),
        }
    }

    /// The latents of view `view` of the object named `object_id` (`CLASS/OBJECT`): a pure function of its
    /// arguments. The first seven do not depend on whether there is a translation.
    pub fn sample(&self, seed: u64, object_id: &str, view: u64) -> Latents {
        // An odd factor spreads the views of an object over all indices and keeps them distinct.
        let index =
            random::fnv1a(object_id.as_bytes()).wrapping_add(view.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut random = Random::new(seed, Stream::new("latents"), index);
        let mut draw = |range: Range| random.range(range.low, range.high);
        let gap = self.rotation_gap;
        Latents {
            rotation: self.rotation.map(|range| match gap {
                None => draw(range),
                // Uniform over what is left: as if the upper part began where the gap does.
                Some(gap) => {
                    let width = gap.high - gap.low;
                    let angle = draw(Range { low: range.low, high: range.high - width });
                    if angle < gap.low { angle } else { angle + width }
                }
            }),
            floor_hue: draw(self.floor_hue),
            spot_theta: draw(self.spot_theta),
            spot_phi: draw(self.spot_phi),
            spot_hue: draw(self.spot_hue),
            translation: self.translation.map(|axes| axes.map(&mut draw)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_round_trip_in_the_published_order() {
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        let latents = Latents::try_from(&ten[..]).expect("ten entries");
        assert_eq!(latents.rotation, [0.0, 1.0, 2.0]);
        assert_eq!((latents.floor_hue, latents.spot_theta), (3.0, 4.0));
        assert_eq!((latents.spot_phi, latents.spot_hue), (5.0, 6.0));
        assert_eq!(latents.translation, Some([7.0, 8.0, 9.0]));
        assert_eq!(latents.to_vec(), ten);
        let seven = Latents::try_from(&ten[..7]).expect("seven entries");
        assert_eq!((seven.translation, seven.to_vec()), (None, ten[..7].to_vec()));
        for count in [0, 3, 6, 8, 9] {
            assert_eq!(Latents::try_from(&ten[..count]), Err(LatentError::Count(count)));
        }
        assert_eq!(Latents::try_from(&[0.0; 11][..]), Err(LatentError::Count(11)));
        let mut bad = ten;
        bad[8] = f64::NAN;
        assert!(matches!(Latents::try_from(&bad[..]), Err(LatentError::NotFinite { index: 8, .. })));
    }

    #[test]
    fn draws_depend_on_seed_object_and_view_only() {
        let draw = |seed, object, view| LatentRanges::BENCH_T.sample(seed, object, view);
        let base = draw(1, "chair/a", 3);
        assert_eq!(base, draw(1, "chair/a", 3));
        for other in [draw(2, "chair/a", 3), draw(1, "chair/b", 3), draw(1, "chair/a", 4)] {
            assert!(base.to_vec().iter().zip(other.to_vec()).all(|(a, b)| *a != b));
        }
        let rotated = LatentRanges::BENCH.sample(1, "chair/a", 3);
        assert_eq!(rotated.to_vec(), base.to_vec()[..7]);
    }

    #[test]
    fn draws_fill_their_ranges() {
        let ranges = LatentRanges::BENCH_T;
        let text = serde_json::to_string(&ranges).expect("serialises");
        let angles = "[-1.5707963267948966,1.5707963267948966]";
        let published = format!(
            "{{\"rotation\":[{angles},{angles},{angles}],\"floor_hue\":[0.0,1.0],\"spot_theta\":[0.0,0.7853981633974483],\
             \"spot_phi\":[0.0,6.283185307179586],\"spot_hue\":[0.0,1.0],\
             \"translation\":[[-0.5,0.5],[-0.5,0.5],[-0.5,0.5]]}}"
        );
        assert_eq!(text, published);
        let bounds: Vec<Range> = ranges
            .rotation
            .into_iter()
            .chain([ranges.floor_hue, ranges.spot_theta, ranges.spot_phi, ranges.spot_hue])
            .chain(ranges.translation.expect("the -T preset translates"))
            .collect();
        let views: Vec<Vec<f64>> = (0..4000).map(|view| ranges.sample(7, "mug/x", view).to_vec()).collect();
        for (i, Range { low, high }) in bounds.into_iter().enumerate() {
            let values = views.iter().map(|view| view[i]);
            assert!(values.clone().all(|value| (low..high).contains(&value)));
            let mean = values.clone().sum::<f64>() / 4000.0;
            assert!((mean - 0.5 * (low + high)).abs() < 0.03 * (high - low), "mean of latent {i}: {mean}");
            let smallest = values.clone().fold(f64::MAX, f64::min);
            let largest = values.fold(f64::MIN, f64::max);
            assert!(largest - smallest > 0.99 * (high - low));
        }
    }

    #[test]
    fn angles_out_of_range_are_uniform_on_both_sides_of_the_gap() {
        let ranges = LatentRanges::BENCH_OOD;
        assert_eq!(ranges.validate(), Ok(()));
        let views: Vec<Latents> = (0..4000).map(|view| ranges.sample(7, "mug/x", view)).collect();
        for axis in 0..3 {
            let angles: Vec<f64> = views.iter().map(|view| view.rotation[axis]).collect();
            assert!(angles.iter().all(|angle| (FRAC_PI_2..=PI).contains(&angle.abs())));
            // Four parts of an eighth of a turn each, two on either side.
            for (low, high) in
                [(-PI, -0.75 * PI), (-0.75 * PI, -FRAC_PI_2), (FRAC_PI_2, 0.75 * PI), (0.75 * PI, PI)]
            {
                let count = angles.iter().filter(|angle| (low..high).contains(*angle)).count();
                assert!((900..1100).contains(&count), "axis {axis}, {low} to {high}: {count}");
            }
        }
        // All else is drawn as in 3DIEBench.
        let other = LatentRanges::BENCH.sample(7, "mug/x", 3);
        assert_eq!(views[3].to_vec()[3..], other.to_vec()[3..]);
        let text = serde_json::to_string(&ranges).expect("serialises");
        assert!(text.contains("\"rotation_gap\":[-1.5707963267948966,1.5707963267948966]"), "{text}");
        assert_eq!(serde_json::from_str::<LatentRanges>(&text).expect("parses"), ranges);
        let narrow = LatentRanges { rotation: [Range { low: 0.0, high: PI }; 3], ..ranges };
        assert!(narrow.validate().expect_err("no room").to_string().contains("not inside the range"));
    }

    #[test]
    fn ranges_are_checked_and_serialise_as_pairs() {
        assert_eq!(LatentRanges::BENCH_T.validate(), Ok(()));
        let mut ranges = LatentRanges::BENCH;
        ranges.spot_theta = Range { low: 1.0, high: 0.0 };
        assert!(ranges.validate().expect_err("wrong order").to_string().contains("spot theta"));
        let text = serde_json::to_string(&LatentRanges::BENCH).expect("serialises");
        assert!(text.contains("\"floor_hue\":[0.0,1.0]") && !text.contains("translation"));
        let text_t = serde_json::to_string(&LatentRanges::BENCH_T).expect("serialises");
        assert_eq!(serde_json::from_str::<LatentRanges>(&text_t).expect("parses"), LatentRanges::BENCH_T);
        assert!(serde_json::from_str::<LatentRanges>(&text.replace("floor_hue", "flor_hue")).is_err());
    }

    #[test]
    fn objects_are_translated_before_they_are_rotated() {
        let quarter_turn = Latents {
            rotation: [0.0, 0.0, FRAC_PI_2],
            translation: Some([0.5, 0.0, 0.0]),
            ..LatentRanges::BENCH.sample(0, "a", 0)
        };
        let p = quarter_turn.world_from_object().apply([0.25, 0.0, 0.0]);
        assert!(p[0].abs() < 1e-15 && (p[1] - 0.75).abs() < 1e-15 && p[2].abs() < 1e-15);
    }
}
