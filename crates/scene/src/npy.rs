//! NumPy's `.npy` files, the part of the format that the published data uses: little-endian `float64`, `float32`,
//! `int64` and fixed-width unicode arrays in C order.
//!
//! Written files have the very bytes that `numpy.save` gives (format 1.0). Reading accepts format 1.0, 2.0 and 3.0
//! and believes no header: what it claims must agree with the size of the file.

use std::path::{Path, PathBuf};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy pads the header so that the data begins at a multiple of this.
const ALIGNMENT: usize = 64;

/// The entries of an array, in C order.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// `<f8`.
    Float64(Vec<f64>),
    /// `<f4`.
    Float32(Vec<f32>),
    /// `<i8`.
    Int64(Vec<i64>),
    /// `<U...`: strings, the zero code points at their ends removed.
    Unicode(Vec<String>),
}

/// An array read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Length of every axis; empty for a single value.
    pub shape: Vec<usize>,
    /// As many entries as the shape says.
    pub data: Data,
}

/// A file that is not such an array.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// It cannot be read at all.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Its content is wrong.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        message: String,
    },
}

/// Reads the array in the file at `path`.
pub fn read(path: &Path) -> Result<Array, NpyError> {
    let bytes = std::fs::read(path).map_err(|source| NpyError::Read { path: path.to_owned(), source })?;
    parse(&bytes).map_err(|message| NpyError::Content { path: path.to_owned(), message })
}

/// Reads an array from the bytes of a file; the error is a sentence.
pub fn parse(bytes: &[u8]) -> Result<Array, String> {
    let [b'\x93', b'N', b'U', b'M', b'P', b'Y', major, _, rest @ ..] = bytes else {
        return Err("is not a NumPy array file (.npy)".to_owned());
    };
    let (length, rest) = match (major, rest) {
        (1, [a, b, rest @ ..]) => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        (2 | 3, [a, b, c, d, rest @ ..]) => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        (1..=3, _) => return Err("ends inside its header".to_owned()),
        _ => return Err(format!("has the NumPy format version {major}, expected 1, 2 or 3")),
    };
    let header = rest.get(..length).ok_or("ends inside its header")?;
    let header = Header::parse(header).ok_or_else(|| {
        let text: String = String::from_utf8_lossy(header).chars().take(200).collect();
        format!("has a header that is not NumPy's: {text:?}")
    })?;
    header.decode(&rest[length..])
}

/// The bytes of a `float64` array; `values` in C order, as many as `shape` says.
pub fn encode_f64(shape: &[usize], values: &[f64]) -> Vec<u8> {
    encode("<f8", shape, values.len(), values.iter().flat_map(|value| value.to_le_bytes()), 8)
}

/// The bytes of an `int64` array; `values` in C order, as many as `shape` says.
pub fn encode_i64(shape: &[usize], values: &[i64]) -> Vec<u8> {
    encode("<i8", shape, values.len(), values.iter().flat_map(|value| value.to_le_bytes()), 8)
}

/// The bytes of a unicode array, as wide as its longest string, like `numpy.array(strings)`; `values` in C order, as
/// many as `shape` says.
pub fn encode_unicode<S: AsRef<str>>(shape: &[usize], values: &[S]) -> Vec<u8> {
    let width = values.iter().map(|value| value.as_ref().chars().count()).max().unwrap_or(1).max(1);
    let entries = values.iter().flat_map(|value| {
        let points = value.as_ref().chars().map(u32::from).chain(std::iter::repeat(0)).take(width);
        points.flat_map(u32::to_le_bytes)
    });
    encode(&format!("<U{width}"), shape, values.len(), entries, 4 * width)
}

fn encode(
    descr: &str,
    shape: &[usize],
    count: usize,
    data: impl Iterator<Item = u8>,
    item: usize,
) -> Vec<u8> {
    debug_assert_eq!(shape.iter().product::<usize>(), count, "the shape must agree with the values");
    let mut bytes = header(descr, shape);
    bytes.reserve(count * item);
    bytes.extend(data);
    bytes
}

/// Everything before the data of a format 1.0 file, for writers that stream the data themselves. `descr` is NumPy's
/// name of the type, such as `<f8`.
pub fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let axes = match shape {
        [single] => format!("({single},)"),
        axes => format!("({})", axes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {axes}, }}");
    // NumPy leaves room for the first axis to grow to 21 digits, so that a file can be appended to in place.
    if let Some(first) = shape.first() {
        text.push_str(&" ".repeat(21_usize.saturating_sub(first.to_string().len())));
    }
    let before = MAGIC.len() + 4;
    let padded = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before;
    text.push_str(&" ".repeat(padded - text.len() - 1));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((padded as u16).to_le_bytes());
    bytes.extend(text.into_bytes());
    bytes
}

#[derive(Default)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Reads the Python dictionary, whatever its order and spacing.
    fn parse(text: &[u8]) -> Option<Self> {
        let mut rest =
            std::str::from_utf8(text).ok()?.trim().strip_prefix('{')?.strip_suffix('}')?.trim_start();
        let mut header = Self::default();
        let mut seen = [false; 3];
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            rest = after.trim_start().strip_prefix(':')?.trim_start();
            let field = ["descr", "fortran_order", "shape"].iter().position(|name| *name == key)?;
            seen[field] = true;
            match field {
                0 => {
                    let (descr, after) = quoted(rest)?;
                    header.descr = descr.to_owned();
                    rest = after;
                }
                1 => {
                    header.fortran_order = rest.starts_with("True");
                    rest = rest.strip_prefix("True").or_else(|| rest.strip_prefix("False"))?;
                }
                _ => {
                    let (axes, after) = rest.strip_prefix('(')?.split_once(')')?;
                    let mut axes: Vec<&str> = axes.split(',').map(str::trim).collect();
                    if axes.last() == Some(&"") {
                        axes.pop();
                    }
                    // Python 2 wrote long integers as `10L`.
                    let axis = |text: &str| text.strip_suffix('L').unwrap_or(text).parse().ok();
                    header.shape = axes.into_iter().map(axis).collect::<Option<_>>()?;
                    rest = after;
                }
            }
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        (seen == [true; 3]).then_some(header)
    }

    fn decode(self, bytes: &[u8]) -> Result<Array, String> {
        if self.fortran_order && self.shape.len() > 1 {
            return Err("is in Fortran order, expected C order".to_owned());
        }
        let item: usize = match self.descr.as_str() {
            "<f8" | "<i8" => 8,
            "<f4" => 4,
            descr => {
                descr
                    .strip_prefix("<U")
                    .and_then(|width| width.parse::<usize>().ok()?.checked_mul(4))
                    .ok_or_else(|| format!("holds entries of type {descr:?}, expected <f8, <f4, <i8 or <U"))?
            }
        };
        let count = self.shape.iter().try_fold(1_usize, |product, &axis| product.checked_mul(axis));
        let expected = count.and_then(|count| count.checked_mul(item));
        let Some(count) = count.filter(|&count| expected == Some(bytes.len()) && (item > 0 || count == 0))
        else {
            return Err(format!(
                "holds {} bytes of data, but its header says {:?} entries of {item} bytes",
                bytes.len(),
                self.shape
            ));
        };
        let data = match self.descr.as_str() {
            "<f8" => Data::Float64(bytes.as_chunks().0.iter().copied().map(f64::from_le_bytes).collect()),
            "<f4" => Data::Float32(bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect()),
            "<i8" => Data::Int64(bytes.as_chunks().0.iter().copied().map(i64::from_le_bytes).collect()),
            _ if count == 0 => Data::Unicode(Vec::new()),
            _ => Data::Unicode(bytes.chunks_exact(item).map(decode_string).collect::<Result<_, _>>()?),
        };
        Ok(Array { shape: self.shape, data })
    }
}

fn decode_string(bytes: &[u8]) -> Result<String, String> {
    let points = bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes);
    let text = points.map(|point| char::from_u32(point).ok_or(point)).collect::<Result<String, u32>>();
    let mut text = text.map_err(|point| format!("holds {point:#x}, which is no character"))?;
    text.truncate(text.trim_end_matches('\0').len());
    Ok(text)
}

/// A Python string literal without escapes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    text[1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `numpy.save` of `numpy.arange(10.0)`, byte for byte up to the data.
    #[test]
    fn headers_are_those_of_numpy() {
        let header = header("<f8", &[10]);
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (10,), }";
        assert_eq!(header.len(), 128);
        assert_eq!(&header[..10], b"\x93NUMPY\x01\x00v\x00");
        assert_eq!(&header[10..10 + text.len()], text.as_bytes());
        assert!(header[10 + text.len()..127].iter().all(|&byte| byte == b' '));
        assert_eq!(header[127], b'\n');
        let shown =
            |shape: &[usize]| String::from_utf8_lossy(&super::header("<i8", shape)[10..]).into_owned();
        assert!(shown(&[]).contains("'shape': (), }"));
        assert!(shown(&[52491, 2]).contains("'shape': (52491, 2), }"));
    }

    #[test]
    fn arrays_round_trip() {
        let floats = Array { shape: vec![2, 2], data: Data::Float64(vec![1.0, -2.5, f64::MAX, 0.0]) };
        assert_eq!(parse(&encode_f64(&[2, 2], &[1.0, -2.5, f64::MAX, 0.0])), Ok(floats));
        let integers = Array { shape: vec![3], data: Data::Int64(vec![i64::MIN, 0, 54]) };
        assert_eq!(parse(&encode_i64(&[3], &[i64::MIN, 0, 54])), Ok(integers));
        let folders = ["/02691156/10155655850468db78d106ce0a280f87/", "/a/b/", "ünï"];
        let bytes = encode_unicode(&[3], &folders);
        assert!(String::from_utf8_lossy(&bytes).contains("'<U43'"));
        assert_eq!(bytes.len(), 128 + 3 * 43 * 4);
        let strings = Array { shape: vec![3], data: Data::Unicode(folders.map(str::to_owned).to_vec()) };
        assert_eq!(parse(&bytes), Ok(strings));
        let empty = Array { shape: vec![0], data: Data::Unicode(vec![]) };
        assert_eq!(parse(&encode_unicode::<&str>(&[0], &[])), Ok(empty));
    }

    #[test]
    fn other_writers_are_understood() {
        let text = b"{\"shape\":(1L,),'fortran_order':True,'descr':'<f4'}\n";
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text);
        bytes.extend(1.5_f32.to_le_bytes());
        assert_eq!(parse(&bytes), Ok(Array { shape: vec![1], data: Data::Float32(vec![1.5]) }));
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let with = |descr: &str, shape: &[usize], data: usize| {
            let mut bytes = header(descr, shape);
            bytes.resize(bytes.len() + data, 0xff);
            parse(&bytes).expect_err("it lies")
        };
        assert!(with("<f8", &[3], 16).contains("16 bytes"));
        assert!(with("<f8", &[1], 16).contains("16 bytes"));
        assert!(with("<f8", &[usize::MAX, 2], 16).contains("header says"));
        assert!(with("<U0", &[usize::MAX], 0).contains("header says"));
        assert!(with("<U1", &[1], 4).contains("no character"));
        assert!(with(">f8", &[1], 8).contains("\">f8\""));
        assert!(with("|O", &[1], 8).contains("\"|O\""));
        assert!(parse(b"\x93NUMPY\x01\x00\xff\xff{}").expect_err("short").contains("ends inside"));
        assert!(parse(b"\x93NUMPY\x09\x00\x00\x00").expect_err("future").contains("version 9"));
        assert!(parse(b"PK\x03\x04").expect_err("a zip file").contains("not a NumPy"));
        assert!(read(Path::new("/no/such.npy")).expect_err("missing").to_string().contains("/no/such.npy"));
    }

    proptest! {
        #[test]
        fn mutated_files_never_panic(
            changes in prop::collection::vec((0_usize..200, any::<u8>()), 0..8), length in 0_usize..300
        ) {
            let mut bytes = encode_unicode(&[2, 2], &["a", "bc", "def", ""]);
            for (at, value) in changes {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            bytes.truncate(length);
            let _ = parse(&bytes);
        }
    }
}
