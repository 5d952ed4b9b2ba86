//! The page, compiled in: these files and no others are served.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const DRAWING: &str = "image/svg+xml";

macro_rules! assets {
    ($($name:literal: $kind:expr),* $(,)?) => {
        /// Names, kinds and contents.
        const ASSETS: &[(&str, &str, &[u8])] = &[$(($name, $kind, include_bytes!(concat!("../assets/", $name)))),*];
    };
}

assets! {
    "index.html": HTML,
    "style.css": STYLE,
    "icon.svg": DRAWING,
    "main.js": SCRIPT,
    "server.js": SCRIPT,
    "elements.js": SCRIPT,
    "scene.js": SCRIPT,
    "capsules.js": SCRIPT,
    "chart.js": SCRIPT,
    "points.js": SCRIPT,
    "grid.js": SCRIPT,
    "pace.js": SCRIPT,
    "turn.js": SCRIPT,
    "steer.js": SCRIPT,
    "map.js": SCRIPT,
    "runs.js": SCRIPT,
    "errors.js": SCRIPT,
}

/// The page.
pub async fn page() -> Response {
    of("index.html")
}

/// One of its files.
pub async fn file(Path(name): Path<String>) -> Response {
    of(&name)
}

fn of(name: &str) -> Response {
    match ASSETS.iter().find(|asset| asset.0 == name) {
        Some((_, kind, bytes)) => ([(header::CONTENT_TYPE, *kind)], *bytes).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
