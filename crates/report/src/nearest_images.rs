//! Queries with their nearest images, a row each.

use std::sync::Arc;

use dataset::Image;
use evaluate::nearest::Neighbour;

use crate::{Bitmap, Drawing, GridCell, ImageGrid, Result};

/// Draws `queries` with what was `found` among `candidates`; images are loaded at `side` pixels.
pub fn draw(
    title: &str,
    queries: &[Image],
    candidates: &[Image],
    found: &[Vec<Neighbour>],
    side: usize,
) -> Result<Drawing> {
    let side = side.max(64);
    let cell = |image: &Image, caption: String| -> Result<Option<GridCell>> {
        let image = Bitmap::new(side as u32, side as u32, image.load(side)?)?;
        Ok(Some(GridCell::new(Arc::new(image), caption)))
    };
    let name =
        |image: &Image| image.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut rows = Vec::new();
    for (query, neighbours) in queries.iter().zip(found) {
        let mut row = vec![cell(query, name(query))?];
        for neighbour in neighbours {
            row.push(cell(&candidates[neighbour.row], format!("{:.3}", neighbour.similarity))?);
        }
        rows.push(row);
    }
    let most = found.iter().map(Vec::len).max().unwrap_or(0);
    let columns = std::iter::once("query".to_owned()).chain((1..=most).map(|k| format!("{k}-NN"))).collect();
    let grid = ImageGrid { title: title.to_owned(), columns, row_labels: Vec::new(), rows, cell_px: 96.0 };
    Ok(grid.draw())
}
