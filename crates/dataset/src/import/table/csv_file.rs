//! CSV: a line of names, then lines of values. Separated by commas, tabs or semicolons, whichever the first line has.

use std::path::Path;

use super::{Cell, MOST_ROWS, Table, column_name};
use crate::error::{Error, Result};
use crate::image_file::read_regular;

/// Counts lines, which the reader does not where some are empty.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line of the first text from byte `at` on, which is behind the last one asked for.
    fn of(&mut self, at: usize) -> usize {
        let rest = &self.bytes[at.min(self.bytes.len())..];
        let text = at + rest.iter().position(|byte| !matches!(byte, b'\n' | b'\r')).unwrap_or(0);
        let passed = &self.bytes[self.at.min(text)..text.min(self.bytes.len())];
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count();
        self.at = text;
        self.line
    }
}

pub(super) fn read(path: &Path) -> Result<Table> {
    let bytes = read_regular(path)?;
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |separator: u8| first.iter().filter(|&&byte| byte == separator).count();
    let separator = [b'\t', b';']
        .into_iter()
        .fold(b',', |best, other| if count(other) > count(best) { other } else { best });
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).flexible(true).from_reader(&bytes[..]);
    let wrong = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        let what = match error.kind() {
            csv::ErrorKind::Utf8 { .. } => "is not UTF-8 text".to_owned(),
            other => format!("cannot be read ({other:?})"),
        };
        Error::content(path, format!("line {line} {what}"))
    };
    let columns: Vec<String> = reader.headers().map_err(wrong)?.iter().map(column_name).collect();
    let mut rows = Vec::new();
    let mut lines = Lines { bytes: &bytes, at: 0, line: 1 };
    for record in reader.records() {
        let record = record.map_err(wrong)?;
        let line = lines.of(record.position().map_or(0, csv::Position::byte) as usize);
        if record.iter().all(|value| value.trim().is_empty()) {
            continue;
        }
        if record.len() != columns.len() {
            let message = format!(
                "line {line} has {} values, the first line names {} columns",
                record.len(),
                columns.len()
            );
            return Err(Error::content(path, message));
        }
        rows.push((line, record.iter().map(Cell::text).collect()));
        if rows.len() > MOST_ROWS {
            return Err(Error::content(path, format!("more than {MOST_ROWS} rows")));
        }
    }
    Ok(Table { path: path.to_path_buf(), unit: "line", columns, rows })
}
