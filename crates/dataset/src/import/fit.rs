//! An image of any size as a square one: cut to the middle, filled up, or cut around an object. The aspect is kept.

use serde::{Deserialize, Serialize};

use crate::jpeg::Image;
use crate::resize::Resize;

/// How an image that is not square becomes square.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// The largest square in its middle.
    #[default]
    Crop,
    /// All of it, with grey above and below, or left and right.
    Pad,
}

impl Fit {
    /// What it does, for captions.
    pub fn words(self) -> &'static str {
        match self {
            Self::Crop => "cropped to the square in the middle",
            Self::Pad => "padded with grey to a square",
        }
    }
}

/// The part of an image that shows an object, in pixels from the upper left corner: x, y, width, height.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Region(pub [f64; 4]);

/// What is left around a region, on each side, as a share of its longer side.
const MARGIN: f64 = 0.1;
/// The colour beside an image: grey.
const GREY: u8 = 128;
/// A region whose square has more times the image's longer side than this is a mistake.
const LARGEST: f64 = 4.0;

/// The square of `image` at `side * side` pixels, into `output`: around `region` where there is one, with grey where the
/// square leaves the image, else by `fit`.
pub fn square(
    image: &Image,
    fit: Fit,
    region: Option<Region>,
    side: usize,
    output: &mut [u8],
) -> Result<(), String> {
    let (width, height) = (image.width, image.height);
    let longer = width.max(height);
    let (x, y, size) = match (region, fit) {
        (Some(Region([x, y, w, h])), _) => {
            let size = w.max(h) * (1.0 + 2.0 * MARGIN);
            let (left, top) = (x + w / 2.0 - size / 2.0, y + h / 2.0 - size / 2.0);
            let meets = x < width as f64 && y < height as f64 && x + w > 0.0 && y + h > 0.0;
            if !(w > 0.0 && h > 0.0 && meets && size <= LARGEST * longer as f64) {
                return Err(format!(
                    "the box of the object, {w} x {h} pixels at ({x}, {y}), is not in the image of {width} x {height}"
                ));
            }
            (left.round() as i64, top.round() as i64, (size.round() as usize).max(1))
        }
        (None, Fit::Crop) => {
            let size = width.min(height);
            (((width - size) / 2) as i64, ((height - size) / 2) as i64, size)
        }
        (None, Fit::Pad) => (-(((longer - width) / 2) as i64), -(((longer - height) / 2) as i64), longer),
    };
    if (width, height, x, y) == (size, size, 0, 0) {
        resize(&image.pixels, size, side, output);
    } else {
        resize(&cut(image, x, y, size), size, side, output);
    }
    Ok(())
}

/// The square of `size` pixels at (x, y), grey where there is no image.
fn cut(image: &Image, x: i64, y: i64, size: usize) -> Vec<u8> {
    let mut pixels = vec![GREY; size * size * 3];
    let first = x.max(0) as usize;
    let last = (x + size as i64).clamp(0, image.width as i64) as usize;
    for (row, line) in pixels.chunks_exact_mut(size * 3).enumerate() {
        let from = y + row as i64;
        if (0..image.height as i64).contains(&from) && first < last {
            let start = from as usize * image.width;
            let there = &image.pixels[(start + first) * 3..(start + last) * 3];
            let to = (first as i64 - x) as usize * 3;
            line[to..to + there.len()].copy_from_slice(there);
        }
    }
    pixels
}

fn resize(pixels: &[u8], size: usize, side: usize, output: &mut [u8]) {
    if size == side {
        output.copy_from_slice(pixels);
    } else {
        Resize::new(size, size, side).apply(pixels, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pixel's red is its column, its green its row.
    fn image(width: usize, height: usize) -> Image {
        let pixels = (0..width * height).flat_map(|i| [(i % width) as u8, (i / width) as u8, 7]).collect();
        Image { width, height, pixels }
    }

    fn squared(image: &Image, fit: Fit, region: Option<Region>, side: usize) -> Vec<u8> {
        let mut output = vec![0; side * side * 3];
        square(image, fit, region, side, &mut output).unwrap();
        output
    }

    #[test]
    fn the_middle_is_cut_out_or_grey_is_added() {
        let wide = image(10, 4);
        let cropped = squared(&wide, Fit::Crop, None, 4);
        assert_eq!((cropped[..3].to_vec(), cropped[45..].to_vec()), (vec![3, 0, 7], vec![6, 3, 7]));
        let padded = squared(&wide, Fit::Pad, None, 10);
        assert!(padded[..3 * 30].iter().chain(&padded[3 * 70..]).all(|&value| value == GREY));
        assert_eq!(padded[3 * 30..3 * 70], wide.pixels);
        let high = image(4, 11);
        assert_eq!(squared(&high, Fit::Crop, None, 4)[..3], [0, 3, 7]);
        assert_eq!(squared(&high, Fit::Pad, None, 11)[3 * 3..3 * 7], high.pixels[..12]);
        assert_eq!(squared(&image(5, 5), Fit::Crop, None, 5), image(5, 5).pixels);
    }

    #[test]
    fn a_region_is_in_the_middle_of_its_square_with_a_margin() {
        let whole = image(40, 30);
        // 10 x 10 at (20, 10): a square of 12 from (19, 9).
        let found = squared(&whole, Fit::Crop, Some(Region([20.0, 10.0, 10.0, 10.0])), 12);
        assert_eq!((found[..3].to_vec(), found[3 * 143..].to_vec()), (vec![19, 9, 7], vec![30, 20, 7]));
        // At the border: grey outside.
        let found = squared(&whole, Fit::Pad, Some(Region([0.0, 0.0, 10.0, 10.0])), 12);
        assert_eq!((found[0], found[3 * 13..3 * 14].to_vec()), (GREY, vec![0, 0, 7]));
        let wrong = |region| square(&whole, Fit::Crop, Some(Region(region)), 4, &mut [0; 48]).unwrap_err();
        for region in
            [[50.0, 0.0, 5.0, 5.0], [0.0, 0.0, 0.0, 3.0], [0.0, 0.0, 1e9, 1.0], [f64::NAN, 0.0, 1.0, 1.0]]
        {
            assert!(wrong(region).starts_with("the box of the object"), "{region:?}");
        }
    }
}
