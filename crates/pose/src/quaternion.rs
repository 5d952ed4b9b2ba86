//! Unit quaternions in the order `(x, y, z, w)` with Hamilton's product.

use crate::{Rotation, TaitBryan};
use serde::{Deserialize, Serialize};

/// A quaternion `x i + y j + z k + w`; rotations are those of length 1. `q` and `-q` are the same rotation but
/// different regression targets, so nothing here changes a sign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 4]", into = "[f64; 4]")]
pub struct Quaternion {
    /// Coefficient of i.
    pub x: f64,
    /// Coefficient of j.
    pub y: f64,
    /// Coefficient of k.
    pub z: f64,
    /// Real part.
    pub w: f64,
}

impl Quaternion {
    /// No rotation.
    pub const IDENTITY: Self = Self { x: 0.0, y: 0.0, z: 0.0, w: 1.0 };

    /// `(x, y, z, w)`.
    pub fn to_array(self) -> [f64; 4] {
        [self.x, self.y, self.z, self.w]
    }

    /// `(x, y, z, w)` rounded to the precision that networks see.
    pub fn to_f32(self) -> [f32; 4] {
        self.to_array().map(|entry| entry as f32)
    }

    /// The inverse of a unit quaternion.
    pub fn conjugate(self) -> Self {
        Self { x: -self.x, y: -self.y, z: -self.z, w: self.w }
    }

    /// Inner product as vectors of four numbers.
    pub fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z + self.w * other.w
    }

    /// Length.
    pub fn norm(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// The unit quaternion in the same direction; the identity for the zero quaternion.
    pub fn normalised(self) -> Self {
        let norm = self.norm();
        if norm > 0.0 { Self::from(self.to_array().map(|entry| entry / norm)) } else { Self::IDENTITY }
    }

    /// The rotation from `first` to `second`: `q12 = conj(q1) q2`, whatever its sign.
    pub fn relative(first: Self, second: Self) -> Self {
        first.conjugate() * second
    }
}

impl Default for Quaternion {
    fn default() -> Self {
        Self::IDENTITY
    }
}

impl std::ops::Mul for Quaternion {
    type Output = Self;

    fn mul(self, b: Self) -> Self {
        let a = self;
        Self {
            x: a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            y: a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            z: a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
            w: a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
        }
    }
}

impl From<[f64; 4]> for Quaternion {
    fn from([x, y, z, w]: [f64; 4]) -> Self {
        Self { x, y, z, w }
    }
}

impl From<Quaternion> for [f64; 4] {
    fn from(quaternion: Quaternion) -> Self {
        quaternion.to_array()
    }
}

impl From<TaitBryan> for Quaternion {
    /// `qz qy qx` from half angles, so `w > 0` for angles within ±pi/2.
    fn from(angles: TaitBryan) -> Self {
        let [x, y, z] = angles.to_radians().map(|angle| (0.5 * angle).sin_cos());
        let qx = Self { x: x.0, w: x.1, y: 0.0, z: 0.0 };
        let qy = Self { y: y.0, w: y.1, x: 0.0, z: 0.0 };
        let qz = Self { z: z.0, w: z.1, x: 0.0, y: 0.0 };
        qz * qy * qx
    }
}

impl From<Rotation> for Quaternion {
    /// Shepperd's method: divides by the largest component, which comes out positive.
    fn from(rotation: Rotation) -> Self {
        let r = rotation.to_matrix();
        let trace = r[0][0] + r[1][1] + r[2][2];
        let candidates = [r[0][0], r[1][1], r[2][2], trace];
        let largest = (0..4).fold(0, |best, i| if candidates[i] > candidates[best] { i } else { best });
        let quaternion = match largest {
            0 => [1.0 + 2.0 * r[0][0] - trace, r[0][1] + r[1][0], r[0][2] + r[2][0], r[2][1] - r[1][2]],
            1 => [r[0][1] + r[1][0], 1.0 + 2.0 * r[1][1] - trace, r[1][2] + r[2][1], r[0][2] - r[2][0]],
            2 => [r[0][2] + r[2][0], r[1][2] + r[2][1], 1.0 + 2.0 * r[2][2] - trace, r[1][0] - r[0][1]],
            _ => [r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1], 1.0 + trace],
        };
        Self::from(quaternion).normalised()
    }
}
