//! Telling the formats apart by their content; a file's name decides only where the content does not.

use super::files::Files;
use super::lines::BYTE_ORDER_MARK;
use super::{MeshError, off, stl};
use std::io::Read;

/// Bytes looked at.
const HEAD_BYTES: u64 = 4096;

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Obj,
    Gltf,
    Off,
    Ply,
    AsciiStl,
    BinaryStl,
}

impl Format {
    /// The format of the mesh of `files`; a warning where its name says something else.
    pub fn of(files: &mut Files) -> Result<Self, MeshError> {
        let mut head = Vec::new();
        files
            .open_mesh()?
            .take(HEAD_BYTES)
            .read_to_end(&mut head)
            .map_err(|source| files.read_error(source))?;
        if head.trim_ascii().is_empty() && files.size <= HEAD_BYTES {
            return Err(files.content("is empty"));
        }
        let extension = files.path.extension().map(|name| name.to_string_lossy().to_ascii_lowercase());
        let named = match extension.as_deref() {
            Some("obj") => Some(Self::Obj),
            Some("gltf" | "glb") => Some(Self::Gltf),
            Some("off") => Some(Self::Off),
            Some("ply") => Some(Self::Ply),
            Some("stl") => Some(Self::BinaryStl),
            _ => None,
        };
        let content = Self::sniff(&head, files.size);
        let is_text = !head.contains(&0);
        let format = match (content, named) {
            (Some(content), _) => content,
            // These are told by their content, so this one is not what its name says; only the counts of an OFF file
            // without keyword and a binary STL file with a wrong count look like nothing.
            (None, Some(Self::Off)) if is_text => Self::Off,
            (None, Some(Self::Obj)) if is_text => Self::Obj,
            (None, Some(Self::BinaryStl)) if !is_text => Self::BinaryStl,
            _ => {
                return Err(files.content(
                    "is not a mesh that can be read, expected OBJ, glTF, OFF, PLY or STL by its content",
                ));
            }
        };
        if named.is_some_and(|named| named.family() != format.family()) {
            let message =
                format!("{}: holds {}, whatever its name says", files.path.display(), format.family());
            files.warn(message);
        }
        Ok(format)
    }

    fn family(self) -> &'static str {
        match self {
            Self::Obj => "OBJ",
            Self::Gltf => "glTF",
            Self::Off => "OFF",
            Self::Ply => "PLY",
            Self::AsciiStl | Self::BinaryStl => "STL",
        }
    }

    fn sniff(head: &[u8], size: u64) -> Option<Self> {
        let without_mark = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let text = without_mark.trim_ascii_start();
        if head.starts_with(b"glTF") {
            return Some(Self::Gltf);
        }
        if let [b'p', b'l', b'y', end, ..] = head
            && end.is_ascii_whitespace()
        {
            return Some(Self::Ply);
        }
        if stl::is_binary(head, size) {
            return Some(Self::BinaryStl);
        }
        if head.contains(&0) {
            return None;
        }
        if text.starts_with(b"{") {
            return Some(Self::Gltf);
        }
        if text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"solid")) {
            return Some(Self::AsciiStl);
        }
        let significant = text
            .split(|byte| matches!(byte, b'\n' | b'\r'))
            .map(<[u8]>::trim_ascii)
            .find(|line| !line.is_empty() && !line.starts_with(b"#"))?;
        if off::is_off(significant) {
            return Some(Self::Off);
        }
        let keyword = significant.split(u8::is_ascii_whitespace).next()?;
        let known: [&[u8]; 13] =
            [b"v", b"vt", b"vn", b"vp", b"f", b"o", b"g", b"s", b"l", b"p", b"usemtl", b"mtllib", b"cstype"];
        known.contains(&keyword).then_some(Self::Obj)
    }
}
