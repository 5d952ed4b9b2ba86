//! Steer: the pose of a view times a motion, and which stored views the moved pose lands on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use pose::{Rotation, TaitBryan, ViewPose};
use scene::Latents;
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
    /// The rotation as a matrix instead, row by row.
    #[serde(default)]
    matrix: Option<[[f64; 3]; 3]>,
    #[serde(default)]
    translate: [f64; 3],
    /// Whether views of all objects are candidates, or only those of the shown one.
    #[serde(default)]
    all_objects: bool,
    #[serde(default = "k")]
    k: usize,
}

fn k() -> usize {
    6
}

/// Where a pose was moved to.
#[derive(Debug, Serialize)]
pub struct Steered {
    /// The view that was asked for: where the motion leads.
    asked: SceneQuery,
    /// The motion in degrees.
    rotate: [f64; 3],
    /// The motion's rotation as a matrix.
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
    let by = motion(&request)?;
    let network = explorer.networks.get(request.network.run, request.network.epoch)?;
    let steered = explorer.soon(move |explorer| {
        let data = &explorer.data;
        let (latents, encoded) = encode(explorer, &network, &request.scene)?;
        let object = request.scene.object;
        let except = request.scene.view.map(|view| data.truth.row(object, view));
        let among = (!request.all_objects).then_some(object);
        let k = request.k.clamp(1, 48);
        let (near, poses) = network
            .steer(&encoded.equivariant, &by, among, k, except)
            .map_err(|error| Refusal::Wrong(error.to_string()))?;
        let asked = latents.pose().moved(network.frame(), &by);
        let asked_latents = Latents {
            rotation: asked.rotation.to_radians(),
            translation: latents.translation.map(|_| asked.translation),
            ..latents
        };
        let rows = (0..data.views.views_in(object)).map(|view| data.truth.row(object, view));
        let angle =
            |row: usize| pose::rotation_angle(data.truth.poses[row].quaternion(), asked.quaternion()).0;
        let best = rows.filter(|row| Some(*row) != except).min_by(|&a, &b| angle(a).total_cmp(&angle(b)));
        Ok(Steered {
            asked: SceneQuery::of(object, None, &asked_latents),
            rotate: by.rotation.to_radians().map(f64::to_degrees),
            matrix: Rotation::from(by.rotation).to_matrix(),
            found: Found::list(data, &near, Some(&asked)),
            best: best.map(|row| Found::of(data, row, None, Some(&asked))),
            poses,
            capsules: network.capsules,
        })
    });
    steered.await.map(Json)
}

/// The motion that a request asks for.
fn motion(request: &SteerRequest) -> Result<ViewPose, Refusal> {
    let numbers =
        request.rotate.iter().chain(&request.translate).chain(request.matrix.iter().flatten().flatten());
    if let Some(wrong) = numbers.into_iter().find(|value| !value.is_finite() || value.abs() > 1e4) {
        return Err(Refusal::Wrong(format!("{wrong} is no part of a motion")));
    }
    let rotation = match request.matrix {
        None => TaitBryan::from(request.rotate.map(f64::to_radians)),
        Some(matrix) => {
            // Three digits are typed; a rotation has more.
            let rotation = Rotation::try_from(nearest_orthonormal(matrix)).map_err(|_| {
                Refusal::Wrong(
                    "this matrix is no rotation: its rows must be orthonormal, its determinant 1".to_owned(),
                )
            })?;
            let off = rotation
                .to_matrix()
                .as_flattened()
                .iter()
                .zip(matrix.as_flattened())
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            if off > 0.01 {
                return Err(Refusal::Wrong(format!(
                    "this matrix is no rotation: an entry is {off:.2} away from the nearest one"
                )));
            }
            rotation.into()
        }
    };
    Ok(ViewPose::rigid(rotation, request.translate))
}

/// Gram and Schmidt on the rows.
fn nearest_orthonormal(rows: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let unit = |a: [f64; 3]| {
        let norm = dot(a, a).sqrt().max(1e-12);
        a.map(|entry| entry / norm)
    };
    let a = unit(rows[0]);
    let along = dot(rows[1], a);
    let b = unit(std::array::from_fn(|i| rows[1][i] - along * a[i]));
    let c = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> SteerRequest {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn motions_are_angles_or_a_matrix_that_is_one() {
        let turned = motion(&request(r#"{"scene":{"object":0},"rotate":[0,0,90]}"#)).unwrap();
        let typed =
            motion(&request(r#"{"scene":{"object":0},"matrix":[[0,-1,0],[1,0,0],[0,0,1.002]]}"#)).unwrap();
        assert!(pose::rotation_angle(turned.quaternion(), typed.quaternion()).0 < 0.2);
        for wrong in [
            r#"{"scene":{"object":0},"matrix":[[1,0,0],[0,1,0],[0,0,-1]]}"#,
            r#"{"scene":{"object":0},"matrix":[[2,0,0],[0,2,0],[0,0,2]]}"#,
            r#"{"scene":{"object":0},"matrix":[[0,0,0],[0,0,0],[0,0,0]]}"#,
            r#"{"scene":{"object":0},"rotate":[1e9,0,0]}"#,
        ] {
            assert!(matches!(motion(&request(wrong)), Err(Refusal::Wrong(_))), "{wrong}");
        }
    }
}
