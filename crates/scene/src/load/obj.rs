//! Wavefront OBJ: polygons, texture coordinates, normals, materials and smoothing groups. Colours at vertices (a
//! common extension) colour the faces without a material.

use super::colours::Colours;
use super::files::Files;
use super::lines::{LineError, Lines, number, shown, word};
use super::mtl::{Library, read_libraries};
use super::polygons::{Corner, NONE, Polygons};
use super::{MeshError, Up};
use crate::{Material, Mesh};
use std::collections::HashMap;

/// Which list an index of a face points into.
const LISTS: [&str; 3] = ["v", "vt", "vn"];
/// More materials are refused.
pub(super) const MAX_MATERIALS: usize = 1 << 16;

struct Parser {
    polygons: Polygons,
    library: Library,
    /// Names of the materials in order of first use; faces hold positions in this list.
    materials: Vec<Vec<u8>>,
    material_indices: HashMap<Vec<u8>, u32>,
    material: Option<u32>,
    is_smooth: bool,
    /// The largest forward reference into each list, and its line: checked at the end of the file.
    furthest: [(u32, u64); 3],
}

/// Reads the OBJ file of `files`.
pub(super) fn load(files: &mut Files) -> Result<Mesh, MeshError> {
    let mut parser = Parser {
        polygons: Polygons::new(files.options.max_triangles),
        library: Library::default(),
        materials: Vec::new(),
        material_indices: HashMap::new(),
        material: None,
        is_smooth: false,
        furthest: [(0, 0); 3],
    };
    let mut lines = Lines::new(files.open_mesh()?);
    let mut joined = Vec::new();
    loop {
        let next = lines.next().map_err(|error| line_error(files, error))?;
        let Some((line, text)) = next else { break };
        if let Some(continued) = text.trim_ascii_end().strip_suffix(b"\\")
            && !is_name_statement(text)
        {
            joined.extend_from_slice(continued);
            joined.push(b' ');
            if joined.len() > 64 << 20 {
                return Err(files.syntax(line, "the statement is too long"));
            }
            continue;
        }
        if joined.is_empty() {
            parser.statement(text, line, files)?;
        } else {
            joined.extend_from_slice(text);
            parser.statement(&joined, line, files)?;
            joined.clear();
        }
    }
    parser.finish(files)
}

pub(super) fn line_error(files: &Files, error: LineError) -> MeshError {
    match error {
        LineError::Io(source) => files.read_error(source),
        LineError::TooLong(line) => files.syntax(line, "the line is longer than 16 MiB"),
    }
}

/// Statements whose rest is a name, in which a backslash at the end is no continuation.
fn is_name_statement(text: &[u8]) -> bool {
    let mut rest = text;
    matches!(word(&mut rest), Some(b"usemtl" | b"mtllib" | b"o" | b"g"))
        || text.trim_ascii_start().starts_with(b"#")
}

impl Parser {
    fn statement(&mut self, text: &[u8], line: u64, files: &mut Files) -> Result<(), MeshError> {
        let mut rest = text;
        let Some(keyword) = word(&mut rest) else { return Ok(()) };
        let result = match keyword {
            b"v" => self.vertex(rest),
            b"vt" => numbers(&mut rest, 1).map(|[u, v, _]| self.polygons.uvs.push([u as f32, v as f32])),
            b"vn" => numbers(&mut rest, 3).map(|normal| self.polygons.normals.push(normal.map(|n| n as f32))),
            b"f" | b"fo" => self.face(rest, line),
            b"usemtl" => self.use_material(rest.trim_ascii()).map(|_| ()),
            b"mtllib" => {
                read_libraries(&mut self.library, rest, line, files);
                Ok(())
            }
            b"s" => {
                self.is_smooth = is_smooth(rest);
                Ok(())
            }
            b"o" => {
                self.polygons.object += 1;
                Ok(())
            }
            _ => Ok(()),
        };
        result.map_err(|message| files.syntax(line, message))?;
        if self.polygons.too_large() {
            let message = format!("the mesh has more than {} triangles", files.options.max_triangles);
            return Err(files.syntax(line, message));
        }
        Ok(())
    }

    /// `x y z`, `x y z w` (the weight is ignored) or `x y z r g b`.
    fn vertex(&mut self, mut rest: &[u8]) -> Result<(), String> {
        let position = numbers(&mut rest, 3)?;
        self.polygons.positions.push(position);
        if rest.trim_ascii().len() < 5 {
            return Ok(());
        }
        if let ([red, green, blue], 3) = count_numbers(rest)? {
            // Fractions of 1, or bytes.
            let scale = if red.max(green).max(blue) <= 1.0 { 255.0 } else { 1.0 };
            let colour = [red, green, blue].map(|c| (c * scale).round().clamp(0.0, 255.0) as u8);
            self.polygons.colours.resize(self.polygons.positions.len() - 1, [255; 3]);
            self.polygons.colours.push(colour);
        }
        Ok(())
    }

    fn face(&mut self, mut rest: &[u8], line: u64) -> Result<(), String> {
        while let Some(text) = word(&mut rest) {
            if text.starts_with(b"#") {
                break;
            }
            let mut indices = [NONE; 3];
            let mut fields = text.split(|&byte| byte == b'/');
            for (list, index) in indices.iter_mut().enumerate() {
                let field = fields.next().unwrap_or_default();
                if !field.is_empty() {
                    *index = self.index(list, field, line)?;
                }
            }
            let [position, uv, normal] = indices;
            if position == NONE || fields.next().is_some() {
                return Err(format!("{:?} is not a corner, expected v, v/vt, v//vn or v/vt/vn", shown(text)));
            }
            self.polygons.push_corner(Corner { position, uv, normal });
        }
        let material = match self.material {
            Some(material) => material,
            None => self.use_material(b"")?,
        };
        self.polygons.end_face(material, self.is_smooth);
        Ok(())
    }

    /// The position in a list that a one-based or, from the end, negative index means.
    fn index(&mut self, list: usize, field: &[u8], line: u64) -> Result<u32, String> {
        let count = self.count(list);
        let (negative, digits) = match field {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let magnitude = digits
            .iter()
            .try_fold(0_u32, |value, byte| {
                let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
                value.checked_mul(10)?.checked_add(digit)
            })
            .filter(|_| !digits.is_empty())
            .ok_or_else(|| format!("{:?} is not an index", shown(field)))?;
        if magnitude == 0 {
            return Err("index 0, expected indices from 1 or from -1".to_owned());
        }
        if negative {
            let behind = count.checked_sub(magnitude as usize).ok_or_else(|| {
                format!("index -{magnitude}, but there are only {count} {:?} so far", LISTS[list])
            })?;
            return Ok(behind as u32);
        }
        if magnitude as usize > count && magnitude > self.furthest[list].0 {
            self.furthest[list] = (magnitude, line);
        }
        Ok(magnitude - 1)
    }

    fn count(&self, list: usize) -> usize {
        match list {
            0 => self.polygons.positions.len(),
            1 => self.polygons.uvs.len(),
            _ => self.polygons.normals.len(),
        }
    }

    /// Makes the material of that name the current one.
    fn use_material(&mut self, name: &[u8]) -> Result<u32, String> {
        let material = match self.material_indices.get(name) {
            Some(&known) => known,
            None if self.materials.len() >= MAX_MATERIALS => {
                return Err(format!("the mesh uses more than {MAX_MATERIALS} materials"));
            }
            None => {
                let new = self.materials.len() as u32;
                self.materials.push(name.to_vec());
                self.material_indices.insert(name.to_vec(), new);
                new
            }
        };
        self.material = Some(material);
        Ok(material)
    }

    fn finish(mut self, files: &mut Files) -> Result<Mesh, MeshError> {
        for (list, (index, line)) in self.furthest.into_iter().enumerate() {
            let count = self.count(list);
            if index as usize > count {
                let message = format!("index {index}, but the file has only {count} {:?}", LISTS[list]);
                return Err(files.syntax(line, message));
            }
        }
        let material = |name: &Vec<u8>| match &name[..] {
            b"" => Material::default(),
            name => self.library.material(name, files),
        };
        let materials = self.materials.iter().map(material).collect();
        if !self.polygons.colours.is_empty() {
            let colouring =
                |name: &Vec<u8>| if name.is_empty() { Colours::Vertices } else { Colours::Material };
            self.polygons.colouring = self.materials.iter().map(colouring).collect();
        }
        let up = files.up(Up::Y);
        self.polygons.finish(files, up, materials)
    }
}

/// Three numbers, of which the first `required` must be there; a texture coordinate may lack its second.
fn numbers(rest: &mut &[u8], required: usize) -> Result<[f64; 3], String> {
    let mut values = [0.0; 3];
    for (i, value) in values.iter_mut().enumerate() {
        match word(rest) {
            Some(text) if i < required || !text.starts_with(b"#") => *value = number(text)?,
            None if i < required => return Err(format!("expected {required} numbers, found {i}")),
            _ => break,
        }
    }
    Ok(values)
}

/// Up to three numbers before a comment, and how many words there are.
fn count_numbers(mut rest: &[u8]) -> Result<([f64; 3], usize), String> {
    let (mut values, mut count) = ([0.0; 3], 0);
    while let Some(text) = word(&mut rest)
        && !text.starts_with(b"#")
    {
        if let Some(value) = values.get_mut(count) {
            *value = number(text)?;
        }
        count += 1;
    }
    Ok((values, count))
}

/// Whether a smoothing group makes faces smooth: any but `off` does in the importer of the published generator, 0 too.
fn is_smooth(mut rest: &[u8]) -> bool {
    !matches!(word(&mut rest), None | Some(b"off"))
}
