//! The latents of a view: the scene parameters that 3DIEBench and 3DIEBench-T vary, in the order of their columns.

use pose::{BaseFrame, Deformation, Motion, ViewPose};

use crate::camera::Camera;

/// Scene parameters of one view, in radians and scene units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latents {
    /// Object rotation about X, Y, Z: Tait-Bryan angles, extrinsic xyz.
    pub rotation: [f64; 3],
    /// Hue of the floor in `[0, 1]`.
    pub floor_hue: f64,
    /// Polar angle of the spot light from +Z.
    pub spot_theta: f64,
    /// Azimuth of the spot light.
    pub spot_phi: f64,
    /// Hue of the spot light in `[0, 1]`.
    pub spot_hue: f64,
    /// Object-frame translation `t`, applied before the rotation; `None` in 3DIEBench.
    pub translation: Option<[f64; 3]>,
    /// Scale and shear of the object about its centre, applied first of all; `None` in the published sets.
    pub shape: Option<Shape>,
    /// Where the camera stands; `None` where it is that of the published sets.
    pub camera: Option<Camera>,
}

/// How an object is stretched: sheared, then scaled along its axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Factors along X, Y and Z.
    pub scale: [f64; 3],
    /// Shears xy, xz, yz (`x += xy y + xz z`, `y += yz z`); `None` where there are scales only.
    pub shear: Option<[f64; 3]>,
}

impl Shape {
    /// No length becomes more than this many times as long.
    pub(crate) fn longest(&self) -> f64 {
        let shear = self.shear.unwrap_or_default().iter().map(|shear| shear * shear).sum::<f64>().sqrt();
        self.scale.iter().fold(0.0, |most: f64, scale| most.max(*scale)) * (1.0 + shear)
    }
}

/// Half the diagonal of an object: nothing of it is farther from its centre.
pub(crate) const OBJECT_RADIUS: f64 = 0.5;

/// Latents or ranges that make no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LatentError {
    /// Neither 7 nor 10, 13 or 16 numbers, nor two more.
    #[error(
        "expected 7 latents (3DIEBench), 10 (3DIEBench-T), 13 (with scale) or 16 (with shear), or two more (with the \
         camera), found {0}"
    )]
    Count(usize),
    /// A scale that is not above zero.
    #[error("latent {index} is the scale {value}, expected a number above 0")]
    Scale {
        /// Position in the array.
        index: usize,
        /// What was there.
        value: f64,
    },
    /// NaN or infinity.
    #[error("latent {index} is {value}, expected a finite number")]
    NotFinite {
        /// Position in the array.
        index: usize,
        /// What was there.
        value: f64,
    },
    /// A camera from which nothing can be seen.
    #[error("the camera at a distance of {distance} and an elevation of {elevation} radians {why}")]
    Camera {
        /// Distance from the origin.
        distance: f64,
        /// Angle above the floor.
        elevation: f64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A latent that needs another one.
    #[error("{name} needs a range of {needs}, too ({neutral} for none)")]
    Needs {
        /// Which latent.
        name: &'static str,
        /// What it needs.
        needs: &'static str,
        /// The range that changes nothing.
        neutral: &'static str,
    },
    /// Bounds that must be above zero.
    #[error("the range of {name} is {low} to {high}, expected bounds above 0")]
    NotPositive {
        /// Which latent.
        name: &'static str,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// A gap among angles that are not uniform.
    #[error("angles that leave out a range must be uniform")]
    GapDistribution,
    /// A gap that is not inside the range of every angle.
    #[error("the angles left out, {low} to {high}, are not inside the range of every rotation")]
    Gap {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Bounds that are not finite or in the wrong order.
    #[error("the range of {name} is {low} to {high}, expected finite bounds in ascending order")]
    Range {
        /// Which latent.
        name: &'static str,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
}

impl Latents {
    /// The entries of `latent_i.npy`: `[rot_x, rot_y, rot_z, floor_hue, spot_theta, spot_phi, spot_hue]`, followed by
    /// `[trans_x, trans_y, trans_z]` where there is a translation, `[scale_x, scale_y, scale_z]` where there is a scale,
    /// `[shear_xy, shear_xz, shear_yz]` where there is a shear, and `[camera_distance, camera_elevation]` where the camera
    /// is not the published one.
    pub fn to_vec(&self) -> Vec<f64> {
        let [x, y, z] = self.rotation;
        let mut entries = vec![x, y, z, self.floor_hue, self.spot_theta, self.spot_phi, self.spot_hue];
        entries.extend(self.translation.iter().flatten());
        if let Some(shape) = &self.shape {
            entries.extend(shape.scale);
            entries.extend(shape.shear.iter().flatten());
        }
        entries.extend(self.camera.iter().flat_map(|camera| [camera.distance, camera.elevation]));
        entries
    }

    /// Rotation, translation and shape (zero and one where there are none) for the pose algebra.
    pub fn pose(&self) -> ViewPose {
        let rigid = ViewPose::rigid(self.rotation, self.translation.unwrap_or_default());
        ViewPose { deformation: self.deformation(), ..rigid }
    }

    /// The pose as the published training code reads it; see [`ViewPose::published_precision`].
    pub fn published_pose(&self) -> ViewPose {
        let rigid = ViewPose::published_precision(self.rotation, self.translation.unwrap_or_default());
        ViewPose { deformation: self.deformation(), ..rigid }
    }

    /// Scale and shear for the pose algebra.
    pub fn deformation(&self) -> Deformation {
        self.shape.map_or(Deformation::default(), |shape| Deformation {
            log_scale: shape.scale.map(f64::ln),
            shear: shape.shear.unwrap_or_default(),
            ..Deformation::default()
        })
    }

    /// Refuses a camera that stands below the floor or in the sphere around the object.
    pub fn check_camera(&self) -> Result<(), LatentError> {
        let Some(camera) = self.camera else { return Ok(()) };
        let shape = self.shape.map_or(1.0, |shape| shape.longest());
        let translation = self.translation.unwrap_or_default();
        camera.check(translation.iter().map(|t| t * t).sum::<f64>().sqrt() + OBJECT_RADIUS * shape)
    }

    /// `p_world = R (p + t)`, where `p` is a point of the object after its [`Shape`].
    pub fn world_from_object(&self) -> Motion<BaseFrame> {
        self.pose().motion()
    }
}

impl TryFrom<&[f64]> for Latents {
    type Error = LatentError;

    /// Reads the entries in the order of [`Latents::to_vec`].
    fn try_from(entries: &[f64]) -> Result<Self, LatentError> {
        let (object, camera) = match entries.len() {
            7 | 10 | 13 | 16 => (entries, None),
            9 | 12 | 15 | 18 => {
                let (object, camera) = entries.split_at(entries.len() - 2);
                (object, Some(Camera { distance: camera[0], elevation: camera[1] }))
            }
            count => return Err(LatentError::Count(count)),
        };
        let Some(&[x, y, z, floor_hue, spot_theta, spot_phi, spot_hue]) = object.first_chunk() else {
            return Err(LatentError::Count(entries.len()));
        };
        let three = |start: usize| object.get(start..).and_then(|rest| rest.first_chunk::<3>()).copied();
        if let Some(index) = entries.iter().position(|entry| !entry.is_finite()) {
            return Err(LatentError::NotFinite { index, value: entries[index] });
        }
        let shape = three(10).map(|scale| Shape { scale, shear: three(13) });
        let wrong =
            shape.and_then(|shape| shape.scale.into_iter().enumerate().find(|(_, scale)| *scale <= 0.0));
        if let Some((axis, value)) = wrong {
            return Err(LatentError::Scale { index: 10 + axis, value });
        }
        let translation = three(7);
        let latents = Self {
            rotation: [x, y, z],
            floor_hue,
            spot_theta,
            spot_phi,
            spot_hue,
            translation,
            shape,
            camera,
        };
        latents.check_camera()?;
        Ok(latents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LatentRanges;
    use std::f64::consts::FRAC_PI_2;

    #[test]
    fn arrays_round_trip_in_the_published_order() {
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        let latents = Latents::try_from(&ten[..]).expect("ten entries");
        assert_eq!(latents.rotation, [0.0, 1.0, 2.0]);
        assert_eq!((latents.floor_hue, latents.spot_theta), (3.0, 4.0));
        assert_eq!((latents.spot_phi, latents.spot_hue), (5.0, 6.0));
        assert_eq!(latents.translation, Some([7.0, 8.0, 9.0]));
        assert_eq!(latents.to_vec(), ten);
        let seven = Latents::try_from(&ten[..7]).expect("seven entries");
        assert_eq!((seven.translation, seven.to_vec()), (None, ten[..7].to_vec()));
        let nine = Latents::try_from(&[&ten[..7], &[2.0, 0.5]].concat()[..]).expect("seven and the camera");
        assert_eq!((nine.camera, nine.translation), (Some(Camera { distance: 2.0, elevation: 0.5 }), None));
        assert_eq!(nine.to_vec(), [&ten[..7], &[2.0, 0.5]].concat());
        for count in [0, 3, 6, 8] {
            assert_eq!(Latents::try_from(&ten[..count]), Err(LatentError::Count(count)));
        }
        assert_eq!(Latents::try_from(&[0.0; 11][..]), Err(LatentError::Count(11)));
        let mut bad = ten;
        bad[8] = f64::NAN;
        assert!(matches!(Latents::try_from(&bad[..]), Err(LatentError::NotFinite { index: 8, .. })));
    }

    #[test]
    fn objects_are_translated_before_they_are_rotated() {
        let quarter_turn = Latents {
            rotation: [0.0, 0.0, FRAC_PI_2],
            translation: Some([0.5, 0.0, 0.0]),
            ..LatentRanges::BENCH.sample(0, "a", 0)
        };
        let p = quarter_turn.world_from_object().apply([0.25, 0.0, 0.0]);
        assert!(p[0].abs() < 1e-15 && (p[1] - 0.75).abs() < 1e-15 && p[2].abs() < 1e-15);
    }
}
