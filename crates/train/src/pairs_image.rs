//! An image of a few training pairs: first views on top, second views below.

use std::io::Cursor;

use image::ImageEncoder;
use image::codecs::png::PngEncoder;

use crate::error::{Error, Result};
use crate::tensorboard::Image;

/// A finished image.
#[derive(Debug)]
pub struct PairsImage {
    width: usize,
    height: usize,
    png: Vec<u8>,
}

impl PairsImage {
    /// The image under the name `tag`.
    pub fn for_tensorboard<'a>(&'a self, tag: &'a str) -> Image<'a> {
        Image { tag, width: self.width, height: self.height, png: &self.png }
    }
}

/// Draws pairs of images of `side` x `side` pixels: all first views, then all second ones.
pub fn draw(images: &[Vec<u8>], side: usize) -> Result<PairsImage> {
    let pairs = images.len() / 2;
    let (width, height) = (pairs * side, 2 * side);
    let mut pixels = vec![0; width * height * 3];
    for view in 0..2 {
        for pair in 0..pairs {
            let from = &images[view * pairs + pair];
            for (row, line) in from.chunks_exact(side * 3).enumerate() {
                let at = ((view * side + row) * width + pair * side) * 3;
                pixels[at..at + side * 3].copy_from_slice(line);
            }
        }
    }
    let mut png = Cursor::new(Vec::new());
    PngEncoder::new(&mut png)
        .write_image(&pixels, width as u32, height as u32, image::ExtendedColorType::Rgb8)
        .map_err(|error| Error::Request(format!("cannot draw the pairs: {error}")))?;
    Ok(PairsImage { width, height, png: png.into_inner() })
}
