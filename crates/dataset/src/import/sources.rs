//! `sources.jsonl`: for every view of an imported dataset, in the order of the lists, the file and the row it came from.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::import::fit::Region;

/// File name of the sources.
pub const SOURCES: &str = "sources.jsonl";

/// Where one view comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// `CLASS/OBJECT`.
    pub object: String,
    /// Number of the view.
    pub view: usize,
    /// The file, relative to the table or folder that names it.
    pub file: String,
    /// Where it is named: `line 7`.
    pub place: String,
    /// The part of the image that shows the object.
    #[serde(default, rename = "box", skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
}

/// The bytes of the file.
pub fn to_lines<'a>(sources: impl Iterator<Item = &'a Source>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for source in sources {
        bytes.extend(serde_json::to_vec(source).unwrap_or_default());
        bytes.push(b'\n');
    }
    bytes
}

/// Reads the sources of the dataset in `root`, line by line.
pub fn read(root: &Path) -> Result<impl Iterator<Item = Result<Source>>> {
    let path = root.join(SOURCES);
    let file = std::fs::File::open(&path).map_err(Error::read(&path))?;
    Ok((1..).zip(BufReader::new(file).lines()).map(move |(line, text): (usize, _)| {
        let text = text.map_err(Error::read(&path))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::content(&path, format!("line {line} is not a source: {error}")))
    }))
}
