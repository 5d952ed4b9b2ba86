//! The NumPy arrays of a dataset: object folders as fixed-width unicode strings, labels as int64, latents as float64.
//! NumPy format 1.0, little-endian, C order, headers padded to 64 bytes, byte for byte what `numpy.save` writes.

use std::path::Path;

use crate::error::{Error, Result};

const MAGIC: &[u8] = b"\x93NUMPY";

/// One-dimensional strings: UTF-32, as wide as the longest.
pub fn strings(values: &[String]) -> Vec<u8> {
    let width = values.iter().map(|value| value.chars().count()).max().unwrap_or(0).max(1);
    let mut bytes = header(&format!("<U{width}"), &[values.len()]);
    bytes.reserve(values.len() * width * 4);
    for value in values {
        let end = bytes.len() + width * 4;
        bytes.extend(value.chars().flat_map(|character| u32::from(character).to_le_bytes()));
        bytes.resize(end, 0);
    }
    bytes
}

/// One-dimensional int64.
pub fn integers(values: &[i64]) -> Vec<u8> {
    let mut bytes = header("<i8", &[values.len()]);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Two-dimensional int64 with `columns` columns.
pub fn integer_rows(columns: usize, values: &[i64]) -> Vec<u8> {
    let mut bytes = header("<i8", &[values.len() / columns.max(1), columns]);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// One-dimensional float64.
pub fn vector(values: &[f64]) -> Vec<u8> {
    let mut bytes = header("<f8", &[values.len()]);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Two-dimensional float64 with `columns` columns.
pub fn rows(columns: usize, values: &[f64]) -> Vec<u8> {
    let mut bytes = header("<f8", &[values.len() / columns.max(1), columns]);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn header(kind: &str, shape: &[usize]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}{comma}), }}", axes.join(", "));
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut bytes = [MAGIC, &[1, 0]].concat();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

/// An array as it lies in a file: element kind (`<f8`), shape, data.
struct Array<'a> {
    kind: String,
    shape: Vec<usize>,
    data: &'a [u8],
}

fn parse(bytes: &[u8]) -> std::result::Result<Array<'_>, String> {
    let body = bytes.strip_prefix(MAGIC).ok_or("not a NumPy file")?;
    let (length, body) = match *body {
        [1, _, a, b, ref rest @ ..] => (u32::from(u16::from_le_bytes([a, b])), rest),
        [2 | 3, _, a, b, c, d, ref rest @ ..] => (u32::from_le_bytes([a, b, c, d]), rest),
        _ => return Err("not a NumPy file of format 1, 2 or 3".to_owned()),
    };
    let cut = || "the NumPy file is cut off".to_owned();
    let (text, data) = body.split_at_checked(length as usize).ok_or_else(cut)?;
    let text = std::str::from_utf8(text).map_err(|_| "unreadable NumPy header")?;
    let after = |key: &str| text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    let kind = after("descr").and_then(|rest| rest.strip_prefix('\'')?.split_once('\''));
    let kind = kind.ok_or("the NumPy file holds no plain array")?.0.to_owned();
    if !after("fortran_order").is_some_and(|rest| rest.starts_with("False")) {
        return Err("the NumPy array is in Fortran order, C order was expected".to_owned());
    }
    let shape = after("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
    let shape = shape.ok_or("unreadable NumPy shape")?.0;
    let shape = shape.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let shape: Vec<usize> =
        shape.map(str::parse).collect::<std::result::Result<_, _>>().map_err(|_| "unreadable NumPy shape")?;
    Ok(Array { kind, shape, data })
}

impl Array<'_> {
    /// The elements' bytes, `size` each; refuses data that does not match the shape.
    fn elements(&self, size: usize) -> std::result::Result<std::slice::ChunksExact<'_, u8>, String> {
        let expected = self.shape.iter().try_fold(size, |total, &axis| total.checked_mul(axis));
        if expected != Some(self.data.len()) || size == 0 {
            return Err(format!(
                "the NumPy array of shape {:?} has {} bytes of data",
                self.shape,
                self.data.len()
            ));
        }
        Ok(self.data.chunks_exact(size))
    }

    fn words(&self, kind: &str, what: &str) -> std::result::Result<impl Iterator<Item = [u8; 8]>, String> {
        if self.kind != kind {
            return Err(format!("expected {what} ({kind}), found {}", self.kind));
        }
        Ok(self.elements(8)?.map(|word| word.try_into().unwrap_or_default()))
    }
}

/// Reads one-dimensional strings.
pub fn read_strings(path: &Path) -> Result<Vec<String>> {
    let bytes = std::fs::read(path).map_err(Error::read(path))?;
    parse_strings(&bytes).map_err(|message| Error::content(path, message))
}

fn parse_strings(bytes: &[u8]) -> std::result::Result<Vec<String>, String> {
    let array = parse(bytes)?;
    let width: usize = match array.kind.strip_prefix("<U").map(str::parse) {
        Some(Ok(width)) => width,
        _ => return Err(format!("expected unicode strings (<U43 or alike), found {}", array.kind)),
    };
    let size = width.checked_mul(4).ok_or("unreadable NumPy string width")?;
    let string = |element: &[u8]| {
        let codes =
            element.chunks_exact(4).map(|code| u32::from_le_bytes(code.try_into().unwrap_or_default()));
        codes.take_while(|&code| code != 0).map(char::from_u32).collect::<Option<String>>()
    };
    let strings = array.elements(size)?.map(string).collect::<Option<_>>();
    strings.ok_or_else(|| "a string holds something else than unicode".to_owned())
}

/// Reads int64 of any shape: (shape, values).
pub fn read_integers(path: &Path) -> Result<(Vec<usize>, Vec<i64>)> {
    let bytes = std::fs::read(path).map_err(Error::read(path))?;
    let parsed = parse(&bytes).and_then(|array| {
        let values = array.words("<i8", "64-bit integers")?.map(i64::from_le_bytes).collect();
        Ok((array.shape.clone(), values))
    });
    parsed.map_err(|message| Error::content(path, message))
}

/// Reads float64 of any shape: (shape, values).
pub fn read_floats(path: &Path) -> Result<(Vec<usize>, Vec<f64>)> {
    let bytes = std::fs::read(path).map_err(Error::read(path))?;
    parse_floats(&bytes).map_err(|message| Error::content(path, message))
}

/// Parses float64 of any shape: (shape, values).
pub fn parse_floats(bytes: &[u8]) -> std::result::Result<(Vec<usize>, Vec<f64>), String> {
    let array = parse(bytes)?;
    let values = array.words("<f8", "64-bit floats")?.map(f64::from_le_bytes).collect();
    Ok((array.shape.clone(), values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_are_those_of_numpy() {
        let bytes = strings(&["/02691156/10155655850468db78d106ce0a280f87/".to_owned()]);
        assert_eq!(bytes.len(), 128 + 43 * 4);
        assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert!(bytes[10..128].starts_with(b"{'descr': '<U43', 'fortran_order': False, 'shape': (1,), }  "));
        assert_eq!(bytes[127], b'\n');
        assert_eq!(vector(&[0.0; 10]).len(), 208);
        assert!(
            rows(10, &[0.0; 20])[10..]
                .starts_with(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 10), }")
        );
    }

    #[test]
    fn wrong_arrays_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, vector(&[1.0])).unwrap();
        let message = read_integers(&path).unwrap_err().to_string();
        assert!(message.ends_with("a.npy: expected 64-bit integers (<i8), found <f8"), "{message}");
        std::fs::write(&path, &vector(&[1.0, 2.0])[..130]).unwrap();
        assert!(read_floats(&path).unwrap_err().to_string().contains("2 bytes of data"));
    }

    proptest! {
        #[test]
        fn arrays_come_back(
            texts in proptest::collection::vec("[/a-zé0-9]{0,60}", 0..20),
            integers_in in proptest::collection::vec(any::<i64>(), 0..40),
            floats_in in proptest::collection::vec(any::<f64>(), 0..40),
        ) {
            prop_assert_eq!(parse_strings(&strings(&texts)).unwrap(), texts);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npy");
            std::fs::write(&path, integers(&integers_in)).unwrap();
            prop_assert_eq!(read_integers(&path).unwrap(), (vec![integers_in.len()], integers_in));
            let (shape, back) = parse_floats(&vector(&floats_in)).unwrap();
            prop_assert_eq!(shape, vec![floats_in.len()]);
            prop_assert!(back.iter().zip(&floats_in).all(|(a, b)| a.to_bits() == b.to_bits()));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..130, with: u8) {
            let _ = parse_floats(&bytes);
            let mut array = rows(3, &[1.0; 6]);
            array[at] = with;
            let _ = parse_floats(&array);
            let _ = parse_strings(&[MAGIC, &[1, 0, 60, 0], &bytes].concat());
        }
    }
}
