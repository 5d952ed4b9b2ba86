//! Features of images in files that other programs read: NumPy, safetensors, Parquet.

mod table;

use std::path::{Path, PathBuf};

use dataset::origin::Origin;
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
    /// A row an image: `path`, what its dataset knows of it, and every kind of features as a list; poses of capsules as
    /// lists of matrices.
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

/// Images and their features.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Where the images are.
    pub paths: &'a [PathBuf],
    /// What their datasets know of them.
    pub origins: &'a [Option<Origin>],
    /// Their features.
    pub encoded: &'a Encoded,
    /// Capsules and the side of a pose matrix, for networks that have them.
    pub capsules: Option<(usize, usize)>,
}

/// Writes the features of images; `kind` says which ones a NumPy file holds.
pub fn write(file: &Path, form: Form, rows: Rows<'_>, kind: Kind) -> Result<()> {
    let Rows { paths, encoded, .. } = rows;
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
            let has_break = |path: &&PathBuf| path.as_os_str().as_encoded_bytes().contains(&b'\n');
            if let Some(path) = paths.iter().find(has_break) {
                let shown = dataset::printable_path(path);
                return Err(Error::Request(format!(
                    "the name {shown} has a line break, and FILE.npy.txt has a name a line; write .safetensors or .parquet"
                )));
            }
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
            let mut columns = vec![table::Column::Text("path", names().collect())];
            columns.extend(table::known(rows.origins));
            for (name, kind, values) in &tables {
                let width = values.len() / paths.len().max(1);
                let sides = match rows.capsules {
                    Some((capsules, side)) if *kind == Kind::Poses => vec![capsules, side, side],
                    _ => vec![width],
                };
                columns.push(table::Column::Floats(name, values, sides));
            }
            table::bytes(paths.len(), &columns).map_err(|error| unwritable(error.to_string()))?
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

#[cfg(test)]
mod tests {
    use super::table::GROUP_ROWS;
    use super::*;
    use dataset::latent_table::ALL_NAMES;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{ListAccessor, RowAccessor};

    #[test]
    fn parquet_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let rows = GROUP_ROWS + 100;
        let encoded = Encoded {
            representation: (0..rows * 7).map(|n| n as f32 * 0.5).collect(),
            invariant: Vec::new(),
            equivariant: (0..rows * 8).map(|n| -(n as f32)).collect(),
        };
        let paths: Vec<PathBuf> = (0..rows).map(|row| PathBuf::from(format!("views/{row}.jpg"))).collect();
        let file = folder.path().join("new/all.parquet");
        // Every third image is a view of a dataset.
        let latents = |view: usize| {
            let mut latents = [None; ALL_NAMES.len()];
            [view as f64, 0.5, -0.5, 0.1, 0.2, 0.3, 0.4]
                .into_iter()
                .zip(&mut latents)
                .for_each(|(value, latent)| *latent = Some(value));
            latents
        };
        let origin = |view: usize| Origin {
            class: "chair".to_owned(),
            object: "03001627/a".to_owned(),
            view,
            split: "val",
            latents: latents(view),
            pose: None,
        };
        let origins: Vec<Option<Origin>> = (0..rows).map(|row| (row % 3 == 1).then(|| origin(row))).collect();
        let all = Rows { paths: &paths, origins: &origins, encoded: &encoded, capsules: Some((2, 2)) };
        write(&file, Form::of(&file).unwrap(), all, Kind::Representation).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&file).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema().get_fields().to_vec();
        let names: Vec<&str> = schema.iter().map(|field| field.name()).collect();
        let known = ["class", "object", "view", "split"].into_iter().chain(ALL_NAMES.into_iter().take(7));
        let expected = std::iter::once("path").chain(known).chain(["representation", "poses"]);
        assert_eq!(names, expected.collect::<Vec<_>>());
        assert_eq!(reader.num_row_groups(), 2);
        let mut row = 0;
        for found in reader.get_row_iter(None).unwrap() {
            let found = found.unwrap();
            assert_eq!(found.get_string(0).unwrap(), &format!("views/{row}.jpg"));
            if row % 3 == 1 {
                assert_eq!(found.get_string(1).unwrap(), "chair");
                assert_eq!(found.get_int(3).unwrap(), row as i32);
                assert_eq!(found.get_double(5).unwrap(), row as f64);
            } else {
                assert!(found.get_string(1).is_err() && found.get_double(5).is_err());
            }
            let list = found.get_list(12).unwrap();
            let numbers: Vec<f32> = (0..list.len()).map(|at| list.get_float(at).unwrap()).collect();
            assert_eq!(numbers, encoded.representation[row * 7..][..7]);
            // Two capsules, each a 2x2 matrix.
            let poses = found.get_list(13).unwrap();
            assert_eq!(poses.len(), 2);
            let mut numbers = Vec::new();
            for capsule in 0..2 {
                let matrix = poses.get_list(capsule).unwrap();
                assert_eq!(matrix.len(), 2);
                for line in 0..2 {
                    let line = matrix.get_list(line).unwrap();
                    numbers.extend((0..line.len()).map(|at| line.get_float(at).unwrap()));
                }
            }
            assert_eq!(numbers, encoded.equivariant[row * 8..][..8]);
            row += 1;
        }
        assert_eq!(row, rows);
    }
}
