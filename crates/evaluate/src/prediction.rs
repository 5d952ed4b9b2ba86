//! How an equivariant embedding is expected to follow a change of view, and how embeddings are normalised before
//! they are compared.
//!
//! - Pose matrices (EquiCaps): every capsule's matrix times the relative matrix on the right, `P' = P M12`; each
//!   capsule is divided by its Frobenius norm, in predictions and candidates alike.
//! - Predictors: the network's own, from the embedding and the parameters `z`.
//!
//! Candidates are then divided by (L2 norm + 1e-8), predictions by their L2 norm.

use pose::{Group, ViewPose};

use crate::encoder::Encoder;
use crate::error::Result;

/// How embeddings follow a change of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transformation {
    /// Square pose matrices.
    PoseMatrices(PoseMatrices),
    /// A learned predictor.
    Predictor {
        /// The group whose parameters `z` are.
        group: Group,
    },
}

/// The layout of an embedding of pose matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoseMatrices {
    /// Number of capsules.
    pub capsules: usize,
    /// The group that multiplies them.
    pub group: Group,
}

impl Transformation {
    /// The group of the motions that embeddings follow.
    pub fn group(self) -> Group {
        match self {
            Self::PoseMatrices(layout) => layout.group,
            Self::Predictor { group } => group,
        }
    }

    /// The view that a motion leads to, where [`Self::moved`] from the unturned view to `by` is its embedding: matrices are
    /// multiplied, parameters added.
    pub fn leads_to(self, first: &ViewPose, by: &ViewPose) -> ViewPose {
        match self {
            Self::PoseMatrices(layout) => layout.group.moved(first, by),
            Self::Predictor { group } => group.shifted(first, by),
        }
    }

    /// The predictor's parameters from the first view to the second.
    pub fn parameters(group: Group, first: &ViewPose, second: &ViewPose) -> Vec<f32> {
        group.difference(first, second).into_iter().map(|value| value as f32).collect()
    }

    /// Where the embedding of a view is expected after a change of view from `first` to `second`; normalised.
    pub fn moved(
        self,
        encoder: &mut dyn Encoder,
        embedding: &[f32],
        first: &ViewPose,
        second: &ViewPose,
    ) -> Result<Vec<f32>> {
        match self {
            Self::PoseMatrices(layout) => Ok(layout.predict(embedding, first, second)),
            Self::Predictor { group } => {
                let parameters = Self::parameters(group, first, second);
                let mut predicted = encoder.predict(embedding, &parameters, 1)?;
                normalise_prediction(&mut predicted);
                Ok(predicted)
            }
        }
    }

    /// Normalises raw embeddings for comparison as candidates, in place; rows of `width`.
    pub fn normalise_candidates(self, values: &mut [f32], width: usize) {
        use rayon::prelude::*;
        values.par_chunks_exact_mut(width.max(1)).for_each(|row| {
            if let Self::PoseMatrices(layout) = self {
                layout.normalise(row);
            }
            let norm = length(row) + 1e-8;
            row.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
        });
    }
}

impl PoseMatrices {
    /// Side of a matrix.
    pub fn size(&self) -> usize {
        self.group.side
    }

    /// Numbers in one matrix.
    pub fn entries(&self) -> usize {
        self.group.side.pow(2)
    }

    /// Width of an embedding.
    pub fn width(&self) -> usize {
        self.capsules * self.entries()
    }

    /// The relative matrix from `first` to `second`, row-major, `size * size` entries.
    pub fn relative(&self, first: &ViewPose, second: &ViewPose) -> Vec<f64> {
        self.group.relative(first, second)
    }

    /// `P_n M` for every capsule `n`, not normalised.
    pub fn transform(&self, embedding: &[f32], matrix: &[f64]) -> Vec<f32> {
        let s = self.size();
        let mut moved = Vec::with_capacity(embedding.len());
        for pose in embedding.chunks_exact(self.entries()) {
            for row in 0..s {
                for column in 0..s {
                    let sum: f64 =
                        (0..s).map(|k| f64::from(pose[row * s + k]) * matrix[k * s + column]).sum();
                    moved.push(sum as f32);
                }
            }
        }
        moved
    }

    /// Divides every capsule by its Frobenius norm; a matrix of zeros stays.
    pub fn normalise(&self, embedding: &mut [f32]) {
        for pose in embedding.chunks_exact_mut(self.entries()) {
            let norm = length(pose).max(f64::MIN_POSITIVE);
            pose.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
        }
    }

    /// The normalised prediction for a change of view.
    pub fn predict(&self, embedding: &[f32], first: &ViewPose, second: &ViewPose) -> Vec<f32> {
        self.moved(embedding, &self.relative(first, second))
    }

    /// The normalised embedding after a motion by any matrix.
    pub fn moved(&self, embedding: &[f32], matrix: &[f64]) -> Vec<f32> {
        let mut moved = self.transform(embedding, matrix);
        self.normalise(&mut moved);
        normalise_prediction(&mut moved);
        moved
    }
}

/// Normalises equivariant embeddings to be compared with each other as neighbours, in place; rows of `width`: pose matrices
/// capsule by capsule, others as a whole.
pub fn normalise_neighbours(transformation: Option<Transformation>, values: &mut [f32], width: usize) {
    match transformation {
        Some(transformation @ Transformation::PoseMatrices(_)) => {
            transformation.normalise_candidates(values, width)
        }
        _ => values.chunks_exact_mut(width.max(1)).for_each(normalise_prediction),
    }
}

/// Divides by the L2 norm; zeros stay.
pub fn normalise_prediction(row: &mut [f32]) {
    let norm = length(row).max(f64::MIN_POSITIVE);
    row.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
}

fn length(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(angles: [f64; 3], translation: [f64; 3]) -> ViewPose {
        ViewPose::rigid(pose::TaitBryan::published_precision(angles), translation)
    }

    #[test]
    fn poses_that_follow_the_view_are_predicted_exactly() {
        for group in Group::ALL {
            let layout = PoseMatrices { capsules: 2, group };
            let mut views =
                [view([0.3, -0.7, 1.1], [0.1, -0.2, 0.4]), view([-1.2, 0.4, -0.5], [-0.3, 0.25, 0.05])];
            views[0].deformation.log_scale = [0.3, -0.2, 0.1];
            views[1].deformation.shear = [0.3, -0.2, 0.1];
            let origin = ViewPose::default();
            let base: Vec<f32> = (0..layout.width()).map(|i| ((i + 1) as f32).sin()).collect();
            // P(view) = P0 M(view), where M(view) is the motion from the origin.
            let embed = |pose: &ViewPose| layout.transform(&base, &layout.relative(&origin, pose));
            let predicted = layout.predict(&embed(&views[0]), &views[0], &views[1]);
            let mut target = embed(&views[1]);
            Transformation::PoseMatrices(layout).normalise_candidates(&mut target, layout.width());
            let similarity: f32 = predicted.iter().zip(&target).map(|(a, b)| a * b).sum();
            assert!((similarity - 1.0).abs() < 1e-5, "{group}: {similarity}");
        }
    }

    #[test]
    fn zeros_stay_zeros() {
        let layout = PoseMatrices { capsules: 1, group: Group::ROTATION };
        let mut zeros = vec![0.0; 9];
        layout.normalise(&mut zeros);
        normalise_prediction(&mut zeros);
        assert_eq!(zeros, [0.0; 9]);
    }
}
