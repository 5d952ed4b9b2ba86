//! Tait-Bryan angles, the form in which latents store rotations.

use crate::{Quaternion, Radians, Rotation};
use serde::{Deserialize, Serialize};

/// Angles about x, y and z, applied in this order about the fixed axes (extrinsic x-y-z): `R = Rz(z) Ry(y) Rx(x)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub struct TaitBryan {
    /// About the x axis, first.
    pub x: Radians,
    /// About the y axis, second.
    pub y: Radians,
    /// About the z axis, last.
    pub z: Radians,
}

impl TaitBryan {
    /// From angles in any unit.
    pub fn new(x: impl Into<Radians>, y: impl Into<Radians>, z: impl Into<Radians>) -> Self {
        Self { x: x.into(), y: y.into(), z: z.into() }
    }

    /// From the first three latent entries (radians) as the published training code reads them: rounded to `f32`
    /// before anything is composed. Round results with [`Quaternion::to_f32`], [`Rotation::to_f32`] or
    /// [`crate::Motion::to_f32`] to get its numbers.
    pub fn published_precision(radians: [f64; 3]) -> Self {
        Self::from(radians.map(|angle| f64::from(angle as f32)))
    }

    /// `(x, y, z)` in radians.
    pub fn to_radians(self) -> [f64; 3] {
        [self.x.0, self.y.0, self.z.0]
    }
}

impl From<[f64; 3]> for TaitBryan {
    /// From `(x, y, z)` in radians.
    fn from([x, y, z]: [f64; 3]) -> Self {
        Self { x: Radians(x), y: Radians(y), z: Radians(z) }
    }
}

impl From<TaitBryan> for [f64; 3] {
    fn from(angles: TaitBryan) -> Self {
        angles.to_radians()
    }
}

impl From<Rotation> for TaitBryan {
    /// The angles with y in `[-pi/2, pi/2]`; accurate at gimbal lock too, where x and z are not unique.
    fn from(rotation: Rotation) -> Self {
        let r = rotation.to_matrix();
        // Any z works at gimbal lock (both arguments vanish there); x and y are then read off Rz(-z) R = Ry Rx.
        let z = r[1][0].atan2(r[0][0]);
        let (sin, cos) = z.sin_cos();
        let x = (sin * r[0][2] - cos * r[1][2]).atan2(cos * r[1][1] - sin * r[0][1]);
        let y = (-r[2][0]).atan2(cos * r[0][0] + sin * r[1][0]);
        Self::from([x, y, z])
    }
}

impl From<Quaternion> for TaitBryan {
    fn from(quaternion: Quaternion) -> Self {
        Rotation::from(quaternion).into()
    }
}
