//! Operators that multiply matrices, and sums.

use rayon::prelude::*;

use super::arrays::Array;
use super::{Call, Outcome};

impl Call<'_> {
    /// (..., m, k) by (k, n), or by (..., k, n) with the same dimensions in front.
    pub(super) fn product(&self) -> Outcome<Array> {
        let (a, b) = (self.floats(0)?, self.floats(1)?);
        let wrong = || format!("{:?} and {:?} cannot be multiplied", a.shape, b.shape);
        let ([front @ .., m, k], [others @ .., rows, n]) = (&a.shape[..], &b.shape[..]) else {
            return Err(wrong());
        };
        if k != rows || !(others.is_empty() || others == front) || *k == 0 || *n == 0 {
            return Err(wrong());
        }
        let mut values = vec![0.0; a.values.len() / k * n];
        values.par_chunks_mut(*n).enumerate().for_each(|(row, out)| {
            let matrix = if others.is_empty() { 0 } else { row / m };
            let matrix = &b.values[matrix * k * n..];
            for (x, weights) in a.values[row * k..][..*k].iter().zip(matrix.chunks_exact(*n)) {
                out.iter_mut().zip(weights).for_each(|(out, weight)| *out += x * weight);
            }
        });
        Array::shaped([front, &[*m, *n]].concat(), values)
    }

    /// a bᵀ + c.
    pub(super) fn gemm(&self) -> Outcome<Array> {
        let (a, b) = (self.floats(0)?, self.floats(1)?);
        let (&[rows, width], &[outputs, expected]) = (&a.shape[..], &b.shape[..]) else {
            return Err(format!("{:?} and {:?} are no matrices", a.shape, b.shape));
        };
        let bias = if self.has(2) { self.floats(2)?.values.clone() } else { vec![0.0; outputs] };
        if self.int("transB", 0) != 1 || width != expected || bias.len() != outputs {
            return Err(format!("{:?} and {:?} do not fit together", a.shape, b.shape));
        }
        let mut values = vec![0.0; rows * outputs];
        values.par_iter_mut().enumerate().for_each(|(index, value)| {
            let (row, output) = (index / outputs, index % outputs);
            let pairs = a.values[row * width..][..width].iter().zip(&b.values[output * width..][..width]);
            let sum: f64 = pairs.map(|(x, weight)| f64::from(*x) * f64::from(*weight)).sum();
            *value = (sum + f64::from(bias[output])) as f32;
        });
        Array::shaped(vec![rows, outputs], values)
    }

    /// Over the first dimension, which then is gone.
    pub(super) fn sum(&self) -> Outcome<Array> {
        let x = self.floats(0)?;
        if self.integers(1)? != [0] || self.int("keepdims", 1) != 0 || x.shape.is_empty() {
            return Err("only sums over the first dimension are known".to_owned());
        }
        let shape = x.shape[1..].to_vec();
        let mut sums = vec![0.0_f64; shape.iter().product()];
        for row in x.values.chunks_exact(sums.len().max(1)) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        Array::shaped(shape, sums.into_iter().map(|sum| sum as f32).collect())
    }
}
