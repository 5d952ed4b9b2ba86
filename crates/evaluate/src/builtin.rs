//! The small trained network inside the program: weights that need no file, by the name `builtin`. The study
//! `studies/builtin.toml` made it; `docs/builtin.md` is its report.

use std::path::Path;

/// What it is called wherever a run or a checkpoint can be named.
pub const NAME: &str = "builtin";
/// The data that it was trained on, which `explore` shows without arguments; views of all objects were held out.
pub const DATA: &str = "procedural:10x3";

/// Its checkpoint.
pub(crate) static BYTES: &[u8] = include_bytes!("../weights/builtin.safetensors");

/// Whether `path` means the network inside the program: a file or folder of this name comes first.
pub fn is_named(path: &Path) -> bool {
    path == Path::new(NAME) && !path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoder;
    use crate::weights::{Which, find};

    #[test]
    fn it_is_small_and_opens() {
        assert!(BYTES.len() <= 3_000_000, "{} bytes", BYTES.len());
        let weights = find(Path::new(NAME), &Which::Newest).unwrap().remove(0);
        assert_eq!((weights.name.as_str(), weights.epochs.is_some()), (NAME, true));
        let opened = weights.open(&engine::Device::cpu()).unwrap();
        assert!(opened.encoder.transformation().is_some() && opened.note.is_none());
        assert!(!is_named(Path::new("builtin/other")));
    }
}
