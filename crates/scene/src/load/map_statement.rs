//! Texture statements of material libraries: options, and the name of a file.
//!
//! `-o` and `-s` are taken as the importer of the published generator takes them: a mapping of the *texture*, so that
//! coordinates are moved back and divided. `-bm` is the strength of a map of normals. The others (`-t`, `-clamp`, `-mm` ...)
//! are passed over, and those that would show are remembered.

use super::lines::{number, word};
use crate::{Map, Texture};
use std::sync::Arc;

/// What follows `map_Kd` and its kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MapStatement {
    /// As written; empty where there is none.
    pub file: Vec<u8>,
    pub line: u64,
    /// `-bm`.
    pub strength: f32,
    /// Options that are passed over although they would show.
    pub left_out: Vec<&'static str>,
    offset: [f32; 2],
    scale: [f32; 2],
}

impl MapStatement {
    /// Reads the rest of the statement on `line`; file names may contain blanks.
    pub fn parse(mut rest: &[u8], line: u64) -> Self {
        let mut statement = Self {
            file: Vec::new(),
            line,
            strength: 1.0,
            left_out: Vec::new(),
            offset: [0.0; 2],
            scale: [1.0; 2],
        };
        loop {
            let before = rest.trim_ascii();
            let mut after = before;
            let Some(option) = word(&mut after) else { return statement };
            // At most so many arguments, all but the first of which may be left out where they are numbers.
            let arguments = match option {
                b"-o" | b"-s" | b"-t" => 3,
                b"-mm" => 2,
                b"-blendu" | b"-blendv" | b"-boost" | b"-cc" | b"-clamp" | b"-imfchan" | b"-texres"
                | b"-type" | b"-bm" | b"-colorspace" => 1,
                _ => {
                    statement.file = unquoted(before).to_vec();
                    return statement;
                }
            };
            rest = after;
            let is_on = word(&mut after) == Some(b"on");
            let mut values = [None; 3];
            for (i, place) in values.iter_mut().enumerate().take(arguments) {
                let mut next = rest;
                let Some(argument) = word(&mut next) else { break };
                let value = number(argument).ok().map(|value| value as f32);
                if i > 0 && value.is_none() {
                    break;
                }
                *place = value;
                rest = next;
            }
            match option {
                b"-o" => statement.offset = [values[0].unwrap_or(0.0), values[1].unwrap_or(0.0)],
                b"-s" => statement.scale = [values[0].unwrap_or(1.0), values[1].unwrap_or(1.0)],
                b"-bm" => statement.strength = values[0].unwrap_or(1.0).clamp(0.0, 10.0),
                b"-t" if values.iter().flatten().any(|value| *value != 0.0) => statement.left_out.push("-t"),
                b"-mm" if values.iter().flatten().ne(&[0.0, 1.0]) => statement.left_out.push("-mm"),
                b"-clamp" if is_on => statement.left_out.push("-clamp"),
                b"-imfchan" => statement.left_out.push("-imfchan"),
                _ => {}
            }
        }
    }

    /// The image where the options put it.
    pub fn map(&self, image: Arc<Texture>) -> Map {
        // Division by zero gives zero there.
        let scale = self.scale.map(|scale| if scale == 0.0 { 0.0 } else { 1.0 / scale });
        Map { image, scale, offset: [0, 1].map(|axis| -self.offset[axis] * scale[axis]) }
    }
}

/// A name without the quotes around it.
pub(super) fn unquoted(name: &[u8]) -> &[u8] {
    match name {
        [b'"', inner @ .., b'"'] => inner,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_options() {
        for (text, name) in [
            (&b" wood.png"[..], &b"wood.png"[..]),
            (b" -s 2 2 1 -o 0.5 wood grain.png ", b"wood grain.png"),
            (b"-blendu on -clamp off -bm 0.2 a b.jpg", b"a b.jpg"),
            (b"-mm 0 1 ..\\images\\t.jpg", b"..\\images\\t.jpg"),
            (b"-s 1 1 1 2.png", b"2.png"),
            (b"\"my file.png\"", b"my file.png"),
            (b"-1.png", b"-1.png"),
            (b"-s 1 1 1", b""),
        ] {
            assert_eq!(MapStatement::parse(text, 1).file, name);
        }
    }

    #[test]
    fn options_map_the_texture() {
        let image = Arc::new(Texture { width: 1, height: 1, pixels: vec![[0; 4]] });
        let map = |text: &str| MapStatement::parse(text.as_bytes(), 1).map(Arc::clone(&image));
        let moved = map("-o 0.5 1 0 -s 2 4 1 -t 1 1 1 -clamp on a.png");
        assert_eq!((moved.scale, moved.offset), ([0.5, 0.25], [-0.25, -0.25]));
        assert_eq!(map("-s 0 2 1 a.png").scale, [0.0, 0.5]);
        let left_out = |text: &str| MapStatement::parse(text.as_bytes(), 1).left_out;
        assert_eq!(
            left_out("-t 1 1 1 -clamp on -mm 0 2 -imfchan l a.png"),
            ["-t", "-clamp", "-mm", "-imfchan"]
        );
        assert_eq!(left_out("-t 0 0 0 -clamp off -mm 0 1 -blendu on -o 1 1 a.png"), Vec::<&str>::new());
        assert_eq!(map("a.png"), Map::new(image.clone()));
        assert_eq!(MapStatement::parse(b"-bm 0.25 a.png", 1).strength, 0.25);
    }
}
