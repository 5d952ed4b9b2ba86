//! Contact sheets: labelled rows of pictures in as many columns as make a sheet that fits a screen.

use std::sync::Arc;

use report::drawing::Mark;
use report::{Anchor, Drawing, Paint, Picture, font};

/// One labelled row.
pub struct SheetRow {
    /// What stands above the pictures.
    pub label: String,
    /// The pictures.
    pub pictures: Vec<Arc<Picture>>,
}

const MARGIN: f64 = 14.0;
const GAP: f64 = 2.0;
const LABEL_PX: f64 = 13.0;
const LABEL_HEIGHT: f64 = 18.0;

/// Lays the rows out, each picture `cell` pixels wide and high.
pub fn draw(title: &str, cell: usize, rows: &[SheetRow]) -> Drawing {
    let cell = cell as f64;
    let longest = rows.iter().map(|row| row.pictures.len()).max().unwrap_or(0).max(1) as f64;
    let label = rows.iter().map(|row| font::width(&row.label, LABEL_PX)).fold(0.0, f64::max);
    let block = (longest * (cell + GAP)).max(label) + MARGIN;
    let row_height = LABEL_HEIGHT + cell + 8.0;
    let height_of = |columns: usize| rows.len().div_ceil(columns) as f64 * row_height;
    let columns = (1..=rows.len()).find(|&n| n as f64 * block >= 0.9 * height_of(n)).unwrap_or(1);
    let in_column = rows.len().div_ceil(columns).max(1);
    let columns = rows.len().div_ceil(in_column);
    let top = 2.0 * MARGIN + 18.0;
    let width = (columns as f64 * block).max(font::width(title, 18.0) * 1.1) + MARGIN;
    let mut drawing = Drawing::new(width, top + in_column as f64 * row_height + 6.0, title);
    drawing.heading((MARGIN, MARGIN + 16.0), title, 18.0, Anchor::Start);
    for (at, row) in rows.iter().enumerate() {
        let x = MARGIN + (at / in_column) as f64 * block;
        let y = top + (at % in_column) as f64 * row_height;
        drawing.text((x, y + LABEL_PX), row.label.as_str(), LABEL_PX, Anchor::Start, Paint::Ink);
        for (place, picture) in row.pictures.iter().enumerate() {
            let area = [x + place as f64 * (cell + GAP), y + LABEL_HEIGHT, cell, cell];
            drawing.marks.push(Mark::Picture(area, Arc::clone(picture)));
        }
    }
    drawing
}
