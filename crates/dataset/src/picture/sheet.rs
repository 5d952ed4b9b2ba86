//! Contact sheets: labelled rows of pictures.

use crate::picture::canvas::{Canvas, Rgb};

/// One labelled row.
#[derive(Clone, Debug)]
pub struct SheetRow {
    /// What stands above the pictures.
    pub label: String,
    /// Pictures of `side * side` RGB pixels.
    pub pictures: Vec<Vec<u8>>,
}

const PAPER: Rgb = [250, 250, 248];
const INK: Rgb = [30, 30, 34];
const MARGIN: usize = 12;
const GAP: usize = 2;
const LABEL_SCALE: usize = 2;
const TITLE_SCALE: usize = 3;

/// Lays rows out in as many columns of rows as make the sheet about as wide as high.
pub fn contact_sheet(title: &str, side: usize, rows: &[SheetRow]) -> Canvas {
    let longest = rows.iter().map(|row| row.pictures.len()).max().unwrap_or(0).max(1);
    let label_width = rows.iter().map(|row| Canvas::text_width(&row.label, LABEL_SCALE)).max().unwrap_or(0);
    let block_width = (longest * (side + GAP)).max(label_width) + MARGIN;
    let label_height = Canvas::text_height(LABEL_SCALE) + 2 * GAP;
    let row_height = side + label_height + 3 * GAP;
    let columns = (1..=rows.len().max(1))
        .find(|&columns| columns * block_width * 4 >= rows.len().div_ceil(columns) * row_height * 3)
        .unwrap_or(1);
    let column_rows = rows.len().div_ceil(columns);
    let columns = rows.len().div_ceil(column_rows.max(1));
    let top = MARGIN * 2 + Canvas::text_height(TITLE_SCALE);
    let width = (columns * block_width).max(Canvas::text_width(title, TITLE_SCALE)) + MARGIN * 2;
    let mut canvas = Canvas::new(width, top + column_rows * row_height + MARGIN, PAPER);
    canvas.text(MARGIN, MARGIN, TITLE_SCALE, title, INK);
    for (at, row) in rows.iter().enumerate() {
        let x = MARGIN + at / column_rows * block_width;
        let y = top + at % column_rows * row_height;
        canvas.text(x, y, LABEL_SCALE, &row.label, INK);
        for (place, picture) in row.pictures.iter().enumerate() {
            canvas.draw(x + place * (side + GAP), y + label_height, side, picture);
        }
    }
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_hold_every_picture() {
        for (count, longest) in [(1, 1), (2, 9), (55, 8), (7, 3)] {
            let rows: Vec<SheetRow> = (0..count)
                .map(|k| SheetRow {
                    label: format!("class {k}"),
                    pictures: vec![vec![77; 8 * 8 * 3]; longest],
                })
                .collect();
            let sheet = contact_sheet("a title", 8, &rows);
            let decoded = image::load_from_memory(&sheet.to_png()).unwrap().to_rgb8();
            let pixels = decoded.pixels().filter(|pixel| pixel.0 == [77; 3]).count();
            assert_eq!(pixels, count * longest * 64);
        }
        assert!(contact_sheet("empty", 8, &[]).width() > 0);
    }
}
