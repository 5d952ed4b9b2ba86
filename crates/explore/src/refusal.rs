//! What a request gets that cannot be answered: a status and one sentence as JSON, or, while a network is being read, how far
//! that is.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request makes no sense.
    Wrong(String),
    /// There is no such thing.
    Missing(String),
    /// It went wrong here.
    Failed(String),
    /// Not yet: what is being done, so much of so much.
    Later(String, u64, u64),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = |status, text: String| (status, Json(json!({ "error": text }))).into_response();
        match self {
            Self::Wrong(text) => error(StatusCode::BAD_REQUEST, text),
            Self::Missing(text) => error(StatusCode::NOT_FOUND, text),
            Self::Failed(text) => error(StatusCode::INTERNAL_SERVER_ERROR, text),
            Self::Later(what, done, total) => {
                let body = json!({ "loading": { "what": what, "done": done, "total": total } });
                (StatusCode::ACCEPTED, Json(body)).into_response()
            }
        }
    }
}

/// Anything that went wrong here.
pub fn failed(error: impl std::fmt::Display) -> Refusal {
    Refusal::Failed(error.to_string())
}
