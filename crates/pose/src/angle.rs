//! Angles with their unit in the type.

use serde::{Deserialize, Serialize};

/// An angle in radians.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Radians(pub f64);

/// An angle in degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Degrees(pub f64);

impl From<Degrees> for Radians {
    fn from(angle: Degrees) -> Self {
        Self(angle.0.to_radians())
    }
}

impl From<Radians> for Degrees {
    fn from(angle: Radians) -> Self {
        Self(angle.0.to_degrees())
    }
}

impl std::fmt::Display for Radians {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rad", self.0)
    }
}

impl std::fmt::Display for Degrees {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}°", self.0)
    }
}
