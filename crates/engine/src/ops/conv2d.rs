//! Convolution: y[n, oh, ow, o] = sum over kh, kw, c of x[n, oh s + kh - top, ow s + kw - left, c] W[o, kh, kw, c],
//! with zeros outside x.
//!
//! Shapes: x (n, height, width, in), W (out, kernel height, kernel width, in), y (n, oh, ow, out) with
//! oh = (height + top + bottom - kernel height) / s + 1 (rounded down), likewise ow.
//! Backward: dx is the transposed convolution of dy, dW the correlation of x with dy. Values in f16 have gradients in
//! bf16: backward multiplies those with x and W rounded to bf16.

pub(crate) mod cpu;
pub(crate) mod cuda;

use super::operation::{Cpu, Fixed, Operation, To};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::shape::Shape;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

/// Zeros around an image, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padding {
    /// Rows above.
    pub top: usize,
    /// Columns to the left.
    pub left: usize,
    /// Rows below.
    pub bottom: usize,
    /// Columns to the right.
    pub right: usize,
}

impl Padding {
    /// The same on all sides.
    pub const fn all(pixels: usize) -> Self {
        Self { top: pixels, left: pixels, bottom: pixels, right: pixels }
    }

    /// Different before (top and left) and after (bottom and right).
    pub const fn before_after(before: usize, after: usize) -> Self {
        Self { top: before, left: before, bottom: after, right: after }
    }
}

/// The sizes of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Height, width and channels of the input.
    pub input: [usize; 3],
    /// Height, width and channels of the output.
    pub output: [usize; 3],
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Pixels between two windows.
    pub stride: usize,
    /// Zeros around the input.
    pub padding: Padding,
}

impl Geometry {
    /// The geometry of `op` on an input of shape `x` with weights of shape `weight` (out, kh, kw, in).
    pub fn new(op: &'static str, x: Shape, weight: Shape, stride: usize, padding: Padding) -> Result<Self> {
        let (&[batch, height, width, channels], &[out, kh, kw, weight_channels]) = (x.dims(), weight.dims())
        else {
            let detail = format!("x {x} must be (n, h, w, in) and the weight {weight} (out, kh, kw, in)");
            return Err(Error::shape(op, detail));
        };
        let padded = (height + padding.top + padding.bottom, width + padding.left + padding.right);
        if channels != weight_channels || stride == 0 || kh == 0 || kw == 0 || padded.0 < kh || padded.1 < kw
        {
            let detail = format!("x {x} does not fit weight {weight} with stride {stride} and {padding:?}");
            return Err(Error::shape(op, detail));
        }
        let output = [(padded.0 - kh) / stride + 1, (padded.1 - kw) / stride + 1, out];
        Ok(Self { batch, input: [height, width, channels], output, kernel: [kh, kw], stride, padding })
    }

    /// The shape of the output.
    pub(crate) fn output_shape(&self) -> Shape {
        let [height, width, channels] = self.output;
        Shape::new(&[self.batch, height, width, channels])
    }
}

/// Convolves `x` with `weight` (out, kh, kw, in).
pub fn conv2d(tape: &mut Tape<'_>, x: &Var, weight: &Var, stride: usize, padding: Padding) -> Result<Var> {
    let geometry = Geometry::new("conv2d", x.shape(), weight.shape(), stride, padding)?;
    tape.apply("conv2d", Conv2d(geometry), [x, weight], (geometry.output_shape(), x.value().dtype()))
}

struct Conv2d(Geometry);

impl Operation<CpuPool, Fixed<2>> for Conv2d {
    /// x and W.
    type Saved = [Tensor; 2];

    fn forward(&self, cpu: &mut Cpu, [x, weight]: [&Var; 2], y: &mut Tensor) -> Result<[Tensor; 2]> {
        let packed = cpu.tape.prepared(weight.value(), "conv2d forward", cpu::pack_forward)?;
        cpu::forward(&self.0, x.value().as_slice()?, packed.as_slice()?, y.as_mut_slice()?);
        Ok([x.value().clone(), weight.value().clone()])
    }

    fn backward(&self, cpu: &mut Cpu, [x, weight]: &[Tensor; 2], dy: Tensor, [dx, dw]: To<2>) -> Result<()> {
        let dy = dy.as_slice()?;
        if let Some(Target { tensor, accumulate, .. }) = dw {
            cpu::weight_gradient(&self.0, x.as_slice()?, dy, tensor.as_mut_slice()?, *accumulate);
        }
        if let Some(Target { tensor, accumulate, .. }) = dx {
            let packed = cpu.tape.prepared(weight, "conv2d backward", cpu::pack_backward)?;
            cpu::data_gradient(&self.0, dy, packed.as_slice()?, tensor.as_mut_slice()?, *accumulate);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    /// The definition, in float64.
    pub(crate) fn reference(geometry: &Geometry, x: &[f64], weight: &[f64]) -> Vec<f64> {
        let ([height, width, channels], [oh, ow, out], [kh, kw]) =
            (geometry.input, geometry.output, geometry.kernel);
        let mut y = Vec::new();
        for n in 0..geometry.batch {
            for (oy, ox) in (0..oh).flat_map(|oy| (0..ow).map(move |ox| (oy, ox))) {
                for o in 0..out {
                    let mut sum = 0.0;
                    for (ky, kx) in (0..kh).flat_map(|ky| (0..kw).map(move |kx| (ky, kx))) {
                        let iy = (oy * geometry.stride + ky).wrapping_sub(geometry.padding.top);
                        let ix = (ox * geometry.stride + kx).wrapping_sub(geometry.padding.left);
                        if iy < height && ix < width {
                            for c in 0..channels {
                                sum += x[((n * height + iy) * width + ix) * channels + c]
                                    * weight[((o * kh + ky) * kw + kx) * channels + c];
                            }
                        }
                    }
                    y.push(sum);
                }
            }
        }
        y
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let asymmetric = Padding::before_after(0, 1);
        // (batch, height, width, in, out, kernel, stride, padding): wide maps, small maps with many images (grouped
        // by position), small maps with few images, and channel counts around the vector width.
        let cases = [
            (2, 5, 13, 3, 5, 3, 1, Padding::all(1)),
            (2, 9, 17, 8, 33, 3, 2, asymmetric),
            (7, 4, 4, 5, 40, 3, 1, Padding::all(1)),
            (9, 4, 4, 6, 7, 3, 2, asymmetric),
            (8, 2, 3, 16, 16, 3, 1, Padding::all(1)),
            (2, 3, 2, 4, 9, 3, 1, Padding::all(1)),
            (3, 8, 8, 7, 12, 1, 2, Padding::default()),
            (16, 1, 1, 9, 35, 3, 1, Padding::all(1)),
            (1, 7, 16, 2, 3, 5, 3, Padding { top: 2, left: 1, bottom: 0, right: 3 }),
        ];
        for (batch, height, width, channels, out, kernel, stride, padding) in cases {
            let (x, w) = ([batch, height, width, channels], [out, kernel, kernel, channels]);
            let geometry = Geometry::new("test", Shape::from(x), Shape::from(w), stride, padding).unwrap();
            check(
                &Case::new(&[&x, &w]),
                |tape, inputs| conv2d(tape, &inputs[0], &inputs[1], stride, padding),
                |inputs| reference(&geometry, &inputs[0], &inputs[1]),
            );
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let case = Case::new(&[&[1, 4, 4, 3], &[8, 3, 3, 5]]);
        let error = case.run(|tape, i| conv2d(tape, &i[0], &i[1], 1, Padding::all(1))).unwrap_err();
        assert!(
            error.to_string().starts_with("conv2d: x [1, 4, 4, 3] does not fit weight [8, 3, 3, 5]"),
            "{error}"
        );
    }
}
