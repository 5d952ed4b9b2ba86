//! Features of images in files that other programs read: NumPy, safetensors, Parquet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use safetensors::tensor::{Dtype, TensorView};

use crate::Encoded;
use crate::error::{Error, Result};

/// Forms of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One float32 array; the paths are in a text file beside it.
    Npy,
    /// All features by name; the paths are in the metadata.
    Safetensors,
    /// A row an image: `path`, and every kind of features as a list.
    Parquet,
}

impl Form {
    /// The form that the ending of `path` names.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "npy" => Some(Self::Npy),
            "safetensors" => Some(Self::Safetensors),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// Kinds of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The backbone's pooled output.
    Representation,
    /// Activations of capsules, or the invariant embedding.
    Activations,
    /// Raw poses of capsules, or the (equivariant) embedding.
    Poses,
}

/// The features of `encoded` by name, without those that the network does not have.
fn tables(encoded: &Encoded) -> Vec<(&'static str, Kind, &[f32])> {
    let all: [(_, _, &[f32]); 3] = [
        ("representation", Kind::Representation, &encoded.representation),
        ("activations", Kind::Activations, &encoded.invariant),
        ("poses", Kind::Poses, &encoded.equivariant),
    ];
    all.into_iter().filter(|(_, _, values)| !values.is_empty()).collect()
}

/// Writes the features of the images at `paths`; `kind` says which ones a NumPy file holds.
pub fn write(file: &Path, form: Form, paths: &[PathBuf], encoded: &Encoded, kind: Kind) -> Result<()> {
    if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        dataset::durable::create_folder(parent)?;
    }
    let tables = tables(encoded);
    let names = || paths.iter().map(|path| path.display().to_string());
    let unwritable = |message: String| Error::File { path: file.to_path_buf(), message };
    let bytes = match form {
        Form::Npy => {
            let found = tables.iter().find(|(_, its_kind, _)| *its_kind == kind);
            let Some((_, _, values)) = found else {
                let text = "this network has no such features; try --what representation";
                return Err(Error::Request(text.to_owned()));
            };
            let mut list = file.as_os_str().to_owned();
            list.push(".txt");
            let lines: Vec<&[u8]> =
                paths.iter().flat_map(|path| [path.as_os_str().as_encoded_bytes(), b"\n"]).collect();
            dataset::durable::write(Path::new(&list), &lines.concat()).map_err(dataset::Error::from)?;
            npy(paths.len(), values)
        }
        Form::Safetensors => {
            safetensors(names(), paths.len(), &tables).map_err(|error| unwritable(error.to_string()))?
        }
        Form::Parquet => {
            parquet(names(), paths.len(), &tables).map_err(|error| unwritable(error.to_string()))?
        }
    };
    Ok(dataset::durable::write(file, &bytes).map_err(dataset::Error::from)?)
}

/// A float32 array as NumPy writes it.
fn npy(rows: usize, values: &[f32]) -> Vec<u8> {
    let mut bytes = scene::npy::header("<f4", &[rows, values.len() / rows.max(1)]);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

type Tables<'a> = [(&'static str, Kind, &'a [f32])];

fn safetensors(
    names: impl Iterator<Item = String>,
    rows: usize,
    tables: &Tables<'_>,
) -> std::result::Result<Vec<u8>, safetensors::SafeTensorError> {
    let bytes: Vec<Vec<u8>> =
        tables.iter().map(|(_, _, values)| values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let views = tables.iter().zip(&bytes).map(|((name, _, values), data)| {
        Ok((*name, TensorView::new(Dtype::F32, vec![rows, values.len() / rows.max(1)], data)?))
    });
    let views = views.collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()?;
    let names = serde_json::Value::from(names.collect::<Vec<_>>()).to_string();
    safetensors::serialize(views, Some([("images".to_owned(), names)].into_iter().collect()))
}

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// Plain and uncompressed, which every reader takes.
fn parquet(
    names: impl Iterator<Item = String>,
    rows: usize,
    tables: &Tables<'_>,
) -> std::result::Result<Vec<u8>, parquet::errors::ParquetError> {
    let list = |(name, ..): &(&str, Kind, &[f32])| {
        format!("REQUIRED group {name} (LIST) {{ REPEATED group list {{ REQUIRED FLOAT element; }} }}")
    };
    let lists: String = tables.iter().map(list).collect();
    let schema =
        parse_message_type(&format!("message schema {{ REQUIRED BYTE_ARRAY path (STRING); {lists} }}"))?;
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_created_by(concat!("equicaps version ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let names: Vec<ByteArray> = names.map(|name| ByteArray::from(name.into_bytes())).collect();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    for first in (0..rows).step_by(GROUP_ROWS) {
        let last = rows.min(first + GROUP_ROWS);
        let mut group = writer.next_row_group()?;
        if let Some(mut column) = group.next_column()? {
            column.typed::<ByteArrayType>().write_batch(&names[first..last], None, None)?;
            column.close()?;
        }
        for (_, _, values) in tables {
            let width = values.len() / rows.max(1);
            let values = &values[first * width..last * width];
            // The first number of a row begins a list (0), the others go on (1); none is missing (1).
            let repetition: Vec<i16> = (0..values.len()).map(|at| i16::from(at % width != 0)).collect();
            let definition = vec![1; values.len()];
            if let Some(mut column) = group.next_column()? {
                column.typed::<FloatType>().write_batch(values, Some(&definition), Some(&repetition))?;
                column.close()?;
            }
        }
        group.close()?;
    }
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{ListAccessor, RowAccessor};

    #[test]
    fn parquet_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let rows = GROUP_ROWS + 100;
        let encoded = Encoded {
            representation: (0..rows * 7).map(|n| n as f32 * 0.5).collect(),
            invariant: Vec::new(),
            equivariant: (0..rows * 2).map(|n| -(n as f32)).collect(),
        };
        let paths: Vec<PathBuf> = (0..rows).map(|row| PathBuf::from(format!("views/{row}.jpg"))).collect();
        let file = folder.path().join("new/all.parquet");
        write(&file, Form::of(&file).unwrap(), &paths, &encoded, Kind::Representation).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&file).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema().get_fields().to_vec();
        let names: Vec<&str> = schema.iter().map(|field| field.name()).collect();
        assert_eq!(names, ["path", "representation", "poses"]);
        assert_eq!(reader.num_row_groups(), 2);
        let mut row = 0;
        for found in reader.get_row_iter(None).unwrap() {
            let found = found.unwrap();
            assert_eq!(found.get_string(0).unwrap(), &format!("views/{row}.jpg"));
            for (column, width, expected) in [(1, 7, &encoded.representation), (2, 2, &encoded.equivariant)] {
                let list = found.get_list(column).unwrap();
                let numbers: Vec<f32> = (0..list.len()).map(|at| list.get_float(at).unwrap()).collect();
                assert_eq!(numbers, expected[row * width..][..width]);
            }
            row += 1;
        }
        assert_eq!(row, rows);
    }
}
