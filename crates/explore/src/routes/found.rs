//! Stored views that were found, in the words of the page.

use evaluate::nearest::Neighbour;
use pose::{Part, ViewPose};
use serde::Serialize;

use crate::data::Data;
use crate::scene_query::SceneQuery;

/// A stored view.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The view: its object, number and scene.
    #[serde(flatten)]
    pub scene: SceneQuery,
    /// `CLASS/OBJECT`.
    pub id: String,
    /// The class's name.
    pub class: String,
    /// Whether it is held out.
    pub held_out: bool,
    /// Cosine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f32>,
    /// The angle to the pose that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degrees: Option<f64>,
    /// The distance to its translation, where the data have some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation_off: Option<f64>,
    /// The largest ratio to one of its scales, 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_off: Option<f64>,
    /// The largest difference to one of its shears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shear_off: Option<f64>,
    /// The largest difference to its perspective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perspective_off: Option<f64>,
}

impl Found {
    /// The view of a row, compared with `pose`.
    pub fn of(data: &Data, row: usize, similarity: Option<f32>, pose: Option<&ViewPose>) -> Self {
        let (object, view) = data.truth.item(row);
        let latents = data.views.latents(object, view);
        let about = &data.views.objects()[object];
        let class = data.views.classes().get(about.label as usize);
        let pose = pose.filter(|_| data.truth.has_poses);
        let own = &data.truth.poses[row];
        let most = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let with = |part: Part| pose.filter(|_| data.truth.has[part]);
        Self {
            scene: SceneQuery::of(object, Some(view), &latents),
            id: about.id(),
            class: class.map_or_else(|| about.synset.clone(), |class| class.name.clone()),
            held_out: data.truth.rows(dataset::Split::Val).contains(&row),
            similarity,
            degrees: pose.map(|pose| pose::rotation_angle(pose.quaternion(), own.quaternion()).0),
            translation_off: with(Part::Translation).map(|pose| Part::Translation.distance(pose, own).sqrt()),
            scale_off: with(Part::Scale)
                .map(|pose| most(&pose.deformation.log_scale, &own.deformation.log_scale).exp()),
            shear_off: with(Part::Shear).map(|pose| most(&pose.deformation.shear, &own.deformation.shear)),
            perspective_off: with(Part::Perspective)
                .map(|pose| most(&pose.deformation.perspective, &own.deformation.perspective)),
        }
    }

    /// Neighbours, the nearest first.
    pub fn list(data: &Data, near: &[Neighbour], pose: Option<&ViewPose>) -> Vec<Self> {
        near.iter().map(|near| Self::of(data, near.row, Some(near.similarity), pose)).collect()
    }
}
