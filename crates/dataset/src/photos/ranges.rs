//! How far photographs are warped and how much their colours change: ranges that a run may set.

use std::f64::consts::{PI, TAU};

use scene::Range;
use serde::{Deserialize, Serialize};

/// Ranges of the warps and of the changes of colour; values are drawn evenly, scales by their logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarpRanges {
    /// Radians, clockwise.
    pub angle: Range,
    /// In halves of the side of a view.
    pub translation: Range,
    /// Factors, all ratios as likely.
    pub scale: Range,
    /// `x += shear y`.
    pub shear: Range,
    /// The last row of the matrix, but for its 1.
    pub perspective: Range,
    /// Factor of brightness.
    pub brightness: Range,
    /// Factor of contrast.
    pub contrast: Range,
    /// Factor of saturation.
    pub saturation: Range,
    /// Turn of hues in radians.
    pub hue: Range,
}

impl Default for WarpRanges {
    fn default() -> Self {
        let range = |low: f64, high: f64| Range { low, high };
        Self {
            angle: range(-PI, PI),
            translation: range(-0.2, 0.2),
            scale: range(0.8, 1.6),
            shear: range(-0.3, 0.3),
            perspective: range(-0.12, 0.12),
            brightness: range(0.7, 1.3),
            contrast: range(0.7, 1.3),
            saturation: range(0.6, 1.4),
            hue: range(-0.3, 0.3),
        }
    }
}

/// Largest absolute value of a perspective: beyond it the corners of views would come from behind the photograph.
const MOST_PERSPECTIVE: f64 = 0.4;

impl WarpRanges {
    /// Every range with its name, and the bounds between which it must lie.
    fn named(&self) -> [(&'static str, Range, [f64; 2]); 9] {
        [
            ("angle", self.angle, [-TAU, TAU]),
            ("translation", self.translation, [-2.0, 2.0]),
            ("scale", self.scale, [0.01, 100.0]),
            ("shear", self.shear, [-10.0, 10.0]),
            ("perspective", self.perspective, [-MOST_PERSPECTIVE, MOST_PERSPECTIVE]),
            ("brightness", self.brightness, [0.0, 10.0]),
            ("contrast", self.contrast, [0.0, 10.0]),
            ("saturation", self.saturation, [0.0, 10.0]),
            ("hue", self.hue, [-PI, PI]),
        ]
    }

    /// What is wrong with them, in one sentence that names the setting (`photos.NAME`).
    pub fn validate(&self) -> Result<(), String> {
        for (name, Range { low, high }, [least, most]) in self.named() {
            if low > high {
                return Err(format!("photos.{name} is {low} to {high}: it ends before it begins"));
            }
            // NaN is neither.
            if !(low >= least && high <= most) {
                return Err(format!(
                    "photos.{name} is {low} to {high}, but must be within {least} to {most}"
                ));
            }
        }
        Ok(())
    }

    /// All bounds as bytes, for digests.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.named().into_iter().flat_map(|(_, r, _)| [r.low, r.high]).flat_map(f64::to_le_bytes).collect()
    }

    /// Angles of which one is near to every angle of the range: a few degrees apart, both ends among them.
    pub(crate) fn angles(&self) -> Vec<f64> {
        const STEP: f64 = 3.0;
        let Range { low, high } = self.angle;
        if high - low >= TAU - 1e-9 {
            return (0..360).step_by(STEP as usize).map(|degrees| f64::from(degrees).to_radians()).collect();
        }
        let steps = ((high - low).to_degrees() / STEP).ceil().max(1.0);
        (0..=steps as usize).map(|k| low + (high - low) * (k as f64 / steps)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_make_no_sense_are_named() {
        assert_eq!(WarpRanges::default().validate(), Ok(()));
        let refusal = |change: fn(&mut WarpRanges)| {
            let mut ranges = WarpRanges::default();
            change(&mut ranges);
            ranges.validate().unwrap_err()
        };
        let turned = refusal(|ranges| ranges.scale = [2.0, 1.0].into());
        assert_eq!(turned, "photos.scale is 2 to 1: it ends before it begins");
        let zero = refusal(|ranges| ranges.scale = [0.0, 1.0].into());
        assert_eq!(zero, "photos.scale is 0 to 1, but must be within 0.01 to 100");
        assert!(refusal(|ranges| ranges.hue = [0.0, f64::NAN].into()).starts_with("photos.hue is 0 to NaN"));
        assert!(refusal(|ranges| ranges.perspective = [-0.6, 0.0].into()).contains("within -0.4 to 0.4"));
        assert!(refusal(|ranges| ranges.contrast = [-1.0, 0.0].into()).contains("photos.contrast"));
    }

    #[test]
    fn angles_reach_from_end_to_end() {
        assert_eq!(WarpRanges::default().angles().len(), 120);
        let narrow = WarpRanges { angle: [-0.1, 0.1].into(), ..WarpRanges::default() }.angles();
        assert_eq!((narrow[0], narrow[narrow.len() - 1]), (-0.1, 0.1));
        assert!(narrow.windows(2).all(|pair| pair[1] - pair[0] < 3.01_f64.to_radians()));
        let still = WarpRanges { angle: [0.5, 0.5].into(), ..WarpRanges::default() }.angles();
        assert!(still.iter().all(|angle| *angle == 0.5));
    }
}
