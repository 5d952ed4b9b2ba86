//! The segments of a JPEG file, for what decoders do not tell: where the image ends, and which way up it is.

const START_OF_SCAN: u8 = 0xDA;
const END_OF_IMAGE: u8 = 0xD9;
const APP1: u8 = 0xE1;
/// EXIF's tag of the orientation.
const ORIENTATION: u16 = 0x0112;

/// Whether the image's end mark is there. What follows it (cameras append previews, films and notes) does not matter;
/// end marks inside of segments (embedded previews) do not count.
pub fn is_complete(bytes: &[u8]) -> bool {
    segments(bytes).any(|(marker, _)| marker == END_OF_IMAGE)
}

/// EXIF's orientation: 1 is upright, 2 to 8 are turned or mirrored; 1 where nothing sensible is said.
pub fn orientation(bytes: &[u8]) -> u8 {
    segments(bytes)
        .take_while(|(marker, _)| *marker != START_OF_SCAN)
        .filter(|(marker, _)| *marker == APP1)
        .find_map(|(_, content)| orientation_in_tiff(content.strip_prefix(b"Exif\0\0")?))
        .filter(|value| (1..=8).contains(value))
        .map_or(1, |value| value as u8)
}

/// (marker, content) of every segment from the first after the start mark; data of scans are passed over.
fn segments(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes.strip_prefix(&[0xFF, 0xD8]).unwrap_or_default();
    std::iter::from_fn(move || {
        // Between segments there may be fill bytes, after a scan its data: zeros and restart marks belong to them.
        let at = rest.windows(2).position(|pair| {
            pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0x01 | 0xFF) && !(0xD0..=0xD7).contains(&pair[1])
        })?;
        let marker = rest[at + 1];
        rest = &rest[at + 2..];
        if marker == END_OF_IMAGE {
            rest = &[];
            return Some((marker, rest));
        }
        let length = usize::from(u16::from_be_bytes(*rest.first_chunk()?));
        let content = rest.get(2..length)?;
        rest = &rest[length..];
        Some((marker, content))
    })
}

/// The orientation in the first directory of a TIFF structure, in either byte order.
fn orientation_in_tiff(tiff: &[u8]) -> Option<u16> {
    let is_little = match tiff.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let two = *tiff.get(at..)?.first_chunk()?;
        Some(if is_little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) })
    };
    let four = *tiff.get(4..)?.first_chunk()?;
    let directory = if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) } as usize;
    let entries = usize::from(short(directory)?);
    let entry = |index: usize| directory.checked_add(2 + 12 * index);
    let found = (0..entries).filter_map(entry).find(|&at| short(at) == Some(ORIENTATION))?;
    short(found + 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jpeg::{ChannelOrder, encode};

    /// A small image with an EXIF segment that says `value`.
    fn turned(value: u16, is_little: bool) -> Vec<u8> {
        let short = |n: u16| if is_little { n.to_le_bytes() } else { n.to_be_bytes() };
        let long = |n: u32| if is_little { n.to_le_bytes() } else { n.to_be_bytes() };
        let mut tiff = if is_little { b"II".to_vec() } else { b"MM".to_vec() };
        tiff.extend([short(42).as_slice(), &long(8), &short(2)].concat());
        tiff.extend([short(0x010F).as_slice(), &short(2), &long(4), b"abc\0"].concat());
        tiff.extend([short(ORIENTATION).as_slice(), &short(3), &long(1), &short(value), &short(0)].concat());
        let image = encode(&[128; 16 * 16 * 3], 16, ChannelOrder::Rgb).unwrap();
        let length = (2 + 6 + tiff.len()) as u16;
        [&image[..2], &[0xFF, APP1], &length.to_be_bytes(), b"Exif\0\0", &tiff, &image[2..]].concat()
    }

    #[test]
    fn orientation_is_read_in_either_byte_order() {
        for is_little in [false, true] {
            for value in 1..=8 {
                assert_eq!(orientation(&turned(value, is_little)), value as u8);
            }
        }
        assert_eq!(orientation(&turned(9, true)), 1);
        assert_eq!(orientation(&encode(&[128; 16 * 16 * 3], 16, ChannelOrder::Rgb).unwrap()), 1);
        let whole = turned(6, true);
        for end in 0..whole.len() {
            assert!(matches!(orientation(&whole[..end]), 1 | 6));
        }
    }

    #[test]
    fn the_end_is_found_whatever_follows_and_not_in_a_preview() {
        let image = turned(6, false);
        assert!(is_complete(&image));
        assert!(is_complete(&[image.as_slice(), b"notes of a camera"].concat()));
        assert!(!is_complete(&image[..image.len() - 2]));
        // A whole image inside of a segment, and nothing after it.
        let length = (2 + image.len()) as u16;
        let preview = [&[0xFF, 0xD8, 0xFF, 0xE2], length.to_be_bytes().as_slice(), &image].concat();
        assert!(!is_complete(&preview));
        assert!(!is_complete(b"") && !is_complete(&[0xFF]));
    }
}
