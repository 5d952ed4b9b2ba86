//! The pictures of a page: each is there once, however often it is shown, as a JPEG that has no more pixels than a sharp
//! screen shows of it. Drawings in files keep theirs as they are.

use std::collections::HashMap;

use base64::prelude::{BASE64_STANDARD, Engine};
use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, imageops};

/// Pixels of a picture for each of the drawing, at most.
const SHARP: f64 = 2.0;
/// Quality of the JPEGs: nobody sees the difference at this size.
const QUALITY: u8 = 88;
const PNG: &str = "data:image/png;base64,";

/// Pictures, numbered as they come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pictures {
    /// By address and width in the drawing; none where it is no picture that can be read.
    numbers: HashMap<(String, String), Option<usize>>,
    addresses: Vec<String>,
}

impl Pictures {
    /// A drawing whose pictures stand elsewhere on the page: in [`Pictures::definitions`].
    pub(crate) fn share(&mut self, svg: &str) -> String {
        let mut shared = String::with_capacity(svg.len().min(1 << 20));
        let mut rest = svg;
        while let Some(begin) = rest.find("<image ") {
            let (before, image) = rest.split_at(begin);
            let end = image.find("\"/>").map_or(image.len(), |end| end + 3);
            let (image, after) = image.split_at(end);
            shared.push_str(before);
            match self.number(image) {
                Some((number, place)) => {
                    shared.push_str(&format!("<use {place} href=\"#picture-{number}\"/>"));
                }
                None => shared.push_str(image),
            }
            rest = after;
        }
        shared.push_str(rest);
        shared
    }

    /// The number of the picture of an element, and its place there.
    fn number<'a>(&mut self, element: &'a str) -> Option<(usize, &'a str)> {
        let (place, rest) =
            element.strip_prefix("<image ")?.split_once(" preserveAspectRatio=\"none\" href=\"")?;
        let address = rest.strip_suffix("\"/>")?;
        let width = place.split_once(" width=\"")?.1.split_once('"')?.0;
        let key = (address.to_owned(), width.to_owned());
        let number = match self.numbers.get(&key) {
            Some(known) => *known,
            None => {
                let found = width.parse().ok().and_then(|width| small(address, width));
                let number = found.map(|found| {
                    self.addresses.push(found);
                    self.addresses.len()
                });
                self.numbers.insert(key, number);
                number
            }
        };
        Some((number?, place))
    }

    /// The element that all pictures are in; it is not seen itself.
    pub(crate) fn definitions(&self) -> String {
        if self.addresses.is_empty() {
            return String::new();
        }
        let symbol = |(index, address): (usize, &String)| {
            format!(
                "<symbol id=\"picture-{}\" viewBox=\"0 0 1 1\" preserveAspectRatio=\"none\"><image width=\"1\" height=\"1\" \
                 preserveAspectRatio=\"none\" href=\"{address}\"/></symbol>\n",
                index + 1
            )
        };
        let all: String = self.addresses.iter().enumerate().map(symbol).collect();
        format!("<svg class=\"pictures\" width=\"0\" height=\"0\" aria-hidden=\"true\">\n{all}</svg>\n")
    }
}

/// The address of a picture that is `width` wide in a drawing: a JPEG, or the PNG where that is smaller.
fn small(address: &str, width: f64) -> Option<String> {
    let png = BASE64_STANDARD.decode(address.strip_prefix(PNG)?).ok()?;
    let mut pixels = image::load_from_memory_with_format(&png, ImageFormat::Png).ok()?.to_rgb8();
    let most = (SHARP * width).ceil() as u32;
    if pixels.width() > most && most > 0 {
        let height =
            (f64::from(pixels.height()) * f64::from(most) / f64::from(pixels.width())).round() as u32;
        pixels = imageops::resize(&pixels, most, height.max(1), imageops::FilterType::CatmullRom);
    }
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, QUALITY).encode_image(&pixels).ok()?;
    Some(match jpeg.len() < png.len() {
        true => format!("data:image/jpeg;base64,{}", BASE64_STANDARD.encode(&jpeg)),
        false => address.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::drawing::{Bitmap, Drawing, Mark};
    use crate::svg::SvgUse;

    fn drawing(pixel: impl Fn(u32, u32) -> [u8; 3], side: u32, times: usize) -> String {
        let pixels =
            (0..side).flat_map(|y| (0..side).flat_map(|x| pixel(x, y)).collect::<Vec<_>>()).collect();
        let image = Arc::new(Bitmap::new(side, side, pixels).unwrap());
        let mut drawing = Drawing::new(100.0, 100.0, "pictures");
        for time in 0..times {
            drawing.marks.push(Mark::Bitmap([10.0 * time as f64, 0.0, 72.0, 72.0], Arc::clone(&image)));
        }
        drawing.to_svg(SvgUse::Inline)
    }

    #[test]
    fn a_picture_is_there_once_small_and_as_large_as_it_is_seen() {
        // As a photograph is: smooth, with some noise.
        let noise = |x: u32, y: u32| (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 13 & 7;
        let smooth = |x: u32, y: u32| [x, y, (x * y) >> 8].map(|value| (value + noise(x, y)).min(255) as u8);
        let (first, second) = (drawing(smooth, 256, 2), drawing(|x, y| smooth(y, x), 256, 1));
        let mut pictures = Pictures::default();
        let shared = [pictures.share(&first), pictures.share(&first), pictures.share(&second)];
        assert_eq!(shared[0], shared[1]);
        assert!(shared[0].contains("<use x=\"10\" y=\"0\" width=\"72\" height=\"72\" href=\"#picture-1\"/>"));
        assert_eq!(shared[2].matches("#picture-2").count(), 1);
        assert!(shared.iter().all(|svg| !svg.contains("base64") && svg.ends_with("</svg>\n")));
        let all = pictures.definitions();
        assert_eq!((all.matches("<symbol").count(), all.matches("data:image/jpeg").count()), (2, 2));
        assert!(all.len() < first.len() / 4, "{} of {}", all.len(), first.len());
        let address = all.split("href=\"data:image/jpeg;base64,").nth(1).unwrap().split('"').next().unwrap();
        let image = image::load_from_memory(&BASE64_STANDARD.decode(address).unwrap()).unwrap().to_rgb8();
        assert_eq!(image.dimensions(), (144, 144));
        let [red, green, _] = image.get_pixel(100, 30).0.map(i32::from);
        let expected = [100, 30].map(|at: i32| at * 256 / 144);
        assert!((red - expected[0]).abs() < 12 && (green - expected[1]).abs() < 12, "{red} {green}");
    }

    #[test]
    fn what_is_no_picture_stays_as_it_is() {
        let mut pictures = Pictures::default();
        for svg in [
            "<svg><image x=\"1\" href=\"data:image/png;base64,AAAA\"/></svg>",
            "<svg><image x=\"1\" y=\"1\" width=\"9\" height=\"9\" preserveAspectRatio=\"none\" href=\"data:image/png;base64,AAAA\"/>",
            "<svg><image ",
            "<svg></svg>",
        ] {
            assert_eq!(pictures.share(svg), svg);
        }
        assert_eq!(pictures.definitions(), "");
        // One pixel: a JPEG of it would be larger.
        let svg = drawing(|_, _| [1, 2, 3], 1, 1);
        assert!(pictures.share(&svg).contains("<use "));
        assert!(pictures.definitions().contains("data:image/png"));
    }
}
