//! The header of a PLY file: its encoding and what its elements are made of.

use super::super::MeshError;
use super::super::files::Files;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// A longer header is refused.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// How the values after the header are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Ascii,
    LittleEndian,
    BigEndian,
}

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
}

impl Kind {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "char" | "int8" => Self::I8,
            "uchar" | "uint8" => Self::U8,
            "short" | "int16" => Self::I16,
            "ushort" | "uint16" => Self::U16,
            "int" | "int32" => Self::I32,
            "uint" | "uint32" => Self::U32,
            "float" | "float32" => Self::F32,
            "double" | "float64" => Self::F64,
            _ => return None,
        })
    }
}

pub struct Property {
    pub name: String,
    /// Of the value, or of the entries of a list.
    pub kind: Kind,
    /// The type of the length, where this is a list.
    pub list: Option<Kind>,
}

pub struct Element {
    pub name: String,
    /// As claimed: nothing is allocated from it.
    pub count: u64,
    pub properties: Vec<Property>,
}

pub struct Header {
    pub encoding: Encoding,
    pub elements: Vec<Element>,
    /// File name in `comment TextureFile`.
    pub texture: Option<Vec<u8>>,
    /// Number of lines.
    pub lines: u64,
}

impl Header {
    /// Reads the header and leaves `file` at the first byte after it.
    pub fn read(file: &mut std::fs::File, files: &Files) -> Result<Self, MeshError> {
        let mut header = Self { encoding: Encoding::Ascii, elements: Vec::new(), texture: None, lines: 0 };
        let mut reader = BufReader::new(&mut *file);
        let (mut format_seen, mut consumed) = (false, 0);
        loop {
            let line = read_line(&mut reader, &mut consumed).map_err(|source| files.read_error(source))?;
            let Some(line) = line.filter(|_| consumed < MAX_HEADER_BYTES) else {
                return Err(files.content("has no end_header in its PLY header"));
            };
            header.lines += 1;
            let text = String::from_utf8_lossy(&line).into_owned();
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            let wrong = |message: String| files.syntax(header.lines, message);
            match words[..] {
                ["ply"] if header.lines == 1 => {}
                _ if header.lines == 1 => return Err(wrong("expected \"ply\"".to_owned())),
                ["format", name, _version] => {
                    header.encoding = match name {
                        "ascii" => Encoding::Ascii,
                        "binary_little_endian" => Encoding::LittleEndian,
                        "binary_big_endian" => Encoding::BigEndian,
                        other => return Err(wrong(format!("unknown PLY format {other:?}"))),
                    };
                    format_seen = true;
                }
                ["comment", "TextureFile", ..] => {
                    let name = text.split_once("TextureFile").map_or("", |(_, name)| name.trim());
                    header.texture = Some(name.as_bytes().to_vec());
                }
                [] | ["comment" | "obj_info", ..] => {}
                ["element", name, count] => {
                    let count = count.parse().map_err(|_| wrong(format!("{count:?} is not a count")))?;
                    header.elements.push(Element { name: name.to_owned(), count, properties: Vec::new() });
                }
                ["property", ref definition @ ..] => {
                    let property = parse_property(definition)
                        .ok_or_else(|| wrong(format!("{:?} is not a property", definition.join(" "))))?;
                    let Some(element) = header.elements.last_mut() else {
                        return Err(wrong("a property before the first element".to_owned()));
                    };
                    element.properties.push(property);
                }
                ["end_header"] => break,
                _ => return Err(wrong(format!("{text:?} is no PLY header line"))),
            }
        }
        if !format_seen {
            return Err(files.content("does not say its PLY format"));
        }
        drop(reader);
        file.seek(SeekFrom::Start(consumed)).map_err(|source| files.read_error(source))?;
        Ok(header)
    }
}

fn parse_property(definition: &[&str]) -> Option<Property> {
    let (list, kind, name) = match *definition {
        ["list", length, kind, name] => (Some(Kind::parse(length)?), kind, name),
        [kind, name] => (None, kind, name),
        _ => return None,
    };
    Some(Property { name: name.to_owned(), kind: Kind::parse(kind)?, list })
}

/// The next header line without its end. The byte after `end_header` matters, so CR LF is told from CR by looking at
/// the byte that follows.
fn read_line(
    reader: &mut BufReader<&mut std::fs::File>,
    consumed: &mut u64,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        if reader.read(&mut byte)? == 0 {
            return Ok(None);
        }
        *consumed += 1;
        match byte[0] {
            b'\n' => return Ok(Some(line)),
            b'\r' => {
                if std::io::BufRead::fill_buf(reader)?.first() == Some(&b'\n') {
                    std::io::BufRead::consume(reader, 1);
                    *consumed += 1;
                }
                return Ok(Some(line));
            }
            other => line.push(other),
        }
        if *consumed >= MAX_HEADER_BYTES {
            return Ok(None);
        }
    }
}
