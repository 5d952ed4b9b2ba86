//! The segments of a JPEG file, for what decoders do not tell: where the image ends.

const END_OF_IMAGE: u8 = 0xD9;

/// Whether the image's end mark is there. What follows it (cameras append previews, films and notes) does not matter;
/// end marks inside of segments (embedded previews) do not count.
pub fn is_complete(bytes: &[u8]) -> bool {
    markers(bytes).any(|marker| marker == END_OF_IMAGE)
}

/// The marker of every segment from the first after the start mark; data of scans are passed over.
fn markers(bytes: &[u8]) -> impl Iterator<Item = u8> {
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
            return Some(marker);
        }
        let length = usize::from(u16::from_be_bytes(*rest.first_chunk()?));
        rest = rest.get(length.max(2)..)?;
        Some(marker)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jpeg::{ChannelOrder, encode};

    #[test]
    fn the_end_is_found_whatever_follows_and_not_in_a_preview() {
        let image = encode(&[128; 16 * 16 * 3], 16, ChannelOrder::Rgb).unwrap();
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
