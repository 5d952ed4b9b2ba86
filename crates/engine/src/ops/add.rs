//! Sum: y = a + b, elementwise. Backward: dy goes to both.

mod cuda;

use rayon::prelude::*;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

const CHUNK: usize = 1 << 13;

/// The sum of two values of the same shape.
pub fn add(tape: &mut Tape<'_>, a: &Var, b: &Var) -> Result<Var> {
    if a.shape() != b.shape() || a.value().dtype() != b.value().dtype() {
        let types = [a, b].map(|var| var.value().dtype().name());
        let detail = format!("{} of {} and {} of {}", a.shape(), types[0], b.shape(), types[1]);
        return Err(Error::shape("add", detail));
    }
    let device = tape.device();
    let mut y = Tensor::empty(&device, a.shape(), a.value().dtype())?;
    match &device {
        Device::Cpu(_) => {
            let from = a
                .value()
                .as_slice::<f32>()?
                .par_chunks(CHUNK)
                .zip(b.value().as_slice::<f32>()?.par_chunks(CHUNK));
            y.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK).zip(from).for_each(|(y, (a, b))| {
                y.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = a + b);
            });
        }
        Device::Cuda(cuda) => cuda::forward(cuda, a.value(), b.value(), &mut y)?,
    }
    let (da, db) = (a.gradient(), b.gradient());
    Ok(tape.record("add", &[da, db], y, move |context, dy| {
        context.add(da, dy.clone())?;
        context.add(db, dy)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        check(
            &Case::new(&[&[3, 5], &[3, 5]]),
            |tape, i| {
                let twice = add(tape, &i[0], &i[0])?;
                add(tape, &twice, &i[1])
            },
            |i| i[0].iter().zip(&i[1]).map(|(a, b)| 2.0 * a + b).collect(),
        );
    }
}
