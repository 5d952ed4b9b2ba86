//! Sigmoid: y = 1 / (1 + exp(-x)), elementwise. Backward: dx = dy y (1 - y).

mod cuda;

use rayon::prelude::*;

use crate::device::Device;
use crate::error::Result;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

const CHUNK: usize = 1 << 12;

/// The sigmoid of every element.
pub fn sigmoid(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    let device = tape.device();
    let mut y = Tensor::empty(&device, x.shape(), x.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let from = x.value().as_slice::<f32>()?.par_chunks(CHUNK);
            from.zip(y.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK)).for_each(|(x, y)| {
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = 1.0 / (1.0 + (-x).exp());
                }
            });
        }
        Device::Cuda(cuda) => cuda::forward(cuda, x.value(), &mut y)?,
    }
    let (dx, kept) = (x.gradient(), y.clone());
    Ok(tape.record("sigmoid", &[dx], y, move |context, dy| {
        let Some(mut target) = context.target(dx)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let accumulate = target.accumulate;
                let dx = target.tensor.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK);
                let dy = dy.as_slice::<f32>()?.par_chunks(CHUNK);
                dx.zip(dy).zip(kept.as_slice::<f32>()?.par_chunks(CHUNK)).for_each(|((dx, dy), y)| {
                    for ((dx, dy), y) in dx.iter_mut().zip(dy).zip(y) {
                        let gradient = dy * y * (1.0 - y);
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
        let case = Case::new(&[&[3, 7, 5]]);
        check(
            &case,
            |tape, inputs| sigmoid(tape, &inputs[0]),
            |inputs| inputs[0].iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
        );
    }
}
