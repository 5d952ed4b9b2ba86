//! OFF, the Object File Format: text with optional normals, colours and texture coordinates (`NOFF`, `COFF`,
//! `STOFF` and their combinations). Colours at vertices or faces become a texture.

use super::colours::Colours;
use super::files::Files;
use super::lines::{Lines, number, shown, word};
use super::obj::line_error;
use super::polygons::{Corner, NONE, Polygons};
use super::{MeshError, Up};
use crate::{Material, Mesh};
use std::fs::File;

/// What every vertex carries beside its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Layout {
    normals: bool,
    colours: bool,
    uvs: bool,
}

impl Layout {
    /// Splits the keyword off a first line; counts may follow it without a blank, as in ModelNet's files.
    fn parse(text: &[u8]) -> Option<(Self, &[u8])> {
        let mut rest = text;
        let mut layout = Self::default();
        let take = |prefix: &[u8], rest: &mut &[u8]| match rest.strip_prefix(prefix) {
            Some(after) => {
                *rest = after;
                true
            }
            None => false,
        };
        layout.uvs = take(b"ST", &mut rest);
        layout.colours = take(b"C", &mut rest);
        layout.normals = take(b"N", &mut rest);
        take(b"OFF", &mut rest).then_some((layout, rest))
    }
}

/// True where a file begins like OFF.
pub(super) fn is_off(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    match Layout::parse(start) {
        Some((_, rest)) => {
            rest.first().is_none_or(|byte| byte.is_ascii_whitespace() || byte.is_ascii_digit())
        }
        None => false,
    }
}

struct Reader<'a> {
    files: &'a mut Files,
    lines: Lines<File>,
    /// The current line without its comment.
    text: Vec<u8>,
    line: u64,
}

impl Reader<'_> {
    /// Moves to the next line that says something; false at the end of the file.
    fn advance(&mut self) -> Result<bool, MeshError> {
        loop {
            let next = self.lines.next().map_err(|error| line_error(self.files, error))?;
            let Some((line, text)) = next else { return Ok(false) };
            let text = text.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii();
            if !text.is_empty() {
                self.line = line;
                self.text.clear();
                self.text.extend_from_slice(text);
                return Ok(true);
            }
        }
    }

    fn wrong(&self, message: impl Into<String>) -> MeshError {
        self.files.syntax(self.line, message)
    }
}

pub(super) fn load(files: &mut Files) -> Result<Mesh, MeshError> {
    let lines = Lines::new(files.open_mesh()?);
    let mut reader = Reader { files, lines, text: Vec::new(), line: 0 };
    if !reader.advance()? {
        return Err(reader.files.content("is empty"));
    }
    // The keyword may be missing; the counts may follow it in its line.
    let (layout, mut counts) = match Layout::parse(&reader.text) {
        Some((layout, rest)) => (layout, rest.trim_ascii().to_vec()),
        None => (Layout::default(), reader.text.clone()),
    };
    if counts.starts_with(b"BINARY") {
        return Err(reader.wrong("binary OFF is not supported, only text"));
    }
    if counts.is_empty() {
        if !reader.advance()? {
            return Err(reader.files.content("ends after its first line"));
        }
        counts.clone_from(&reader.text);
    }
    let mut rest = &counts[..];
    let mut count = |name: &str| {
        let text = word(&mut rest).ok_or_else(|| reader.wrong(format!("expected the number of {name}")))?;
        parse_index(text).ok_or_else(|| reader.wrong(format!("{:?} is not a number of {name}", shown(text))))
    };
    let (vertices, faces) = (count("vertices")?, count("faces")?);

    let mut polygons = Polygons::new(reader.files.options.max_triangles);
    for index in 0..vertices {
        if !reader.advance()? {
            return Err(reader.files.content(format!("ends after {index} of {vertices} vertices")));
        }
        read_vertex(&reader.text, layout, &mut polygons).map_err(|message| reader.wrong(message))?;
        check_size(&polygons, &reader)?;
    }
    let mut has_face_colours = false;
    for index in 0..faces {
        if !reader.advance()? {
            return Err(reader.files.content(format!("ends after {index} of {faces} faces")));
        }
        let colour =
            read_face(&reader.text, layout, &mut polygons).map_err(|message| reader.wrong(message))?;
        has_face_colours |= colour.is_some();
        polygons.face_colours.push(colour.unwrap_or([231; 3]));
        check_size(&polygons, &reader)?;
    }
    let source = match (layout.colours, has_face_colours) {
        (_, true) => Colours::Faces,
        (true, false) => Colours::Vertices,
        (false, false) => Colours::Material,
    };
    polygons.colouring.push(source);
    let up = reader.files.up(Up::Z);
    polygons.finish(reader.files, up, vec![Material::default()])
}

fn check_size(polygons: &Polygons, reader: &Reader<'_>) -> Result<(), MeshError> {
    if polygons.too_large() {
        let limit = reader.files.options.max_triangles;
        return Err(reader.wrong(format!("the mesh has more than {limit} triangles")));
    }
    Ok(())
}

/// `x y z`, then normal, colour and texture coordinate as the layout says.
fn read_vertex(text: &[u8], layout: Layout, polygons: &mut Polygons) -> Result<(), String> {
    let mut rest = text;
    polygons.positions.push(three(&mut rest)?);
    if layout.normals {
        polygons.normals.push(three(&mut rest)?.map(|n| n as f32));
    }
    let mut values = Vec::new();
    if layout.colours || layout.uvs {
        while let Some(text) = word(&mut rest) {
            values.push((number(text)?, is_fraction(text)));
        }
    }
    if layout.uvs {
        let (Some((v, _)), Some((u, _))) = (values.pop(), values.pop()) else {
            return Err("expected two texture coordinates at the end of the line".to_owned());
        };
        polygons.uvs.push([u as f32, v as f32]);
    }
    if layout.colours {
        polygons.colours.push(colour(&values).ok_or("expected a colour of 3 or 4 numbers")?);
    }
    Ok(())
}

/// The number of corners, their indices, and perhaps a colour.
fn read_face(text: &[u8], layout: Layout, polygons: &mut Polygons) -> Result<Option<[u8; 3]>, String> {
    let mut rest = text;
    let index = |rest: &mut &[u8]| {
        let text = word(rest).ok_or("the line ends before the face does")?;
        parse_index(text).ok_or_else(|| format!("{:?} is not an index", shown(text)))
    };
    let corners = index(&mut rest)?;
    let count = polygons.positions.len();
    for _ in 0..corners {
        let position = index(&mut rest)?;
        if position as usize >= count {
            return Err(format!("index {position}, but there are only {count} vertices, counted from 0"));
        }
        let uv = if layout.uvs { position } else { NONE };
        let normal = if layout.normals { position } else { NONE };
        polygons.push_corner(Corner { position, uv, normal });
    }
    polygons.end_face(0, false);
    let mut values = Vec::new();
    while let Some(text) = word(&mut rest) {
        // Colours are a courtesy: what is not one is passed over.
        let Ok(value) = number(text) else { return Ok(None) };
        values.push((value, is_fraction(text)));
    }
    Ok(colour(&values))
}

fn three(rest: &mut &[u8]) -> Result<[f64; 3], String> {
    let mut values = [0.0; 3];
    for value in &mut values {
        *value = number(word(rest).ok_or("expected three numbers")?)?;
    }
    Ok(values)
}

/// A colour of 0 to 255, or, where some number has a point, of 0 to 1. A single number (an index into a palette that
/// no file carries) is none.
fn colour(values: &[(f64, bool)]) -> Option<[u8; 3]> {
    if !(3..=4).contains(&values.len()) {
        return None;
    }
    let fractions = values.iter().any(|(_, fraction)| *fraction);
    let scale = if fractions { 255.0 } else { 1.0 };
    Some([0, 1, 2].map(|i| (values[i].0 * scale).round().clamp(0.0, 255.0) as u8))
}

fn is_fraction(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

fn parse_index(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_say_what_vertices_carry() {
        let layout = |normals, colours, uvs| Layout { normals, colours, uvs };
        assert_eq!(Layout::parse(b"OFF490 518 0"), Some((layout(false, false, false), &b"490 518 0"[..])));
        assert_eq!(Layout::parse(b"STCNOFF"), Some((layout(true, true, true), &b""[..])));
        assert_eq!(Layout::parse(b"COFF"), Some((layout(false, true, false), &b""[..])));
        assert_eq!(Layout::parse(b"solid"), None);
        assert!(
            is_off(b"\nOFF\n8 6 0") && is_off(b"NOFF 8 6 0") && !is_off(b"OFFICE") && !is_off(b"v 0 0 0")
        );
    }
}
