//! Operators that only move numbers.

use super::arrays::Array;
use super::{Call, Outcome};

impl Call<'_> {
    /// 0 keeps a dimension, -1 is what is left.
    pub(super) fn reshape(&self) -> Outcome<Array> {
        let (x, wanted) = (self.floats(0)?, self.integers(1)?);
        let mut shape = Vec::new();
        for (axis, &side) in wanted.iter().enumerate() {
            shape.push(match side {
                0 => *x.shape.get(axis).ok_or("it keeps a dimension that is not there")?,
                -1 => 1,
                side => usize::try_from(side).map_err(|_| format!("{side} is no side"))?,
            });
        }
        if let Some(free) = wanted.iter().position(|&side| side == -1) {
            let others: usize = shape.iter().product();
            shape[free] = x.values.len().checked_div(others).unwrap_or(0);
        }
        Array::shaped(shape, x.values.clone())
    }

    pub(super) fn flatten(&self) -> Outcome<Array> {
        let x = self.floats(0)?;
        let axis = x.axis(self.int("axis", 1))?;
        let shape = vec![x.shape[..axis].iter().product(), x.shape[axis..].iter().product()];
        Array::shaped(shape, x.values.clone())
    }

    pub(super) fn transpose(&self) -> Outcome<Array> {
        let x = self.floats(0)?;
        let order: Vec<usize> = self.ints("perm")?.iter().map(|&a| x.axis(a)).collect::<Outcome<_>>()?;
        if order.len() != x.shape.len() {
            return Err(format!("{order:?} is no order of {:?}", x.shape));
        }
        let own = x.strides();
        let shape: Vec<usize> = order.iter().map(|&axis| x.shape[axis]).collect();
        let strides: Vec<usize> = order.iter().map(|&axis| own[axis]).collect();
        let values = x.gather(0, &shape, &strides);
        Array::shaped(shape, values)
    }

    /// The places `first..last` of dimension `axis`.
    fn part(x: &Array, axis: usize, first: usize, last: usize) -> Outcome<Array> {
        if first > last || last > x.shape[axis] {
            return Err(format!("{first}..{last} is not inside {:?}", x.shape));
        }
        let (mut shape, strides) = (x.shape.clone(), x.strides());
        shape[axis] = last - first;
        let values = x.gather(first * strides[axis], &shape, &strides);
        Array::shaped(shape, values)
    }

    /// From the first place to before the last, along one dimension, step 1.
    pub(super) fn slice(&self) -> Outcome<Array> {
        let x = self.floats(0)?;
        let (&[first], &[last], &[axis]) = (self.integers(1)?, self.integers(2)?, self.integers(3)?) else {
            return Err("only slices along one dimension are known".to_owned());
        };
        let axis = x.axis(axis)?;
        let side = x.shape[axis] as i64;
        let place = |at: i64| (if at < 0 { at + side } else { at }).clamp(0, side) as usize;
        Self::part(x, axis, place(first), place(last))
    }

    /// Equal parts, as many as there are outputs.
    pub(super) fn split(&self) -> Outcome<Vec<Array>> {
        let x = self.floats(0)?;
        let (axis, count) = (x.axis(self.int("axis", 0))?, self.node.output.len());
        if count == 0 || !x.shape[axis].is_multiple_of(count) {
            return Err(format!("{:?} has no {count} equal parts", x.shape));
        }
        let side = x.shape[axis] / count;
        (0..count).map(|part| Self::part(x, axis, part * side, (part + 1) * side)).collect()
    }

    /// Zeros around the numbers.
    pub(super) fn pad(&self) -> Outcome<Array> {
        let (x, pads) = (self.floats(0)?, self.integers(1)?);
        let rank = x.shape.len();
        let pads: Vec<usize> = pads
            .iter()
            .map(|&pad| {
                usize::try_from(pad).map_err(|_| "only padding by positive numbers is known".to_owned())
            })
            .collect::<Outcome<_>>()?;
        if pads.len() != 2 * rank {
            return Err(format!("{} numbers cannot pad {:?}", pads.len(), x.shape));
        }
        let shape: Vec<usize> =
            (0..rank).map(|axis| pads[axis] + x.shape[axis] + pads[rank + axis]).collect();
        let mut padded = Array { values: vec![0.0; shape.iter().product()], shape };
        let (from, to) = (x.strides(), padded.strides());
        for (index, &value) in x.values.iter().enumerate() {
            let place = (0..rank).map(|axis| (index / from[axis] % x.shape[axis] + pads[axis]) * to[axis]);
            let place: usize = place.sum();
            padded.values[place] = value;
        }
        Ok(padded)
    }
}
