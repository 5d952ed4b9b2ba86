//! A canvas of RGB pixels: rectangles, pictures, text, and the way to a PNG.

use image::ImageEncoder;
use image::codecs::png::PngEncoder;

use crate::picture::font::{self, GLYPH_HEIGHT, GLYPH_WIDTH};

/// A colour.
pub type Rgb = [u8; 3];

/// Space between two glyphs, in font pixels.
const GAP: usize = 1;

/// `width * height` RGB pixels, row 0 on top. Drawing outside is cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    /// A canvas of one colour.
    pub fn new(width: usize, height: usize, colour: Rgb) -> Self {
        Self { width, height, pixels: colour.repeat(width * height) }
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    fn row_mut(&mut self, x: usize, y: usize, width: usize) -> &mut [u8] {
        if y >= self.height || x >= self.width {
            return &mut [];
        }
        let start = y * self.width + x;
        let end = start + width.min(self.width - x);
        &mut self.pixels[start * 3..end * 3]
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Rgb) {
        for row in y..y.saturating_add(height).min(self.height) {
            self.row_mut(x, row, width).chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&colour));
        }
    }

    /// Copies a picture of `side * side` RGB pixels.
    pub fn draw(&mut self, x: usize, y: usize, side: usize, picture: &[u8]) {
        for (row, source) in picture.chunks_exact((side * 3).max(1)).enumerate() {
            let target = self.row_mut(x, y + row, side);
            let length = target.len();
            target.copy_from_slice(&source[..length]);
        }
    }

    /// Width of a line of text at `scale` pixels a font pixel.
    pub fn text_width(text: &str, scale: usize) -> usize {
        (text.chars().count() * (GLYPH_WIDTH + GAP)).saturating_sub(GAP) * scale
    }

    /// Height of a line of text.
    pub fn text_height(scale: usize) -> usize {
        GLYPH_HEIGHT * scale
    }

    /// Writes a line of text with its top left corner at `(x, y)`.
    pub fn text(&mut self, x: usize, y: usize, scale: usize, text: &str, colour: Rgb) {
        for (position, character) in text.chars().enumerate() {
            let left = x + position * (GLYPH_WIDTH + GAP) * scale;
            for (row, bits) in font::glyph(character).into_iter().enumerate() {
                for column in (0..GLYPH_WIDTH).filter(|column| bits >> (GLYPH_WIDTH - 1 - column) & 1 == 1) {
                    self.fill(left + column * scale, y + row * scale, scale, scale, colour);
                }
            }
        }
    }

    /// The picture as a PNG file.
    pub fn to_png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (width, height) = (self.width as u32, self.height as u32);
        // Writing to memory cannot fail for a picture whose size fits its pixels.
        let _ = PngEncoder::new(&mut bytes).write_image(
            &self.pixels,
            width,
            height,
            image::ExtendedColorType::Rgb8,
        );
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawing_outside_is_cut_off() {
        let mut canvas = Canvas::new(10, 5, [0; 3]);
        canvas.fill(8, 3, 100, 100, [9; 3]);
        canvas.draw(7, 0, 4, &[5; 48]);
        canvas.text(100, 100, 3, "abc", [1; 3]);
        assert_eq!(canvas.pixels.iter().filter(|&&v| v == 9).count(), 2 * 3);
        assert_eq!(canvas.pixels.iter().filter(|&&v| v == 5).count(), 3 * 4 * 3);
        let decoded = image::load_from_memory(&canvas.to_png()).unwrap().to_rgb8();
        assert_eq!(decoded.into_raw(), canvas.pixels);
    }
}
