//! Mean squared error over all elements: MSE = mean (u - v)^2.
//!
//! Shapes: u and v equal, any. Gradients: du = 2 (u - v) / elements, dv = - du.

use super::{cuda, number};
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view};
use crate::error::{Error, Result};
use crate::ops::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

/// The mean squared difference of `u` and `v`.
pub fn mse(tape: &mut Tape<'_>, u: &Var, v: &Var) -> Result<Var> {
    if u.shape() != v.shape() || u.shape().is_empty() {
        return Err(Error::shape("mse", format!("{} and {}", u.shape(), v.shape())));
    }
    tape.apply("mse", Mse, [u, v], number())
}

struct Mse;

impl Operation<CpuPool, Fixed<2>> for Mse {
    /// u and v.
    type Saved = [Tensor; 2];

    fn forward(&self, _: &mut Cpu, inputs: [&Var; 2], loss: &mut Tensor) -> Result<[Tensor; 2]> {
        let saved = inputs.map(|var| var.value().clone());
        let (u, v) = (saved[0].as_slice::<f32>()?, saved[1].as_slice::<f32>()?);
        let sum: f64 = u.iter().zip(v).map(|(u, v)| (f64::from(*u) - f64::from(*v)).powi(2)).sum();
        loss.write(&[(sum / u.len() as f64) as f32])?;
        Ok(saved)
    }

    fn backward(&self, _: &mut Cpu, [u, v]: &[Tensor; 2], dy: Tensor, [du, dv]: To<2>) -> Result<()> {
        let scale = 2.0 * dy.scalar()? / u.len() as f32;
        let (u, v) = (u.as_slice::<f32>()?, v.as_slice::<f32>()?);
        if let Some(du) = du {
            du.write(|i| scale * (u[i] - v[i]))?;
        }
        if let Some(dv) = dv {
            dv.write(|i| scale * (v[i] - u[i]))?;
        }
        Ok(())
    }
}

impl Operation<CudaDevice, Fixed<2>> for Mse {
    /// u and v.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, inputs: [&Var; 2], loss: &mut Tensor) -> Result<[Tensor; 2]> {
        let [u, v] = inputs.map(|var| var.value().clone());
        let count = u.len();
        let arguments = [view(&u)?.into(), view(&v)?.into(), (count as i64).into()];
        cuda::sum(cuda, Kernel::mse, cuda::blocks(cuda, count), &arguments, (1.0 / count as f64, 0.0), loss)?;
        Ok([u, v])
    }

    fn backward(&self, cuda: &mut Cuda, [u, v]: &[Tensor; 2], dy: Tensor, [du, dv]: To<2>) -> Result<()> {
        let mut arguments =
            vec![view(&dy)?.into(), view(u)?.into(), view(v)?.into(), (u.len() as i64).into()];
        arguments.extend(Target::arguments_of(du)?);
        arguments.extend(Target::arguments_of(dv)?);
        cuda::launch(cuda, Kernel::mse_backward, cuda.elementwise(u.len()), &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradients_agree_with_finite_differences() {
        check(
            &Case::new(&[&[3, 7], &[3, 7]]),
            |tape, i| mse(tape, &i[0], &i[1]),
            |i| vec![i[0].iter().zip(&i[1]).map(|(u, v)| (u - v).powi(2)).sum::<f64>() / 21.0],
        );
    }
}
