//! Operators of layers: convolutions, pooling, norms, softmax.

use rayon::prelude::*;

use super::arrays::Array;
use super::{Call, Outcome};

/// Where a window of a convolution or pooling lies.
struct Window {
    kernel: [usize; 2],
    stride: [usize; 2],
    before: [usize; 2],
    input: [usize; 2],
    output: [usize; 2],
}

impl Window {
    /// The output places along `axis` whose place `k` of the kernel is inside the image.
    fn inside(&self, axis: usize, k: usize) -> std::ops::Range<usize> {
        let (stride, before) = (self.stride[axis], self.before[axis]);
        let first = before.saturating_sub(k).div_ceil(stride);
        let last = (self.input[axis] + before).saturating_sub(k).div_ceil(stride);
        first..last.min(self.output[axis]).max(first)
    }
}

impl Call<'_> {
    fn window(&self, x: &Array, kernel: [usize; 2]) -> Outcome<Window> {
        let &[_, _, height, width] = x.shape.as_slice() else {
            return Err(format!("{:?} are no images", x.shape));
        };
        let sides = |values: &[i64]| -> Option<Vec<usize>> {
            values.iter().map(|&value| usize::try_from(value).ok()).collect()
        };
        let (strides, pads) = (sides(self.ints("strides")?), sides(self.ints("pads")?));
        let (Some([sy, sx]), Some([top, left, bottom, right])) = (strides.as_deref(), pads.as_deref()) else {
            return Err("its strides or pads are not those of images".to_owned());
        };
        let (stride, before) = ([(*sy).max(1), (*sx).max(1)], [*top, *left]);
        let padded = [height + top + bottom, width + left + right];
        let output = [0, 1]
            .map(|axis| padded[axis].checked_sub(kernel[axis]).map_or(0, |room| room / stride[axis] + 1));
        Ok(Window { kernel, stride, before, input: [height, width], output })
    }

    pub(super) fn convolution(&self) -> Outcome<Array> {
        let (x, weight) = (self.floats(0)?, self.floats(1)?);
        let (&[batch, inputs, ..], &[outputs, expected, ky, kx]) = (&x.shape[..], &weight.shape[..]) else {
            return Err(format!("{:?} and {:?} are no images and filters", x.shape, weight.shape));
        };
        if inputs != expected {
            return Err(format!("filters {:?} do not take images {:?}", weight.shape, x.shape));
        }
        let window = self.window(x, [ky, kx])?;
        let bias = if self.has(2) { self.floats(2)?.values.clone() } else { vec![0.0; outputs] };
        let [rows, columns] = window.output;
        let mut values = vec![0.0; batch * outputs * rows * columns];
        values.par_chunks_mut((rows * columns).max(1)).enumerate().for_each(|(plane, out)| {
            let (image, output) = (plane / outputs, plane % outputs);
            out.fill(bias[output]);
            for input in 0..inputs {
                let from = &x.values[(image * inputs + input) * window.input.iter().product::<usize>()..];
                let filter = &weight.values[(output * inputs + input) * ky * kx..][..ky * kx];
                add_filtered(&window, filter, from, out);
            }
        });
        Array::shaped(vec![batch, outputs, rows, columns], values)
    }

    pub(super) fn max_pool(&self) -> Outcome<Array> {
        let x = self.floats(0)?;
        let &[ky, kx] = self.ints("kernel_shape")? else { return Err("no kernel of images".to_owned()) };
        let window = self.window(x, [ky.max(1) as usize, kx.max(1) as usize])?;
        let [rows, columns] = window.output;
        let area: usize = window.input.iter().product();
        let mut values = Vec::with_capacity(x.shape[0] * x.shape[1] * rows * columns);
        for plane in x.values.chunks_exact(area.max(1)) {
            let mut out = vec![f32::NEG_INFINITY; rows * columns];
            for ky in 0..window.kernel[0] {
                for kx in 0..window.kernel[1] {
                    for row in window.inside(0, ky) {
                        let y = row * window.stride[0] + ky - window.before[0];
                        for column in window.inside(1, kx) {
                            let at = y * window.input[1] + column * window.stride[1] + kx - window.before[1];
                            let out = &mut out[row * columns + column];
                            *out = out.max(plane[at]);
                        }
                    }
                }
            }
            values.extend(out);
        }
        Array::shaped(vec![x.shape[0], x.shape[1], rows, columns], values)
    }

    pub(super) fn average_pool(&self) -> Outcome<Array> {
        let x = self.floats(0)?;
        let &[batch, channels, height, width] = &x.shape[..] else {
            return Err(format!("{:?} are no images", x.shape));
        };
        let planes = x.values.chunks_exact((height * width).max(1));
        let mean = |plane: &[f32]| {
            (plane.iter().map(|&value| f64::from(value)).sum::<f64>() / plane.len() as f64) as f32
        };
        Array::shaped(vec![batch, channels, 1, 1], planes.map(mean).collect())
    }

    /// By running statistics; channels are dimension 1.
    pub(super) fn batch_norm(&self) -> Outcome<Array> {
        let x = self.floats(0)?;
        let [weight, bias, mean, variance] =
            [self.floats(1)?, self.floats(2)?, self.floats(3)?, self.floats(4)?];
        let channels = *x.shape.get(1).ok_or("its input has no channels")?;
        if [weight, bias, mean, variance].iter().any(|array| array.values.len() != channels) {
            return Err(format!("its numbers are not those of {channels} channels"));
        }
        let epsilon = f64::from(self.float("epsilon", 1e-5));
        let plane: usize = x.shape[2..].iter().product();
        let mut values = x.values.clone();
        for (index, values) in values.chunks_exact_mut(plane.max(1)).enumerate() {
            let c = index % channels;
            let factor = f64::from(weight.values[c]) / (f64::from(variance.values[c]) + epsilon).sqrt();
            let shift = f64::from(bias.values[c]) - f64::from(mean.values[c]) * factor;
            values.iter_mut().for_each(|value| *value = (f64::from(*value) * factor + shift) as f32);
        }
        Ok(Array { shape: x.shape.clone(), values })
    }

    /// Over the last dimension.
    pub(super) fn layer_norm(&self) -> Outcome<Array> {
        let (x, weight, bias) = (self.floats(0)?, self.floats(1)?, self.floats(2)?);
        let width = self.last_dimension(x)?;
        if weight.values.len() != width || bias.values.len() != width {
            return Err(format!("its numbers are not those of {width} columns"));
        }
        let epsilon = f64::from(self.float("epsilon", 1e-5));
        let mut values = x.values.clone();
        values.par_chunks_exact_mut(width).for_each(|row| {
            let mean = row.iter().map(|&value| f64::from(value)).sum::<f64>() / width as f64;
            let variance =
                row.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / width as f64;
            let factor = (variance + epsilon).sqrt().recip();
            for ((value, weight), bias) in row.iter_mut().zip(&weight.values).zip(&bias.values) {
                *value = ((f64::from(*value) - mean) * factor) as f32 * weight + bias;
            }
        });
        Ok(Array { shape: x.shape.clone(), values })
    }

    /// Over the last dimension.
    pub(super) fn softmax(&self) -> Outcome<Array> {
        let x = self.floats(0)?;
        let width = self.last_dimension(x)?;
        let mut values = x.values.clone();
        values.par_chunks_exact_mut(width).for_each(|row| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let powers: Vec<f64> = row.iter().map(|&value| f64::from(value - largest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            row.iter_mut().zip(&powers).for_each(|(value, power)| *value = (power / sum) as f32);
        });
        Ok(Array { shape: x.shape.clone(), values })
    }

    /// The last dimension, which the attribute `axis` must name.
    fn last_dimension(&self, x: &Array) -> Outcome<usize> {
        let axis = x.axis(self.int("axis", -1))?;
        match x.shape[axis] {
            width if axis + 1 == x.shape.len() && width > 0 => Ok(width),
            _ => Err("only the last dimension is known".to_owned()),
        }
    }
}

/// Adds one filter of one input plane to an output plane.
fn add_filtered(window: &Window, filter: &[f32], from: &[f32], out: &mut [f32]) {
    let (width, columns, stride) = (window.input[1], window.output[1], window.stride[1]);
    for ky in 0..window.kernel[0] {
        for kx in 0..window.kernel[1] {
            let weight = filter[ky * window.kernel[1] + kx];
            let inside = window.inside(1, kx);
            if inside.is_empty() {
                continue;
            }
            let first = inside.start * stride + kx - window.before[1];
            for row in window.inside(0, ky) {
                let y = row * window.stride[0] + ky - window.before[0];
                let from = &from[y * width + first..(y + 1) * width];
                let out = &mut out[row * columns..][inside.clone()];
                if stride == 1 {
                    out.iter_mut().zip(from).for_each(|(out, x)| *out += weight * x);
                } else {
                    out.iter_mut().zip(from.iter().step_by(stride)).for_each(|(out, x)| *out += weight * x);
                }
            }
        }
    }
}

/// 2 / sqrt pi exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...): all terms have the same sign.
pub(super) fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    let mut n = 1.0;
    while term.abs() > 1e-17 * sum.abs() {
        n += 2.0;
        term *= 2.0 * x * x / n;
        sum += term;
    }
    sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_has_the_values_of_tables() {
        let table = [
            (0.0, 0.0),
            (0.1, 0.112_462_916_0),
            (1.0, 0.842_700_792_9),
            (-2.0, -0.995_322_265_0),
            (7.0, 1.0),
        ];
        for (x, expected) in table {
            assert!((erf(x) - expected).abs() < 1e-9, "{x}: {}", erf(x));
        }
    }
}
