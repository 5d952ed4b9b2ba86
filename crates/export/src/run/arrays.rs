//! Arrays of floats, and operators that work on each element.

use rayon::prelude::*;

use super::{Call, Outcome};

/// A row-major array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

impl Array {
    /// `None` where the shape does not fit.
    pub(crate) fn new(shape: Vec<usize>, values: Vec<f32>) -> Option<Self> {
        let count = shape.iter().try_fold(1_usize, |count, &side| count.checked_mul(side))?;
        (count == values.len()).then_some(Self { shape, values })
    }

    /// As [`Self::new`], with a sentence.
    pub(super) fn shaped(shape: Vec<usize>, values: Vec<f32>) -> Outcome<Self> {
        let text = format!("{} numbers do not have the shape {shape:?}", values.len());
        Self::new(shape, values).ok_or(text)
    }

    /// The dimension that `axis` names; negative ones count from the end.
    pub(super) fn axis(&self, axis: i64) -> Outcome<usize> {
        let rank = self.shape.len() as i64;
        let place = if axis < 0 { axis + rank } else { axis };
        usize::try_from(place)
            .ok()
            .filter(|&place| place < self.shape.len())
            .ok_or_else(|| format!("there is no dimension {axis} in {:?}", self.shape))
    }

    /// Distances between neighbours in each dimension.
    pub(super) fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.shape.len()];
        for axis in (1..self.shape.len()).rev() {
            strides[axis - 1] = strides[axis] * self.shape[axis];
        }
        strides
    }

    /// The numbers at all places of `shape`, where a step in dimension d is `strides[d]` numbers.
    pub(super) fn gather(&self, offset: usize, shape: &[usize], strides: &[usize]) -> Vec<f32> {
        let count = shape.iter().product();
        let mut values = Vec::with_capacity(count);
        let mut place = vec![0; shape.len()];
        let mut at = offset;
        for _ in 0..count {
            values.push(self.values[at]);
            for axis in (0..shape.len()).rev() {
                place[axis] += 1;
                at += strides[axis];
                if place[axis] < shape[axis] {
                    break;
                }
                at -= strides[axis] * shape[axis];
                place[axis] = 0;
            }
        }
        values
    }
}

impl Call<'_> {
    pub(super) fn map(&self, function: impl Fn(f32) -> f32 + Sync) -> Outcome<Array> {
        let x = self.floats(0)?;
        let values = x.values.par_iter().map(|&value| function(value)).collect();
        Ok(Array { shape: x.shape.clone(), values })
    }

    /// Two inputs, each of which is repeated along dimensions in which it has one place or none.
    pub(super) fn elementwise(&self, function: impl Fn(f32, f32) -> f32) -> Outcome<Array> {
        let (a, b) = (self.floats(0)?, self.floats(1)?);
        let rank = a.shape.len().max(b.shape.len());
        let side = |array: &Array, axis: usize| {
            (axis + array.shape.len()).checked_sub(rank).map_or(1, |own| array.shape[own])
        };
        let mut shape = Vec::new();
        for axis in 0..rank {
            shape.push(match (side(a, axis), side(b, axis)) {
                (x, y) if x == y => x,
                (1, y) => y,
                (x, 1) => x,
                _ => return Err(format!("{:?} and {:?} do not fit together", a.shape, b.shape)),
            });
        }
        let repeated = |array: &Array| {
            let own = array.strides();
            let strides: Vec<usize> = (0..rank)
                .map(|axis| match (axis + own.len()).checked_sub(rank) {
                    Some(place) if array.shape[place] > 1 => own[place],
                    _ => 0,
                })
                .collect();
            if array.shape == shape { array.values.clone() } else { array.gather(0, &shape, &strides) }
        };
        let (x, y) = (repeated(a), repeated(b));
        let values = x.iter().zip(&y).map(|(&x, &y)| function(x, y)).collect();
        Array::shaped(shape, values)
    }
}
