//! From hues to linear colours, and from scene-linear light to the 8-bit image through the Filmic curve.

use std::sync::OnceLock;

use glam::Vec3;

/// The measured view transform: scene-linear value, display value in `[0, 1]`.
const FILMIC_CURVE: &str = include_str!("filmic_curve.csv");

/// Mean of the references' dither: uniform in `[0, 0.0033)` of the display range.
const DITHER_MEAN: f32 = 0.5 * 0.0033 * 255.0;

/// Linear RGB of a hue at full precision; no sRGB decoding is involved (the published generator has none).
pub fn hsv_to_rgb(hue: f64, saturation: f64, value: f64) -> Vec3 {
    let h = hue.rem_euclid(1.0) * 6.0;
    let channel = |n: f64| {
        let k = (n + h) % 6.0;
        (value - value * saturation * k.min(4.0 - k).clamp(0.0, 1.0)) as f32
    };
    Vec3::new(channel(5.0), channel(3.0), channel(1.0))
}

/// Albedo of the floor.
pub fn floor_albedo(hue: f64) -> Vec3 {
    hsv_to_rgb(hue, 0.6, 0.6)
}

/// Colour of the spot light.
pub fn spot_colour(hue: f64) -> Vec3 {
    hsv_to_rgb(hue, 1.0, 0.8)
}

/// Steps of [`srgb_table`] for one step of an 8-bit value.
const SRGB_STEPS: usize = 4;

/// Decoded sRGB values from 0 to 255 in quarters, and the last once more.
pub fn srgb_table() -> &'static [f32] {
    static TABLE: OnceLock<Vec<f32>> = OnceLock::new();
    TABLE.get_or_init(|| {
        (0..=255 * SRGB_STEPS + 1)
            .map(|i| {
                let v = (i as f64 / (255 * SRGB_STEPS) as f64).min(1.0);
                (if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }) as f32
            })
            .collect()
    })
}

/// Decodes one sRGB value given in `[0, 255]`, fractions included: textures are filtered before they are decoded.
pub fn srgb_decode(value: f32) -> f32 {
    let table = srgb_table();
    let x = value.clamp(0.0, 255.0) * SRGB_STEPS as f32;
    let i = x as usize;
    table[i] + (table[i + 1] - table[i]) * (x - i as f32)
}

/// The Filmic curve as a table over the logarithm of the linear value: the upper bits of an `f32` are nearly one.
#[derive(Debug)]
pub struct Filmic {
    /// Display values in `[0, 255]` at the linear values whose bits are `FIRST + i << SHIFT`.
    table: Vec<f32>,
}

impl Filmic {
    const SHIFT: u32 = 17;
    /// Bits of 2^-13, just below the curve's first point.
    const FIRST: u32 = (127 - 13) << 23;
    /// Bits of 2^5; the curve is flat from there on.
    const LAST: u32 = (127 + 5) << 23;

    /// The one curve there is.
    pub fn get() -> &'static Self {
        static CURVE: OnceLock<Filmic> = OnceLock::new();
        CURVE.get_or_init(|| {
            let points: Vec<(f64, f64)> = FILMIC_CURVE
                .lines()
                .skip(1)
                .filter_map(|line| {
                    let (linear, display) = line.split_once(',')?;
                    Some((linear.parse().ok()?, display.parse().ok()?))
                })
                .collect();
            let count = (Self::LAST - Self::FIRST) >> Self::SHIFT;
            let table = (0..=count + 1)
                .map(|i| {
                    let linear = f32::from_bits(Self::FIRST + (i << Self::SHIFT));
                    (255.0 * interpolate(&points, f64::from(linear))) as f32
                })
                .collect();
            Self { table }
        })
    }

    /// Display values in `[0, 255]` at the linear values whose bits are `FIRST + i << SHIFT`.
    pub fn table(&self) -> &[f32] {
        &self.table
    }

    /// Display value in `[0, 255]` of a scene-linear value; NaN counts as 0.
    #[inline]
    pub fn display(&self, linear: f32) -> f32 {
        let smallest = f32::from_bits(Self::FIRST);
        if linear.is_nan() || linear <= smallest {
            return self.table[0] * (linear / smallest).max(0.0);
        }
        let bits = linear.to_bits().min(Self::LAST) - Self::FIRST;
        let i = (bits >> Self::SHIFT) as usize;
        let fraction = (bits & ((1 << Self::SHIFT) - 1)) as f32 / (1 << Self::SHIFT) as f32;
        self.table[i] + (self.table[i + 1] - self.table[i]) * fraction
    }

    /// Display value rounded to 8 bits, raised by the mean of the output dither of the reference renders (which is
    /// never negative), so that images have their brightness.
    #[inline]
    pub fn encode(&self, linear: f32) -> u8 {
        (self.display(linear) + (0.5 + DITHER_MEAN)) as u8
    }
}

/// The curve at `linear`, linear in log2 between points, and linear below the first positive one.
fn interpolate(points: &[(f64, f64)], linear: f64) -> f64 {
    let upper = points.partition_point(|point| point.0 <= linear);
    let (Some(&low), Some(&high)) = (points.get(upper.wrapping_sub(1)), points.get(upper)) else {
        return points.last().map_or(0.0, |point| point.1);
    };
    let fraction = if low.0 > 0.0 {
        (linear / low.0).log2() / (high.0 / low.0).log2()
    } else {
        (linear - low.0) / (high.0 - low.0)
    };
    low.1 + (high.1 - low.1) * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_passes_through_its_measured_points() {
        let filmic = Filmic::get();
        for (linear, display) in [(0.05, 69.6), (0.1, 99.0), (0.18, 127.55), (0.5, 177.2), (1.0, 205.8)] {
            assert!((filmic.display(linear) - display).abs() < 0.15, "{linear}: {}", filmic.display(linear));
        }
        assert_eq!(filmic.encode(0.0), 0);
        assert_eq!(filmic.encode(f32::NAN), 0);
        assert_eq!(filmic.encode(-1.0), 0);
        assert_eq!(filmic.encode(1e9), filmic.encode(100.0));
        let values: Vec<f32> = (0..2000).map(|i| filmic.display(i as f32 * 0.004)).collect();
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn hues_and_textures_decode() {
        assert_eq!(hsv_to_rgb(0.0, 0.6, 0.6), Vec3::new(0.6, 0.24, 0.24));
        assert!((hsv_to_rgb(1.0 / 3.0, 1.0, 0.8) - Vec3::new(0.0, 0.8, 0.0)).abs().max_element() < 1e-6);
        assert!((srgb_decode(128.0) - 0.215_86).abs() < 1e-4);
        assert!((srgb_decode(255.0) - 1.0).abs() < 1e-6 && srgb_decode(0.0) == 0.0);
    }
}
