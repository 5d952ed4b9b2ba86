//! The zip archive around a file of `torch.save`: entries are stored, not compressed.

use std::collections::HashMap;
use std::ops::Range;

const END: [u8; 4] = *b"PK\x05\x06";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const LOCAL: [u8; 4] = *b"PK\x03\x04";

/// Files by name, without the name of the archive before the first slash.
pub struct Archive<'a> {
    bytes: &'a [u8],
    files: HashMap<String, Range<usize>>,
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let field = bytes.get(at..at.checked_add(width)?)?;
    let value = field.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    usize::try_from(value).ok()
}

impl<'a> Archive<'a> {
    /// Reads the list of files of an archive.
    pub fn open(bytes: &'a [u8]) -> Result<Self, String> {
        if !bytes.starts_with(&LOCAL) {
            return Err(
                "not an archive of torch.save (files of PyTorch before 1.6 must be saved anew)".to_owned()
            );
        }
        Self::list(bytes).ok_or_else(|| "the archive is damaged or cut off".to_owned())
    }

    fn list(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.windows(4).rposition(|window| window == END)?;
        let count = number(bytes, end + 10, 2)?;
        let mut at = number(bytes, end + 16, 4)?;
        let mut files = HashMap::new();
        for _ in 0..count {
            if bytes.get(at..at.checked_add(4)?)? != ENTRY {
                return None;
            }
            let [method, size, stored, name, extra, comment, local] =
                [(10, 2), (24, 4), (20, 4), (28, 2), (30, 2), (32, 2), (42, 4)]
                    .map(|(place, width)| number(bytes, at + place, width));
            let (name, extra, comment, local) = (name?, extra?, comment?, local?);
            // Archives beyond 4 GiB keep their sizes elsewhere.
            if method? != 0 || size? != stored? || size? == 0xffff_ffff || local == 0xffff_ffff {
                return None;
            }
            let full = std::str::from_utf8(bytes.get(at + 46..(at + 46).checked_add(name)?)?).ok()?;
            let short = full.split_once('/').map_or(full, |(_, short)| short);
            if bytes.get(local..local.checked_add(4)?)? != LOCAL {
                return None;
            }
            let start = local + 30 + number(bytes, local + 26, 2)? + number(bytes, local + 28, 2)?;
            let range = start..start.checked_add(size?)?;
            bytes.get(range.clone())?;
            files.insert(short.to_owned(), range);
            at += 46 + name + extra + comment;
        }
        Some(Self { bytes, files })
    }

    /// Bytes of the whole archive.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The content of a file.
    pub fn file(&self, name: &str) -> Option<&'a [u8]> {
        self.files.get(name).map(|range| &self.bytes[range.clone()])
    }
}
