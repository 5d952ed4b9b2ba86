//! The absolute pose of a view, and what networks are asked to predict about two of them.

use crate::{Degrees, Frame, FrameKind, Motion, Quaternion, Rotation, TaitBryan};

/// How a view changes the shape of what it shows: `D = S H`, shear first, then scale, about the object's centre. In an image
/// only x and y count, and there may be perspective.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deformation {
    /// Natural logarithms of the scales along x, y and z.
    pub log_scale: [f64; 3],
    /// `x += xy y + xz z`, `y += yz z`: entries above the diagonal of `H`, in the order xy, xz, yz.
    pub shear: [f64; 3],
    /// First entries of the last row of the matrix that an image is seen through.
    pub perspective: [f64; 2],
}

impl Deformation {
    /// Rows of `D = S H`.
    pub fn matrix(&self) -> [[f64; 3]; 3] {
        let ([x, y, z], [xy, xz, yz]) = (self.log_scale.map(f64::exp), self.shear);
        [[x, x * xy, x * xz], [0.0, y, y * yz], [0.0, 0.0, z]]
    }

    /// Whether it changes nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Rotation, latent (object-frame) translation and deformation of a view: a point `p` of the object is seen at
/// `R (D p + t)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ViewPose {
    /// Latent entries 0..3.
    pub rotation: TaitBryan,
    /// The latent translation `t`; zero in 3DIEBench.
    pub translation: [f64; 3],
    /// Scale, shear and perspective; none in the published sets.
    pub deformation: Deformation,
}

impl ViewPose {
    /// A pose of an object that keeps its shape.
    pub fn rigid(rotation: impl Into<TaitBryan>, translation: [f64; 3]) -> Self {
        Self { rotation: rotation.into(), translation, ..Self::default() }
    }

    /// A pose as the published training code reads it: angles rounded to `f32` first, the rest in `f64`.
    pub fn published_precision(radians: [f64; 3], translation: [f64; 3]) -> Self {
        Self::rigid(TaitBryan::published_precision(radians), translation)
    }

    /// The rotation as a quaternion.
    pub fn quaternion(&self) -> Quaternion {
        self.rotation.into()
    }

    /// The motion of this view in frame `F`; in [`crate::BaseFrame`] this is `world_from_object`.
    pub fn motion<F: Frame>(&self) -> Motion<F> {
        Motion::of_view(self.rotation, self.translation)
    }

    /// The translation in frame `F`: `t` or `R t`.
    pub fn translation_in<F: Frame>(&self) -> [f64; 3] {
        F::translation(&Rotation::from(self.rotation), self.translation)
    }

    /// `q12 = conj(q1) q2`, the rotation target.
    pub fn relative_quaternion(first: &Self, second: &Self) -> Quaternion {
        Quaternion::relative(first.quaternion(), second.quaternion())
    }

    /// `R12 = R1^T R2`.
    pub fn relative_rotation(first: &Self, second: &Self) -> Rotation {
        Rotation::relative(&first.rotation.into(), &second.rotation.into())
    }

    /// `M12 = M1^-1 M2` in frame `F`.
    pub fn relative_motion<F: Frame>(first: &Self, second: &Self) -> Motion<F> {
        Motion::relative(&first.motion(), &second.motion())
    }

    /// The rows of `M12` in a frame chosen at run time.
    pub fn relative_matrix(frame: FrameKind, first: &Self, second: &Self) -> [[f64; 4]; 4] {
        match frame {
            FrameKind::Object => Self::relative_motion::<crate::ObjectFrame>(first, second).to_matrix(),
            FrameKind::Base => Self::relative_motion::<crate::BaseFrame>(first, second).to_matrix(),
        }
    }

    /// The translation target: `t2 - t1` in the object frame, `R2 t2 - R1 t1` in the base frame.
    pub fn translation_difference(frame: FrameKind, first: &Self, second: &Self) -> [f64; 3] {
        let [a, b] = [first, second].map(|pose| frame.translation(pose.rotation, pose.translation));
        std::array::from_fn(|i| b[i] - a[i])
    }

    /// The parameters `(q12, translation difference)` of predictors for rotation and translation.
    pub fn rotation_and_translation(frame: FrameKind, first: &Self, second: &Self) -> [f64; 7] {
        let [x, y, z, w] = Self::relative_quaternion(first, second).to_array();
        let [tx, ty, tz] = Self::translation_difference(frame, first, second);
        [x, y, z, w, tx, ty, tz]
    }
}

/// The colour target from the `(floor, spot)` hues of two views: plain differences, without wrap-around.
pub fn hue_difference(first: [f64; 2], second: [f64; 2]) -> [f64; 2] {
    [second[0] - first[0], second[1] - first[1]]
}

/// `d_r = 1 - <q1, q2>^2` of unit quaternions: 0 for equal orientations whatever the signs, 1 for half a turn.
pub fn rotation_distance(first: Quaternion, second: Quaternion) -> f64 {
    1.0 - first.dot(second).powi(2)
}

/// The angle between two orientations, 0 to 180 degrees.
pub fn rotation_angle(first: Quaternion, second: Quaternion) -> Degrees {
    let (first, second) = (first.normalised(), second.normalised());
    let relative = Quaternion::relative(first, second);
    let sine = (relative.x.powi(2) + relative.y.powi(2) + relative.z.powi(2)).sqrt();
    Degrees(2.0 * sine.atan2(relative.w.abs()).to_degrees())
}

/// `d_t = |t1 - t2|^2`.
pub fn translation_distance(first: [f64; 3], second: [f64; 3]) -> f64 {
    (0..3).map(|i| (first[i] - second[i]).powi(2)).sum()
}
