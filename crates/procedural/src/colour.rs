//! Colours as people name them (sRGB, hue/saturation/value), and their linear values for the renderer.

/// An sRGB colour, components in `[0, 1]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour(pub [f32; 3]);

impl Colour {
    /// From hue in turns, saturation and value.
    pub fn hsv(h: f32, s: f32, v: f32) -> Self {
        let channel = |n: f32| {
            let k = (n + h.rem_euclid(1.0) * 6.0) % 6.0;
            (v - v * s * k.min(4.0 - k).clamp(0.0, 1.0)).clamp(0.0, 1.0)
        };
        Self([channel(5.0), channel(3.0), channel(1.0)])
    }

    /// A grey.
    pub const fn grey(v: f32) -> Self {
        Self([v; 3])
    }

    /// Linear RGB.
    pub fn linear(self) -> [f32; 3] {
        self.0.map(|c| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) })
    }

    /// 8-bit sRGB with full opacity.
    pub fn bytes(self) -> [u8; 4] {
        let [r, g, b] = self.0.map(|c| (c.clamp(0.0, 1.0) * 255.0).round() as u8);
        [r, g, b, 255]
    }

    /// Perceived brightness, roughly.
    pub fn brightness(self) -> f32 {
        0.3 * self.0[0] + 0.59 * self.0[1] + 0.11 * self.0[2]
    }

    /// Part of the way towards `other`.
    pub fn mix(self, other: Self, t: f32) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + (other.0[i] - self.0[i]) * t))
    }

    /// Multiplied by a factor.
    pub fn times(self, f: f32) -> Self {
        Self(self.0.map(|c| (c * f).clamp(0.0, 1.0)))
    }
}
