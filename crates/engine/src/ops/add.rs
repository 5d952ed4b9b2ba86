//! Sum: y = a + b, elementwise. Backward: dy goes to both.

use rayon::prelude::*;

use super::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

const CHUNK: usize = 1 << 13;

/// The sum of two values of the same shape.
pub fn add(tape: &mut Tape<'_>, a: &Var, b: &Var) -> Result<Var> {
    if a.spec() != b.spec() {
        let types = [a, b].map(|var| var.value().dtype().name());
        let detail = format!("{} of {} and {} of {}", a.shape(), types[0], b.shape(), types[1]);
        return Err(Error::shape("add", detail));
    }
    tape.apply("add", Add, [a, b], a.spec())
}

struct Add;

impl Operation<CpuPool, Fixed<2>> for Add {
    type Saved = ();

    fn forward(&self, _: &mut Cpu, [a, b]: [&Var; 2], y: &mut Tensor) -> Result<()> {
        let (a, b) = (a.value().as_slice::<f32>()?, b.value().as_slice::<f32>()?);
        let from = a.par_chunks(CHUNK).zip(b.par_chunks(CHUNK));
        y.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK).zip(from).for_each(|(y, (a, b))| {
            y.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = a + b);
        });
        Ok(())
    }

    fn backward(&self, cpu: &mut Cpu, (): &(), dy: Tensor, _: To<2>) -> Result<()> {
        cpu.pass(dy);
        Ok(())
    }

    fn passes(&self, _input: usize) -> bool {
        true
    }
}

impl Operation<CudaDevice, Fixed<2>> for Add {
    type Saved = ();

    fn forward(&self, cuda: &mut Cuda, [a, b]: [&Var; 2], y: &mut Tensor) -> Result<()> {
        let count = y.len();
        let bytes = 3.0 * (count * y.dtype().size()) as f64;
        let _scope = cuda.context().scope(|| "add".into(), count as f64, bytes);
        let places = [view(a.value())?, view(b.value())?, view_mut(y)?];
        let aligned = places.iter().all(|place| place.address.is_multiple_of(32));
        let vectors = if aligned { count / 8 } else { 0 };
        let [a, b, to] = places.map(gpu::Argument::from);
        let arguments = [a, b, to, (count as i64).into(), (vectors as i64).into()];
        let program = Program::new(KernelFile::Elementwise, y.dtype());
        cuda.launch(&program, Kernel::add, cuda.elementwise(count - 7 * vectors), &arguments)
    }

    fn backward(&self, cuda: &mut Cuda, (): &(), dy: Tensor, _: To<2>) -> Result<()> {
        cuda.pass(dy);
        Ok(())
    }

    fn passes(&self, _input: usize) -> bool {
        true
    }
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
