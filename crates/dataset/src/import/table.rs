//! A table that people wrote: CSV, JSON lines or Parquet, as named columns of texts and numbers.

mod csv_file;
mod json_lines;
mod parquet_file;
mod zstd_pages;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Empty, null, or NaN.
    Missing,
    /// A number, where the format tells numbers from texts.
    Number(f64),
    /// Anything else, and everything in CSV.
    Text(String),
}

impl Cell {
    fn text(text: &str) -> Self {
        match text.trim() {
            "" => Self::Missing,
            nan if nan.eq_ignore_ascii_case("nan") => Self::Missing,
            text => Self::Text(text.to_owned()),
        }
    }

    fn number(number: f64) -> Self {
        if number.is_nan() { Self::Missing } else { Self::Number(number) }
    }
}

/// Columns with names, and rows of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The file.
    pub path: PathBuf,
    /// What rows are counted in: `line` of a text file, or `row`.
    pub unit: &'static str,
    /// Names of the columns, trimmed, in lower case.
    pub columns: Vec<String>,
    /// The number of each row in the file, from 1, and its cells, one for each column.
    pub rows: Vec<(usize, Vec<Cell>)>,
}

/// Rows that are taken at most: a table beyond that is a mistake.
const MOST_ROWS: usize = 100_000_000;

impl Table {
    /// Reads a table by the end of its name.
    pub fn read(path: &Path) -> Result<Self> {
        let table = match kind(path) {
            Some(Kind::Csv) => csv_file::read(path)?,
            Some(Kind::JsonLines) => json_lines::read(path)?,
            Some(Kind::Parquet) => parquet_file::read(path)?,
            None => {
                let message = "expected a table (.csv, .tsv, .jsonl or .parquet), or a folder of images";
                return Err(Error::content(path, message));
            }
        };
        if table.rows.is_empty() {
            return Err(Error::content(path, "the table has no rows"));
        }
        let mut sorted: Vec<&String> = table.columns.iter().collect();
        sorted.sort();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::content(path, format!("there are two columns {:?}", twice[0])));
        }
        Ok(table)
    }

    /// The number of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Where row number `row` is, for messages: `line 7`.
    pub fn place(&self, row: usize) -> String {
        format!("{} {}", self.unit, self.rows[row].0)
    }

    /// Something is wrong with row number `row`.
    pub fn wrong(&self, row: usize, message: impl std::fmt::Display) -> Error {
        Error::content(&self.path, format!("{}: {message}", self.place(row)))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Csv,
    JsonLines,
    Parquet,
}

/// Whether the name of `path` is that of a table.
pub(crate) fn is_table(path: &Path) -> bool {
    kind(path).is_some()
}

fn kind(path: &Path) -> Option<Kind> {
    let extension = path.extension()?.to_str()?.to_lowercase();
    match extension.as_str() {
        "csv" | "tsv" | "txt" => Some(Kind::Csv),
        "jsonl" | "ndjson" | "json" => Some(Kind::JsonLines),
        "parquet" | "pq" => Some(Kind::Parquet),
        _ => None,
    }
}

/// The name of a column as it is compared.
fn column_name(name: &str) -> String {
    name.trim().trim_start_matches('\u{feff}').trim_matches('"').to_lowercase()
}

#[cfg(test)]
mod tests;
