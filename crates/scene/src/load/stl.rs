//! STL: loose triangles, as text or binary. Stored normals are ignored; every facet is flat.

use super::files::Files;
use super::lines::{Lines, number, shown, word};
use super::obj::line_error;
use super::polygons::{Corner, NONE, Polygons};
use super::{MeshError, Up};
use crate::Mesh;
use std::io::{BufReader, Read};

/// Bytes before the facets of a binary file: 80 of anything and their number.
const HEADER_BYTES: u64 = 84;
/// Normal and corners as twelve floats, and two bytes of anything.
const FACET_BYTES: u64 = 50;

/// True where the number of facets in the header agrees with the size of the file: then it is binary, whatever its
/// first bytes say (many binary files begin with `solid` too).
pub(super) fn is_binary(head: &[u8], size: u64) -> bool {
    facet_count(head).is_some_and(|count| HEADER_BYTES + FACET_BYTES * u64::from(count) == size)
}

fn facet_count(head: &[u8]) -> Option<u32> {
    let bytes = head.get(80..84)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

pub(super) fn load_binary(files: &mut Files) -> Result<Mesh, MeshError> {
    let mut reader = BufReader::with_capacity(1 << 18, files.open_mesh()?);
    let mut head = [0; HEADER_BYTES as usize];
    if files.size < HEADER_BYTES {
        return Err(files.content(format!("is too short for STL: {} bytes", files.size)));
    }
    reader.read_exact(&mut head).map_err(|source| files.read_error(source))?;
    let count = facet_count(&head).unwrap_or_default();
    let room = (files.size - HEADER_BYTES) / FACET_BYTES;
    if u64::from(count) > room {
        return Err(files.content(format!("claims {count} STL facets, but has room for {room} only")));
    }
    if files.size != HEADER_BYTES + FACET_BYTES * u64::from(count) {
        files.warn(format!("{}: bytes after the last STL facet are ignored", files.path.display()));
    }
    let mut polygons = Polygons::new(files.options.max_triangles);
    let mut facet = [0; FACET_BYTES as usize];
    for index in 0..count {
        reader.read_exact(&mut facet).map_err(|source| files.read_error(source))?;
        let (floats, _) = facet[12..48].as_chunks::<4>();
        for corner in floats.chunks_exact(3) {
            let position =
                [corner[0], corner[1], corner[2]].map(|bytes| f64::from(f32::from_le_bytes(bytes)));
            if position.iter().any(|coordinate| !coordinate.is_finite()) {
                return Err(files.content(format!("facet {index}: a coordinate is not a finite number")));
            }
            push_corner(&mut polygons, position);
        }
        polygons.end_face(0, false);
        if polygons.too_large() {
            return Err(files.content(format!("has more than {} triangles", files.options.max_triangles)));
        }
    }
    let up = files.up(Up::Z);
    polygons.finish(files, up, Vec::new())
}

pub(super) fn load_ascii(files: &mut Files) -> Result<Mesh, MeshError> {
    let mut lines = Lines::new(files.open_mesh()?);
    let mut polygons = Polygons::new(files.options.max_triangles);
    loop {
        let next = lines.next().map_err(|error| line_error(files, error))?;
        let Some((line, text)) = next else { break };
        let mut rest = text;
        let Some(keyword) = word(&mut rest) else { continue };
        match keyword.to_ascii_lowercase().as_slice() {
            b"vertex" => {
                let mut position = [0.0; 3];
                for coordinate in &mut position {
                    let text =
                        word(&mut rest).ok_or_else(|| files.syntax(line, "expected three coordinates"))?;
                    *coordinate = number(text).map_err(|message| files.syntax(line, message))?;
                }
                push_corner(&mut polygons, position);
            }
            b"endfacet" => match polygons.open_corners() {
                3.. => polygons.end_face(0, false),
                count => return Err(files.syntax(line, format!("a facet of {count} corners, expected 3"))),
            },
            b"facet" if polygons.open_corners() > 0 => {
                return Err(files.syntax(line, "a facet begins before the last one has ended"));
            }
            b"solid" | b"endsolid" | b"facet" | b"outer" | b"endloop" | b"end" | b"color" => {}
            other => {
                let message = format!("{:?} is no STL statement", shown(other));
                return Err(files.syntax(line, message));
            }
        }
        if polygons.too_large() {
            let message = format!("the mesh has more than {} triangles", files.options.max_triangles);
            return Err(files.syntax(line, message));
        }
    }
    if polygons.open_corners() > 0 {
        return Err(files.content("ends inside a facet"));
    }
    let up = files.up(Up::Z);
    polygons.finish(files, up, Vec::new())
}

fn push_corner(polygons: &mut Polygons, position: [f64; 3]) {
    let index = polygons.positions.len() as u32;
    polygons.positions.push(position);
    polygons.push_corner(Corner { position: index, uv: NONE, normal: NONE });
}
