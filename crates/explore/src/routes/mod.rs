//! What can be asked for, one file for each view of the page. Everything is computed from the runs and the data that were
//! named when the program was started; no request names a file.

mod errors;
mod found;
mod map;
mod runs;
mod steer;
mod turn;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::routing::{Router, get, post};
use serde::Deserialize;
use serde_json::Value;

use crate::assets;
use crate::explorer::Explorer;
use crate::guard::{self, Guard};
use crate::refusal::{Refusal, failed};

/// A run's network: the newest checkpoint, where no epoch is given.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NetworkQuery {
    /// The run's number.
    pub run: usize,
    /// The checkpoint.
    pub epoch: Option<u64>,
}

/// All routes, behind the guard.
pub fn router(explorer: Arc<Explorer>, guard: Arc<Guard>) -> Router {
    Router::new()
        .route("/", get(assets::page))
        .route("/{name}", get(assets::file))
        .route("/api/state", get(state))
        .route("/api/image", get(turn::image))
        .route("/api/view", get(turn::view))
        .route("/api/look", post(turn::look))
        .route("/api/steer", post(steer::steer))
        .route("/api/map", get(map::map))
        .route("/api/runs", get(runs::runs))
        .route("/api/curves", get(runs::curves))
        .route("/api/errors", get(errors::errors))
        .with_state(explorer)
        .layer(from_fn_with_state(guard, guard::guard))
}

async fn state(State(explorer): State<Arc<Explorer>>) -> Result<Json<Value>, Refusal> {
    explorer.soon(|explorer| explorer.describe().map_err(failed)).await.map(Json)
}
