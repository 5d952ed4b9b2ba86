//! Max pooling: the largest value of each window, by channel; outside the image the value is `PADDING_VALUE`.
//!
//! Shapes: x (n, height, width, channels), y (n, oh, ow, channels). Backward: dy goes to the first of the largest
//! values of its window, in reading order.

use gpu::Argument;
use rayon::prelude::*;

use super::operation::{Cpu, Cuda, Operation};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::conv2d::{Geometry, Padding};
use crate::pool::CpuPool;
use crate::shape::Shape;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// What the published network pads with before it pools.
pub const PADDING_VALUE: f32 = -10_000.0;

/// In place of a tap: the padding was largest.
const NOWHERE: u8 = u8::MAX;

/// Pools `x` with square windows of `kernel` pixels (at most 15).
pub fn max_pool(tape: &mut Tape<'_>, x: &Var, kernel: usize, stride: usize, padding: Padding) -> Result<Var> {
    let channels = x.shape().last().copied().unwrap_or(0);
    if kernel > 15 {
        return Err(Error::shape("max_pool", format!("a kernel of {kernel} pixels is larger than 15")));
    }
    let weight = Shape::new(&[channels, kernel, kernel, channels]);
    let geometry = Geometry::new("max_pool", x.shape(), weight, stride, padding)?;
    tape.apply("max_pool", MaxPool(geometry), x, (geometry.output_shape(), x.value().dtype()))
}

struct MaxPool(Geometry);

impl Operation<CpuPool> for MaxPool {
    /// Which tap of its window each output came from.
    type Saved = Tensor;

    fn forward(&self, cpu: &mut Cpu, x: &Var, y: &mut Tensor) -> Result<Tensor> {
        let mut taps = cpu.empty(y.shape(), DType::U8)?;
        forward(&self.0, x.value().as_slice()?, y.as_mut_slice()?, taps.as_mut_slice()?);
        Ok(taps)
    }

    fn backward(&self, _: &mut Cpu, taps: &Tensor, dy: Tensor, dx: &mut Target) -> Result<()> {
        backward(&self.0, dy.as_slice()?, taps.as_slice()?, dx.tensor.as_mut_slice()?, dx.accumulate);
        Ok(())
    }
}

impl Operation<CudaDevice> for MaxPool {
    /// Which tap of its window each output came from.
    type Saved = Tensor;

    fn forward(&self, cuda: &mut Cuda, x: &Var, y: &mut Tensor) -> Result<Tensor> {
        let mut taps = cuda.empty(y.shape(), DType::U8)?;
        let x = x.value();
        let bytes = ((x.len() + y.len()) * x.dtype().size() + taps.len()) as f64;
        let _scope = cuda.context().scope(|| "max_pool".into(), x.len() as f64, bytes);
        let mut arguments = vec![view(x)?.into(), view_mut(y)?.into(), view_mut(&mut taps)?.into()];
        arguments.extend(sizes(&self.0));
        arguments.push(PADDING_VALUE.into());
        let program = Program::with_channels(KernelFile::Pool, x.dtype(), self.0.input[2]);
        cuda.launch(&program, Kernel::max_pool, cuda.elementwise(y.len()), &arguments)?;
        Ok(taps)
    }

    fn backward(&self, cuda: &mut Cuda, taps: &Tensor, dy: Tensor, dx: &mut Target) -> Result<()> {
        let count = dx.tensor.len();
        let bytes = ((count + dy.len()) * dy.dtype().size() + taps.len()) as f64;
        let _scope = cuda.context().scope(|| "max_pool backward".into(), count as f64, bytes);
        let mut arguments = vec![view(&dy)?.into(), view(taps)?.into()];
        arguments.extend(dx.arguments()?);
        arguments.extend(sizes(&self.0));
        let program = Program::with_channels(KernelFile::Pool, dy.dtype(), self.0.input[2]);
        cuda.launch(&program, Kernel::max_pool_backward, cuda.elementwise(count), &arguments)
    }
}

/// The sizes, as arguments of the kernels.
fn sizes(geometry: &Geometry) -> [Argument; 10] {
    let ([height, width, channels], [oh, ow, _]) = (geometry.input, geometry.output);
    [
        geometry.batch.into(),
        height.into(),
        width.into(),
        channels.into(),
        oh.into(),
        ow.into(),
        geometry.kernel[0].into(),
        geometry.stride.into(),
        geometry.padding.top.into(),
        geometry.padding.left.into(),
    ]
}

fn forward(geometry: &Geometry, x: &[f32], y: &mut [f32], taps: &mut [u8]) {
    let ([height, width, channels], [oh, ow, _], [kh, kw]) =
        (geometry.input, geometry.output, geometry.kernel);
    let row = ow * channels;
    y.par_chunks_mut(row).zip(taps.par_chunks_mut(row)).enumerate().for_each(|(index, (y, taps))| {
        let (n, oy) = (index / oh, index % oh);
        for (ox, (y, taps)) in y.chunks_exact_mut(channels).zip(taps.chunks_exact_mut(channels)).enumerate() {
            y.fill(f32::NEG_INFINITY);
            taps.fill(0);
            for tap in 0..kh * kw {
                let iy = (oy * geometry.stride + tap / kw).wrapping_sub(geometry.padding.top);
                let ix = (ox * geometry.stride + tap % kw).wrapping_sub(geometry.padding.left);
                if iy < height && ix < width {
                    let x = &x[((n * height + iy) * width + ix) * channels..][..channels];
                    take_larger(x, tap as u8, y, taps);
                } else {
                    for (y, taps) in y.iter_mut().zip(&mut *taps).filter(|(y, _)| **y < PADDING_VALUE) {
                        (*y, *taps) = (PADDING_VALUE, NOWHERE);
                    }
                }
            }
        }
    });
}

multiversion! {
    fn take_larger(x: &[f32], tap: u8, y: &mut [f32], taps: &mut [u8]) {
        for ((x, y), taps) in x.iter().zip(y).zip(taps) {
            // A NaN is kept, as the first largest value.
            let larger = *x > *y || x.is_nan();
            *taps = if larger { tap } else { *taps };
            *y = if larger { *x } else { *y };
        }
    }
}

fn backward(geometry: &Geometry, dy: &[f32], taps: &[u8], dx: &mut [f32], accumulate: bool) {
    let ([height, width, channels], [oh, ow, _], [kh, kw]) =
        (geometry.input, geometry.output, geometry.kernel);
    // The output whose window has this input at `tap`, along one axis.
    let output = |input: usize, padding: usize, tap: usize, outputs: usize| {
        let scaled = (input + padding).checked_sub(tap)?;
        (scaled % geometry.stride == 0 && scaled / geometry.stride < outputs)
            .then_some(scaled / geometry.stride)
    };
    dx.par_chunks_mut(width * channels).enumerate().for_each(|(index, dx)| {
        let (n, iy) = (index / height, index % height);
        for (ix, dx) in dx.chunks_exact_mut(channels).enumerate() {
            if !accumulate {
                dx.fill(0.0);
            }
            for tap in 0..kh * kw {
                let oy = output(iy, geometry.padding.top, tap / kw, oh);
                let ox = output(ix, geometry.padding.left, tap % kw, ow);
                if let (Some(oy), Some(ox)) = (oy, ox) {
                    let offset = ((n * oh + oy) * ow + ox) * channels;
                    give_back(&dy[offset..][..channels], &taps[offset..][..channels], tap as u8, dx);
                }
            }
        }
    });
}

multiversion! {
    fn give_back(dy: &[f32], taps: &[u8], tap: u8, dx: &mut [f32]) {
        for ((dx, dy), from) in dx.iter_mut().zip(dy).zip(taps) {
            *dx += if *from == tap { *dy } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        for (dims, kernel, stride, padding) in [
            ([2, 6, 8, 5], 3, 2, Padding::before_after(0, 1)),
            ([1, 5, 7, 17], 3, 2, Padding::all(1)),
            ([2, 4, 4, 3], 2, 2, Padding::default()),
        ] {
            let weight = Shape::new(&[dims[3], kernel, kernel, dims[3]]);
            let geometry = Geometry::new("test", Shape::from(dims), weight, stride, padding).unwrap();
            check(
                &Case::new(&[&dims]),
                |tape, inputs| max_pool(tape, &inputs[0], kernel, stride, padding),
                |inputs| {
                    let [height, width, channels] = geometry.input;
                    let mut y = Vec::new();
                    for i in 0..geometry.output_shape().len() {
                        let [oh, ow, _] = geometry.output;
                        let (c, pixel) = (i % channels, i / channels);
                        let (n, oy, ox) = (pixel / (oh * ow), pixel / ow % oh, pixel % ow);
                        let mut best = f64::NEG_INFINITY;
                        for (ky, kx) in (0..kernel).flat_map(|ky| (0..kernel).map(move |kx| (ky, kx))) {
                            let iy = (oy * stride + ky).wrapping_sub(padding.top);
                            let ix = (ox * stride + kx).wrapping_sub(padding.left);
                            let inside = iy < height && ix < width;
                            let index = ((n * height + iy.min(height - 1)) * width + ix.min(width - 1))
                                * channels
                                + c;
                            best = best.max(if inside { inputs[0][index] } else { -10_000.0 });
                        }
                        y.push(best);
                    }
                    y
                },
            );
        }
    }

    #[test]
    fn the_padding_wins_over_what_is_even_smaller() {
        let mut case = Case::new(&[&[1, 2, 2, 1]]);
        case.inputs[0] = vec![1.0, -20_000.0, -30_000.0, -40_000.0];
        let y = case.run(|tape, i| max_pool(tape, &i[0], 2, 1, Padding::before_after(0, 1))).unwrap();
        assert_eq!(y, [1.0, -10_000.0, -10_000.0, -10_000.0]);
    }
}
