//! Tar archives, as far as datasets need them: regular files with deterministic headers (no times, no owners), and a
//! reader that survives any input.
//!
//! Archives are ustar; a name over 100 bytes goes into a pax header. The reader also takes GNU long names and the
//! ustar prefix, so that archives packed by other tools can be read.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{Error, Result};

const BLOCK: usize = 512;

/// What follows the last member: two empty blocks.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// Appends one regular file to `archive`. Returns the offset of its data within `archive`.
pub fn append(archive: &mut Vec<u8>, name: &str, data: &[u8]) -> usize {
    if name.len() > 100 {
        let record = pax_record("path", name);
        member(archive, "pax", b'x', record.as_bytes());
    }
    let mut end = name.len().min(100);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    member(archive, &name[..end], b'0', data)
}

fn member(archive: &mut Vec<u8>, name: &str, kind: u8, data: &[u8]) -> usize {
    let mut header = [0_u8; BLOCK];
    header[..name.len()].copy_from_slice(name.as_bytes());
    octal(&mut header[100..108], 0o644);
    octal(&mut header[108..116], 0);
    octal(&mut header[116..124], 0);
    octal(&mut header[124..136], data.len() as u64);
    octal(&mut header[136..148], 0);
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum = checksum(&header);
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive.extend_from_slice(&header);
    let offset = archive.len();
    archive.extend_from_slice(data);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    offset
}

fn octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    field[..digits].copy_from_slice(format!("{value:0digits$o}").as_bytes());
}

/// `"LENGTH key=value\n"`, where LENGTH counts itself.
fn pax_record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while rest + length.to_string().len() != length {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n")
}

/// Sum of the header's bytes with the checksum field read as blanks.
fn checksum(header: &[u8; BLOCK]) -> u32 {
    header
        .iter()
        .enumerate()
        .map(|(i, &byte)| if (148..156).contains(&i) { 32 } else { u32::from(byte) })
        .sum()
}

/// Where a member lies in its archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Offset of its data in bytes.
    pub offset: u64,
    /// Length of its data in bytes.
    pub length: u64,
}

/// Longest name or pax header taken seriously.
const LONGEST_HEADER: u64 = 1 << 16;

/// Lists the regular files of an archive, in order, reading headers only. `path` is for error messages.
pub fn members(archive: &mut (impl Read + Seek), path: &Path) -> Result<Vec<Member>> {
    let total = archive.seek(SeekFrom::End(0)).map_err(Error::read(path))?;
    let mut found = Vec::new();
    let mut position = 0;
    let mut long_name: Option<String> = None;
    loop {
        let mut header = [0_u8; BLOCK];
        if position + BLOCK as u64 > total {
            return Err(Error::content(
                path,
                format!("the archive ends at byte {total} without its end mark"),
            ));
        }
        read_at(archive, position, &mut header, path)?;
        if header.iter().all(|&byte| byte == 0) {
            return Ok(found);
        }
        let broken =
            |what: &str| Error::content(path, format!("not a tar archive: {what} at byte {position}"));
        if parse_octal(&header[148..156]) != Some(u64::from(checksum(&header))) {
            return Err(broken("wrong header checksum"));
        }
        let length = parse_octal(&header[124..136]).ok_or_else(|| broken("unreadable length"))?;
        let offset = position + BLOCK as u64;
        let end = offset.checked_add(length).filter(|&end| end <= total);
        let end = end.ok_or_else(|| broken("a member that is longer than the archive"))?;
        match header[156] {
            b'0' | 0 => {
                let name = match long_name.take() {
                    Some(name) => name,
                    None => short_name(&header),
                };
                found.push(Member { name, offset, length });
            }
            kind @ (b'x' | b'L') => {
                if length > LONGEST_HEADER {
                    return Err(broken("an overlong name"));
                }
                let mut data = vec![0; length as usize];
                read_at(archive, offset, &mut data, path)?;
                let text = String::from_utf8_lossy(&data).into_owned();
                long_name = if kind == b'L' {
                    Some(text.trim_end_matches('\0').to_owned())
                } else {
                    pax_value(&text, "path").or(long_name)
                };
            }
            _ => long_name = None,
        }
        position = end.next_multiple_of(BLOCK as u64);
    }
}

fn read_at(archive: &mut (impl Read + Seek), position: u64, buffer: &mut [u8], path: &Path) -> Result<()> {
    archive.seek(SeekFrom::Start(position)).map_err(Error::read(path))?;
    archive.read_exact(buffer).map_err(Error::read(path))
}

fn parse_octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(|c: char| c == '\0' || c == ' '), 8).ok()
}

fn short_name(header: &[u8; BLOCK]) -> String {
    let text = |field: &[u8]| {
        let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    };
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    if prefix.is_empty() || &header[257..262] != b"ustar" { name } else { format!("{prefix}/{name}") }
}

fn pax_value(records: &str, key: &str) -> Option<String> {
    let mut rest = records;
    let mut found = None;
    while let Some((length, _)) = rest.split_once(' ') {
        let length: usize = length.parse().ok()?;
        let record = rest.get(..length)?;
        let (_, assignment) = record.split_once(' ')?;
        let (name, value) = assignment.strip_suffix('\n')?.split_once('=')?;
        if name == key {
            found = Some(value.to_owned());
        }
        rest = &rest[length..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn list(bytes: &[u8]) -> Result<Vec<Member>> {
        members(&mut Cursor::new(bytes), Path::new("test.tar"))
    }

    #[test]
    fn headers_hold_no_time_and_no_owner() {
        let mut archive = Vec::new();
        append(&mut archive, "a/b.txt", b"hello");
        assert_eq!(archive.len(), 1024);
        assert_eq!(&archive[100..148], b"0000644\x000000000\x000000000\x0000000000005\x0000000000000\0");
        assert_eq!(&archive[512..517], b"hello");
    }

    #[test]
    fn broken_archives_are_refused_with_a_sentence() {
        let mut archive = Vec::new();
        append(&mut archive, "a.txt", &[7; 700]);
        let message = |bytes: &[u8]| list(bytes).unwrap_err().to_string();
        assert!(message(&archive).contains("without its end mark"));
        assert!(message(&archive[..600]).contains("longer than the archive"));
        archive[0] = b'b';
        assert!(message(&archive).contains("checksum"));
    }

    proptest! {
        #[test]
        fn members_come_back(
            files in proptest::collection::vec(
                ("[a-zé0-9/._ -]{1,180}", proptest::collection::vec(any::<u8>(), 0..1500)), 0..8),
        ) {
            let mut archive = Vec::new();
            for (name, data) in &files {
                let offset = append(&mut archive, name, data);
                prop_assert_eq!(&archive[offset..offset + data.len()], &data[..]);
            }
            archive.extend_from_slice(&END);
            let found = list(&archive).unwrap();
            prop_assert_eq!(found.len(), files.len());
            for (member, (name, data)) in found.iter().zip(&files) {
                prop_assert_eq!(&member.name, name);
                let start = member.offset as usize;
                prop_assert_eq!(&archive[start..start + member.length as usize], &data[..]);
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..3000), flips in 0_usize..600) {
            let _ = list(&bytes);
            let mut archive = Vec::new();
            append(&mut archive, &"long/".repeat(30), &bytes);
            archive.extend_from_slice(&END);
            let at = flips % archive.len();
            archive[at] ^= 0x11;
            let _ = list(&archive);
        }
    }
}
