//! The two frames in which a view's translation can be expressed.

use crate::{Rotation, TaitBryan};
use serde::{Deserialize, Serialize};

/// Says how a latent rotation and translation make a motion. Implemented by [`ObjectFrame`] and [`BaseFrame`] only.
pub trait Frame: Copy + std::fmt::Debug + PartialEq + sealed::Sealed {
    /// The run-time name of this frame.
    const KIND: FrameKind;

    /// The translation column of the motion of a view with rotation `R` and latent translation `t`.
    fn translation(rotation: &Rotation, t: [f64; 3]) -> [f64; 3];
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ObjectFrame {}
    impl Sealed for super::BaseFrame {}
}

/// Motions `T R = [R | t]`: the latent translation as it is. The default of the published code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectFrame;

/// Motions `R T = [R | R t]`: the way the renderer places an object (translate by `t`, then rotate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseFrame;

impl Frame for ObjectFrame {
    const KIND: FrameKind = FrameKind::Object;

    fn translation(_: &Rotation, t: [f64; 3]) -> [f64; 3] {
        t
    }
}

impl Frame for BaseFrame {
    const KIND: FrameKind = FrameKind::Base;

    fn translation(rotation: &Rotation, t: [f64; 3]) -> [f64; 3] {
        rotation.apply(t)
    }
}

/// A frame chosen at run time, for example on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameKind {
    /// [`ObjectFrame`].
    #[default]
    Object,
    /// [`BaseFrame`].
    Base,
}

impl FrameKind {
    /// [`Frame::translation`] of the named frame.
    pub fn translation(self, angles: TaitBryan, t: [f64; 3]) -> [f64; 3] {
        match self {
            Self::Object => t,
            Self::Base => Rotation::from(angles).apply(t),
        }
    }
}

impl std::fmt::Display for FrameKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Object => "object",
            Self::Base => "base",
        })
    }
}

/// A frame name that is neither `object` nor `base`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFrame(pub String);

impl std::fmt::Display for UnknownFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown frame {:?}, expected \"object\" or \"base\"", self.0)
    }
}

impl std::error::Error for UnknownFrame {}

impl std::str::FromStr for FrameKind {
    type Err = UnknownFrame;

    fn from_str(name: &str) -> Result<Self, UnknownFrame> {
        match name {
            "object" => Ok(Self::Object),
            "base" => Ok(Self::Base),
            _ => Err(UnknownFrame(name.to_owned())),
        }
    }
}
