//! Rotations and translations as people write them, as the latents that this program stores.
//!
//! A latent rotation `R` takes the object's axes to the world of the renderer, in which the camera stands still; a latent
//! translation `t` is one in the object's frame: `p_world = R (p_object + t)`. What people have is as a rule
//! `p_frame = R p_object + t`, in the frame of a camera or of a world of their own, or the inverse of that.

use std::str::FromStr;

use pose::{Quaternion, Rotation, TaitBryan};
use serde::{Deserialize, Serialize};

/// The frame into which a given rotation takes the object's axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PoseFrame {
    /// The renderer's world: z up, the camera at (0, 1, 1) times 1.77 looking at the origin, -x to the right.
    #[default]
    World,
    /// A camera with x to the right, y down, z forward: OpenCV, BOP, COLMAP.
    Opencv,
    /// A camera with x to the right, y up, z backward: OpenGL, Blender, NeRF.
    Opengl,
}

impl PoseFrame {
    /// The rotation that takes its axes to the renderer's world: in its columns, where the axes of the frame point.
    fn to_world(self) -> Rotation {
        let [right, up, forward] = render::camera_axes(None);
        let minus = |axis: [f64; 3]| axis.map(|value| -value);
        let columns = match self {
            Self::World => return Rotation::IDENTITY,
            Self::Opencv => [right, minus(up), forward],
            Self::Opengl => [right, up, minus(forward)],
        };
        let rows = std::array::from_fn(|i| std::array::from_fn(|j| columns[j][i]));
        Rotation::try_from(rows).unwrap_or_default()
    }

    /// What it is called, for captions.
    pub fn words(self) -> &'static str {
        match self {
            Self::World => "the renderer's world",
            Self::Opencv => "a camera with x right, y down, z forward (OpenCV)",
            Self::Opengl => "a camera with x right, y up, z backward (OpenGL)",
        }
    }
}

/// About which axes three angles turn, in which order, and whether the axes stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EulerOrder {
    /// The axes in the order in which they are turned about: 0, 1, 2 for x, y, z.
    pub axes: [usize; 3],
    /// Whether the axes turn with the object (`XYZ`) or stand still (`xyz`).
    pub intrinsic: bool,
}

impl EulerOrder {
    /// This program's own: about x, then y, then z, which stand still.
    pub const OWN: Self = Self { axes: [0, 1, 2], intrinsic: false };

    /// Whether it turns about one axis twice (`zxz`).
    pub fn repeats(self) -> bool {
        self.axes[0] == self.axes[2]
    }

    /// The rotation by three angles in radians, first to last.
    pub fn rotation(self, angles: [f64; 3]) -> Rotation {
        let [first, second, third] = std::array::from_fn(|k| about(self.axes[k], angles[k]));
        if self.intrinsic { first * second * third } else { third * second * first }
    }

    /// The angles about x, y and z in radians, where it is just another way to write this program's own order.
    fn own_angles(self, angles: [f64; 3]) -> Option<[f64; 3]> {
        match (self.axes, self.intrinsic) {
            ([0, 1, 2], false) => Some(angles),
            ([2, 1, 0], true) => Some([angles[2], angles[1], angles[0]]),
            _ => None,
        }
    }
}

/// The rotation about one axis.
fn about(axis: usize, angle: f64) -> Rotation {
    let mut angles = [0.0; 3];
    angles[axis] = angle;
    TaitBryan::from(angles).into()
}

impl FromStr for EulerOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let intrinsic = text.chars().any(char::is_uppercase);
        let letter = if intrinsic { b'X' } else { b'x' };
        let axes: Vec<usize> = text.bytes().map(|byte| usize::from(byte.wrapping_sub(letter))).collect();
        match axes[..] {
            [a, b, c] if axes.iter().all(|&axis| axis < 3) && a != b && b != c => {
                Ok(Self { axes: [a, b, c], intrinsic })
            }
            _ => Err(
                "expected an order such as xyz (about axes that stand still, x first) or ZYX (about axes that turn with \
                 the object)"
                    .to_owned(),
            ),
        }
    }
}

impl std::fmt::Display for EulerOrder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letters = if self.intrinsic { ['X', 'Y', 'Z'] } else { ['x', 'y', 'z'] };
        self.axes.iter().try_for_each(|&axis| write!(formatter, "{}", letters[axis]))
    }
}

/// The unit of angles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AngleUnit {
    /// 360 are a turn.
    Degrees,
    /// 2 pi are a turn.
    Radians,
}

/// A rotation as a row has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Given {
    /// x, y, z, w.
    Quaternion([f64; 4]),
    /// Angles in the order in which they are applied.
    Angles([f64; 3], EulerOrder, AngleUnit),
    /// Row by row.
    Matrix([[f64; 3]; 3]),
    /// This program's own latents, in radians.
    Own([f64; 3]),
}

/// The pose of a view, as latents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Angles about x, y, z in radians.
    pub rotation: [f64; 3],
    /// In the object's frame.
    pub translation: Option<[f64; 3]>,
}

/// How poses are to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conventions {
    /// Order of three angles.
    pub order: Option<EulerOrder>,
    /// Their unit.
    pub unit: Option<AngleUnit>,
    /// Into which frame rotations lead.
    pub frame: PoseFrame,
    /// Whether poses lead from the frame to the object instead.
    pub inverse: bool,
    /// What translations are multiplied by.
    pub scale: f64,
}

impl Default for Conventions {
    fn default() -> Self {
        Self { order: None, unit: None, frame: PoseFrame::World, inverse: false, scale: 1.0 }
    }
}

/// How far the length of a quaternion may be from 1: such as three decimals make.
const NORM_TOLERANCE: f64 = 1e-2;
/// How far products of rows of a matrix may be from those of a rotation.
const MATRIX_TOLERANCE: f64 = 1e-3;

impl Conventions {
    /// The latents of a given pose; the error says what is wrong with it.
    pub fn pose(&self, given: Given, translation: Option<[f64; 3]>) -> Result<Pose, String> {
        if let Given::Own(rotation) = given {
            return Ok(Pose { rotation, translation });
        }
        if let Given::Angles(angles, order, unit) = given
            && self.frame == PoseFrame::World
            && !self.inverse
            && translation.is_none()
            && let Some(rotation) = order.own_angles(in_radians(angles, unit))
        {
            return Ok(Pose { rotation, translation: None });
        }
        let rotation = given.rotation()?;
        // In the object's frame, p_frame = R (p + t') has t' = R^T t; the inverse p = R p_frame + t has t' = -t.
        let translation = translation.map(|t| {
            let own = if self.inverse { t.map(|value| -value) } else { rotation.transpose().apply(t) };
            own.map(|value| value * self.scale)
        });
        let rotation = if self.inverse { rotation.transpose() } else { rotation };
        Ok(Pose { rotation: TaitBryan::from(self.frame.to_world() * rotation).to_radians(), translation })
    }
}

fn in_radians(angles: [f64; 3], unit: AngleUnit) -> [f64; 3] {
    match unit {
        AngleUnit::Degrees => angles.map(f64::to_radians),
        AngleUnit::Radians => angles,
    }
}

impl Given {
    fn rotation(self) -> Result<Rotation, String> {
        match self {
            Self::Own(angles) => Ok(TaitBryan::from(angles).into()),
            Self::Angles(angles, order, unit) => Ok(order.rotation(in_radians(angles, unit))),
            Self::Quaternion(values) => {
                let quaternion = Quaternion::from(values);
                let norm = quaternion.norm();
                if norm.is_nan() || (norm - 1.0).abs() > NORM_TOLERANCE {
                    return Err(format!(
                        "the quaternion ({}) has length {norm:.4}, expected 1",
                        values.map(|value| value.to_string()).join(", ")
                    ));
                }
                Ok(quaternion.into())
            }
            Self::Matrix(rows) => nearest_rotation(rows).ok_or_else(|| {
                "r11 to r33 are not a rotation matrix (rows of length 1 at right angles, determinant 1)"
                    .to_owned()
            }),
        }
    }
}

/// The rotation that a rounded matrix was; `None` where it is none.
fn nearest_rotation([a, b, c]: [[f64; 3]; 3]) -> Option<Rotation> {
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let unit = |v: [f64; 3]| v.map(|value| value / dot(v, v).sqrt());
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let products = [(dot(a, a), 1.0), (dot(b, b), 1.0), (dot(c, c), 1.0), (dot(a, b), 0.0), (dot(b, c), 0.0)];
    let is_near = |(found, wanted): &(f64, f64)| (found - wanted).abs() <= MATRIX_TOLERANCE;
    if !products.iter().all(is_near) || !is_near(&(dot(a, c), 0.0)) || dot(cross(a, b), c) <= 0.0 {
        return None;
    }
    let a = unit(a);
    let along = dot(a, b);
    let b = unit(std::array::from_fn(|i| b[i] - along * a[i]));
    Rotation::try_from([a, b, cross(a, b)]).ok()
}

#[cfg(test)]
mod tests;
