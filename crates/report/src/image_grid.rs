//! Grids of images with labels: retrieved neighbours, rotations in pose space, contact sheets.

use std::sync::Arc;

use crate::drawing::{Anchor, Bitmap, Drawing, Mark, Paint};
use crate::font;

/// One cell of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridCell {
    /// The image; an empty frame where `None`.
    pub image: Option<Arc<Bitmap>>,
    /// Lines of text below it.
    pub captions: Vec<String>,
    /// A coloured frame around it.
    pub frame: Option<Paint>,
    /// What is said when somebody points at it, and the row of a table that it belongs to; may be empty.
    pub told: (String, String),
}

impl GridCell {
    /// An image with one line below it.
    pub fn new(image: Arc<Bitmap>, caption: impl Into<String>) -> Self {
        Self { image: Some(image), captions: vec![caption.into()], frame: None, told: Default::default() }
    }
}

/// Images in rows and columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImageGrid {
    /// The heading.
    pub title: String,
    /// Labels above the columns; may be empty.
    pub columns: Vec<String>,
    /// Labels left of the rows; may be empty.
    pub row_labels: Vec<String>,
    /// The rows; a missing cell stays blank.
    pub rows: Vec<Vec<Option<GridCell>>>,
    /// Side of a cell's image in pixels.
    pub cell_px: f64,
}

const CAPTION: f64 = 11.0;
/// Smaller captions cannot be read; they are shortened.
const LEAST_CAPTION: f64 = 8.0;
/// How much wider letters may be in a browser than here.
const WIDER: f64 = 1.25;
const LINE: f64 = 14.0;
const GAP: f64 = 10.0;

impl ImageGrid {
    /// Draws the grid; its size follows from the cells.
    pub fn draw(&self) -> Drawing {
        let cell = self.cell_px.max(8.0);
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.columns.len());
        let label = self.row_labels.iter().map(|text| font::width(text, 12.0)).fold(0.0, f64::max);
        let left = 14.0 + if label > 0.0 { label + GAP } else { 0.0 };
        let mut y = 10.0;
        let title_width = font::width(&self.title, 14.0) * 1.1 + 28.0;
        let width = (left + columns as f64 * (cell + GAP) + 4.0).max(title_width);
        let mut drawing = Drawing::new(width, 0.0, self.title.clone());
        let centre = |column: usize| left + column as f64 * (cell + GAP) + cell / 2.0;
        if !self.title.is_empty() {
            y += 14.0;
            drawing.heading((14.0, y), self.title.as_str(), 14.0, Anchor::Start);
            y += 8.0;
        }
        if !self.columns.is_empty() {
            let heads: Vec<Vec<&str>> = self.columns.iter().map(|text| wrap(text, cell)).collect();
            let lines = heads.iter().map(Vec::len).max().unwrap_or(1);
            y += 14.0 * lines as f64;
            for (column, head) in heads.iter().enumerate() {
                for (line, text) in head.iter().rev().enumerate() {
                    let at = (centre(column), y - 13.0 * line as f64);
                    let (text, size) = font::fitted(text, cell, 12.0, 8.0);
                    drawing.text(at, text, size, Anchor::Middle, Paint::Ink);
                }
            }
            y += 6.0;
        }
        for (index, row) in self.rows.iter().enumerate() {
            if let Some(text) = self.row_labels.get(index) {
                drawing.text(
                    (left - GAP, y + cell / 2.0 + 4.0),
                    text.as_str(),
                    12.0,
                    Anchor::End,
                    Paint::Ink,
                );
            }
            let mut lines = 0;
            for (column, entry) in row.iter().enumerate() {
                let Some(entry) = entry else { continue };
                let area = [centre(column) - cell / 2.0, y, cell, cell];
                let mark = match &entry.image {
                    Some(image) => Mark::Bitmap(area, Arc::clone(image)),
                    None => Mark::Frame(area, Paint::Grid, 1.0),
                };
                let (said, of) = &entry.told;
                drawing.marks.push(if said.is_empty() {
                    mark
                } else {
                    mark.told(said.as_str(), of.as_str())
                });
                if let Some(paint) = entry.frame {
                    drawing.marks.push(Mark::Frame(area, paint, 3.0));
                }
                for (line, text) in entry.captions.iter().enumerate() {
                    let at = (centre(column), y + cell + (line + 1) as f64 * LINE - 1.0);
                    let (text, size) = font::fitted(text, (cell + GAP) / WIDER, CAPTION, LEAST_CAPTION);
                    drawing.text(at, text, size, Anchor::Middle, Paint::Muted);
                }
                lines = lines.max(entry.captions.len());
            }
            y += cell + lines as f64 * LINE + GAP;
        }
        drawing.height = y + 4.0;
        drawing
    }
}

/// One line, or two broken at a space where one is too wide for `room`.
fn wrap(text: &str, room: f64) -> Vec<&str> {
    let half = text.char_indices().filter(|(_, c)| *c == ' ').map(|(at, _)| at);
    let best = half.min_by_key(|&at| at.abs_diff(text.len() / 2));
    match best {
        Some(at) if font::width(text, 12.0) * 1.1 > room => vec![&text[..at], &text[at + 1..]],
        _ => vec![text],
    }
}
