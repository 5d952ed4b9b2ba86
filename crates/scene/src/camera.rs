//! Where the camera of a view stands. It looks at the origin, from above the +Y axis; the published sets have one camera.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

use crate::latents::LatentError;

/// Height of the floor in the world.
pub const FLOOR_HEIGHT: f64 = -1.0;

/// How far above the floor and outside of an object a camera has to be.
const CLEARANCE: f64 = 0.05;

/// The place of a camera that looks at the origin: `distance (0, cos elevation, sin elevation)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// Distance from the origin, where the centre of an object without translation is.
    pub distance: f64,
    /// Angle above the horizontal plane through the origin, in radians.
    pub elevation: f64,
}

impl Camera {
    /// The camera of the published sets.
    pub const PUBLISHED: Self = Self { distance: 2.5, elevation: FRAC_PI_4 };

    /// Refuses a place from which an object that reaches `reach` from the origin cannot be seen.
    pub fn check(&self, reach: f64) -> Result<(), LatentError> {
        let &Self { distance, elevation } = self;
        let why = if !(distance.is_finite() && elevation.is_finite()) {
            "is nowhere: both must be finite numbers"
        } else if distance <= 0.0 {
            "is nowhere: the distance must be above 0"
        } else if elevation.abs() > FRAC_PI_2 {
            "is nowhere: the elevation must be from -pi/2 to pi/2"
        } else if distance * elevation.sin() < FLOOR_HEIGHT + CLEARANCE {
            "is below the floor"
        } else if distance < reach + CLEARANCE {
            "can be inside the object"
        } else {
            return Ok(());
        };
        Err(LatentError::Camera { distance, elevation, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cameras_stand_above_the_floor_and_outside_of_the_object() {
        assert_eq!(Camera::PUBLISHED.check(0.5), Ok(()));
        for (distance, elevation, expected) in [
            (0.0, 0.5, "the distance must be above 0"),
            (-2.0, 0.5, "the distance must be above 0"),
            (f64::NAN, 0.5, "finite numbers"),
            (2.5, 1.6, "the elevation must be from -pi/2 to pi/2"),
            (2.5, -1.6, "the elevation must be from -pi/2 to pi/2"),
            (2.5, -0.5, "is below the floor"),
            (0.5, 0.5, "can be inside the object"),
        ] {
            let refused = Camera { distance, elevation }.check(0.5).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        // Straight from above, and from a little below the object's centre.
        assert_eq!(Camera { distance: 2.5, elevation: FRAC_PI_2 }.check(0.5), Ok(()));
        assert_eq!(Camera { distance: 2.5, elevation: -0.3 }.check(0.5), Ok(()));
    }
}
