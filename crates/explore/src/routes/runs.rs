//! Runs: where each stands, and its curves, also while it trains.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Result;
use crate::explorer::Explorer;
use crate::refusal::{Refusal, failed};
use crate::run::Run;

/// One of the runs.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct RunQuery {
    run: usize,
}

/// All runs at a glance.
pub async fn runs(State(explorer): State<Arc<Explorer>>) -> std::result::Result<Json<Vec<Value>>, Refusal> {
    let described = explorer.soon(|explorer| {
        let runs = explorer.runs.iter().map(Run::describe);
        runs.collect::<Result<Vec<Value>>>().map_err(failed)
    });
    described.await.map(Json)
}

/// The curves of one.
pub async fn curves(
    State(explorer): State<Arc<Explorer>>,
    Query(query): Query<RunQuery>,
) -> std::result::Result<Json<Value>, Refusal> {
    let curves = explorer.soon(move |explorer| {
        let run = explorer.runs.get(query.run);
        let run = run.ok_or_else(|| Refusal::Wrong(format!("there is no run {}", query.run)))?;
        run.curves().map(|curves| (*curves).clone()).map_err(|error| Refusal::Missing(error.to_string()))
    });
    curves.await.map(Json)
}
