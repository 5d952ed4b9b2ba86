//! What functions of single elements share, whose slope follows from their value: y = f(x), dx = dy f'(x) as a function
//! of dy and y.

use std::marker::PhantomData;

use rayon::prelude::*;

use super::operation::{Cpu, Cuda, Operation};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

/// Elements per task.
const CHUNK: usize = 1 << 13;

/// A function.
pub(super) trait Function: Sync + 'static {
    const NAME: &'static str;
    /// Forward and backward.
    const KERNELS: [Kernel; 2];

    /// y of x.
    fn value(x: f32) -> f32;

    /// dx of dy and y.
    fn gradient(dy: f32, y: f32) -> f32;
}

/// Applies a function to every element.
pub(super) fn apply<F: Function>(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    tape.apply(F::NAME, Elementwise::<F>(PhantomData), x, x.spec())
}

struct Elementwise<F>(PhantomData<F>);

impl<F: Function> Operation<CpuPool> for Elementwise<F> {
    /// y.
    type Saved = Tensor;

    fn forward(&self, _: &mut Cpu, x: &Var, y: &mut Tensor) -> Result<Tensor> {
        let from = x.value().as_slice::<f32>()?.par_chunks(CHUNK);
        from.zip(y.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK)).for_each(|(x, y)| {
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = F::value(x));
        });
        Ok(y.clone())
    }

    fn backward(&self, _: &mut Cpu, y: &Tensor, dy: Tensor, dx: &mut Target) -> Result<()> {
        let accumulate = dx.accumulate;
        let dx = dx.tensor.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK);
        let dy = dy.as_slice::<f32>()?.par_chunks(CHUNK);
        dx.zip(dy).zip(y.as_slice::<f32>()?.par_chunks(CHUNK)).for_each(|((dx, dy), y)| {
            for ((dx, &dy), &y) in dx.iter_mut().zip(dy).zip(y) {
                let gradient = F::gradient(dy, y);
                *dx = if accumulate { *dx + gradient } else { gradient };
            }
        });
        Ok(())
    }
}

impl<F: Function> Operation<CudaDevice> for Elementwise<F> {
    /// y.
    type Saved = Tensor;

    fn forward(&self, cuda: &mut Cuda, x: &Var, y: &mut Tensor) -> Result<Tensor> {
        let (count, bytes) = (y.len(), 2.0 * (y.len() * y.dtype().size()) as f64);
        let _scope = cuda.context().scope(|| F::NAME.into(), count as f64, bytes);
        let arguments = [view(x.value())?.into(), view_mut(y)?.into(), (count as i64).into()];
        let program = Program::new(KernelFile::Elementwise, y.dtype());
        cuda.launch(&program, F::KERNELS[0], cuda.elementwise(count), &arguments)?;
        Ok(y.clone())
    }

    fn backward(&self, cuda: &mut Cuda, y: &Tensor, dy: Tensor, dx: &mut Target) -> Result<()> {
        let (count, bytes) = (y.len(), 3.0 * (y.len() * y.dtype().size()) as f64);
        let _scope = cuda.context().scope(|| format!("{} backward", F::NAME), count as f64, bytes);
        let [to, add] = dx.arguments()?;
        let arguments = [view(&dy)?.into(), view(y)?.into(), to, add, (count as i64).into()];
        let program = Program::new(KernelFile::Elementwise, y.dtype());
        cuda.launch(&program, F::KERNELS[1], cuda.elementwise(count), &arguments)
    }
}
