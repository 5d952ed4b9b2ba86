//! A photograph made ready to be warped: its middle square at falling sizes, and how a view is sampled from them.

use crate::jpeg::Image;
use crate::photos::warp::Warp;
use crate::resize::Resize;

/// A square picture at its own size and at half of the size before, down to a few pixels: 8-bit RGB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Sides of the levels.
    pub(crate) sides: Vec<usize>,
    /// All levels, one after the other.
    pub(crate) pixels: Vec<u8>,
}

/// Levels are not made smaller than this.
const SMALLEST: usize = 4;

impl Picture {
    /// The largest square in the middle of `image`, at `most` x `most` pixels where it has more.
    pub fn new(image: &Image, most: usize) -> Self {
        let side = image.width.min(image.height);
        let (left, top) = ((image.width - side) / 2, (image.height - side) / 2);
        let mut square = Vec::with_capacity(side * side * 3);
        for row in image.pixels.chunks_exact(image.width * 3).skip(top).take(side) {
            square.extend_from_slice(&row[left * 3..(left + side) * 3]);
        }
        let mut pixels = match side > most {
            true => smaller(&square, side, most),
            false => square,
        };
        let mut sides = vec![side.min(most)];
        let mut level = pixels.clone();
        while let Some(&last) = sides.last()
            && last >= 2 * SMALLEST
        {
            level = smaller(&level, last, last / 2);
            pixels.extend_from_slice(&level);
            sides.push(last / 2);
        }
        Self { sides, pixels }
    }

    /// Side of the largest level.
    pub fn side(&self) -> usize {
        self.sides[0]
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.pixels.len()
    }

    /// The view of `side` x `side` pixels that `warp` makes, RGB, row 0 on top. Between two levels, by the largest distance
    /// in the picture of neighbouring pixels of the view; where a warp reaches beyond the picture, its edge.
    pub fn view(&self, warp: &Warp, side: usize, pixels: &mut [u8]) {
        let m = &warp.photo_from_view;
        let step = 2.0 / side as f32;
        for (y, row) in pixels.chunks_exact_mut(3 * side).enumerate() {
            let v = (y as f32 + 0.5) * step - 1.0;
            for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
                let u = (x as f32 + 0.5) * step - 1.0;
                let w = 1.0 / (m[6] * u + m[7] * v + m[8]);
                let at = [(m[0] * u + m[1] * v + m[2]) * w, (m[3] * u + m[4] * v + m[5]) * w];
                // How fast the place changes along x and along y of the view.
                let along = |column: usize| {
                    let change = |axis: usize| (m[3 * axis + column] - at[axis] * m[6 + column]) * w;
                    change(0) * change(0) + change(1) * change(1)
                };
                let texels = 0.5 * self.sides[0] as f32 * step;
                let level = 0.5 * (along(0).max(along(1)) * texels * texels).max(1.0).log2();
                let colour = self.between_levels(at, level.min((self.sides.len() - 1) as f32));
                for (to, row) in pixel.iter_mut().zip(&warp.colour) {
                    let value = row[0] * colour[0] + row[1] * colour[1] + row[2] * colour[2] + 255.0 * row[3];
                    *to = (value + 0.5).clamp(0.0, 255.0) as u8;
                }
            }
        }
    }

    /// The colour at a place, from -1 to 1, at a level that may lie between two.
    fn between_levels(&self, at: [f32; 2], level: f32) -> [f32; 3] {
        let low = level.floor();
        let fine = self.colour(at, low as usize);
        let share = level - low;
        if share == 0.0 {
            return fine;
        }
        let coarse = self.colour(at, low as usize + 1);
        std::array::from_fn(|c| fine[c] + share * (coarse[c] - fine[c]))
    }

    /// Bilinear in one level.
    fn colour(&self, at: [f32; 2], level: usize) -> [f32; 3] {
        let side = self.sides[level];
        let start: usize = self.sides[..level].iter().map(|side| 3 * side * side).sum();
        let place = at.map(|x| ((0.5 * x + 0.5) * side as f32 - 0.5).clamp(0.0, (side - 1) as f32));
        let low = place.map(|x| x as usize);
        let share = [place[0] - low[0] as f32, place[1] - low[1] as f32];
        let high = low.map(|x| (x + 1).min(side - 1));
        let texel = |x: usize, y: usize| -> [f32; 3] {
            let first = start + 3 * (y * side + x);
            std::array::from_fn(|c| f32::from(self.pixels[first + c]))
        };
        let mix = |a: [f32; 3], b: [f32; 3], t: f32| -> [f32; 3] {
            std::array::from_fn(|c| a[c] + t * (b[c] - a[c]))
        };
        let top = mix(texel(low[0], low[1]), texel(high[0], low[1]), share[0]);
        let bottom = mix(texel(low[0], high[1]), texel(high[0], high[1]), share[0]);
        mix(top, bottom, share[1])
    }
}

fn smaller(pixels: &[u8], from: usize, to: usize) -> Vec<u8> {
    let mut output = vec![0; to * to * 3];
    Resize::new(from, from, to).apply(pixels, &mut output);
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use pose::ViewPose;

    const PLAIN: [[f32; 4]; 3] = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];

    fn warp(photo_from_view: [f32; 9]) -> Warp {
        Warp { pose: ViewPose::default(), colour: PLAIN, photo_from_view }
    }

    fn image(width: usize, height: usize, colour: impl Fn(usize, usize) -> [u8; 3]) -> Image {
        let pixels =
            (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).flat_map(|(x, y)| colour(x, y));
        Image { width, height, pixels: pixels.collect() }
    }

    #[test]
    fn an_unwarped_view_of_the_same_size_is_the_middle_of_the_photograph() {
        let photo = image(40, 24, |x, y| [x as u8 * 5, y as u8 * 9, 7]);
        let picture = Picture::new(&photo, 100);
        assert_eq!(picture.sides, [24, 12, 6]);
        let mut view = vec![0; 24 * 24 * 3];
        picture.view(&warp([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]), 24, &mut view);
        for (index, pixel) in view.chunks_exact(3).enumerate() {
            let (x, y) = (index % 24, index / 24);
            assert_eq!(pixel, [(x + 8) as u8 * 5, y as u8 * 9, 7]);
        }
        // A quarter turn: the view's right is the photograph's down.
        picture.view(&warp([0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0]), 24, &mut view);
        assert_eq!(view[..3], [8 * 5, 23 * 9, 7]);
    }

    #[test]
    fn what_is_finer_than_pixels_is_averaged_and_not_aliased() {
        let stripes = Picture::new(&image(256, 256, |x, _| [255 * (x % 2) as u8; 3]), 256);
        let mut view = vec![0; 64 * 64 * 3];
        stripes.view(&warp([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]), 64, &mut view);
        // Without the edges, whose filter sees one side only.
        let inside = view.chunks_exact(3 * 64).skip(2).take(60).flat_map(|row| &row[6..3 * 62]);
        assert!(
            inside.clone().all(|&value| (120..136).contains(&value)),
            "{:?}",
            inside.take(12).collect::<Vec<_>>()
        );
    }

    #[test]
    fn small_pictures_are_enlarged_and_large_ones_are_kept_small() {
        let tiny = Picture::new(&image(3, 5, |_, _| [9, 8, 7]), 100);
        assert_eq!((tiny.sides.as_slice(), tiny.bytes()), ([3].as_slice(), 27));
        let mut view = vec![0; 16 * 16 * 3];
        tiny.view(&warp([0.3, 0.1, 0.0, 0.0, 0.3, 0.1, 0.01, 0.0, 1.0]), 16, &mut view);
        assert!(view.chunks_exact(3).all(|pixel| pixel == [9, 8, 7]));
        assert_eq!(Picture::new(&image(90, 70, |x, _| [x as u8; 3]), 32).sides, [32, 16, 8, 4]);
    }
}
