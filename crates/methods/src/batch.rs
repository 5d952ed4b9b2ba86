//! One training batch: two views of every object and what is known of the way from the first to the second.

use engine::ops::Images;
use engine::{Device, Result, Tensor};
use pose::ViewPose;

use crate::config::Transform;

/// A batch of pairs, on the device.
#[derive(Clone, Debug)]
pub struct PairBatch {
    /// View 1 and view 2, (n, side, side, 3) each.
    pub views: [Images; 2],
    /// What is known of the pairs.
    pub targets: PairTargets,
}

/// What is known of the pairs of a batch, on the device. A method says which one it misses.
#[derive(Clone, Debug, Default)]
pub struct PairTargets {
    /// The relative motion as a matrix: (n, 3, 3), or (n, 4, 4) with translation.
    pub matrices: Option<Tensor>,
    /// The relative motion as numbers: (n, 4) quaternions (x, y, z, w), or (n, 7) with translation.
    pub parameters: Option<Tensor>,
    /// The relative translation: (n, 3).
    pub translations: Option<Tensor>,
    /// Differences of floor and spot hue: (n, 2).
    pub hues: Option<Tensor>,
    /// Classes of the objects: (n), int32.
    pub labels: Option<Tensor>,
}

/// The numbers of the targets of pairs, on the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetValues {
    /// See [`PairTargets::matrices`].
    pub matrices: Vec<f32>,
    /// See [`PairTargets::parameters`].
    pub parameters: Vec<f32>,
    /// See [`PairTargets::translations`].
    pub translations: Vec<f32>,
}

impl TargetValues {
    /// The targets of pairs of views with these poses under `transform`.
    pub fn from_poses(transform: Transform, pairs: &[[ViewPose; 2]]) -> Self {
        let (frame, side) = (transform.frame(), transform.matrix_side());
        let mut values = Self::default();
        for [first, second] in pairs {
            let motion = ViewPose::relative_matrix(frame, first, second);
            values
                .matrices
                .extend(motion[..side].iter().flat_map(|row| row[..side].iter().map(|&v| v as f32)));
            let numbers = ViewPose::rotation_and_translation(frame, first, second);
            values.parameters.extend(numbers[..transform.parameters()].iter().map(|&v| v as f32));
            values.translations.extend(numbers[4..].iter().map(|&v| v as f32));
        }
        values
    }
}

impl PairTargets {
    /// The targets of pairs of views with these poses under `transform`.
    pub fn from_poses(device: &Device, transform: Transform, pairs: &[[ViewPose; 2]]) -> Result<Self> {
        let (n, side) = (pairs.len(), transform.matrix_side());
        let TargetValues { matrices, parameters, translations } = TargetValues::from_poses(transform, pairs);
        Ok(Self {
            matrices: Some(Tensor::from_slice(device, [n, side, side], &matrices)?),
            parameters: Some(Tensor::from_slice(device, [n, transform.parameters()], &parameters)?),
            translations: Some(Tensor::from_slice(device, [n, 3], &translations)?),
            hues: None,
            labels: None,
        })
    }

    /// Adds the classes of the objects.
    pub fn with_labels(mut self, device: &Device, labels: &[i32]) -> Result<Self> {
        self.labels = Some(Tensor::from_slice(device, [labels.len()], labels)?);
        Ok(self)
    }

    /// Adds the differences of floor and spot hue.
    pub fn with_hues(mut self, device: &Device, hues: &[[f32; 2]]) -> Result<Self> {
        self.hues = Some(Tensor::from_slice(device, [hues.len(), 2], &hues.concat())?);
        Ok(self)
    }
}

impl PairBatch {
    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.views[0].len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The target `what`, or a sentence that says it is missing.
pub(crate) fn required<'a>(target: &'a Option<Tensor>, what: &'static str) -> Result<&'a Tensor> {
    target.as_ref().ok_or_else(|| engine::Error::shape("batch", format!("the batch has no {what}")))
}
