//! Sharpening of probabilities: y_j = a_j^(1/T) / sum_k a_k^(1/T), row by row. T < 1 moves weight to the largest.
//!
//! Shapes: a, y (n, capsules). Backward: da_j = y_j (dy_j - sum_k dy_k y_k) / (T a_j).

use gpu::Launch;

use super::operation::{Cpu, Cuda, Operation};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// Probabilities are not taken smaller than this.
const SMALLEST: f32 = 1e-30;

/// `a` with temperature `temperature` (1: as it is).
pub fn sharpen(tape: &mut Tape<'_>, a: &Var, temperature: f32) -> Result<Var> {
    let &[rows, columns] = a.shape().dims() else {
        return Err(Error::shape("sharpen", format!("a {} must be (n, capsules)", a.shape())));
    };
    if temperature <= 0.0 || temperature.is_nan() || columns == 0 {
        return Err(Error::shape("sharpen", format!("a {} at temperature {temperature}", a.shape())));
    }
    tape.apply("sharpen", Sharpen { rows, columns, temperature }, a, (a.shape(), DType::F32))
}

#[derive(Clone, Copy)]
struct Sharpen {
    rows: usize,
    columns: usize,
    temperature: f32,
}

impl Operation<CpuPool> for Sharpen {
    /// a and y.
    type Saved = [Tensor; 2];

    fn forward(&self, _: &mut Cpu, a: &Var, y: &mut Tensor) -> Result<[Tensor; 2]> {
        let exponent = 1.0 / f64::from(self.temperature);
        let from = a.value().as_slice::<f32>()?.chunks_exact(self.columns);
        for (y, a) in y.as_mut_slice::<f32>()?.chunks_exact_mut(self.columns).zip(from) {
            let largest = a.iter().fold(SMALLEST, |largest, a| largest.max(*a));
            let power = |a: f32| f64::from(a.max(SMALLEST) / largest).powf(exponent);
            let sum: f64 = a.iter().map(|&a| power(a)).sum();
            y.iter_mut().zip(a).for_each(|(y, &a)| *y = (power(a) / sum) as f32);
        }
        Ok([a.value().clone(), y.clone()])
    }

    fn backward(&self, _: &mut Cpu, [a, y]: &[Tensor; 2], dy: Tensor, da: &mut Target) -> Result<()> {
        let Self { columns, temperature, .. } = *self;
        let accumulate = da.accumulate;
        let (a, y, dy) = (a.as_slice::<f32>()?, y.as_slice::<f32>()?, dy.as_slice::<f32>()?);
        for (row, da) in da.tensor.as_mut_slice::<f32>()?.chunks_exact_mut(columns).enumerate() {
            let range = row * columns..(row + 1) * columns;
            let (a, y, dy) = (&a[range.clone()], &y[range.clone()], &dy[range]);
            let along: f32 = y.iter().zip(dy).map(|(y, dy)| y * dy).sum();
            for j in 0..columns {
                let gradient = y[j] * (dy[j] - along) / (temperature * a[j].max(SMALLEST));
                da[j] = if accumulate { da[j] + gradient } else { gradient };
            }
        }
        Ok(())
    }
}

impl Sharpen {
    /// Runs `kernel`, a warp a row: `first`, the sizes, `last`.
    fn launch(
        self,
        cuda: &CudaDevice,
        kernel: Kernel,
        first: &[gpu::Argument],
        last: &[gpu::Argument],
    ) -> Result<()> {
        let Self { rows, columns, temperature } = self;
        let sizes = [rows.into(), columns.into(), temperature.into(), SMALLEST.into()];
        let program = Program::new(KernelFile::Loss, DType::F32);
        cuda.launch(&program, kernel, Launch::linear(rows.div_ceil(8), 256), &[first, &sizes, last].concat())
    }
}

impl Operation<CudaDevice> for Sharpen {
    /// a and y.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, a: &Var, y: &mut Tensor) -> Result<[Tensor; 2]> {
        self.launch(cuda, Kernel::sharpen, &[view(a.value())?.into()], &[view_mut(y)?.into()])?;
        Ok([a.value().clone(), y.clone()])
    }

    fn backward(&self, cuda: &mut Cuda, [a, y]: &[Tensor; 2], dy: Tensor, da: &mut Target) -> Result<()> {
        let from = [view(&dy)?.into(), view(a)?.into(), view(y)?.into()];
        self.launch(cuda, Kernel::sharpen_backward, &from, &da.arguments()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        for temperature in [0.1_f32, 0.5, 2.0] {
            check(
                &Case::with(&[&[4, 7]], |_, random| random.range(0.4, 0.6)),
                |tape, i| sharpen(tape, &i[0], temperature),
                |i| {
                    let power = |a: &f64| a.powf(1.0 / f64::from(temperature));
                    i[0].chunks(7)
                        .flat_map(|row| {
                            let sum: f64 = row.iter().map(power).sum();
                            row.iter().map(move |a| power(a) / sum).collect::<Vec<_>>()
                        })
                        .collect()
                },
            );
        }
    }

    #[test]
    fn temperatures_that_make_no_sense_are_refused() {
        let case = Case::new(&[&[2, 3]]);
        assert!(case.run(|tape, i| sharpen(tape, &i[0], 0.0)).is_err());
        assert!(case.run(|tape, i| sharpen(tape, &i[0], f32::NAN)).is_err());
    }
}
