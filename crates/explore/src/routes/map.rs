//! Map: all views as points, with what they can be coloured by. Numbers go out as they are, 4 bytes each: 100,000 points are
//! 4 MB, which JSON would make five times as much.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::header;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use crate::explorer::Explorer;
use crate::map::Layout;
use crate::network::By;
use crate::refusal::{Refusal, failed};

/// Which map.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MapQuery {
    run: usize,
    epoch: Option<u64>,
    by: By,
    how: Layout,
}

/// Columns of the answer, in this order.
const COLUMNS: [&str; 11] =
    ["x", "y", "object", "view", "class", "held_out", "angle", "floor_hue", "spot_hue", "error", "wrong"];

/// The length of a JSON header (4 bytes, little-endian), the header, then float32 columns one after the other.
pub async fn map(
    State(explorer): State<Arc<Explorer>>,
    Query(query): Query<MapQuery>,
) -> Result<impl IntoResponse, Refusal> {
    let network = explorer.networks.get(query.run, query.epoch)?;
    let bytes = explorer
        .long(move |explorer| {
            let points = network.map(query.by, query.how).map_err(failed)?;
            let errors = network.errors().map_err(failed)?;
            let truth = &explorer.data.truth;
            let first = errors.first().map_or(usize::MAX, |error| error.row);
            let mut columns = vec![Vec::with_capacity(points.rows.len()); COLUMNS.len()];
            for (&row, position) in points.rows.iter().zip(&points.positions) {
                let row = row as usize;
                let (object, view) = truth.item(row);
                let error = row.checked_sub(first).and_then(|index| errors.get(index));
                let label = truth.labels[object];
                let unturned = pose::Quaternion::IDENTITY;
                let is_wrong =
                    error.and_then(|error| error.class).map(|class| f32::from(u8::from(class != label)));
                let values = [
                    position[0],
                    position[1],
                    object as f32,
                    view as f32,
                    label as f32,
                    f32::from(u8::from(error.is_some())),
                    pose::rotation_angle(truth.poses[row].quaternion(), unturned).0 as f32,
                    truth.hues[row][0] as f32,
                    truth.hues[row][1] as f32,
                    error.and_then(|error| error.rotation_degrees).map_or(f32::NAN, |degrees| degrees as f32),
                    is_wrong.unwrap_or(f32::NAN),
                ];
                columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            }
            let header = json!({
                "rows": points.rows.len(),
                "all": truth.index.total(),
                "columns": COLUMNS,
                "shares": points.shares,
            });
            let mut header = header.to_string().into_bytes();
            // Numbers begin at a multiple of four.
            header.resize(header.len().next_multiple_of(4), b' ');
            let mut bytes = (header.len() as u32).to_le_bytes().to_vec();
            bytes.extend(header);
            bytes.extend(columns.iter().flatten().flat_map(|value| value.to_le_bytes()));
            Ok(bytes)
        })
        .await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes))
}
