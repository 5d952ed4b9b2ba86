//! Rotation matrices.

use crate::{Quaternion, TaitBryan};
use serde::{Deserialize, Serialize};

/// A proper rotation as a 3x3 matrix acting on column vectors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "[[f64; 3]; 3]", into = "[[f64; 3]; 3]")]
pub struct Rotation([[f64; 3]; 3]);

/// A matrix whose rows are not orthonormal, or that mirrors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotARotation(pub [[f64; 3]; 3]);

impl std::fmt::Display for NotARotation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} is not a rotation matrix (orthonormal, determinant 1)", self.0)
    }
}

impl std::error::Error for NotARotation {}

impl Rotation {
    /// No rotation.
    pub const IDENTITY: Self = Self([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);

    /// Rows of the matrix.
    pub fn to_matrix(self) -> [[f64; 3]; 3] {
        self.0
    }

    /// Rows of the matrix, rounded to the precision that networks see.
    pub fn to_f32(self) -> [[f32; 3]; 3] {
        self.0.map(|row| row.map(|entry| entry as f32))
    }

    /// The inverse.
    pub fn transpose(&self) -> Self {
        Self(std::array::from_fn(|i| std::array::from_fn(|j| self.0[j][i])))
    }

    /// `R v`.
    pub fn apply(&self, v: [f64; 3]) -> [f64; 3] {
        self.0.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
    }

    /// The rotation from `first` to `second`: `R12 = R1^T R2`.
    pub fn relative(first: &Self, second: &Self) -> Self {
        first.transpose() * *second
    }
}

impl Default for Rotation {
    fn default() -> Self {
        Self::IDENTITY
    }
}

impl std::ops::Mul for Rotation {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| {
            std::array::from_fn(|j| (0..3).map(|k| self.0[i][k] * other.0[k][j]).sum())
        }))
    }
}

impl TryFrom<[[f64; 3]; 3]> for Rotation {
    type Error = NotARotation;

    /// Accepts matrices that are orthonormal with determinant 1 to `1e-6`.
    fn try_from(rows: [[f64; 3]; 3]) -> Result<Self, NotARotation> {
        let [a, b, c] = rows;
        let gram = (Self(rows) * Self(rows).transpose()).0;
        let orthonormal =
            (0..3).all(|i| (0..3).all(|j| (gram[i][j] - f64::from(u8::from(i == j))).abs() < 1e-6));
        let determinant = a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
            + a[2] * (b[0] * c[1] - b[1] * c[0]);
        if orthonormal && determinant > 0.0 { Ok(Self(rows)) } else { Err(NotARotation(rows)) }
    }
}

impl From<Rotation> for [[f64; 3]; 3] {
    fn from(rotation: Rotation) -> Self {
        rotation.0
    }
}

impl From<TaitBryan> for Rotation {
    /// `Rz(z) Ry(y) Rx(x)`, multiplied out.
    fn from(angles: TaitBryan) -> Self {
        let [(sx, cx), (sy, cy), (sz, cz)] = angles.to_radians().map(f64::sin_cos);
        Self([
            [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx],
            [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx],
            [-sy, cy * sx, cy * cx],
        ])
    }
}

impl From<Quaternion> for Rotation {
    /// The rotation of `q / |q|`; the identity for the zero quaternion.
    fn from(quaternion: Quaternion) -> Self {
        let Quaternion { x, y, z, w } = quaternion.normalised();
        Self([
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ])
    }
}
