//! Paints a [`Drawing`] into pixels: coverage of every shape is computed analytically or on a fine sub-grid, so edges
//! are smooth.

use crate::Error;
use crate::drawing::{Anchor, Bitmap, Drawing, Mark, Paint, Text};
use crate::font;

/// Largest side of an image, so that a drawing of absurd size is an error and not an exhausted memory.
const MAX_SIDE: f64 = 20_000.0;

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<[f32; 3]>,
    /// Coverage of the shape being painted; zero between shapes.
    coverage: Vec<f32>,
}

pub(crate) fn paint(drawing: &Drawing, scale: f64) -> Result<Bitmap, Error> {
    let side = |length: f64| (length * scale).round().clamp(1.0, MAX_SIDE) as usize;
    let (width, height) = (side(drawing.width), side(drawing.height));
    let mut canvas = Canvas {
        width,
        height,
        pixels: vec![[255.0; 3]; width * height],
        coverage: vec![0.0; width * height],
    };
    for mark in &drawing.marks {
        canvas.mark(mark, scale);
    }
    let pixels = canvas.pixels.iter().flatten().map(|&value| value.round() as u8).collect();
    Bitmap::new(width as u32, height as u32, pixels)
}

impl Canvas {
    fn mark(&mut self, mark: &Mark, scale: f64) {
        let scaled =
            |list: &[(f64, f64)]| list.iter().map(|(x, y)| (x * scale, y * scale)).collect::<Vec<_>>();
        match mark {
            Mark::Rectangle(area, paint, opacity) => {
                let [x, y, w, h] = area.map(|value| value * scale);
                self.polygon(&[(x, y), (x + w, y), (x + w, y + h), (x, y + h)], *paint, *opacity);
            }
            Mark::Frame(area, paint, stroke) => {
                let [x, y, w, h] = area.map(|value| value * scale);
                let corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)];
                self.polyline(&corners, *paint, stroke * scale);
            }
            Mark::Line { points, paint, width_px, dashed } => {
                let points = scaled(points);
                if *dashed {
                    for dash in dashes(&points, 5.0 * scale, 4.0 * scale) {
                        self.polyline(&dash, *paint, width_px * scale);
                    }
                } else {
                    self.polyline(&points, *paint, width_px * scale);
                }
            }
            Mark::Area(points, paint, opacity) => self.polygon(&scaled(points), *paint, *opacity),
            Mark::Disc((x, y), radius, paint) => {
                self.polyline(&[(x * scale, y * scale)], *paint, 2.0 * radius * scale);
            }
            Mark::Text(text) => self.text(text, scale),
            Mark::Bitmap(area, image) => self.image(area.map(|value| value * scale), image),
            Mark::Told { mark, .. } => self.mark(mark, scale),
        }
    }

    /// Adds the coverage of one segment with round ends (a point where both ends agree).
    fn cover_segment(&mut self, a: (f64, f64), b: (f64, f64), stroke: f64, bounds: &mut [usize; 4]) {
        // A line thinner than a pixel becomes a pixel wide and fainter.
        let (radius, strength) = if stroke < 1.0 { (0.5, stroke) } else { (stroke / 2.0, 1.0) };
        let reach = radius + 1.0;
        let limit = |value: f64, most: usize| value.floor().clamp(0.0, most as f64) as usize;
        let x0 = limit(a.0.min(b.0) - reach, self.width);
        let x1 = limit(a.0.max(b.0) + reach + 1.0, self.width);
        let y0 = limit(a.1.min(b.1) - reach, self.height);
        let y1 = limit(a.1.max(b.1) + reach + 1.0, self.height);
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length2 = dx * dx + dy * dy;
        for y in y0..y1 {
            for x in x0..x1 {
                let (px, py) = (x as f64 + 0.5 - a.0, y as f64 + 0.5 - a.1);
                let t = if length2 > 0.0 { ((px * dx + py * dy) / length2).clamp(0.0, 1.0) } else { 0.0 };
                let distance = (px - t * dx).hypot(py - t * dy);
                let covered = ((radius + 0.5 - distance).clamp(0.0, 1.0) * strength) as f32;
                let cell = &mut self.coverage[y * self.width + x];
                *cell = cell.max(covered);
            }
        }
        *bounds = [bounds[0].min(x0), bounds[1].max(x1), bounds[2].min(y0), bounds[3].max(y1)];
    }

    fn polyline(&mut self, points: &[(f64, f64)], paint: Paint, stroke: f64) {
        let mut bounds = [usize::MAX, 0, usize::MAX, 0];
        if let [only] = points {
            self.cover_segment(*only, *only, stroke, &mut bounds);
        }
        for ends in points.windows(2) {
            self.cover_segment(ends[0], ends[1], stroke, &mut bounds);
        }
        self.blend(paint, 1.0, bounds);
    }

    /// Even-odd filling: exact across, 8 sub-lines down.
    fn polygon(&mut self, points: &[(f64, f64)], paint: Paint, opacity: f64) {
        const SUBLINES: usize = 8;
        let top = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min).floor().max(0.0);
        let bottom = points.iter().map(|p| p.1).fold(0.0, f64::max).ceil().min(self.height as f64);
        if points.len() < 3 || top >= bottom {
            return;
        }
        for row in top as usize..bottom as usize {
            for sub in 0..SUBLINES {
                let y = row as f64 + (sub as f64 + 0.5) / SUBLINES as f64;
                let mut crossings: Vec<f64> = (0..points.len())
                    .filter_map(|i| {
                        let (a, b) = (points[i], points[(i + 1) % points.len()]);
                        ((a.1 <= y) != (b.1 <= y)).then(|| a.0 + (y - a.1) / (b.1 - a.1) * (b.0 - a.0))
                    })
                    .collect();
                crossings.sort_by(f64::total_cmp);
                for span in crossings.chunks_exact(2) {
                    self.cover_span(row, span[0], span[1], 1.0 / SUBLINES as f32);
                }
            }
        }
        self.blend(paint, opacity as f32, [0, self.width, top as usize, bottom as usize]);
    }

    fn cover_span(&mut self, row: usize, from: f64, to: f64, weight: f32) {
        let (from, to) = (from.clamp(0.0, self.width as f64), to.clamp(0.0, self.width as f64));
        for x in from.floor() as usize..(to.ceil() as usize).min(self.width) {
            let inside = to.min(x as f64 + 1.0) - from.max(x as f64);
            self.coverage[row * self.width + x] += weight * inside.max(0.0) as f32;
        }
    }

    /// Mixes the paint in by the coverage gathered within `bounds` (x from, x to, y from, y to), and clears it.
    fn blend(&mut self, paint: Paint, opacity: f32, [x0, x1, y0, y1]: [usize; 4]) {
        let colour = paint.light().map(f32::from);
        for y in y0.min(y1)..y1 {
            for at in y * self.width + x0.min(x1)..y * self.width + x1 {
                let share = std::mem::take(&mut self.coverage[at]).min(1.0) * opacity;
                if share > 0.0 {
                    for (value, target) in self.pixels[at].iter_mut().zip(colour) {
                        *value += (target - *value) * share;
                    }
                }
            }
        }
    }

    fn text(&mut self, text: &Text, scale: f64) {
        let size = text.size_px * scale;
        let start = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -0.5 * font::width(&text.text, size),
            Anchor::End => -font::width(&text.text, size),
        };
        let (x, y) = (text.at.0 * scale, text.at.1 * scale);
        let stroke = size * if text.bold { 0.125 } else { 0.085 };
        let mut bounds = [usize::MAX, 0, usize::MAX, 0];
        for line in font::strokes(&text.text, size) {
            let place = |&(u, v): &(f64, f64)| {
                let u = u + start;
                if text.upwards { (x + v, y - u) } else { (x + u, y + v) }
            };
            let points: Vec<_> = line.iter().map(place).collect();
            if let [only] = points.as_slice() {
                self.cover_segment(*only, *only, stroke * 1.4, &mut bounds);
            }
            for ends in points.windows(2) {
                self.cover_segment(ends[0], ends[1], stroke, &mut bounds);
            }
        }
        self.blend(text.paint, 1.0, bounds);
    }

    /// Box-filtered when shrunk, bilinear when enlarged.
    fn image(&mut self, [x, y, w, h]: [f64; 4], image: &Bitmap) {
        let target_w = w.round().clamp(1.0, MAX_SIDE) as u32;
        let target_h = h.round().clamp(1.0, MAX_SIDE) as u32;
        let Some(source) = image::RgbImage::from_raw(image.width(), image.height(), image.pixels().to_vec())
        else {
            return;
        };
        if image.width() == 0 || image.height() == 0 {
            return;
        }
        let filter = image::imageops::FilterType::Triangle;
        let resized = image::imageops::resize(&source, target_w, target_h, filter);
        let (left, top) = (x.round() as i64, y.round() as i64);
        for (px, py, pixel) in resized.enumerate_pixels() {
            let (cx, cy) = (left + i64::from(px), top + i64::from(py));
            if (0..self.width as i64).contains(&cx) && (0..self.height as i64).contains(&cy) {
                self.pixels[cy as usize * self.width + cx as usize] = pixel.0.map(f32::from);
            }
        }
    }
}

/// Cuts a line into dashes of length `on` with gaps of `off`.
fn dashes(points: &[(f64, f64)], on: f64, off: f64) -> Vec<Vec<(f64, f64)>> {
    let mut result = Vec::new();
    let mut current: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    let (mut drawing, mut left) = (true, on);
    for ends in points.windows(2) {
        let (mut a, b) = (ends[0], ends[1]);
        loop {
            let length = (b.0 - a.0).hypot(b.1 - a.1);
            if length <= left || length == 0.0 {
                left -= length;
                if drawing {
                    current.push(b);
                }
                break;
            }
            let t = left / length;
            a = (a.0 + (b.0 - a.0) * t, a.1 + (b.1 - a.1) * t);
            if drawing {
                current.push(a);
                result.push(std::mem::take(&mut current));
            } else {
                current = vec![a];
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
    }
    if drawing && current.len() > 1 {
        result.push(current);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_cover_their_area() {
        let mut drawing = Drawing::new(20.0, 10.0, "test");
        drawing.marks.push(Mark::Rectangle([2.0, 2.5, 4.0, 4.0], Paint::Rgb([0; 3]), 1.0));
        drawing.line(vec![(10.0, 5.0), (18.0, 5.0)], Paint::Rgb([255, 0, 0]), 2.0, false);
        let image = drawing.to_image(1.0).unwrap();
        let at = |x: usize, y: usize| &image.pixels()[(y * 20 + x) * 3..][..3];
        assert_eq!(at(3, 4), [0, 0, 0]);
        assert_eq!(at(3, 2), [128, 128, 128]);
        assert_eq!(at(0, 0), [255, 255, 255]);
        assert_eq!(at(14, 4), [255, 0, 0]);
        assert_eq!(at(14, 8), [255, 255, 255]);
    }

    #[test]
    fn dashes_keep_the_length_of_the_pattern() {
        let cut = dashes(&[(0.0, 0.0), (4.0, 0.0), (4.0, 14.0)], 5.0, 4.0);
        assert_eq!(cut.len(), 2);
        assert_eq!(cut[0], [(0.0, 0.0), (4.0, 0.0), (4.0, 1.0)]);
        assert_eq!(cut[1], [(4.0, 5.0), (4.0, 10.0)]);
    }
}
