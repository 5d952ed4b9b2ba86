//! Rigid motions, SE(3), with the frame of their translation in the type.

use crate::{Frame, Rotation, TaitBryan};
use std::marker::PhantomData;

/// The motion `p -> R p + v`, a 4x4 matrix `[R | v]` with last row `(0, 0, 0, 1)`. `F` says what `v` is for the
/// motion of a view: the latent `t` ([`crate::ObjectFrame`]) or `R t` ([`crate::BaseFrame`]); motions of different
/// frames do not mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion<F: Frame> {
    rotation: Rotation,
    translation: [f64; 3],
    frame: PhantomData<F>,
}

impl<F: Frame> Motion<F> {
    /// No motion.
    pub const IDENTITY: Self =
        Self { rotation: Rotation::IDENTITY, translation: [0.0; 3], frame: PhantomData };

    /// The motion of a view from its latent rotation and latent translation `t`.
    pub fn of_view(angles: TaitBryan, t: [f64; 3]) -> Self {
        let rotation = Rotation::from(angles);
        Self::from_parts(rotation, F::translation(&rotation, t))
    }

    /// The matrix `[rotation | column]`, taken literally.
    pub fn from_parts(rotation: Rotation, column: [f64; 3]) -> Self {
        Self { rotation, translation: column, frame: PhantomData }
    }

    /// The rotation block.
    pub fn rotation(&self) -> Rotation {
        self.rotation
    }

    /// The last column of the matrix without its 1.
    pub fn translation(&self) -> [f64; 3] {
        self.translation
    }

    /// `R p + v`.
    pub fn apply(&self, p: [f64; 3]) -> [f64; 3] {
        let rotated = self.rotation.apply(p);
        std::array::from_fn(|i| rotated[i] + self.translation[i])
    }

    /// `[R^T | -R^T v]`.
    pub fn inverse(&self) -> Self {
        let rotation = self.rotation.transpose();
        Self::from_parts(rotation, rotation.apply(self.translation).map(|entry| -entry))
    }

    /// The motion from `first` to `second`: `M12 = M1^-1 M2`, to be multiplied on the right.
    pub fn relative(first: &Self, second: &Self) -> Self {
        first.inverse() * *second
    }

    /// Rows of the 4x4 matrix.
    pub fn to_matrix(&self) -> [[f64; 4]; 4] {
        let r = self.rotation.to_matrix();
        let row = |i: usize| [r[i][0], r[i][1], r[i][2], self.translation[i]];
        [row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]]
    }

    /// Rows of the 4x4 matrix, rounded to the precision that networks see.
    pub fn to_f32(&self) -> [[f32; 4]; 4] {
        self.to_matrix().map(|row| row.map(|entry| entry as f32))
    }
}

impl<F: Frame> std::ops::Mul for Motion<F> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::from_parts(self.rotation * other.rotation, self.apply(other.translation))
    }
}
