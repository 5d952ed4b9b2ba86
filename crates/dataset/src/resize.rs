//! Changing the size of an image: bilinear with antialiasing, the triangle filter that widens with the reduction,
//! as the published input pipeline resizes.

/// Weights of one output position: the first input it reads and one weight an input.
struct Taps {
    first: usize,
    weights: Vec<f32>,
}

/// Weights for every output position of one axis.
fn taps(from: usize, to: usize) -> Vec<Taps> {
    let scale = from as f32 / to as f32;
    let support = scale.max(1.0);
    (0..to)
        .map(|out| {
            let centre = (out as f32 + 0.5) * scale;
            let first = (centre - support + 0.5).floor().max(0.0) as usize;
            let last = ((centre + support + 0.5).floor() as usize).clamp(first + 1, from);
            let mut weights: Vec<f32> = (first..last)
                .map(|input| (1.0 - ((input as f32 + 0.5 - centre) / support).abs()).max(0.0))
                .collect();
            let sum: f32 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= sum);
            Taps { first, weights }
        })
        .collect()
}

/// A prepared change of size.
pub struct Resize {
    from: (usize, usize),
    to: usize,
    columns: Vec<Taps>,
    rows: Vec<Taps>,
}

impl Resize {
    /// From `width * height` to `side * side` pixels; all positive.
    pub fn new(width: usize, height: usize, side: usize) -> Self {
        Self { from: (width, height), to: side, columns: taps(width, side), rows: taps(height, side) }
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
        let mut sums = vec![0.0_f32; width * 3];
        for (rows, output_row) in self.rows.iter().zip(output.chunks_exact_mut(self.to * 3)) {
            sums.fill(0.0);
            let input_rows = input[rows.first * width * 3..].chunks_exact(width * 3);
            for (weight, input_row) in rows.weights.iter().zip(input_rows) {
                for (sum, value) in sums.iter_mut().zip(input_row) {
                    *sum += weight * f32::from(*value);
                }
            }
            for (columns, pixel) in self.columns.iter().zip(output_row.chunks_exact_mut(3)) {
                let mut colour = [0.5; 3];
                let inputs = sums[columns.first * 3..].chunks_exact(3);
                for (weight, rgb) in columns.weights.iter().zip(inputs) {
                    for c in 0..3 {
                        colour[c] += weight * rgb[c];
                    }
                }
                pixel.copy_from_slice(&colour.map(|value| value as u8));
            }
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

    proptest! {
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
