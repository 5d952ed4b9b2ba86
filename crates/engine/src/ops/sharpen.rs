//! Sharpening of probabilities: y_j = a_j^(1/T) / sum_k a_k^(1/T), row by row. T < 1 moves weight to the largest.
//!
//! Shapes: a, y (n, capsules). Backward: da_j = y_j (dy_j - sum_k dy_k y_k) / (T a_j).

mod cuda;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::tape::{Tape, Var};
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
    let device = tape.device();
    let mut y = Tensor::empty(&device, a.shape(), DType::F32)?;
    match &device {
        Device::Cpu(_) => {
            let from = a.value().as_slice::<f32>()?.chunks_exact(columns);
            for (y, a) in y.as_mut_slice::<f32>()?.chunks_exact_mut(columns).zip(from) {
                let largest = a.iter().fold(SMALLEST, |largest, a| largest.max(*a));
                let power = |a: f32| f64::from(a.max(SMALLEST) / largest).powf(1.0 / f64::from(temperature));
                let sum: f64 = a.iter().map(|&a| power(a)).sum();
                y.iter_mut().zip(a).for_each(|(y, &a)| *y = (power(a) / sum) as f32);
            }
        }
        Device::Cuda(cuda) => cuda::forward(cuda, a.value(), [rows, columns], temperature, &mut y)?,
    }
    let (da, a, kept) = (a.gradient(), a.value().clone(), y.clone());
    Ok(tape.record("sharpen", &[da], y, move |context, dy| {
        let Some(mut target) = context.target(da)? else { return Ok(()) };
        match context.device() {
            Device::Cpu(_) => {
                let accumulate = target.accumulate;
                let (a, y, dy) = (a.as_slice::<f32>()?, kept.as_slice::<f32>()?, dy.as_slice::<f32>()?);
                for (row, da) in target.tensor.as_mut_slice::<f32>()?.chunks_exact_mut(columns).enumerate() {
                    let range = row * columns..(row + 1) * columns;
                    let (a, y, dy) = (&a[range.clone()], &y[range.clone()], &dy[range]);
                    let along: f32 = y.iter().zip(dy).map(|(y, dy)| y * dy).sum();
                    for j in 0..columns {
                        let gradient = y[j] * (dy[j] - along) / (temperature * a[j].max(SMALLEST));
                        da[j] = if accumulate { da[j] + gradient } else { gradient };
                    }
                }
            }
            Device::Cuda(cuda) => {
                cuda::backward(&cuda, (&dy, &a, &kept), [rows, columns], temperature, &mut target)?;
            }
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
