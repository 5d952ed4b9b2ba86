//! Where a motion leads: the view that a pose ends at when a motion is multiplied into it, or when its parameters are added,
//! which is what predictors are told.

use crate::{Deformation, FrameKind, Group, Matrix, Part, Rotation, Space, TaitBryan, ViewPose};

impl Group {
    /// The view `second` whose matrix from `first` is that of `by`, `M2 = M1 M`. What the group does not see stays as it is.
    pub fn moved(&self, first: &ViewPose, by: &ViewPose) -> ViewPose {
        // Products of matrices with positive determinants have one, too.
        self.multiplied(first, &self.matrix(by)).unwrap_or(*first)
    }

    /// The view whose matrix is that of `first` times `matrix`, which has the side of the group's; none where that is no view's.
    pub fn multiplied(&self, first: &ViewPose, matrix: &Matrix) -> Option<ViewPose> {
        let product = self.matrix(&self.seen(first)) * *matrix;
        let found = match self.space {
            Space::Object => object_pose(self.frame, &product),
            Space::Image => image_pose(&product),
        };
        Some(self.with_unseen(first, self.seen(&found?)))
    }

    /// The view `second` whose parameters from `first` are those of `by`: differences of latents, in the group's frame.
    pub fn shifted(&self, first: &ViewPose, by: &ViewPose) -> ViewPose {
        let (seen, by) = (self.seen(first), self.seen(by));
        let sum = |a: [f64; 3], b: [f64; 3]| -> [f64; 3] { std::array::from_fn(|i| a[i] + b[i]) };
        let rotation = TaitBryan::from(Rotation::from(seen.rotation) * Rotation::from(by.rotation));
        let [a, b] = [&seen, &by].map(|pose| self.frame.translation(pose.rotation, pose.translation));
        let (a_shape, b_shape) = (seen.deformation, by.deformation);
        let second = ViewPose {
            rotation,
            translation: latent_translation(self.frame, rotation, sum(a, b)),
            deformation: Deformation {
                log_scale: sum(a_shape.log_scale, b_shape.log_scale),
                shear: sum(a_shape.shear, b_shape.shear),
                perspective: std::array::from_fn(|i| a_shape.perspective[i] + b_shape.perspective[i]),
            },
        };
        self.with_unseen(first, second)
    }

    /// `second` with what the group does not see of `first`.
    fn with_unseen(&self, first: &ViewPose, mut second: ViewPose) -> ViewPose {
        let (all, seen) = (&first.deformation, self.seen(first).deformation);
        if !self.has(Part::Translation) {
            second.translation = first.translation;
        }
        let deformation = &mut second.deformation;
        for i in 0..3 {
            deformation.log_scale[i] += all.log_scale[i] - seen.log_scale[i];
            deformation.shear[i] += all.shear[i] - seen.shear[i];
        }
        (0..2).for_each(|i| deformation.perspective[i] += all.perspective[i] - seen.perspective[i]);
        second
    }
}

/// The latent translation of a view from that in a frame.
fn latent_translation(frame: FrameKind, rotation: TaitBryan, translation: [f64; 3]) -> [f64; 3] {
    match frame {
        FrameKind::Object => translation,
        FrameKind::Base => Rotation::from(rotation).transpose().apply(translation),
    }
}

/// The view of an object with this matrix.
fn object_pose(frame: FrameKind, matrix: &Matrix) -> Option<ViewPose> {
    let linear = std::array::from_fn(|i| std::array::from_fn(|j| matrix.at(i, j)));
    let pose = ViewPose::from_linear(linear)?;
    let column = std::array::from_fn(|i| if matrix.side() == 4 { matrix.at(i, 3) } else { 0.0 });
    Some(ViewPose { translation: latent_translation(frame, pose.rotation, column), ..pose })
}

/// The view of an image with this matrix, whatever its length: perspective times an affine matrix.
fn image_pose(matrix: &Matrix) -> Option<ViewPose> {
    let [[a, b], [c, d]] = [0, 1].map(|i| [matrix.at(i, 0), matrix.at(i, 1)]);
    let determinant = a * d - b * c;
    let last = [matrix.at(2, 0), matrix.at(2, 1)];
    // The last row is (v L, v t + 1) for the rows (L, t) above it.
    let perspective = [(last[0] * d - last[1] * c) / determinant, (last[1] * a - last[0] * b) / determinant];
    let column = [matrix.at(0, 2), matrix.at(1, 2)];
    let length = matrix.at(2, 2) - perspective[0] * column[0] - perspective[1] * column[1];
    let [a, b, c, d, x, y] = [a, b, c, d, column[0], column[1]].map(|entry| entry / length);
    let mut pose = ViewPose::from_linear([[a, b, 0.0], [c, d, 0.0], [0.0, 0.0, 1.0]])?;
    pose.translation = [x, y, 0.0];
    pose.deformation.perspective = perspective;
    Some(pose)
}

impl ViewPose {
    /// The rotation and the deformation whose product `R D` is `matrix`: Gram and Schmidt on its columns. `None` where it
    /// mirrors, or maps a direction to (nearly) nothing.
    pub fn from_linear(matrix: [[f64; 3]; 3]) -> Option<Self> {
        let column = |j: usize| -> [f64; 3] { std::array::from_fn(|i| matrix[i][j]) };
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let minus =
            |a: [f64; 3], b: [f64; 3], s: f64| -> [f64; 3] { std::array::from_fn(|i| a[i] - s * b[i]) };
        let columns = [column(0), column(1), column(2)];
        let mut axes = [[0.0; 3]; 3];
        let mut upper = [[0.0; 3]; 3];
        for (j, &whole) in columns.iter().enumerate() {
            let mut rest = whole;
            for i in 0..j {
                upper[i][j] = dot(axes[i], rest);
                rest = minus(rest, axes[i], upper[i][j]);
            }
            let length = dot(rest, rest).sqrt();
            // Also refuses what is not a number.
            if !(length > 1e-9 * dot(whole, whole).sqrt() && length.is_finite()) {
                return None;
            }
            upper[j][j] = length;
            axes[j] = rest.map(|entry| entry / length);
        }
        let rotation = Rotation::try_from(std::array::from_fn(|i| axes.map(|axis| axis[i]))).ok()?;
        let diagonal = [upper[0][0], upper[1][1], upper[2][2]];
        let deformation = Deformation {
            log_scale: diagonal.map(f64::ln),
            shear: [upper[0][1] / diagonal[0], upper[0][2] / diagonal[0], upper[1][2] / diagonal[1]],
            ..Deformation::default()
        };
        Some(Self { rotation: rotation.into(), translation: [0.0; 3], deformation })
    }
}
