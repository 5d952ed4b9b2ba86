//! JPEG as the published datasets use it: quality 95, 4:2:0, decoded as RGB.

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};
use serde::{Deserialize, Serialize};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::jpeg_segments;

/// JPEG quality of the published files.
pub const QUALITY: u8 = 95;

/// Largest side of an image this crate decodes; a header that claims more is refused before memory is taken.
pub(crate) const LARGEST_SIDE: usize = 8192;

/// Most pixels of an image that [`decode`] takes, which may be anybody's photograph.
pub(crate) const MOST_PIXELS: usize = 1 << 28;

/// Every 8x8 block of one colour at least has a bit of its own, so a byte stands for 512 pixels at most.
const MOST_PIXELS_A_BYTE: usize = 512;

/// The order of the colour channels in a stored image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelOrder {
    /// True colours.
    #[default]
    Rgb,
    /// Red and blue exchanged, as in the published files, whose generator hands RGB data to a BGR writer.
    Bgr,
}

impl std::fmt::Display for ChannelOrder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Rgb => "rgb",
            Self::Bgr => "bgr",
        })
    }
}

/// Encodes `side * side` RGB pixels.
pub fn encode(pixels: &[u8], side: u16, order: ChannelOrder) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(pixels.len() / 8 + 1024);
    let mut encoder = Encoder::new(&mut bytes, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::R_4_2_0);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    let colours = match order {
        ChannelOrder::Rgb => ColorType::Rgb,
        ChannelOrder::Bgr => ColorType::Bgr,
    };
    encoder.encode(pixels, side, side, colours).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Pixels of a decoded image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// `height * width * 3` bytes, RGB, row 0 on top.
    pub pixels: Vec<u8>,
}

/// Decodes into `image`, whose memory is used again. The error says what is wrong with the data.
pub(crate) fn decode_into(bytes: &[u8], image: &mut Image) -> Result<(), String> {
    decode_within(bytes, image, |width, height| width.max(height) <= LARGEST_SIDE)
}

/// Decodes an image whose width and height are accepted by `fits`, which is asked before memory is taken.
fn decode_within(bytes: &[u8], image: &mut Image, fits: impl Fn(usize, usize) -> bool) -> Result<(), String> {
    let options = DecoderOptions::default()
        .jpeg_set_out_colorspace(ColorSpace::RGB)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let broken = |error: zune_jpeg::errors::DecodeErrors| {
        let words = error.to_string();
        // Some of the decoder's messages are of several lines.
        format!("not a readable JPEG: {}", words.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let cut_off = || "the JPEG is cut off: its end mark is missing".to_owned();
    let is_cut_off = || bytes.starts_with(&[0xFF, 0xD8]) && !ends_properly(bytes);
    decoder.decode_headers().map_err(|error| if is_cut_off() { cut_off() } else { broken(error) })?;
    let (width, height) = decoder.dimensions().ok_or("not a readable JPEG: no dimensions")?;
    if !fits(width, height) {
        return Err(format!("the JPEG is too large: {width} x {height} pixels"));
    }
    if width * height / MOST_PIXELS_A_BYTE > bytes.len() {
        let length = bytes.len();
        return Err(format!("the JPEG claims {width} x {height} pixels, which {length} bytes cannot hold"));
    }
    let needed = decoder.output_buffer_size().ok_or("not a readable JPEG: no dimensions")?;
    if needed != width * height * 3 {
        return Err("not a readable JPEG: it cannot be decoded as RGB".to_owned());
    }
    if is_cut_off() {
        return Err(cut_off());
    }
    image.width = width;
    image.height = height;
    image.pixels.resize(needed, 0);
    decoder.decode_into(&mut image.pixels).map_err(broken)
}

/// Decodes a JPEG as RGB, a large photograph too.
pub fn decode(bytes: &[u8]) -> Result<Image, String> {
    let mut image = Image::default();
    decode_within(bytes, &mut image, |width, height| width * height <= MOST_PIXELS)?;
    Ok(image)
}

/// Whether the end mark is there; what cameras append after it does not matter.
fn ends_properly(bytes: &[u8]) -> bool {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes[..end].ends_with(&[0xFF, 0xD9]) || jpeg_segments::is_complete(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(side: usize) -> Vec<u8> {
        (0..side * side)
            .flat_map(|i| [(i % side * 255 / side) as u8, (i / side * 255 / side) as u8, 40])
            .collect()
    }

    #[test]
    fn images_come_back_nearly_as_they_were() {
        let pixels = gradient(64);
        let bytes = encode(&pixels, 64, ChannelOrder::Rgb).unwrap();
        let image = decode(&bytes).unwrap();
        assert_eq!((image.width, image.height), (64, 64));
        let worst = pixels.iter().zip(&image.pixels).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(worst < 12, "worst difference {worst}");
    }

    #[test]
    fn bgr_exchanges_red_and_blue() {
        let pixels: Vec<u8> = [200, 100, 20].repeat(256);
        let image = decode(&encode(&pixels, 16, ChannelOrder::Bgr).unwrap()).unwrap();
        let [r, g, b] = [0, 1, 2].map(|c| i32::from(image.pixels[c]));
        assert!((r - 20).abs() < 4 && (g - 100).abs() < 4 && (b - 200).abs() < 4, "{r} {g} {b}");
    }

    #[test]
    fn quality_and_subsampling_are_the_published_ones() {
        let bytes = encode(&gradient(16), 16, ChannelOrder::Rgb).unwrap();
        // First luminance step of the standard table at quality 95: (16 * 10 + 50) / 100 = 2.
        let table = bytes.windows(2).position(|w| w == [0xFF, 0xDB]).unwrap();
        assert_eq!(bytes[table + 5], 2);
        let frame = bytes.windows(2).position(|w| w == [0xFF, 0xC0]).unwrap();
        assert_eq!(bytes[frame + 11], 0x22, "luminance sampled 2x2 against chroma");
    }

    #[test]
    fn large_claims_are_refused_before_memory_is_taken() {
        let mut bytes = encode(&gradient(16), 16, ChannelOrder::Rgb).unwrap();
        let frame = bytes.windows(2).position(|w| w == [0xFF, 0xC0]).unwrap();
        bytes[frame + 5..frame + 9].copy_from_slice(&[0x40, 0x00, 0x40, 0x00]);
        let length = bytes.len();
        let expected = format!("the JPEG claims 16384 x 16384 pixels, which {length} bytes cannot hold");
        assert_eq!(decode(&bytes).unwrap_err(), expected);
        bytes[frame + 5..frame + 9].copy_from_slice(&[0x23, 0x28, 0x00, 0x10]);
        let message = decode_into(&bytes, &mut Image::default()).unwrap_err();
        assert_eq!(message, "the JPEG is too large: 16 x 9000 pixels");
        assert!(decode(&bytes).map_or_else(|why| !why.contains("too large"), |large| large.height == 9000));
        bytes[frame + 5..frame + 9].fill(0xFF);
        assert!(decode(&bytes).unwrap_err().contains("too large: 65535 x 65535"));
    }

    #[test]
    fn an_empty_photograph_is_within_the_bound() {
        let side = 2048;
        let bytes = encode(&vec![128; side * side * 3], side as u16, ChannelOrder::Rgb).unwrap();
        assert_eq!(decode(&bytes).unwrap().width, side);
    }

    #[test]
    fn cut_off_and_foreign_files_are_refused() {
        let bytes = encode(&gradient(32), 32, ChannelOrder::Rgb).unwrap();
        for end in [0, 1, 2, 100, bytes.len() / 2, bytes.len() - 1] {
            let message = decode(&bytes[..end]).unwrap_err();
            assert!(!message.contains('\n') && message.trim() == message, "cut at {end}: {message:?}");
        }
        assert!(decode(b"\x89PNG\r\n\x1a\n").is_err());
    }
}
