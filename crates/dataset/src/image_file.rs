//! An image file of any origin: JPEG, PNG or WebP, turned upright, at the size a network takes.

use std::error::Error as _;
use std::io::{Cursor, ErrorKind};
use std::path::Path;

use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, Rgb, RgbImage};

use crate::error::{Error, Result};
use crate::jpeg;
use crate::resize::Resize;

/// Extensions of images that can be read.
pub const EXTENSIONS: [&str; 4] = ["jpg", "jpeg", "png", "webp"];
/// Extensions of images that cannot, which a folder may hold as well.
pub const OTHER_EXTENSIONS: [&str; 8] = ["heic", "heif", "avif", "bmp", "gif", "tif", "tiff", "jxl"];

/// The image at `side` x `side` pixels, RGB, turned as its EXIF data say.
pub fn load(path: &Path, side: usize) -> Result<Vec<u8>> {
    let bytes = read_regular(path)?;
    decode(&bytes, side).map_err(|message| Error::content(path, message))
}

/// The bytes of a regular file: nothing would ever come out of a pipe that nobody writes to.
pub(crate) fn read_regular(path: &Path) -> Result<Vec<u8>> {
    if !std::fs::metadata(path).map_err(Error::read(path))?.is_file() {
        return Err(Error::content(path, "is not a regular file"));
    }
    std::fs::read(path).map_err(Error::read(path))
}

/// The pixels as they are stored, not turned.
fn decode_stored(bytes: &[u8]) -> std::result::Result<jpeg::Image, String> {
    let image = if bytes.starts_with(b"\x89PNG") {
        of_rgb(decode_png(bytes)?)
    } else if bytes.starts_with(&[0xFF, 0xD8]) {
        jpeg::decode(bytes)?
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        of_rgb(decode_webp(bytes)?)
    } else if bytes.is_empty() {
        return Err("the file is empty".to_owned());
    } else {
        return Err("is neither a JPEG nor a PNG nor a WebP".to_owned());
    };
    match image.width.min(image.height) {
        0 => Err("is an image without pixels".to_owned()),
        _ => Ok(image),
    }
}

fn of_rgb(image: RgbImage) -> jpeg::Image {
    jpeg::Image { width: image.width() as usize, height: image.height() as usize, pixels: image.into_raw() }
}

/// The whole image, turned as its EXIF data say.
pub(crate) fn decode_upright(bytes: &[u8]) -> std::result::Result<jpeg::Image, String> {
    let image = decode_stored(bytes)?;
    let turn = orientation(bytes);
    if turn == Orientation::NoTransforms {
        return Ok(image);
    }
    let stored = RgbImage::from_raw(image.width as u32, image.height as u32, image.pixels);
    let mut whole = DynamicImage::ImageRgb8(stored.ok_or("the image is too large")?);
    whole.apply_orientation(turn);
    Ok(of_rgb(whole.into_rgb8()))
}

fn decode(bytes: &[u8], side: usize) -> std::result::Result<Vec<u8>, String> {
    let jpeg::Image { width, height, pixels } = decode_stored(bytes)?;
    let mut resized = vec![0; side * side * 3];
    if (width, height) == (side, side) {
        resized = pixels;
    } else {
        Resize::new(width, height, side).apply(&pixels, &mut resized);
    }
    // The result is a square, so turning it after resizing is the same as before.
    let turn = orientation(bytes);
    let square = RgbImage::from_raw(side as u32, side as u32, resized).ok_or("the image is too large")?;
    let mut square = DynamicImage::ImageRgb8(square);
    square.apply_orientation(turn);
    Ok(square.into_rgb8().into_raw())
}

/// What a decoder says, for people: without the names of its types.
fn plain(error: &ImageError) -> String {
    let text = match error {
        ImageError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => "it is cut off".to_owned(),
        ImageError::Decoding(error) => error.source().map_or_else(|| error.to_string(), ToString::to_string),
        other => other.to_string(),
    };
    if text.contains("CRC") {
        return "a checksum is wrong, it is damaged".to_owned();
    }
    if text.contains(['{', '(', '\n']) { "it is damaged".to_owned() } else { text }
}

/// DEFLATE makes at most 1032 bytes of one, and a byte is at most eight pixels.
const MOST_PNG_PIXELS_A_BYTE: u64 = 8 * 1032;

fn decode_png(bytes: &[u8]) -> std::result::Result<RgbImage, String> {
    let broken = |error: ImageError| format!("not a readable PNG: {}", plain(&error));
    let decoder = PngDecoder::new(Cursor::new(bytes)).map_err(broken)?;
    // Asked before memory is taken: a small file can claim a huge image.
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels > jpeg::MOST_PIXELS as u64 / 2 {
        return Err(format!("the PNG is too large: {width} x {height} pixels"));
    }
    if pixels / MOST_PNG_PIXELS_A_BYTE > bytes.len() as u64 {
        let length = bytes.len();
        return Err(format!("the PNG claims {width} x {height} pixels, which {length} bytes cannot hold"));
    }
    Ok(on_white(DynamicImage::from_decoder(decoder).map_err(broken)?))
}

/// What a viewer shows of an image on white paper: colours under full transparency mean nothing.
fn on_white(image: DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.into_rgb8();
    }
    let image = image.into_rgba8();
    let over = |value: u8, alpha: u32| ((u32::from(value) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0;
        Rgb([red, green, blue].map(|value| over(value, u32::from(alpha))))
    })
}

/// A WebP claims at most 16384 x 16384 pixels, in a few bytes where they are all the same.
const MOST_WEBP_PIXELS: u64 = 1 << 26;

fn decode_webp(bytes: &[u8]) -> std::result::Result<RgbImage, String> {
    let broken = |error: ImageError| format!("not a readable WebP: {}", plain(&error));
    let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(broken)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_WEBP_PIXELS {
        return Err(format!("the WebP is too large: {width} x {height} pixels"));
    }
    Ok(on_white(DynamicImage::from_decoder(decoder).map_err(broken)?))
}

/// What the EXIF data say; upright where there are none.
fn orientation(bytes: &[u8]) -> Orientation {
    let decoder = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok();
    let orientation = decoder.and_then(|reader| reader.into_decoder().ok()?.orientation().ok());
    orientation.unwrap_or(Orientation::NoTransforms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jpeg::{ChannelOrder, encode};

    /// An image that is bright in its upper half, with `orientation` in its EXIF data, in either byte order.
    fn bright_above(orientation: u8, is_little: bool) -> Vec<u8> {
        let pixels: Vec<u8> =
            (0..32 * 32).flat_map(|pixel| [if pixel < 32 * 16 { 220 } else { 30 }; 3]).collect();
        let image = encode(&pixels, 32, ChannelOrder::Rgb).unwrap();
        let tiff = if is_little {
            [b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".as_slice(), &[orientation, 0, 0, 0]].concat()
        } else {
            [b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".as_slice(), &[0, orientation, 0, 0]].concat()
        };
        let length = (8 + tiff.len()) as u16;
        [&image[..2], &[0xFF, 0xE1], &length.to_be_bytes(), b"Exif\0\0", &tiff, &image[2..]].concat()
    }

    #[test]
    fn images_are_turned_upright() {
        // Where the stored image's upper half is shown, by EXIF's table: (row, column) of a bright pixel.
        for (orientation, row, column) in [
            (1, 2, 8),
            (2, 2, 8),
            (3, 13, 8),
            (4, 13, 8),
            (5, 8, 2),
            (6, 8, 13),
            (7, 8, 13),
            (8, 8, 2),
            (9, 2, 8),
        ] {
            for is_little in [false, true] {
                let pixels = decode(&bright_above(orientation, is_little), 16).unwrap();
                assert!(pixels[3 * (row * 16 + column)] > 180, "orientation {orientation}");
                assert!(pixels[3 * ((15 - row) * 16 + 15 - column)] < 70, "orientation {orientation}");
            }
        }
    }

    #[test]
    fn what_is_transparent_is_white_whatever_colour_is_under_it() {
        let of = |hidden: [u8; 3]| {
            let pixels: Vec<u8> = (0..4u8)
                .flat_map(|i| {
                    let alpha = [0, 255, 128, 0][usize::from(i)];
                    let [r, g, b] = if alpha == 0 { hidden } else { [200, 30, 0] };
                    [r, g, b, alpha]
                })
                .collect();
            let mut png = Vec::new();
            let encoder = image::codecs::png::PngEncoder::new(&mut png);
            image::ImageEncoder::write_image(encoder, &pixels, 2, 2, image::ExtendedColorType::Rgba8)
                .unwrap();
            decode_upright(&png).unwrap().pixels
        };
        let expected = [255, 255, 255, 200, 30, 0, 227, 142, 127, 255, 255, 255];
        assert_eq!(of([255, 0, 255]), expected);
        assert_eq!(of([0, 0, 0]), expected);
    }

    #[test]
    fn a_webp_is_read() {
        let pixels: Vec<u8> =
            (0..12 * 8).flat_map(|i| [(i % 12 * 20) as u8, 90, (i / 12 * 30) as u8]).collect();
        let mut bytes = Vec::new();
        let encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut bytes);
        encoder.encode(&pixels, 12, 8, image::ExtendedColorType::Rgb8).unwrap();
        let image = decode_upright(&bytes).unwrap();
        assert_eq!((image.width, image.height, image.pixels), (12, 8, pixels));
    }

    #[test]
    fn a_whole_image_is_turned_with_its_sides() {
        // 16 x 8, bright on the left; turned by a quarter to the right, it is 8 x 16 and bright above.
        let pixels: Vec<u8> = (0..16 * 8).flat_map(|i| [if i % 16 < 8 { 220 } else { 30 }; 3]).collect();
        let mut jpeg = Vec::new();
        let encoder = image::codecs::jpeg::JpegEncoder::new(&mut jpeg);
        image::ImageEncoder::write_image(encoder, &pixels, 16, 8, image::ExtendedColorType::Rgb8).unwrap();
        let tiff = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0";
        let length = ((8 + tiff.len()) as u16).to_be_bytes();
        let bytes = [&jpeg[..2], &[0xFF, 0xE1], &length, b"Exif\0\0", tiff, &jpeg[2..]].concat();
        let image = decode_upright(&bytes).unwrap();
        assert_eq!((image.width, image.height), (8, 16));
        assert!(image.pixels[3 * (3 * 8 + 4)] > 180 && image.pixels[3 * (12 * 8 + 4)] < 70);
    }

    #[test]
    fn what_cameras_append_does_not_matter_and_what_is_no_image_is_named() {
        let whole = bright_above(1, false);
        assert!(decode(&[whole.as_slice(), b"SEFT"].concat(), 16).is_ok());
        let wrong = |bytes: &[u8]| decode(bytes, 16).unwrap_err();
        assert!(wrong(&whole[..whole.len() - 10]).contains("cut off"));
        assert_eq!(wrong(b"hello"), "is neither a JPEG nor a PNG nor a WebP");
        assert!(wrong(b"RIFF\x04\0\0\0WEBP").contains("not a readable WebP"));
        assert_eq!(wrong(b""), "the file is empty");
        assert!(wrong(b"\x89PNG\r\n\x1a\n").contains("not a readable PNG"));
        // A bit that changed.
        let mut png = Vec::new();
        let encoder = image::codecs::png::PngEncoder::new(&mut png);
        image::ImageEncoder::write_image(encoder, &[9; 12], 2, 2, image::ExtendedColorType::Rgb8).unwrap();
        let end = png.len() - 16;
        let message = wrong(&png[..end]);
        assert_eq!(message, "not a readable PNG: it is cut off");
        png[end] ^= 1;
        assert_eq!(wrong(&png), "not a readable PNG: a checksum is wrong, it is damaged");
        // A header alone, with its checksum: 16384 x 8192 and 65536 x 65536 pixels.
        let png = |width: u32, height: u32| {
            let header =
                [b"IHDR", &width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
            let sum = crc32fast::hash(&header).to_be_bytes();
            [b"\x89PNG\r\n\x1a\n\0\0\0\r", &header[..], &sum, b"\0\0\0\0IDAT\x35\xaf\x06\x1e"].concat()
        };
        let claims = wrong(&png(16384, 8192));
        assert!(claims.starts_with("the PNG claims 16384 x 8192 pixels, which "), "{claims}");
        assert_eq!(wrong(&png(65536, 65536)), "the PNG is too large: 65536 x 65536 pixels");
    }
}
