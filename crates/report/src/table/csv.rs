//! Tables as CSV.

use super::{Cell, Table};

impl Table {
    /// As CSV (RFC 4180): one heading line, numbers in full precision, spreads in columns of their own.
    pub(crate) fn to_csv(&self) -> String {
        let has_spread: Vec<bool> = (0..self.columns.len())
            .map(|c| {
                (0..self.rows.len()).any(|r| matches!(self.cell(r, c), Cell::Number { spread: Some(_), .. }))
            })
            .collect();
        let mut text = String::new();
        let mut headings = Vec::new();
        for (column, spread) in self.columns.iter().zip(&has_spread) {
            headings.push(csv(&Self::full_heading(column)));
            if *spread {
                headings.push(csv(&format!("{} spread", Self::full_heading(column))));
            }
        }
        text.push_str(&format!("{}\r\n", headings.join(",")));
        for row in 0..self.rows.len() {
            let mut cells = Vec::new();
            for (column, with_spread) in has_spread.iter().enumerate() {
                let cell = self.cell(row, column);
                cells.push(match cell {
                    Cell::Missing => String::new(),
                    Cell::Text(words) => csv(words),
                    Cell::Number { .. } => cell.value().map(|value| value.to_string()).unwrap_or_default(),
                });
                if *with_spread {
                    cells.push(match cell {
                        Cell::Number { spread: Some(spread), .. } => spread.to_string(),
                        _ => String::new(),
                    });
                }
            }
            text.push_str(&format!("{}\r\n", cells.join(",")));
        }
        text
    }
}

/// `text` as one cell.
pub(super) fn csv(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
