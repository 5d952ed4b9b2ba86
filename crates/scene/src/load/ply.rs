//! PLY: text or binary of either byte order, with normals, texture coordinates and colours.
//!
//! Colours at vertices or faces become a texture; a `comment TextureFile NAME` (MeshLab's way) names one instead.

use super::colours::Colours;
use super::files::Files;
use super::polygons::{Corner, NONE, Polygons};
use super::{MeshError, Up};
use crate::{Map, Material, Mesh};
use std::fs::File;

mod header;
mod values;

use header::{Element, Header, Kind, Property};
use values::Values;

/// What a property of a vertex means.
#[derive(Clone, Copy)]
enum Meaning {
    Position(usize),
    Normal(usize),
    Uv(usize),
    Colour(usize),
    Ignored,
}

impl Meaning {
    fn of(property: &Property) -> Self {
        if property.list.is_some() {
            return Self::Ignored;
        }
        match property.name.as_str() {
            "x" => Self::Position(0),
            "y" => Self::Position(1),
            "z" => Self::Position(2),
            "nx" => Self::Normal(0),
            "ny" => Self::Normal(1),
            "nz" => Self::Normal(2),
            "s" | "u" | "texture_u" | "texture_s" => Self::Uv(0),
            "t" | "v" | "texture_v" | "texture_t" => Self::Uv(1),
            "red" | "r" | "diffuse_red" => Self::Colour(0),
            "green" | "g" | "diffuse_green" => Self::Colour(1),
            "blue" | "b" | "diffuse_blue" => Self::Colour(2),
            _ => Self::Ignored,
        }
    }
}

struct Reader<'a> {
    files: &'a mut Files,
    values: Values<File>,
    polygons: Polygons,
    /// Which attributes vertices have.
    has: [bool; 3],
    face_colours: bool,
}

const NORMALS: usize = 0;
const UVS: usize = 1;
const COLOURS: usize = 2;

pub(super) fn load(files: &mut Files) -> Result<Mesh, MeshError> {
    let mut file = files.open_mesh()?;
    let header = Header::read(&mut file, files)?;
    let values = Values::new(&header, file).map_err(|source| files.read_error(source))?;
    let polygons = Polygons::new(files.options.max_triangles);
    let mut reader = Reader { files, values, polygons, has: [false; 3], face_colours: false };
    let mut vertices_read = false;
    for element in &header.elements {
        match element.name.as_str() {
            "vertex" => {
                reader.vertices(element)?;
                vertices_read = true;
            }
            "face" | "tristrips" if !vertices_read => {
                return Err(reader.files.content("has its faces before its vertices"));
            }
            "face" => reader.faces(element)?,
            "tristrips" => reader.strips(element)?,
            _ => reader.skip(element)?,
        }
    }
    reader.finish(header.texture)
}

impl Reader<'_> {
    fn vertices(&mut self, element: &Element) -> Result<(), MeshError> {
        let meanings: Vec<Meaning> = element.properties.iter().map(Meaning::of).collect();
        let has = |test: fn(&Meaning) -> Option<usize>, count: usize| {
            (0..count).all(|i| meanings.iter().any(|meaning| test(meaning) == Some(i)))
        };
        let position = |meaning: &Meaning| if let Meaning::Position(i) = meaning { Some(*i) } else { None };
        if !has(position, 3) {
            return Err(self.files.content("has vertices without x, y and z"));
        }
        self.has = [
            has(|meaning| if let Meaning::Normal(i) = meaning { Some(*i) } else { None }, 3),
            has(|meaning| if let Meaning::Uv(i) = meaning { Some(*i) } else { None }, 2),
            has(|meaning| if let Meaning::Colour(i) = meaning { Some(*i) } else { None }, 3),
        ];
        for index in 0..element.count {
            let (mut position, mut normal, mut uv, mut colour) = ([0.0; 3], [0.0; 3], [0.0; 2], [0; 3]);
            for (property, meaning) in element.properties.iter().zip(&meanings) {
                let value = self.property(element, index, property)?;
                match *meaning {
                    Meaning::Position(i) => position[i] = self.finite(value, element, index)?,
                    Meaning::Normal(i) => normal[i] = self.finite(value, element, index)? as f32,
                    Meaning::Uv(i) => uv[i] = self.finite(value, element, index)? as f32,
                    Meaning::Colour(i) => colour[i] = colour_byte(value, property.kind),
                    Meaning::Ignored => {}
                }
            }
            self.polygons.positions.push(position);
            if self.has[NORMALS] {
                self.polygons.normals.push(normal);
            }
            if self.has[UVS] {
                self.polygons.uvs.push(uv);
            }
            if self.has[COLOURS] {
                self.polygons.colours.push(colour);
            }
            self.check_size()?;
        }
        Ok(())
    }

    fn faces(&mut self, element: &Element) -> Result<(), MeshError> {
        let is_indices = |property: &Property| {
            property.list.is_some() && matches!(property.name.as_str(), "vertex_indices" | "vertex_index")
        };
        if !element.properties.iter().any(is_indices) {
            return Err(self.files.content("has faces without a list vertex_indices"));
        }
        let meanings: Vec<Meaning> = element.properties.iter().map(Meaning::of).collect();
        let coloured = (0..3).all(|i| meanings.iter().any(|m| matches!(m, Meaning::Colour(j) if *j == i)));
        self.face_colours = coloured;
        let (mut corners, mut uvs) = (Vec::new(), Vec::new());
        for index in 0..element.count {
            corners.clear();
            uvs.clear();
            let mut colour = [0; 3];
            for (property, meaning) in element.properties.iter().zip(&meanings) {
                match (&property.list, meaning) {
                    (Some(length), _) if is_indices(property) => {
                        let length = self.length(element, index, *length)?;
                        for _ in 0..length {
                            let value = self.scalar(element, index, property.kind)?;
                            corners.push(self.vertex_index(value, element, index)?);
                            self.check_room(corners.len())?;
                        }
                    }
                    (Some(length), _) if property.name == "texcoord" => {
                        let length = self.length(element, index, *length)?;
                        for _ in 0..length {
                            let value = self.scalar(element, index, property.kind)?;
                            uvs.push(self.finite(value, element, index)? as f32);
                            self.check_room(uvs.len() / 2)?;
                        }
                    }
                    (None, Meaning::Colour(i)) => {
                        let value = self.scalar(element, index, property.kind)?;
                        colour[*i] = colour_byte(value, property.kind);
                    }
                    _ => {
                        self.property(element, index, property)?;
                    }
                }
            }
            let own_uvs = uvs.len() == 2 * corners.len();
            for (corner, &position) in corners.iter().enumerate() {
                let mut new = self.corner(position);
                if own_uvs {
                    new.uv = self.polygons.uvs.len() as u32;
                    self.polygons.uvs.push([uvs[2 * corner], uvs[2 * corner + 1]]);
                }
                self.polygons.push_corner(new);
            }
            self.polygons.end_face(0, false);
            if coloured {
                self.polygons.face_colours.push(colour);
            }
            self.check_size()?;
        }
        Ok(())
    }

    /// Triangle strips: every index makes a triangle with the two before it, in alternating order; -1 starts anew.
    fn strips(&mut self, element: &Element) -> Result<(), MeshError> {
        if element.properties.is_empty() {
            return Ok(());
        }
        for index in 0..element.count {
            for property in &element.properties {
                let Some(length) = property.list else {
                    self.scalar(element, index, property.kind)?;
                    continue;
                };
                let length = self.length(element, index, length)?;
                let (mut before, mut turned) = ([None; 2], false);
                for _ in 0..length {
                    let value = self.scalar(element, index, property.kind)?;
                    if value < 0.0 {
                        (before, turned) = ([None; 2], false);
                        continue;
                    }
                    let new = self.vertex_index(value, element, index)?;
                    if let [Some(a), Some(b)] = before {
                        let [a, b] = if turned { [b, a] } else { [a, b] };
                        let corners = [a, b, new].map(|vertex| self.corner(vertex));
                        self.polygons.push_triangle(corners, 0);
                        self.check_size()?;
                        turned = !turned;
                    }
                    before = [before[1], Some(new)];
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, element: &Element) -> Result<(), MeshError> {
        if element.properties.is_empty() {
            return Ok(());
        }
        for index in 0..element.count {
            for property in &element.properties {
                self.property(element, index, property)?;
            }
        }
        Ok(())
    }

    /// A scalar, or a list read and forgotten.
    fn property(&mut self, element: &Element, index: u64, property: &Property) -> Result<f64, MeshError> {
        if let Some(length) = property.list {
            for _ in 0..self.length(element, index, length)? {
                self.scalar(element, index, property.kind)?;
            }
            return Ok(0.0);
        }
        self.scalar(element, index, property.kind)
    }

    fn scalar(&mut self, element: &Element, index: u64, kind: Kind) -> Result<f64, MeshError> {
        match self.values.next(kind) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => {
                let (name, count) = (&element.name, element.count);
                Err(self
                    .files
                    .content(format!("ends in {name} {index}, but its header says {count} of them")))
            }
            Err(error) => Err(error.at(self.files)),
        }
    }

    fn length(&mut self, element: &Element, index: u64, kind: Kind) -> Result<u64, MeshError> {
        let length = self.scalar(element, index, kind)?;
        if length.is_finite() && length >= 0.0 {
            return Ok(length as u64);
        }
        Err(self.values.place(self.files, element, index, &format!("a list has the length {length}")))
    }

    fn vertex_index(&self, value: f64, element: &Element, index: u64) -> Result<u32, MeshError> {
        let count = self.polygons.positions.len();
        if value >= 0.0 && value < count as f64 && value.fract() == 0.0 {
            return Ok(value as u32);
        }
        let message = format!("index {value}, but there are only {count} vertices, counted from 0");
        Err(self.values.place(self.files, element, index, &message))
    }

    fn finite(&self, value: f64, element: &Element, index: u64) -> Result<f64, MeshError> {
        if (value as f32).is_finite() {
            return Ok(value);
        }
        Err(self.values.place(self.files, element, index, &format!("{value} is not a finite number")))
    }

    fn corner(&self, position: u32) -> Corner {
        let of = |attribute: usize| if self.has[attribute] { position } else { NONE };
        Corner { position, uv: of(UVS), normal: of(NORMALS) }
    }

    fn check_size(&self) -> Result<(), MeshError> {
        if self.polygons.too_large() { Err(self.too_large()) } else { Ok(()) }
    }

    /// A single face must not outgrow the limit before it is pushed.
    fn check_room(&self, corners: usize) -> Result<(), MeshError> {
        if corners > 3 * self.files.options.max_triangles { Err(self.too_large()) } else { Ok(()) }
    }

    fn too_large(&self) -> MeshError {
        self.files.content(format!("has more than {} triangles", self.files.options.max_triangles))
    }

    fn finish(mut self, texture: Option<Vec<u8>>) -> Result<Mesh, MeshError> {
        let mut material = Material::default();
        if let Some(name) = texture.filter(|_| !self.polygons.uvs.is_empty()) {
            let folder = self.files.folder().to_owned();
            let found = self.files.resolve(&folder, &name).and_then(|path| self.files.textures.load(&path));
            match found {
                Ok(texture) => material.texture = Some(Map::new(texture)),
                Err(reason) => {
                    self.files.warn(format!("{}: texture left out: {reason}", self.files.path.display()));
                }
            }
        }
        self.polygons.colouring.push(match () {
            () if material.texture.is_some() => Colours::Material,
            () if self.has[COLOURS] => Colours::Vertices,
            () if self.face_colours => Colours::Faces,
            () => Colours::Material,
        });
        let up = self.files.up(Up::Z);
        self.polygons.finish(self.files, up, vec![material])
    }
}

/// Colours are stored as bytes, as 16-bit numbers or as fractions of 1.
fn colour_byte(value: f64, kind: Kind) -> u8 {
    let value = match kind {
        Kind::F32 | Kind::F64 => value * 255.0,
        Kind::U16 => value / 257.0,
        _ => value,
    };
    value.round().clamp(0.0, 255.0) as u8
}
