//! What functions of single elements share, whose slope follows from their value: y = f(x), dx = dy f'(x) as a function
//! of dy and y.

mod cuda;

use rayon::prelude::*;

use crate::device::Device;
use crate::error::Result;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

/// Elements per task.
const CHUNK: usize = 1 << 13;

/// A function; its kernels are called `name` and `backward_name`.
#[derive(Clone, Copy)]
pub(super) struct Function<F, G> {
    pub name: &'static str,
    pub backward_name: &'static str,
    /// y of x.
    pub value: F,
    /// dx of dy and y.
    pub gradient: G,
}

impl<F, G> Function<F, G>
where
    F: Fn(f32) -> f32 + Sync,
    G: Fn(f32, f32) -> f32 + Sync + Send + 'static,
{
    /// Applies the function to every element.
    pub(super) fn apply(self, tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
        let Self { name, backward_name, value, gradient } = self;
        let device = tape.device();
        let mut y = Tensor::empty(&device, x.shape(), x.value().dtype())?;
        match &device {
            Device::Cpu(_) => {
                let from = x.value().as_slice::<f32>()?.par_chunks(CHUNK);
                from.zip(y.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK)).for_each(|(x, y)| {
                    y.iter_mut().zip(x).for_each(|(y, &x)| *y = value(x));
                });
            }
            Device::Cuda(cuda) => cuda::forward(cuda, name, x.value(), &mut y)?,
        }
        let (dx, kept) = (x.gradient(), y.clone());
        Ok(tape.record(name, &[dx], y, move |context, dy| {
            let Some(mut target) = context.target(dx)? else { return Ok(()) };
            match context.device() {
                Device::Cpu(_) => {
                    let accumulate = target.accumulate;
                    let dx = target.tensor.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK);
                    let dy = dy.as_slice::<f32>()?.par_chunks(CHUNK);
                    dx.zip(dy).zip(kept.as_slice::<f32>()?.par_chunks(CHUNK)).for_each(|((dx, dy), y)| {
                        for ((dx, &dy), &y) in dx.iter_mut().zip(dy).zip(y) {
                            let gradient = gradient(dy, y);
                            *dx = if accumulate { *dx + gradient } else { gradient };
                        }
                    });
                }
                Device::Cuda(cuda) => cuda::backward(&cuda, backward_name, &dy, &kept, &mut target)?,
            }
            context.put(target);
            Ok(())
        }))
    }
}
