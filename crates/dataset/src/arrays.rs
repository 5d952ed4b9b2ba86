//! The NumPy arrays of a dataset (object folders as strings, labels and indices as int64, latents as float64), with
//! errors that name the file.

use std::path::Path;

use scene::npy::{self, Data, NpyError};

use crate::error::{Error, Result};

/// One-dimensional strings.
pub fn strings(values: &[String]) -> Vec<u8> {
    npy::encode_unicode(&[values.len()], values)
}

/// One-dimensional int64.
pub fn integers(values: &[i64]) -> Vec<u8> {
    npy::encode_i64(&[values.len()], values)
}

/// Two-dimensional int64 with `columns` columns.
pub(crate) fn integer_rows(columns: usize, values: &[i64]) -> Vec<u8> {
    npy::encode_i64(&[values.len() / columns.max(1), columns], values)
}

/// One-dimensional float64.
pub fn vector(values: &[f64]) -> Vec<u8> {
    npy::encode_f64(&[values.len()], values)
}

/// Two-dimensional float64 with `columns` columns.
pub fn rows(columns: usize, values: &[f64]) -> Vec<u8> {
    npy::encode_f64(&[values.len() / columns.max(1), columns], values)
}

fn read(path: &Path) -> Result<npy::Array> {
    npy::read(path).map_err(|error| match error {
        NpyError::Read { path, source } => Error::read(&path)(source),
        NpyError::Content { path, message } => Error::content(&path, message),
    })
}

fn kind(data: &Data) -> &'static str {
    match data {
        Data::Float64(_) => "64-bit floats",
        Data::Float32(_) => "32-bit floats",
        Data::Int64(_) => "64-bit integers",
        Data::Unicode(_) => "strings",
    }
}

/// Reads one-dimensional strings.
pub fn read_strings(path: &Path) -> Result<Vec<String>> {
    let array = read(path)?;
    match (array.data, &array.shape[..]) {
        (Data::Unicode(values), [_]) => Ok(values),
        (data, shape) => {
            Err(Error::content(path, format!("expected strings, found {} {shape:?}", kind(&data))))
        }
    }
}

/// Reads int64 of any shape: (shape, values).
pub fn read_integers(path: &Path) -> Result<(Vec<usize>, Vec<i64>)> {
    let array = read(path)?;
    match array.data {
        Data::Int64(values) => Ok((array.shape, values)),
        data => Err(Error::content(path, format!("expected 64-bit integers, found {}", kind(&data)))),
    }
}

/// Reads float64 of any shape: (shape, values).
pub fn read_floats(path: &Path) -> Result<(Vec<usize>, Vec<f64>)> {
    floats(read(path)?).map_err(|message| Error::content(path, message))
}

/// Parses float64 of any shape: (shape, values).
pub fn parse_floats(bytes: &[u8]) -> std::result::Result<(Vec<usize>, Vec<f64>), String> {
    floats(npy::parse(bytes)?)
}

fn floats(array: npy::Array) -> std::result::Result<(Vec<usize>, Vec<f64>), String> {
    match array.data {
        Data::Float64(values) => Ok((array.shape, values)),
        data => Err(format!("expected 64-bit floats, found {}", kind(&data))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arrays_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, vector(&[1.0])).unwrap();
        let message = read_integers(&path).unwrap_err().to_string();
        assert!(message.ends_with("a.npy: expected 64-bit integers, found 64-bit floats"), "{message}");
        std::fs::write(&path, integers(&[1])).unwrap();
        assert!(
            read_strings(&path)
                .unwrap_err()
                .to_string()
                .contains("expected strings, found 64-bit integers [1]")
        );
        assert!(
            read_floats(&folder.path().join("b.npy")).unwrap_err().to_string().starts_with("cannot read ")
        );
    }

    #[test]
    fn strings_have_the_published_form() {
        let bytes = strings(&["/02691156/10155655850468db78d106ce0a280f87/".to_owned()]);
        assert_eq!(bytes.len(), 128 + 43 * 4);
        assert!(bytes[10..].starts_with(b"{'descr': '<U43', 'fortran_order': False, 'shape': (1,), }"));
        assert!(strings(&[])[10..].starts_with(b"{'descr': '<U1', 'fortran_order': False, 'shape': (0,), }"));
    }
}
