//! Steer: the pose of a view times a motion, and which stored views the moved pose lands on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use pose::{Deformation, Group, Part, Space, TaitBryan, ViewPose};
use scene::{Latents, Shape};
use serde::{Deserialize, Serialize};

use super::NetworkQuery;
use super::found::Found;
use super::turn::encode;
use crate::explorer::Explorer;
use crate::refusal::Refusal;
use crate::scene_query::SceneQuery;

/// A view and a motion.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct SteerRequest {
    #[serde(flatten)]
    network: NetworkQuery,
    scene: SceneQuery,
    /// Degrees about x, y, z.
    #[serde(default)]
    rotate: [f64; 3],
    /// Factors along x, y, z.
    #[serde(default = "no_scale")]
    scale: [f64; 3],
    /// Shears xy, xz, yz.
    #[serde(default)]
    shear: [f64; 3],
    /// Rotation, scale and shear as a matrix instead, row by row.
    #[serde(default)]
    matrix: Option<[[f64; 3]; 3]>,
    #[serde(default)]
    translate: [f64; 3],
    /// Perspective of an image along x and y.
    #[serde(default)]
    perspective: [f64; 2],
    /// Whether views of all objects are candidates, or only those of the shown one.
    #[serde(default)]
    all_objects: bool,
    #[serde(default = "k")]
    k: usize,
}

fn k() -> usize {
    6
}

fn no_scale() -> [f64; 3] {
    [1.0; 3]
}

/// Where a pose was moved to.
#[derive(Debug, Serialize)]
pub struct Steered {
    /// The view that was asked for: where the motion leads.
    asked: SceneQuery,
    /// The motion in degrees.
    rotate: [f64; 3],
    /// Its scale.
    scale: [f64; 3],
    /// Its shear.
    shear: [f64; 3],
    /// Its perspective.
    perspective: [f64; 2],
    /// Its rotation, scale and shear as a matrix.
    matrix: [[f64; 3]; 3],
    /// What was found, the nearest first; `degrees` is the error against what was asked for.
    found: Vec<Found>,
    /// The stored view of the object that is really nearest to what was asked for, in rotation.
    best: Option<Found>,
    /// The moved embedding, normalised.
    poses: Vec<f32>,
    capsules: Option<(usize, usize)>,
}

/// Moves a view's pose.
pub async fn steer(
    State(explorer): State<Arc<Explorer>>,
    Json(request): Json<SteerRequest>,
) -> Result<Json<Steered>, Refusal> {
    let network = explorer.networks.get(request.network.run, request.network.epoch)?;
    let wrong = |error: crate::error::Error| Refusal::Wrong(error.to_string());
    let transformation = network.transformation().map_err(wrong)?;
    let by = motion(&request, transformation.group())?;
    let steered = explorer.soon(move |explorer| {
        let data = &explorer.data;
        let (latents, encoded) = encode(explorer, &network, &request.scene)?;
        let object = request.scene.object;
        let except = request.scene.view.map(|view| data.truth.row(object, view));
        let among = (!request.all_objects).then_some(object);
        let k = request.k.clamp(1, 48);
        let (near, poses) = network.steer(&encoded.equivariant, &by, among, k, except).map_err(wrong)?;
        let asked = transformation.leads_to(&data.pose(&request.scene, &latents), &by);
        // Without poses no view is known to be nearer than others.
        let views = if data.truth.has_poses { data.views.views_in(object) } else { 0 };
        let rows = (0..views).map(|view| data.truth.row(object, view));
        let angle =
            |row: usize| pose::rotation_angle(data.truth.poses[row].quaternion(), asked.quaternion()).0;
        let best = rows.filter(|row| Some(*row) != except).min_by(|&a, &b| angle(a).total_cmp(&angle(b)));
        Ok(Steered {
            asked: SceneQuery::of(object, None, &at(&latents, &asked)),
            rotate: by.rotation.to_radians().map(f64::to_degrees),
            scale: by.deformation.log_scale.map(f64::exp),
            shear: by.deformation.shear,
            perspective: by.deformation.perspective,
            matrix: by.linear(),
            found: Found::list(data, &near, Some(&asked)),
            best: best.map(|row| Found::of(data, row, None, Some(&asked))),
            poses,
            capsules: network.capsules,
        })
    });
    steered.await.map(Json)
}

/// The scene with the object at another pose.
fn at(latents: &Latents, pose: &ViewPose) -> Latents {
    let Deformation { log_scale, shear, .. } = pose.deformation;
    let is_deformed = latents.shape.is_some() || !pose.deformation.is_none();
    let has_shear = latents.shape.is_some_and(|shape| shape.shear.is_some()) || shear != [0.0; 3];
    let has_translation = latents.translation.is_some() || pose.translation != [0.0; 3];
    let shape = Shape { scale: log_scale.map(f64::exp), shear: has_shear.then_some(shear) };
    Latents {
        rotation: pose.rotation.to_radians(),
        translation: has_translation.then_some(pose.translation),
        shape: is_deformed.then_some(shape),
        ..*latents
    }
}

/// The motion that a request asks for, of those that `group` has.
fn motion(request: &SteerRequest, group: Group) -> Result<ViewPose, Refusal> {
    let SteerRequest { rotate, translate, scale, shear, perspective, matrix, .. } = request;
    let triples = [rotate, translate, scale, shear].into_iter().chain(matrix.iter().flatten());
    let numbers = triples.flatten().chain(perspective);
    if let Some(wrong) = numbers.into_iter().find(|value| !value.is_finite() || value.abs() > 1e4) {
        return Err(Refusal::Wrong(format!("{wrong} is no part of a motion")));
    }
    if let Some(wrong) = scale.iter().find(|factor| **factor < 1e-3) {
        return Err(Refusal::Wrong(format!("the scale {wrong} is too small, expected numbers above 0")));
    }
    let mut moved = match *matrix {
        Some(matrix) => from_matrix(matrix, group)?,
        None => ViewPose {
            rotation: TaitBryan::from(rotate.map(f64::to_radians)),
            translation: [0.0; 3],
            deformation: Deformation {
                log_scale: scale.map(f64::ln),
                shear: *shear,
                ..Deformation::default()
            },
        },
    };
    moved.translation = *translate;
    moved.deformation.perspective = *perspective;
    Ok(group.seen(&moved))
}

/// The rotation, scale and shear of a typed matrix. Three digits are typed; a rotation has more.
fn from_matrix(matrix: [[f64; 3]; 3], group: Group) -> Result<ViewPose, Refusal> {
    let kind = match (group.has(Part::Scale), group.uniform) {
        (false, _) => "rotation",
        (true, true) => "rotation with one scale for all axes",
        (true, false) => "rotation with scale and shear",
    };
    let Some(found) = ViewPose::from_linear(matrix) else {
        return Err(Refusal::Wrong(format!(
            "this matrix is no {kind}: it mirrors or flattens the object (its determinant must be above 0)"
        )));
    };
    let nearest = group.seen(&found);
    let (linear, side) = (nearest.linear(), if group.space == Space::Image { 2 } else { 3 });
    let pairs =
        linear[..side].iter().zip(&matrix[..side]).flat_map(|(a, b)| a[..side].iter().zip(&b[..side]));
    let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    if off > 0.01 {
        return Err(Refusal::Wrong(format!(
            "this matrix is no {kind}: an entry is {off:.2} away from the nearest one"
        )));
    }
    Ok(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> SteerRequest {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn motions_are_angles_or_a_matrix_that_is_one() {
        let turned =
            motion(&request(r#"{"scene":{"object":0},"rotate":[0,0,90]}"#), Group::ROTATION).unwrap();
        let typed = request(r#"{"scene":{"object":0},"matrix":[[0,-1,0],[1,0,0],[0,0,1.002]]}"#);
        let typed = motion(&typed, Group::ROTATION).unwrap();
        assert!(pose::rotation_angle(turned.quaternion(), typed.quaternion()).0 < 0.2);
        assert!(typed.deformation.is_none());
        for wrong in [
            r#"{"scene":{"object":0},"matrix":[[1,0,0],[0,1,0],[0,0,-1]]}"#,
            r#"{"scene":{"object":0},"matrix":[[2,0,0],[0,2,0],[0,0,2]]}"#,
            r#"{"scene":{"object":0},"matrix":[[0,0,0],[0,0,0],[0,0,0]]}"#,
            r#"{"scene":{"object":0},"rotate":[1e9,0,0]}"#,
            r#"{"scene":{"object":0},"scale":[0,1,1]}"#,
            r#"{"scene":{"object":0},"perspective":[1e9,0]}"#,
        ] {
            let refused = motion(&request(wrong), Group::ROTATION);
            assert!(matches!(refused, Err(Refusal::Wrong(_))), "{wrong}");
        }
    }

    #[test]
    fn matrices_may_scale_and_shear_where_the_group_does() {
        let doubled = request(r#"{"scene":{"object":0},"matrix":[[0,-2,0],[2,0,0],[0,0,2]]}"#);
        let found = motion(&doubled, Group::SIMILARITY).unwrap();
        assert!((found.deformation.log_scale[0] - 2_f64.ln()).abs() < 1e-12);
        assert!((found.rotation.to_radians()[2].to_degrees() - 90.0).abs() < 1e-9);
        let sheared = request(r#"{"scene":{"object":0},"matrix":[[1.5,0.6,0],[0,1,0],[0,0,1]]}"#);
        let found = motion(&sheared, Group::AFFINE).unwrap();
        assert!((found.deformation.shear[0] - 0.4).abs() < 1e-12);
        assert!(motion(&sheared, Group::SIMILARITY).is_err());
        let in_a_picture = request(r#"{"scene":{"object":0},"matrix":[[0,-2,0],[2,0,0],[0,0,1]]}"#);
        assert!(motion(&in_a_picture, Group::IMAGE_SIMILARITY).is_ok());
        // Perspective is no part of what is typed, and stays.
        let tilted = request(
            r#"{"scene":{"object":0},"perspective":[0.1,-0.05],"matrix":[[0,-2,0],[2,0,0],[0,0,1]]}"#,
        );
        let found = motion(&tilted, Group::IMAGE_HOMOGRAPHY).unwrap().deformation;
        assert_eq!(found.perspective, [0.1, -0.05]);
        assert!((found.log_scale[0] - 2_f64.ln()).abs() < 1e-12);
        assert_eq!(motion(&tilted, Group::IMAGE_AFFINE).unwrap().deformation.perspective, [0.0; 2]);
        let mirrored = request(r#"{"scene":{"object":0},"matrix":[[1,0,0],[0,1,0],[0,0,-1]]}"#);
        assert!(motion(&mirrored, Group::AFFINE).is_err());
        // What the group does not have is no part of the motion.
        let asked = request(r#"{"scene":{"object":0},"scale":[1.5,1,1],"translate":[1,0,0]}"#);
        assert_eq!(motion(&asked, Group::ROTATION).unwrap(), ViewPose::default());
    }
}
