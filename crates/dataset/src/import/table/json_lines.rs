//! JSON lines: an object on every line, by the names of its columns; an array of objects is taken as well.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Cell, Table, column_name};
use crate::error::{Error, Result};
use crate::image_file::read_regular;

pub(super) fn read(path: &Path) -> Result<Table> {
    let bytes = read_regular(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::content(path, "is not UTF-8 text"))?;
    // Some editors begin a text with a mark of its bytes' order.
    let text = text.trim_start_matches('\u{feff}');
    let mut records: Vec<(usize, Map<String, Value>)> = Vec::new();
    let is_array = text.trim_start().starts_with('[');
    if is_array {
        let all: Vec<Map<String, Value>> = serde_json::from_str(text)
            .map_err(|error| Error::content(path, format!("not an array of JSON objects: {error}")))?;
        records.extend((1..).zip(all));
    } else {
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let wrong = |error| Error::content(path, format!("line {line} is not a JSON object: {error}"));
            records.push((line, serde_json::from_str(text).map_err(wrong)?));
        }
    }
    let mut columns: Vec<String> = Vec::new();
    for name in records.iter().flat_map(|(_, record)| record.keys()) {
        let name = column_name(name);
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let mut rows = Vec::with_capacity(records.len());
    for (number, record) in records {
        let mut cells = vec![Cell::Missing; columns.len()];
        for (name, value) in record {
            let Some(at) = columns.iter().position(|column| *column == column_name(&name)) else { continue };
            cells[at] = match value {
                Value::Null => Cell::Missing,
                Value::Number(number) => Cell::number(number.as_f64().unwrap_or(f64::NAN)),
                Value::String(text) => Cell::text(&text),
                Value::Bool(_) | Value::Array(_) | Value::Object(_) => Cell::Text(value.to_string()),
            };
        }
        rows.push((number, cells));
    }
    Ok(Table { path: path.to_path_buf(), unit: if is_array { "row" } else { "line" }, columns, rows })
}
