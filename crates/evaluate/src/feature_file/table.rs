//! Features as a Parquet table: a row an image, with what its dataset knows of it. Plain and uncompressed, which every
//! reader takes.

use std::sync::Arc;

use dataset::latent_table::ALL_NAMES;
use dataset::origin::Origin;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Rows of a row group.
pub(super) const GROUP_ROWS: usize = 1 << 16;

/// A column.
pub(super) enum Column<'a> {
    /// Text in every row.
    Text(&'static str, Vec<String>),
    /// Text where it is known.
    OptionalText(&'static str, Vec<Option<String>>),
    /// A whole number where it is known.
    OptionalInteger(&'static str, Vec<Option<i32>>),
    /// A number where it is known.
    OptionalNumber(&'static str, Vec<Option<f64>>),
    /// In every row a list of floats, or lists of lists: the sides of a row's array.
    Floats(&'static str, &'a [f32], Vec<usize>),
}

/// Class, object, view, split and latents; nothing where no image is a view of a dataset.
pub(super) fn known(origins: &[Option<Origin>]) -> Vec<Column<'static>> {
    if origins.iter().all(Option::is_none) {
        return Vec::new();
    }
    let text =
        |value: fn(&Origin) -> String| origins.iter().map(|origin| origin.as_ref().map(value)).collect();
    let view = |origin: &Origin| i32::try_from(origin.view).unwrap_or(i32::MAX);
    let mut columns = vec![
        Column::OptionalText("class", text(|origin| origin.class.clone())),
        Column::OptionalText("object", text(|origin| origin.object.clone())),
        Column::OptionalInteger("view", origins.iter().map(|origin| origin.as_ref().map(view)).collect()),
        Column::OptionalText("split", text(|origin| origin.split.to_owned())),
    ];
    for (index, name) in ALL_NAMES.into_iter().enumerate() {
        let values: Vec<Option<f64>> =
            origins.iter().map(|origin| origin.as_ref().and_then(|origin| origin.latents[index])).collect();
        // What no image is known to have is no column.
        if values.iter().any(Option::is_some) {
            columns.push(Column::OptionalNumber(name, values));
        }
    }
    columns
}

impl Column<'_> {
    fn schema(&self) -> String {
        match self {
            Self::Text(name, _) => format!("REQUIRED BYTE_ARRAY {name} (STRING);"),
            Self::OptionalText(name, _) => format!("OPTIONAL BYTE_ARRAY {name} (STRING);"),
            Self::OptionalInteger(name, _) => format!("OPTIONAL INT32 {name};"),
            Self::OptionalNumber(name, _) => format!("OPTIONAL DOUBLE {name};"),
            Self::Floats(name, _, sides) => lists(name, sides.len()),
        }
    }

    /// Writes the rows from `first` to before `last`.
    fn write(&self, writer: &mut ColumnWriter<'_>, first: usize, last: usize) -> Result<(), ParquetError> {
        let bytes = |text: &String| ByteArray::from(text.as_str());
        match (self, writer) {
            (Self::Text(_, values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let values: Vec<ByteArray> = values[first..last].iter().map(bytes).collect();
                writer.write_batch(&values, None, None)?;
            }
            (Self::OptionalText(_, values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let (levels, there) = present(&values[first..last]);
                let there: Vec<ByteArray> = there.iter().map(bytes).collect();
                writer.write_batch(&there, Some(&levels), None)?;
            }
            (Self::OptionalInteger(_, values), ColumnWriter::Int32ColumnWriter(writer)) => {
                let (levels, there) = present(&values[first..last]);
                writer.write_batch(&there, Some(&levels), None)?;
            }
            (Self::OptionalNumber(_, values), ColumnWriter::DoubleColumnWriter(writer)) => {
                let (levels, there) = present(&values[first..last]);
                writer.write_batch(&there, Some(&levels), None)?;
            }
            (Self::Floats(_, values, sides), ColumnWriter::FloatColumnWriter(writer)) => {
                let width: usize = sides.iter().product();
                let values = &values[first * width..last * width];
                // The first number of a row begins its outermost list (0), the first of an inner list that one (1, 2 ...);
                // the others go on. None is missing.
                let level = |at: usize| {
                    let mut inner = width;
                    let begins = sides.iter().position(|side| {
                        let begins = at.is_multiple_of(inner);
                        inner /= side;
                        begins
                    });
                    begins.unwrap_or(sides.len()) as i16
                };
                let repetition: Vec<i16> = (0..values.len()).map(level).collect();
                let definition = vec![sides.len() as i16; values.len()];
                writer.write_batch(values, Some(&definition), Some(&repetition))?;
            }
            _ => return Err(ParquetError::General("a column is not of its schema's type".to_owned())),
        }
        Ok(())
    }
}

/// A list of `depth` levels of floats.
fn lists(name: &str, depth: usize) -> String {
    let mut element = "REQUIRED FLOAT element;".to_owned();
    for level in (0..depth).rev() {
        let name = if level == 0 { name } else { "element" };
        element = format!("REQUIRED group {name} (LIST) {{ REPEATED group list {{ {element} }} }}");
    }
    element
}

/// Which values are there (1) or missing (0), and those that are.
fn present<T: Clone>(values: &[Option<T>]) -> (Vec<i16>, Vec<T>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (levels, values.iter().flatten().cloned().collect())
}

/// The bytes of a file with `columns` of so many rows.
pub(super) fn bytes(rows: usize, columns: &[Column<'_>]) -> Result<Vec<u8>, ParquetError> {
    let fields: String = columns.iter().map(Column::schema).collect();
    let schema = parse_message_type(&format!("message schema {{ {fields} }}"))?;
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_created_by(concat!("equicaps version ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    for first in (0..rows).step_by(GROUP_ROWS) {
        let last = rows.min(first + GROUP_ROWS);
        let mut group = writer.next_row_group()?;
        for column in columns {
            if let Some(mut open) = group.next_column()? {
                column.write(open.untyped(), first, last)?;
                open.close()?;
            }
        }
        group.close()?;
    }
    writer.into_inner()
}
