//! Parquet: columns of numbers and texts; others, such as lists, are passed over.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Type as Physical};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use super::zstd_pages::RowGroup;
use super::{Cell, MOST_ROWS, Table, column_name};
use crate::error::{Error, Result};

pub(super) fn read(path: &Path) -> Result<Table> {
    let file = File::open(path).map_err(Error::read(path))?;
    if !file.metadata().map_err(Error::read(path))?.is_file() {
        return Err(Error::content(path, "is not a regular file"));
    }
    let wrong = |error: parquet::errors::ParquetError| {
        let words = error.to_string();
        let message = match words.contains("feature") || words.contains("Disabled") {
            true => {
                "its compression is not supported; write it with zstd, snappy, lz4, gzip or none".to_owned()
            }
            false => format!(
                "not a readable Parquet file: {}",
                words.split_whitespace().collect::<Vec<_>>().join(" ")
            ),
        };
        Error::content(path, message)
    };
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(wrong)?;
    let file = Arc::new(file);
    let schema = metadata.file_metadata().schema();
    let fields: Vec<_> = schema.get_fields().iter().filter(|field| is_plain(field)).cloned().collect();
    let columns: Vec<String> = fields.iter().map(|field| column_name(field.name())).collect();
    let rows = metadata.file_metadata().num_rows();
    if usize::try_from(rows).map_or(true, |rows| rows > MOST_ROWS) {
        return Err(Error::content(path, format!("claims {rows} rows, more than {MOST_ROWS}")));
    }
    let wanted = Type::group_type_builder(schema.name()).with_fields(fields).build().map_err(wrong)?;
    let mut rows = Vec::new();
    for metadata in metadata.row_groups() {
        let group = RowGroup { file: &file, metadata };
        for record in RowIter::from_row_group(Some(wanted.clone()), &group).map_err(wrong)? {
            let cells = record.map_err(wrong)?.get_column_iter().map(|(_, field)| cell(field)).collect();
            rows.push((rows.len() + 1, cells));
        }
    }
    Ok(Table { path: path.to_path_buf(), unit: "row", columns, rows })
}

/// Whether a column holds one number or text in a row.
fn is_plain(field: &Type) -> bool {
    if !field.is_primitive() || field.get_basic_info().has_repetition() && is_repeated(field) {
        return false;
    }
    match field.get_physical_type() {
        Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE | Physical::BOOLEAN => true,
        Physical::BYTE_ARRAY => {
            matches!(field.get_basic_info().converted_type(), ConvertedType::UTF8 | ConvertedType::NONE)
        }
        Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => false,
    }
}

fn is_repeated(field: &Type) -> bool {
    field.get_basic_info().repetition() == parquet::basic::Repetition::REPEATED
}

fn cell(field: &Field) -> Cell {
    match field {
        Field::Null => Cell::Missing,
        Field::Float(value) => Cell::number(f64::from(*value)),
        Field::Double(value) => Cell::number(*value),
        Field::Byte(value) => Cell::Number(f64::from(*value)),
        Field::Short(value) => Cell::Number(f64::from(*value)),
        Field::Int(value) => Cell::Number(f64::from(*value)),
        Field::Long(value) => Cell::Number(*value as f64),
        Field::UByte(value) => Cell::Number(f64::from(*value)),
        Field::UShort(value) => Cell::Number(f64::from(*value)),
        Field::UInt(value) => Cell::Number(f64::from(*value)),
        Field::ULong(value) => Cell::Number(*value as f64),
        Field::Str(text) => Cell::text(text),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).map_or(Cell::Missing, Cell::text),
        other => Cell::Text(other.to_string()),
    }
}
