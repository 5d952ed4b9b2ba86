//! Rotations in pose space (EquiCaps): views of one object turned about z in steps, and what their embeddings do when
//! multiplied by a rotation.
//!
//! - Inverse: the embedding of view `k` times the inverse of its rotation, `P_k R_k^T`; the nearest of all embeddings
//!   should be the source (0 degrees).
//! - Forward: the embedding of the source times `R_k`; the nearest should be view `k`.
//!
//! Distances are those of per-capsule normalised embeddings, as in retrieval.

use pose::{Degrees, TaitBryan, ViewPose};
use serde::{Deserialize, Serialize};

use crate::prediction::{PoseMatrices, Transformation};

/// Degrees between two views.
pub const STEP_DEGREES: u32 = 5;
/// The last view.
pub(crate) const LAST_DEGREES: u32 = 90;

/// One view of the sweep and the neighbours found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepStep {
    /// The view's rotation about z.
    pub degrees: f64,
    /// The view found from its inversely rotated embedding.
    pub inverse_degrees: f64,
    /// The view found from the source's embedding rotated forward.
    pub forward_degrees: f64,
    /// Similarity of the inverse neighbour.
    pub inverse_similarity: f32,
    /// Similarity of the forward neighbour.
    pub forward_similarity: f32,
}

impl SweepStep {
    /// How far the inverse neighbour is from the source.
    pub fn inverse_error(&self) -> f64 {
        self.inverse_degrees.abs()
    }

    /// How far the forward neighbour is from this view.
    pub fn forward_error(&self) -> f64 {
        (self.forward_degrees - self.degrees).abs()
    }
}

/// The angles of the sweep: 0, 5, ..., 90 degrees.
pub fn angles() -> Vec<f64> {
    (0..=LAST_DEGREES).step_by(STEP_DEGREES as usize).map(f64::from).collect()
}

/// The pose of an object turned by `degrees` about z.
pub fn turned(degrees: f64) -> ViewPose {
    ViewPose::rigid(TaitBryan::new(Degrees(0.0), Degrees(0.0), Degrees(degrees)), [0.0; 3])
}

/// Finds the neighbours. `embeddings`: raw poses of the views at [`angles`], in that order.
pub fn sweep(layout: PoseMatrices, embeddings: &[f32]) -> Vec<SweepStep> {
    let width = layout.width();
    let angles = angles();
    let mut candidates = embeddings.to_vec();
    Transformation::PoseMatrices(layout).normalise_candidates(&mut candidates, width);
    let nearest = |prediction: Vec<f32>| {
        let similarity = |row: &[f32]| row.iter().zip(&prediction).map(|(a, b)| a * b).sum::<f32>();
        let mut best = (0, f32::NEG_INFINITY);
        for (index, row) in candidates.chunks_exact(width.max(1)).enumerate() {
            let value = similarity(row);
            if value > best.1 {
                best = (index, value);
            }
        }
        (angles[best.0.min(angles.len() - 1)], best.1)
    };
    let source = turned(0.0);
    embeddings
        .chunks_exact(width.max(1))
        .zip(&angles)
        .map(|(embedding, &degrees)| {
            let view = turned(degrees);
            let (inverse_degrees, inverse_similarity) = nearest(layout.predict(embedding, &view, &source));
            let (forward_degrees, forward_similarity) =
                nearest(layout.predict(&embeddings[..width], &source, &view));
            SweepStep { degrees, inverse_degrees, forward_degrees, inverse_similarity, forward_similarity }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfect_poses_find_the_source_and_the_view() {
        for group in [pose::Group::ROTATION, pose::Group::ROTATION_OBJECT, pose::Group::IMAGE_ROTATION] {
            let layout = PoseMatrices { capsules: 3, group };
            let base: Vec<f32> = (0..layout.width()).map(|i| ((i * i + 1) as f32).cos()).collect();
            let embeddings: Vec<f32> = angles()
                .iter()
                .flat_map(|&angle| layout.transform(&base, &layout.relative(&turned(0.0), &turned(angle))))
                .collect();
            let steps = sweep(layout, &embeddings);
            assert_eq!(steps.len(), 19);
            assert!(steps.iter().all(|step| step.inverse_error() == 0.0 && step.forward_error() == 0.0));
        }
    }
}
