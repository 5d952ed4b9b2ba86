//! TensorBoard event files: records of a little protobuf, written by hand.
//!
//! A record is `length: u64 | masked crc32c(length) | data | masked crc32c(data)`, little-endian. The data is an
//! `Event { 1: wall_time f64, 2: step i64, 3: file_version | 5: summary | 7: session_log }`. A continued run opens a
//! new file that begins with a session log at its first step: TensorBoard then forgets the points of earlier files at
//! that step and later.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};

/// An image for TensorBoard.
#[derive(Debug)]
pub struct Image<'a> {
    /// What it is called.
    pub tag: &'a str,
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// The PNG file.
    pub png: &'a [u8],
}

/// An event file being written.
#[derive(Debug)]
pub struct EventFile {
    file: File,
    path: PathBuf,
}

impl EventFile {
    /// Opens a new file in `folder`, after all that are there, for a session that goes on after `step`.
    pub fn create(folder: &Path, step: u64) -> Result<Self> {
        fs::create_dir_all(folder).map_err(Error::write(folder))?;
        let session = fs::read_dir(folder).map_err(Error::read(folder))?.count() as u64 + 1;
        let path = (session..)
            .map(|session| folder.join(format!("events.out.tfevents.{session:010}.equicaps")))
            .find(|path| !path.exists())
            .unwrap_or_else(|| folder.join("events.out.tfevents.equicaps"));
        let file =
            OpenOptions::new().create_new(true).append(true).open(&path).map_err(Error::write(&path))?;
        let mut events = Self { file, path };
        events.event(0, |event| field_bytes(event, 3, b"brain.Event:2"))?;
        if session > 1 {
            // SessionLog { 1: status START = 1 }
            events.event(step + 1, |event| field_bytes(event, 7, &[0x08, 0x01]))?;
        }
        Ok(events)
    }

    /// Writes numbers at `step`.
    pub fn scalars<'a>(
        &mut self,
        step: u64,
        scalars: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<()> {
        let mut summary = Vec::new();
        for (tag, value) in scalars {
            // Value { 1: tag, 2: simple_value f32 }
            let mut entry = Vec::new();
            field_bytes(&mut entry, 1, tag.as_bytes());
            entry.push(2 << 3 | 5);
            entry.extend((value as f32).to_le_bytes());
            field_bytes(&mut summary, 1, &entry);
        }
        self.event(step, |event| field_bytes(event, 5, &summary))
    }

    /// Writes an image at `step`.
    pub fn image(&mut self, step: u64, image: &Image<'_>) -> Result<()> {
        // Image { 1: height, 2: width, 3: colorspace (3 = RGB), 4: encoded }
        let mut encoded = Vec::new();
        field_varint(&mut encoded, 1, image.height as u64);
        field_varint(&mut encoded, 2, image.width as u64);
        field_varint(&mut encoded, 3, 3);
        field_bytes(&mut encoded, 4, image.png);
        // Value { 1: tag, 4: image }
        let mut entry = Vec::new();
        field_bytes(&mut entry, 1, image.tag.as_bytes());
        field_bytes(&mut entry, 4, &encoded);
        let mut summary = Vec::new();
        field_bytes(&mut summary, 1, &entry);
        self.event(step, |event| field_bytes(event, 5, &summary))
    }

    fn event(&mut self, step: u64, what: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut event = vec![1 << 3 | 1];
        event.extend(now.to_le_bytes());
        field_varint(&mut event, 2, step);
        what(&mut event);
        self.file.write_all(&record(&event)).map_err(Error::write(&self.path))
    }
}

/// The checksum, rotated and offset, so that data that contain checksums can be checksummed.
fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// A record around `data`.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked(data).to_le_bytes());
    record
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn field_varint(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn field_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_published_bytes() {
        // The first record of every event file TensorFlow writes, at wall time 0: Event { wall_time: 0,
        // file_version: "brain.Event:2" } has 24 bytes; the masked checksum of that length is a known constant.
        let length = 24_u64.to_le_bytes();
        assert_eq!(masked(&length).to_le_bytes(), [0xa3, 0x7f, 0x4b, 0x22]);
        let record = record(&[0; 24]);
        assert_eq!(record.len(), 8 + 4 + 24 + 4);
        assert_eq!(record[8..12], [0xa3, 0x7f, 0x4b, 0x22]);
    }

    #[test]
    fn files_hold_whole_records_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for session in 0..2_u64 {
            let mut events = EventFile::create(folder.path(), session * 10).unwrap();
            events.scalars(session * 10 + 1, [("loss", 2.5), ("terms/variance", 300.0)]).unwrap();
            let image = Image { tag: "pairs", width: 300, height: 2, png: b"png" };
            events.image(session * 10 + 1, &image).unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
        names.sort();
        assert!(names[0].to_string_lossy().ends_with("events.out.tfevents.0000000001.equicaps"));
        // Of every record the step, with a mark at session logs.
        let contents: Vec<Vec<(u8, bool)>> = names
            .iter()
            .map(|path| {
                let bytes = fs::read(path).unwrap();
                let mut rest = &bytes[..];
                let mut records = Vec::new();
                while !rest.is_empty() {
                    let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
                    assert_eq!(u32::from_le_bytes(rest[8..12].try_into().unwrap()), masked(&rest[..8]));
                    let data = &rest[12..12 + length];
                    let sum = u32::from_le_bytes(rest[12 + length..16 + length].try_into().unwrap());
                    assert_eq!(sum, masked(data));
                    assert_eq!((data[0], data[9]), (1 << 3 | 1, 2 << 3));
                    records.push((data[10], data[11] == 7 << 3 | 2));
                    rest = &rest[16 + length..];
                }
                records
            })
            .collect();
        assert_eq!(contents[0], [(0, false), (1, false), (1, false)]);
        // What the first session wrote at step 10 stays.
        assert_eq!(contents[1], [(0, false), (11, true), (11, false), (11, false)]);
    }

    #[test]
    fn a_scalar_event_is_the_protobuf_it_should_be() {
        let mut entry = Vec::new();
        field_bytes(&mut entry, 1, b"loss");
        assert_eq!(entry, [0x0a, 4, b'l', b'o', b's', b's']);
        let mut number = Vec::new();
        field_varint(&mut number, 2, 300);
        assert_eq!(number, [0x10, 0xac, 0x02]);
    }
}
