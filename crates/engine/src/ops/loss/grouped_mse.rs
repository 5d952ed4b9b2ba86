//! Mean squared error of several heads side by side, each of its own number of outputs:
//! MSE_h = mean over rows and the first n_h columns of (y_h - t_h)^2. Columns after these are padding and do not count.
//!
//! Shapes: y and t (rows, heads, columns), n (heads) as i32, MSE (heads). Gradient: dy_h = 2 dMSE_h (y_h - t_h) /
//! (rows n_h), 0 in the padding.

use gpu::Launch;

use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::operation::{Cpu, Cuda, Operation};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

const OP: &str = "grouped_mse";

/// The mean squared difference of `outputs` and `targets` of each head, over its own number of columns, `sizes`.
pub fn grouped_mse(tape: &mut Tape<'_>, outputs: &Var, targets: &Tensor, sizes: &Tensor) -> Result<Var> {
    let misfit = || {
        let detail = format!("{} and {} of {} sizes", outputs.shape(), targets.shape(), sizes.shape());
        Error::shape(OP, detail)
    };
    let &[rows, heads, columns] = outputs.shape().dims() else { return Err(misfit()) };
    let is_right =
        targets.shape() == outputs.shape() && sizes.dims() == [heads] && sizes.dtype() == DType::I32;
    if !is_right || rows == 0 {
        return Err(misfit());
    }
    let op = GroupedMse { targets: targets.clone(), sizes: sizes.clone(), rows, heads, columns };
    tape.apply(OP, op, outputs, ([heads].into(), DType::F32))
}

struct GroupedMse {
    targets: Tensor,
    sizes: Tensor,
    rows: usize,
    heads: usize,
    columns: usize,
}

impl Operation<CpuPool> for GroupedMse {
    /// y.
    type Saved = Tensor;

    fn forward(&self, _: &mut Cpu, outputs: &Var, losses: &mut Tensor) -> Result<Tensor> {
        let Self { rows, heads, columns, .. } = *self;
        let (y, t) = (outputs.value().as_slice::<f32>()?, self.targets.as_slice::<f32>()?);
        let places = losses.as_mut_slice::<f32>()?.iter_mut().zip(self.sizes.as_slice::<i32>()?);
        for (head, (loss, &size)) in places.enumerate() {
            let known = usize::try_from(size).ok().filter(|size| (1..=columns).contains(size));
            let size = known
                .ok_or_else(|| Error::shape(OP, format!("a head of {size} outputs in {columns} columns")))?;
            let places = (0..rows).flat_map(|row| {
                let first = (row * heads + head) * columns;
                first..first + size
            });
            let sum: f64 = places.map(|i| (f64::from(y[i]) - f64::from(t[i])).powi(2)).sum();
            *loss = (sum / (rows * size) as f64) as f32;
        }
        Ok(outputs.value().clone())
    }

    fn backward(&self, _: &mut Cpu, y: &Tensor, dy: Tensor, dx: &mut Target) -> Result<()> {
        let Self { rows, heads, columns, .. } = *self;
        let (y, t) = (y.as_slice::<f32>()?, self.targets.as_slice::<f32>()?);
        let (dy, sizes) = (dy.as_slice::<f32>()?, self.sizes.as_slice::<i32>()?);
        dx.write(|i| {
            let (head, column) = (i / columns % heads, i % columns);
            let size = sizes[head] as usize;
            if column >= size {
                return 0.0;
            }
            let difference = f64::from(y[i]) - f64::from(t[i]);
            (difference * 2.0 * f64::from(dy[head]) / (rows * size) as f64) as f32
        })
    }
}

impl Operation<CudaDevice> for GroupedMse {
    /// y.
    type Saved = Tensor;

    fn forward(&self, cuda: &mut Cuda, outputs: &Var, losses: &mut Tensor) -> Result<Tensor> {
        let arguments = [
            view(outputs.value())?.into(),
            view(&self.targets)?.into(),
            view(&self.sizes)?.into(),
            self.rows.into(),
            self.heads.into(),
            self.columns.into(),
            view_mut(losses)?.into(),
        ];
        let program = Program::new(KernelFile::Heads, DType::F32);
        cuda.launch(&program, Kernel::grouped_mse, Launch::linear(self.heads, 256), &arguments)?;
        Ok(outputs.value().clone())
    }

    fn backward(&self, cuda: &mut Cuda, y: &Tensor, dy: Tensor, dx: &mut Target) -> Result<()> {
        let [to, add] = dx.arguments()?;
        let arguments = [
            view(&dy)?.into(),
            view(y)?.into(),
            view(&self.targets)?.into(),
            view(&self.sizes)?.into(),
            (y.len() as i64).into(),
            self.rows.into(),
            self.heads.into(),
            self.columns.into(),
            to,
            add,
        ];
        let program = Program::new(KernelFile::Heads, DType::F32);
        cuda.launch(&program, Kernel::grouped_mse_backward, cuda.elementwise(y.len()), &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::ops::testing::{Case, check};

    fn sizes(sizes: &[i32]) -> Tensor {
        Tensor::from_slice(&Device::cpu(), [sizes.len()], sizes).unwrap()
    }

    #[test]
    fn gradients_agree_with_finite_differences_and_padding_has_none() {
        let (rows, widths, columns) = (5, [4, 1, 3], 4);
        let targets = Case::new(&[&[rows, 3, columns]]).inputs.remove(0);
        let targets: Vec<f32> = targets.iter().map(|value| 0.3 - value * value).collect();
        let case = Case::new(&[&[rows, 3, columns]]);
        let op = |tape: &mut Tape<'_>, inputs: &[Var]| {
            let targets = Tensor::from_slice(&tape.device(), [rows, 3, columns], &targets)?;
            grouped_mse(tape, &inputs[0], &targets, &sizes(&widths.map(|width| width as i32)))
        };
        check(&case, op, |inputs| {
            let mut losses = vec![0.0; 3];
            for (i, (y, t)) in inputs[0].iter().zip(&targets).enumerate() {
                let head = i / columns % 3;
                if i % columns < widths[head] {
                    losses[head] += (y - f64::from(*t)).powi(2) / (rows * widths[head]) as f64;
                }
            }
            losses
        });
    }

    #[test]
    fn sizes_that_cannot_be_are_named() {
        let targets = Tensor::zeros(&Device::cpu(), [2, 2, 3], DType::F32).unwrap();
        let run = |of_heads: &[i32]| {
            let case = Case::new(&[&[2, 2, 3]]);
            case.run(|tape, inputs| grouped_mse(tape, &inputs[0], &targets, &sizes(of_heads)))
        };
        assert!(run(&[3, 2]).is_ok());
        for (wrong, says) in [(&[3, 4][..], "4 outputs in 3"), (&[0, 1], "0 outputs"), (&[1], "of [1] sizes")]
        {
            let error = run(wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
