//! Turn: a view at any pose, and what a network makes of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use evaluate::Encoded;
use render::Quality;
use serde::{Deserialize, Serialize};

use super::NetworkQuery;
use super::found::Found;
use crate::data::to_jpeg;
use crate::explorer::Explorer;
use crate::network::{By, Network};
use crate::refusal::{Refusal, failed};
use crate::scene_query::SceneQuery;

/// Sides of pictures, in pixels.
const SIDES: std::ops::RangeInclusive<usize> = 16..=768;
/// Neighbours that can be asked for.
const MOST_NEIGHBOURS: usize = 48;

/// How a picture is made.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ImageQuery {
    #[serde(default = "side")]
    side: usize,
    #[serde(default)]
    quality: QualityName,
}

/// How well a picture is rendered.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum QualityName {
    #[default]
    Fast,
    Standard,
}

fn side() -> usize {
    256
}

/// Where the time of a picture went, as browsers show it beside a request.
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// A JPEG of a view.
pub async fn image(
    State(explorer): State<Arc<Explorer>>,
    Query(scene): Query<SceneQuery>,
    Query(ImageQuery { side, quality }): Query<ImageQuery>,
) -> Result<Response, Refusal> {
    if !SIDES.contains(&side) {
        let (least, most) = SIDES.into_inner();
        return Err(Refusal::Wrong(format!("side is {side}, expected {least} to {most}")));
    }
    let quality = match quality {
        QualityName::Fast => Quality::Fast,
        QualityName::Standard => Quality::Standard,
    };
    let asked = Instant::now();
    let (jpeg, timing) = explorer
        .soon(move |explorer| {
            let began = Instant::now();
            let latents = scene.latents(&explorer.data)?;
            let pixels = explorer.data.pixels(&scene, &latents, side, quality).map_err(failed)?;
            let rendered = Instant::now();
            let jpeg = to_jpeg(&pixels, side).map_err(failed)?;
            Ok((jpeg, timing(began - asked, rendered - began, rendered.elapsed())))
        })
        .await?;
    // Stored views do not change while the program runs; the page asks for them again and again.
    let cache = if scene.view.is_some() { "private, max-age=600" } else { "no-store" };
    let headers = [
        (header::CONTENT_TYPE, "image/jpeg"),
        (header::CACHE_CONTROL, cache),
        (SERVER_TIMING, timing.as_str()),
    ];
    Ok((headers, jpeg).into_response())
}

/// The value of [`SERVER_TIMING`], in milliseconds.
fn timing(wait: Duration, render: Duration, encode: Duration) -> String {
    let [wait, render, encode] = [wait, render, encode].map(|time| 1e3 * time.as_secs_f64());
    format!("wait;dur={wait:.3}, render;dur={render:.3}, encode;dur={encode:.3}")
}

/// The scene of a stored view.
pub async fn view(
    State(explorer): State<Arc<Explorer>>,
    Query(scene): Query<SceneQuery>,
) -> Result<Json<SceneQuery>, Refusal> {
    let latents = scene.latents(&explorer.data)?;
    Ok(Json(SceneQuery::of(scene.object, scene.view, &latents)))
}

/// A view to be put through a network.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct LookRequest {
    #[serde(flatten)]
    network: NetworkQuery,
    scene: SceneQuery,
    /// Only views of the same object are neighbours.
    #[serde(default)]
    own_object: bool,
    #[serde(default = "k")]
    k: usize,
}

fn k() -> usize {
    8
}

/// What a network makes of a view.
#[derive(Debug, Serialize)]
pub struct Looked {
    scene: SceneQuery,
    /// Activations of the capsules, or the invariant embedding.
    activations: Vec<f32>,
    /// Pose matrices, one after the other, or the (equivariant) embedding.
    poses: Vec<f32>,
    /// Capsules and the side of their matrices.
    capsules: Option<(usize, usize)>,
    by_representation: Vec<Found>,
    by_poses: Vec<Found>,
    note: Option<String>,
    motion: Option<&'static str>,
}

/// Puts a view through a network and finds its neighbours.
pub async fn look(
    State(explorer): State<Arc<Explorer>>,
    Json(request): Json<LookRequest>,
) -> Result<Json<Looked>, Refusal> {
    let network = explorer.networks.get(request.network.run, request.network.epoch)?;
    let k = request.k.clamp(1, MOST_NEIGHBOURS);
    let looked = explorer.soon(move |explorer| {
        let data = &explorer.data;
        let (latents, encoded) = encode(explorer, &network, &request.scene)?;
        let except = request.scene.view.map(|view| data.truth.row(request.scene.object, view));
        let pose = data.pose(&request.scene, &latents);
        let near = |by| -> Result<Vec<Found>, Refusal> {
            let is_other = |row| request.own_object && data.truth.item(row).0 != request.scene.object;
            let skip = |row| Some(row) == except || is_other(row);
            let near = network.nearest(by, &encoded, k, skip).map_err(failed)?;
            Ok(Found::list(data, &near, Some(&pose)))
        };
        Ok(Looked {
            scene: SceneQuery::of(request.scene.object, request.scene.view, &latents),
            by_representation: near(By::Representation)?,
            by_poses: near(By::Poses)?,
            capsules: network.capsules,
            note: network.note.clone(),
            motion: network.motion(),
            activations: encoded.invariant,
            poses: encoded.equivariant,
        })
    });
    looked.await.map(Json)
}

/// A view, and its features.
pub fn encode(
    explorer: &Explorer,
    network: &Network,
    scene: &SceneQuery,
) -> Result<(scene::Latents, Encoded), Refusal> {
    let latents = scene.latents(&explorer.data)?;
    let pixels = explorer.data.pixels(scene, &latents, network.side(), Quality::Fast).map_err(failed)?;
    Ok((latents, network.encode(&pixels).map_err(failed)?))
}
