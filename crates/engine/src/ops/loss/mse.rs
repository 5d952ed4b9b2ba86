//! Mean squared error over all elements: MSE = mean (u - v)^2.
//!
//! Shapes: u and v equal, any. Gradients: du = 2 (u - v) / elements, dv = - du.

use super::{cuda, write};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

/// The mean squared difference of `u` and `v`.
pub fn mse(tape: &mut Tape<'_>, u: &Var, v: &Var) -> Result<Var> {
    if u.shape() != v.shape() || u.shape().is_empty() {
        return Err(Error::shape("mse", format!("{} and {}", u.shape(), v.shape())));
    }
    let device = tape.device();
    let loss = match &device {
        Device::Cpu(_) => {
            let (u, v) = (u.value().as_slice::<f32>()?, v.value().as_slice::<f32>()?);
            let sum: f64 = u.iter().zip(v).map(|(u, v)| (f64::from(*u) - f64::from(*v)).powi(2)).sum();
            Tensor::from_slice(&device, [1], &[(sum / u.len() as f64) as f32])?
        }
        Device::Cuda(cuda) => cuda::mse(cuda, &device, u.value(), v.value())?,
    };
    let (du, dv) = (u.gradient(), v.gradient());
    let (u, v) = (u.value().clone(), v.value().clone());
    Ok(tape.record("mse", &[du, dv], loss, move |context, dy| {
        let (mut du, mut dv) = (context.target(du)?, context.target(dv)?);
        match context.device() {
            Device::Cpu(_) => {
                let scale = 2.0 * dy.scalar()? / u.len() as f32;
                let (u, v) = (u.as_slice::<f32>()?, v.as_slice::<f32>()?);
                if let Some(du) = &mut du {
                    write(du, |i| scale * (u[i] - v[i]))?;
                }
                if let Some(dv) = &mut dv {
                    write(dv, |i| scale * (v[i] - u[i]))?;
                }
            }
            Device::Cuda(cuda) => cuda::mse_backward(&cuda, &dy, (&u, &v), du.as_mut(), dv.as_mut())?,
        }
        [du, dv].into_iter().flatten().for_each(|target| context.put(target));
        Ok(())
    }))
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
