//! The numbers of a PLY file, one after the other, in whichever encoding.

use super::super::MeshError;
use super::super::files::Files;
use super::super::lines::{LineError, Lines, shown, word};
use super::super::obj::line_error;
use super::header::{Element, Encoding, Header, Kind};
use std::io::{BufReader, Read};

/// A stream of numbers.
pub enum Values<R> {
    Ascii {
        lines: Lines<R>,
        /// The current line and how much of it has been read.
        text: Vec<u8>,
        read: usize,
        line: u64,
        header_lines: u64,
    },
    Binary {
        reader: BufReader<R>,
        big_endian: bool,
    },
}

/// Why the next number could not be read.
pub enum ValueError {
    Io(std::io::Error),
    Line(LineError, u64),
    NotANumber(String, u64),
}

impl ValueError {
    pub fn at(self, files: &Files) -> MeshError {
        match self {
            Self::Io(source) => files.read_error(source),
            Self::Line(LineError::TooLong(line), header) => {
                line_error(files, LineError::TooLong(line + header))
            }
            Self::Line(error, _) => line_error(files, error),
            Self::NotANumber(message, line) => files.syntax(line, message),
        }
    }
}

impl<R: Read> Values<R> {
    pub fn new(header: &Header, reader: R) -> std::io::Result<Self> {
        Ok(match header.encoding {
            Encoding::Ascii => Self::Ascii {
                lines: Lines::new(reader),
                text: Vec::new(),
                read: 0,
                line: header.lines,
                header_lines: header.lines,
            },
            encoding => Self::Binary {
                reader: BufReader::with_capacity(1 << 18, reader),
                big_endian: encoding == Encoding::BigEndian,
            },
        })
    }

    /// The next number, `None` at the end of the file. NaN and infinities are handed on.
    pub fn next(&mut self, kind: Kind) -> Result<Option<f64>, ValueError> {
        match self {
            Self::Ascii { lines, text, read, line, header_lines } => loop {
                let mut rest = &text[*read..];
                if let Some(token) = word(&mut rest) {
                    *read = text.len() - rest.len();
                    let value = std::str::from_utf8(token).ok().and_then(|token| token.parse().ok());
                    return value.map(Some).ok_or_else(|| {
                        ValueError::NotANumber(format!("{:?} is not a number", shown(token)), *line)
                    });
                }
                match lines.next() {
                    Ok(Some((number, next))) => {
                        text.clear();
                        text.extend_from_slice(next);
                        *read = 0;
                        *line = *header_lines + number;
                    }
                    Ok(None) => return Ok(None),
                    Err(error) => return Err(ValueError::Line(error, *header_lines)),
                }
            },
            Self::Binary { reader, big_endian } => read_binary(reader, kind, *big_endian),
        }
    }

    /// An error at the current place: a line of a text file, an element of a binary one.
    pub fn place(&self, files: &Files, element: &Element, index: u64, message: &str) -> MeshError {
        match self {
            Self::Ascii { line, .. } => files.syntax(*line, message),
            Self::Binary { .. } => files.content(format!("{} {index}: {message}", element.name)),
        }
    }
}

fn read_binary(reader: &mut impl Read, kind: Kind, big_endian: bool) -> Result<Option<f64>, ValueError> {
    macro_rules! number {
        ($type:ty) => {{
            let mut bytes = [0; size_of::<$type>()];
            match reader.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(ValueError::Io(error)),
            }
            let value =
                if big_endian { <$type>::from_be_bytes(bytes) } else { <$type>::from_le_bytes(bytes) };
            f64::from(value)
        }};
    }
    Ok(Some(match kind {
        Kind::I8 => number!(i8),
        Kind::U8 => number!(u8),
        Kind::I16 => number!(i16),
        Kind::U16 => number!(u16),
        Kind::I32 => number!(i32),
        Kind::U32 => number!(u32),
        Kind::F32 => number!(f32),
        Kind::F64 => number!(f64),
    }))
}
