//! Queries with their nearest images, a row each.

use std::sync::Arc;

use dataset::Image;
use dataset::origin::{Origin, origins};
use evaluate::nearest::Neighbour;

use crate::{Bitmap, Drawing, GridCell, ImageGrid, Result};

/// Draws `queries`, whose neighbours are compared with `query_origins`, with what was `found` among `candidates`; images are
/// loaded at `side` pixels.
pub fn draw(
    title: &str,
    queries: &[Image],
    query_origins: &[Option<Origin>],
    candidates: &[Image],
    found: &[Vec<Neighbour>],
    side: usize,
) -> Result<Drawing> {
    let side = side.max(64);
    let cell = |image: &Image, captions: Vec<String>| -> Result<Option<GridCell>> {
        let image = Bitmap::new(side as u32, side as u32, image.load(side)?)?;
        Ok(Some(GridCell { image: Some(Arc::new(image)), captions, frame: None, told: Default::default() }))
    };
    let candidate_origins = origins(candidates);
    let name =
        |image: &Image| image.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut rows = Vec::new();
    for ((query, origin), neighbours) in queries.iter().zip(query_origins).zip(found) {
        let class = |origin: &Option<Origin>| origin.as_ref().map(|origin| origin.class.clone());
        let captions = std::iter::once(name(query)).chain(class(origin)).collect();
        let mut row = vec![cell(query, captions)?];
        for neighbour in neighbours {
            let (image, its_origin) = (&candidates[neighbour.row], &candidate_origins[neighbour.row]);
            let mut captions = vec![name(image)];
            captions.extend(class(its_origin));
            captions.push(match Origin::rotation_distance(origin.as_ref(), its_origin.as_ref()) {
                Some(distance) => format!("{:.3}, rotation {distance:.2}", neighbour.similarity),
                None => format!("{:.3}", neighbour.similarity),
            });
            row.push(cell(image, captions)?);
        }
        rows.push(row);
    }
    let most = found.iter().map(Vec::len).max().unwrap_or(0);
    let columns = std::iter::once("query".to_owned()).chain((1..=most).map(|k| format!("{k}-NN"))).collect();
    let grid = ImageGrid { title: title.to_owned(), columns, row_labels: Vec::new(), rows, cell_px: 96.0 };
    Ok(grid.draw())
}
