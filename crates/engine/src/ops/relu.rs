//! ReLU: y = max(x, 0), elementwise. Backward: dx = dy where y > 0. (Behind a batch norm it is part of that.)

mod cuda;

use rayon::prelude::*;

use crate::device::Device;
use crate::error::Result;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

const CHUNK: usize = 1 << 13;

/// The positive part of every element.
pub fn relu(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    let device = tape.device();
    let mut y = Tensor::empty(&device, x.shape(), x.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let from = x.value().as_slice::<f32>()?.par_chunks(CHUNK);
            from.zip(y.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK)).for_each(|(x, y)| {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = if x > 0.0 { x } else { 0.0 });
            });
        }
        Device::Cuda(cuda) => cuda::forward(cuda, x.value(), &mut y)?,
    }
    let (dx, kept) = (x.gradient(), y.clone());
    Ok(tape.record("relu", &[dx], y, move |context, dy| {
        let Some(mut target) = context.target(dx)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let accumulate = target.accumulate;
                let dx = target.tensor.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK);
                let dy = dy.as_slice::<f32>()?.par_chunks(CHUNK);
                dx.zip(dy).zip(kept.as_slice::<f32>()?.par_chunks(CHUNK)).for_each(|((dx, dy), y)| {
                    for ((dx, dy), y) in dx.iter_mut().zip(dy).zip(y) {
                        let gradient = if *y > 0.0 { *dy } else { 0.0 };
                        *dx = if accumulate { *dx + gradient } else { gradient };
                    }
                });
            }
            Device::Cuda(cuda) => cuda::backward(&cuda, &dy, &kept, &mut target)?,
        }
        context.put(target);
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
            &Case::new(&[&[5, 11]]),
            |tape, inputs| relu(tape, &inputs[0]),
            |inputs| inputs[0].iter().map(|x| x.max(0.0)).collect(),
        );
    }
}
