//! A picture of somebody's own: any JPEG or PNG, upright, at the size the network takes.

use std::path::Path;

use anyhow::{Context, bail};
use dataset::resize::Resize;
use dataset::{jpeg, jpeg_segments};
use image::metadata::Orientation;
use image::{DynamicImage, RgbImage};

/// Endings of pictures that can be read.
pub const ENDINGS: [&str; 3] = ["jpg", "jpeg", "png"];
/// Endings of pictures that cannot, which a folder may hold as well.
pub const OTHER_ENDINGS: [&str; 9] = ["webp", "heic", "heif", "avif", "bmp", "gif", "tif", "tiff", "jxl"];

/// The picture at `side` x `side` pixels, RGB, turned as its EXIF data say.
pub fn load(path: &Path, side: usize) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    decode(&bytes, side).with_context(|| path.display().to_string())
}

fn decode(bytes: &[u8], side: usize) -> anyhow::Result<Vec<u8>> {
    let (width, height, pixels) = if bytes.starts_with(b"\x89PNG") {
        let image = image::load_from_memory(bytes).context("the PNG cannot be decoded")?.to_rgb8();
        (image.width() as usize, image.height() as usize, image.into_raw())
    } else if bytes.starts_with(&[0xFF, 0xD8]) {
        let picture = jpeg::decode(bytes).map_err(anyhow::Error::msg)?;
        (picture.width, picture.height, picture.pixels)
    } else if bytes.is_empty() {
        bail!("the file is empty");
    } else {
        bail!("is neither a JPEG nor a PNG");
    };
    let mut resized = vec![0; side * side * 3];
    if (width, height) == (side, side) {
        resized = pixels;
    } else if width == 0 || height == 0 {
        bail!("is a picture without pixels");
    } else {
        Resize::new(width, height, side).apply(&pixels, &mut resized);
    }
    match Orientation::from_exif(jpeg_segments::orientation(bytes)) {
        None | Some(Orientation::NoTransforms) => Ok(resized),
        // The result is a square, so turning it after resizing is the same as before.
        Some(turn) => {
            let square = RgbImage::from_raw(side as u32, side as u32, resized);
            let mut square = DynamicImage::ImageRgb8(square.context("the picture is too large")?);
            square.apply_orientation(turn);
            Ok(square.into_rgb8().into_raw())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataset::jpeg::{ChannelOrder, encode};

    /// A picture that is bright in its upper half, with `orientation` in its EXIF data.
    fn bright_above(orientation: u8) -> Vec<u8> {
        let pixels: Vec<u8> =
            (0..32 * 32).flat_map(|pixel| [if pixel < 32 * 16 { 220 } else { 30 }; 3]).collect();
        let picture = encode(&pixels, 32, ChannelOrder::Rgb).unwrap();
        let tiff =
            [b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".as_slice(), &[orientation, 0, 0]].concat();
        let length = (8 + tiff.len()) as u16;
        [&picture[..2], &[0xFF, 0xE1], &length.to_be_bytes(), b"Exif\0\0", &tiff, &picture[2..]].concat()
    }

    #[test]
    fn pictures_are_turned_upright() {
        // Where the stored picture's upper half is shown, by EXIF's table: (row, column) of a bright pixel.
        for (orientation, row, column) in [(1, 2, 8), (3, 13, 8), (4, 13, 8), (6, 8, 13), (8, 8, 2)] {
            let pixels = decode(&bright_above(orientation), 16).unwrap();
            assert!(pixels[3 * (row * 16 + column)] > 180, "orientation {orientation}");
            assert!(pixels[3 * ((15 - row) * 16 + 15 - column)] < 70, "orientation {orientation}");
        }
    }

    #[test]
    fn what_cameras_append_does_not_matter_and_what_is_no_picture_is_named() {
        let whole = bright_above(1);
        assert!(decode(&[whole.as_slice(), b"SEFT"].concat(), 16).is_ok());
        let wrong = |bytes: &[u8]| format!("{:#}", decode(bytes, 16).unwrap_err());
        assert!(wrong(&whole[..whole.len() - 10]).contains("cut off"));
        assert_eq!(wrong(b"hello"), "is neither a JPEG nor a PNG");
        assert_eq!(wrong(b""), "the file is empty");
    }
}
