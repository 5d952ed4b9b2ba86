//! Pictures for people: contact sheets and histograms, drawn without any font or plotting library.

mod canvas;
mod chart;
mod font;
mod sheet;

pub use canvas::Canvas;
pub use chart::{Histogram, bar_chart, histograms};
pub use sheet::{SheetRow, contact_sheet};
