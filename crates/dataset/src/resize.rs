//! Changing the size of an image: bilinear with antialiasing, the triangle filter that widens with the reduction,
//! as the published input pipeline resizes.

use simd::multiversion;

/// Weights of the inputs that every output position of one axis reads.
#[derive(Clone)]
struct Taps {
    /// The first input of each output position.
    firsts: Vec<usize>,
    /// Where its weights end.
    ends: Vec<usize>,
    /// One weight an input, position after position.
    weights: Vec<f32>,
}

impl Taps {
    fn new(from: usize, to: usize) -> Self {
        let scale = from as f32 / to as f32;
        let support = scale.max(1.0);
        let mut taps =
            Self { firsts: Vec::with_capacity(to), ends: Vec::with_capacity(to), weights: Vec::new() };
        for out in 0..to {
            let centre = (out as f32 + 0.5) * scale;
            let first = (centre - support + 0.5).floor().max(0.0) as usize;
            let last = ((centre + support + 0.5).floor() as usize).clamp(first + 1, from);
            let start = taps.weights.len();
            let weight = |input: usize| (1.0 - ((input as f32 + 0.5 - centre) / support).abs()).max(0.0);
            taps.weights.extend((first..last).map(weight));
            let sum: f32 = taps.weights[start..].iter().sum();
            taps.weights[start..].iter_mut().for_each(|weight| *weight /= sum);
            taps.firsts.push(first);
            taps.ends.push(taps.weights.len());
        }
        taps
    }

    /// The first input of an output position, and the weights from there on.
    #[inline(always)]
    fn at(&self, out: usize) -> (usize, &[f32]) {
        let start = if out == 0 { 0 } else { self.ends[out - 1] };
        (self.firsts[out], &self.weights[start..self.ends[out]])
    }
}

multiversion! {
    /// Sums of the rows of `input` that begins with the first of them, by their weights; what is left of `sums` stays.
    fn sum_rows(input: &[u8], weights: &[f32], row: usize, sums: &mut [f32]) {
        let sums = &mut sums[..row];
        sums.fill(0.0);
        for (&weight, values) in weights.iter().zip(input.chunks_exact(row)) {
            for (sum, &value) in sums.iter_mut().zip(values) {
                *sum += weight * f32::from(value);
            }
        }
    }
}

multiversion! {
    /// Pixels of a row of which `sums` are the columns, and one number more.
    fn sum_columns(sums: &[f32], columns: &Taps, output: &mut [u8]) {
        for (out, pixel) in output.chunks_exact_mut(3).enumerate() {
            let (first, weights) = columns.at(out);
            // A register has room for four numbers: the last one is the next pixel's, and of no use.
            let mut colour = [0.5; 4];
            for (&weight, at) in weights.iter().zip(first..) {
                let rgb = &sums[3 * at..3 * at + 4];
                for c in 0..4 {
                    colour[c] += weight * rgb[c];
                }
            }
            for c in 0..3 {
                pixel[c] = colour[c] as u8;
            }
        }
    }
}

/// A prepared change of size.
pub struct Resize {
    from: (usize, usize),
    to: usize,
    columns: Taps,
    rows: Taps,
}

impl Resize {
    /// From `width * height` to `side * side` pixels; all positive.
    pub fn new(width: usize, height: usize, side: usize) -> Self {
        let columns = Taps::new(width, side);
        let rows = if height == width { columns.clone() } else { Taps::new(height, side) };
        Self { from: (width, height), to: side, columns, rows }
    }

    /// Whether this is the change from `width * height` to `side * side`.
    pub fn fits(&self, width: usize, height: usize, side: usize) -> bool {
        self.from == (width, height) && self.to == side
    }

    /// Resizes RGB pixels: `input` is `[height, width, 3]`, `output` `[side, side, 3]`.
    pub fn apply(&self, input: &[u8], output: &mut [u8]) {
        let (width, height) = self.from;
        debug_assert_eq!((input.len(), output.len()), (width * height * 3, self.to * self.to * 3));
        // Rows first: the sums run along memory, and columns are then left for fewer rows.
        let mut sums = vec![0.0_f32; width * 3 + 1];
        for (out, output_row) in output.chunks_exact_mut(self.to * 3).enumerate() {
            let (first, weights) = self.rows.at(out);
            sum_rows(&input[first * width * 3..], weights, width * 3, &mut sums);
            sum_columns(&sums, &self.columns, output_row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resized(input: &[u8], width: usize, height: usize, side: usize) -> Vec<u8> {
        let mut output = vec![0; side * side * 3];
        Resize::new(width, height, side).apply(input, &mut output);
        output
    }

    #[test]
    fn halving_a_step_edge_gives_the_filter_weights() {
        // One row 0 0 255 255 (grey), halved: triangle of support 2 around 1 and 3 gives weights 3/8 3/8 1/8 over
        // inputs -.5 .. clipped and renormalised: 255 * (1/8) / (7/8) and the mirror image.
        let row = [0_u8, 0, 255, 255].iter().flat_map(|&v| [v; 3]).collect::<Vec<_>>();
        let image = row.repeat(4);
        let output = resized(&image, 4, 4, 2);
        let expected = 255.0 / 7.0;
        assert_eq!(output[0], (expected + 0.5) as u8);
        assert_eq!(output[3], (255.0 - expected + 0.5) as u8);
    }

    /// The definition, one output at a time.
    fn plainly(input: &[u8], (width, height): (usize, usize), side: usize) -> Vec<u8> {
        let (columns, rows) = (Taps::new(width, side), Taps::new(height, side));
        let mut output = Vec::new();
        for place in 0..side * side * 3 {
            let ((left, across), (top, down)) = (columns.at(place / 3 % side), rows.at(place / 3 / side));
            let mut value = 0.5;
            for (x, weight) in (left..).zip(across) {
                let mut sum = 0.0;
                for (y, weight) in (top..).zip(down) {
                    sum += weight * f32::from(input[(y * width + x) * 3 + place % 3]);
                }
                value += weight * sum;
            }
            output.push(value as u8);
        }
        output
    }

    proptest! {
        #[test]
        fn all_bits_are_those_of_the_definition(
            width in 1_usize..60, height in 1_usize..60, side in 1_usize..40, noise: u64,
        ) {
            let mut random = random::Random::new(noise, random::Stream::new("test"), 0);
            let image: Vec<u8> = (0..width * height * 3).map(|_| random.next_u32() as u8).collect();
            prop_assert_eq!(resized(&image, width, height, side), plainly(&image, (width, height), side));
        }

        #[test]
        fn flat_images_stay_flat_and_same_size_is_exact(
            value: u8, width in 1_usize..40, height in 1_usize..40, side in 1_usize..40, noise: u64,
        ) {
            let flat = vec![value; width * height * 3];
            prop_assert!(resized(&flat, width, height, side).iter().all(|&v| v == value));
            let mut random = random::Random::new(noise, random::Stream::new("test"), 0);
            let image: Vec<u8> = (0..side * side * 3).map(|_| random.next_u32() as u8).collect();
            prop_assert_eq!(resized(&image, side, side, side), image);
        }
    }
}
