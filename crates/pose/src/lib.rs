//! Rotations, rigid motions and other groups of transformations of the views: the transformation algebra that renderer, training and evaluation share.
//!
//! Everything is `f64`, right-handed, with column vectors. Latent rotations are Tait-Bryan angles, extrinsic x-y-z:
//! `R = Rz(z) Ry(y) Rx(x)`. Quaternions are ordered `(x, y, z, w)` and multiply as Hamilton's. Relative
//! transformations are `g1^-1 g2` and act on the right: a pose that behaves as `P(view) = P0 R_view` satisfies
//! `P1 (R1^T R2) = P2`. No sign of a quaternion is ever forced.
//!
//! Two frames say where a translation lives, and they are types because they are easily confused:
//! [`ObjectFrame`] uses the latent `t` itself, [`BaseFrame`] uses `R t`, where the object's centre ends up.
//!
//! What training and evaluation know of a transformation is a [`Group`].

mod angle;
mod frame;
mod group;
mod matrix;
mod motion;
mod moved;
mod quaternion;
mod rotation;
mod tait_bryan;
mod view_pose;

pub use angle::{Degrees, Radians};
pub use frame::{BaseFrame, Frame, FrameKind, ObjectFrame, UnknownFrame};
pub use group::{Group, Part, PerPart, Space};
pub use matrix::{Matrix, NotAMatrix};
pub use motion::Motion;
pub use quaternion::Quaternion;
pub use rotation::{NotARotation, Rotation};
pub use tait_bryan::TaitBryan;
pub use view_pose::{
    Deformation, ViewPose, hue_difference, rotation_angle, rotation_distance, translation_distance,
};
