//! Global average pooling: y[n, c] = mean over all pixels of x[n, :, :, c].
//!
//! Shapes: x (n, ..., channels), y (n, channels). Backward: every pixel gets dy / number of pixels.

mod cuda;

use rayon::prelude::*;

use crate::cpu;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// The mean of `x` over everything between its first and its last dimension. The result is float32.
pub fn avg_pool(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    let shape = x.shape();
    if shape.dims().len() < 2 || shape.is_empty() {
        return Err(Error::shape("avg_pool", format!("x {shape} must be (n, ..., channels)")));
    }
    let (batch, channels) = (shape[0], shape[shape.dims().len() - 1]);
    let pixels = shape.len() / (batch * channels);
    let device = tape.device();
    let mut y = Tensor::empty(&device, [batch, channels], DType::F32)?;
    match &device {
        Device::Cpu(_) => {
            let x = x.value().as_slice::<f32>()?.par_chunks(pixels * channels);
            y.as_mut_slice::<f32>()?.par_chunks_mut(channels).zip(x).for_each(|(y, x)| {
                y.fill(0.0);
                x.chunks_exact(channels).for_each(|x| cpu::add_assign(y, x));
                y.iter_mut().for_each(|y| *y /= pixels as f32);
            });
        }
        Device::Cuda(cuda) => cuda::forward(cuda, x.value(), pixels, &mut y)?,
    }
    let dx = x.gradient();
    Ok(tape.record("avg_pool", &[dx], y, move |context, dy| {
        let Some(mut dx) = context.target(dx)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let accumulate = dx.accumulate;
                let dy = dy.as_slice::<f32>()?.par_chunks(channels);
                dx.tensor.as_mut_slice::<f32>()?.par_chunks_mut(pixels * channels).zip(dy).for_each(
                    |(dx, dy)| {
                        for dx in dx.chunks_exact_mut(channels) {
                            for (dx, dy) in dx.iter_mut().zip(dy) {
                                let gradient = dy / pixels as f32;
                                *dx = if accumulate { *dx + gradient } else { gradient };
                            }
                        }
                    },
                );
            }
            Device::Cuda(cuda) => cuda::backward(&cuda, &dy, pixels, &mut dx)?,
        }
        context.put(dx);
        Ok(())
    }))
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
