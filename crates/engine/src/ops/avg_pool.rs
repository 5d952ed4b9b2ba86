//! Global average pooling: y[n, c] = mean over all pixels of x[n, :, :, c].
//!
//! Shapes: x (n, ..., channels), y (n, channels). Backward: every pixel gets dy / number of pixels.

use rayon::prelude::*;

use super::operation::{Cpu, Cuda, Operation};
use crate::cpu;
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// The mean of `x` over everything between its first and its last dimension. The result is float32.
pub fn avg_pool(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    let shape = x.shape();
    if shape.dims().len() < 2 || shape.is_empty() {
        return Err(Error::shape("avg_pool", format!("x {shape} must be (n, ..., channels)")));
    }
    let (batch, channels) = (shape[0], shape[shape.dims().len() - 1]);
    let pixels = shape.len() / (batch * channels);
    tape.apply("avg_pool", AvgPool { batch, pixels, channels }, x, ([batch, channels].into(), DType::F32))
}

#[derive(Clone, Copy)]
struct AvgPool {
    batch: usize,
    pixels: usize,
    channels: usize,
}

impl Operation<CpuPool> for AvgPool {
    type Saved = ();

    fn forward(&self, _: &mut Cpu, x: &Var, y: &mut Tensor) -> Result<()> {
        let Self { pixels, channels, .. } = *self;
        let x = x.value().as_slice::<f32>()?.par_chunks(pixels * channels);
        y.as_mut_slice::<f32>()?.par_chunks_mut(channels).zip(x).for_each(|(y, x)| {
            y.fill(0.0);
            x.chunks_exact(channels).for_each(|x| cpu::add_assign(y, x));
            y.iter_mut().for_each(|y| *y /= pixels as f32);
        });
        Ok(())
    }

    fn backward(&self, _: &mut Cpu, (): &(), dy: Tensor, dx: &mut Target) -> Result<()> {
        let Self { pixels, channels, .. } = *self;
        let accumulate = dx.accumulate;
        let dy = dy.as_slice::<f32>()?.par_chunks(channels);
        let samples = dx.tensor.as_mut_slice::<f32>()?.par_chunks_mut(pixels * channels);
        samples.zip(dy).for_each(|(dx, dy)| {
            for dx in dx.chunks_exact_mut(channels) {
                for (dx, dy) in dx.iter_mut().zip(dy) {
                    let gradient = dy / pixels as f32;
                    *dx = if accumulate { *dx + gradient } else { gradient };
                }
            }
        });
        Ok(())
    }
}

impl Operation<CudaDevice> for AvgPool {
    type Saved = ();

    fn forward(&self, cuda: &mut Cuda, x: &Var, y: &mut Tensor) -> Result<()> {
        let (Self { batch, pixels, channels }, x) = (*self, x.value());
        let bytes = (x.len() * x.dtype().size()) as f64;
        let _scope = cuda.context().scope(|| "avg_pool".into(), x.len() as f64, bytes);
        let arguments = [view(x)?.into(), view_mut(y)?.into(), batch.into(), pixels.into(), channels.into()];
        let program = Program::with_channels(KernelFile::Pool, x.dtype(), channels);
        cuda.launch(&program, Kernel::mean_pool, cuda.elementwise(y.len()), &arguments)
    }

    fn backward(&self, cuda: &mut Cuda, (): &(), dy: Tensor, dx: &mut Target) -> Result<()> {
        let (Self { batch, pixels, channels }, count, dtype) = (*self, dx.tensor.len(), dx.tensor.dtype());
        let bytes = (count * dtype.size()) as f64;
        let _scope = cuda.context().scope(|| "avg_pool backward".into(), count as f64, bytes);
        let [to, add] = dx.arguments()?;
        let arguments = [view(&dy)?.into(), to, add, batch.into(), pixels.into(), channels.into()];
        let program = Program::with_channels(KernelFile::Pool, dtype, channels);
        cuda.launch(&program, Kernel::mean_pool_backward, cuda.elementwise(count), &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        check(
            &Case::new(&[&[3, 2, 5, 7]]),
            |tape, inputs| avg_pool(tape, &inputs[0]),
            |inputs| {
                (0..21)
                    .map(|i| (0..10).map(|p| inputs[0][(i / 7 * 10 + p) * 7 + i % 7]).sum::<f64>() / 10.0)
                    .collect()
            },
        );
    }
}
