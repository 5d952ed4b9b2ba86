//! Linear layers of several heads side by side: y_h = x_h W_h^T + b_h for each head h, and max(0, .) of it where wanted.
//!
//! Shapes: W (heads, out, in), b (heads, out), y (rows, heads, out), x (rows, heads, in), or (rows, in) where all heads
//! share their inputs. Shared inputs make one product with all weights below each other. float32 throughout.
//! Backward, with g = dy where y > 0 for a ReLU, else g = dy: dx_h = g_h W_h (summed over heads that share x),
//! dW_h = g_h^T x_h, db = column sums of g.

mod cuda;

use rayon::prelude::*;

use super::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::cpu::matmul::{self, Matrix};
use crate::cuda::CudaDevice;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// Elements per task.
const CHUNK: usize = 1 << 13;

/// Products that make up a layer of all heads: `products` of them, of `rows` x `width` by `out` x `width`. The members
/// of x and y lie side by side in every row.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    products: usize,
    rows: usize,
    width: usize,
    out: usize,
}

/// The linear layers of several heads.
pub fn batched_linear(tape: &mut Tape<'_>, x: &Var, weight: &Var, bias: &Var) -> Result<Var> {
    layer(tape, x, weight, bias, false)
}

/// The linear layers of several heads, and ReLU.
pub fn batched_linear_relu(tape: &mut Tape<'_>, x: &Var, weight: &Var, bias: &Var) -> Result<Var> {
    layer(tape, x, weight, bias, true)
}

fn layer(tape: &mut Tape<'_>, x: &Var, weight: &Var, bias: &Var, relu: bool) -> Result<Var> {
    let sizes = Sizes::of(x, weight, bias)?;
    let spec = ([sizes.rows, weight.shape().dims()[0], weight.shape().dims()[1]].into(), DType::F32);
    tape.apply("batched_linear", Layer { sizes, relu }, [x, weight, bias], spec)
}

struct Layer {
    sizes: Sizes,
    relu: bool,
}

/// x, W, and y where there is a ReLU.
type Saved = (Tensor, Tensor, Option<Tensor>);

impl Layer {
    fn saved(&self, x: &Var, weight: &Var, y: &Tensor) -> Saved {
        (x.value().clone(), weight.value().clone(), self.relu.then(|| y.clone()))
    }

    /// `dy`, which may be written to: what the ReLU leaves of it takes its place, where nobody else needs it.
    fn own(&self, device: &Device, mut dy: Tensor) -> Result<Tensor> {
        if !self.relu || dy.is_unique() {
            return Ok(dy);
        }
        let mut own = Tensor::empty(device, dy.shape(), DType::F32)?;
        own.copy_from(&dy)?;
        Ok(own)
    }
}

impl Operation<CpuPool, Fixed<3>> for Layer {
    type Saved = Saved;

    fn forward(&self, cpu: &mut Cpu, [x, weight, bias]: [&Var; 3], y: &mut Tensor) -> Result<Saved> {
        forward(cpu.device, self.sizes, [x, weight, bias].map(Var::value), self.relu, y)?;
        Ok(self.saved(x, weight, y))
    }

    fn backward(&self, cpu: &mut Cpu, (x, weight, kept): &Saved, dy: Tensor, to: To<3>) -> Result<()> {
        let mut dy = self.own(cpu.device, dy)?;
        backward(cpu.device, self.sizes, [x, weight], kept.as_ref(), &mut dy, to)
    }
}

impl Operation<CudaDevice, Fixed<3>> for Layer {
    type Saved = Saved;

    fn forward(&self, cuda: &mut Cuda, [x, weight, bias]: [&Var; 3], y: &mut Tensor) -> Result<Saved> {
        cuda::forward(cuda, self.sizes, [x, weight, bias].map(Var::value), self.relu, y)?;
        Ok(self.saved(x, weight, y))
    }

    fn backward(&self, cuda: &mut Cuda, (x, weight, kept): &Saved, dy: Tensor, to: To<3>) -> Result<()> {
        let mut dy = self.own(cuda.device, dy)?;
        cuda::backward(cuda, self.sizes, [x, weight], kept.as_ref(), &mut dy, to)
    }
}

impl Sizes {
    fn of(x: &Var, weight: &Var, bias: &Var) -> Result<Self> {
        let misfit = || {
            let detail = format!(
                "x {} does not fit weight {} (heads, out, in) and bias {}",
                x.shape(),
                weight.shape(),
                bias.shape()
            );
            Error::shape("batched_linear", detail)
        };
        let &[heads, out, width] = weight.shape().dims() else { return Err(misfit()) };
        let sizes = match *x.shape().dims() {
            [rows, of_x] if of_x == width => Self { products: 1, rows, width, out: heads * out },
            [rows, of, of_x] if (of, of_x) == (heads, width) => Self { products: heads, rows, width, out },
            _ => return Err(misfit()),
        };
        if bias.shape().dims() != [heads, out]
            || [x, weight].iter().any(|var| var.value().dtype() != DType::F32)
        {
            return Err(misfit());
        }
        Ok(sizes)
    }

    /// Member `index` of `values` (rows, products, width).
    fn member<'a>(&self, values: &'a [f32], index: usize, width: usize) -> Matrix<'a> {
        Matrix::strided(&values[index * width..], self.rows, width, self.products * width)
    }
}

/// Writes member `index` of `to` (rows, products, width), which `compute` leaves in contiguous memory.
fn write_member(
    device: &Device,
    sizes: Sizes,
    (index, width): (usize, usize),
    accumulate: bool,
    to: &mut [f32],
    compute: impl FnOnce(&mut [f32], bool) -> Result<()>,
) -> Result<()> {
    if sizes.products == 1 {
        return compute(to, accumulate);
    }
    let mut own = Tensor::empty(device, [sizes.rows, width], DType::F32)?;
    compute(own.as_mut_slice()?, false)?;
    let lines = to.chunks_exact_mut(sizes.products * width).map(|line| &mut line[index * width..][..width]);
    for (to, from) in lines.zip(own.as_slice::<f32>()?.chunks_exact(width)) {
        if accumulate { crate::cpu::add_assign(to, from) } else { to.copy_from_slice(from) }
    }
    Ok(())
}

fn forward(
    device: &Device,
    sizes: Sizes,
    [x, weight, bias]: [&Tensor; 3],
    relu: bool,
    y: &mut Tensor,
) -> Result<()> {
    let Sizes { products, width, out, .. } = sizes;
    let (x, weight, bias) = (x.as_slice::<f32>()?, weight.as_slice::<f32>()?, bias.as_slice::<f32>()?);
    let y = y.as_mut_slice::<f32>()?;
    for index in 0..products {
        let weight = Matrix::new(&weight[index * out * width..][..out * width], out, width);
        write_member(device, sizes, (index, out), false, y, |to, _| {
            let bias = &bias[index * out..][..out];
            to.chunks_exact_mut(out).for_each(|row| row.copy_from_slice(bias));
            matmul::nt(device, sizes.member(x, index, width), weight, to, true)
        })?;
    }
    if relu {
        y.par_iter_mut().with_min_len(CHUNK).for_each(|value| *value = value.max(0.0));
    }
    Ok(())
}

fn backward(
    device: &Device,
    sizes: Sizes,
    [x, weight]: [&Tensor; 2],
    kept: Option<&Tensor>,
    dy: &mut Tensor,
    [mut dx, mut dw, db]: To<3>,
) -> Result<()> {
    let Sizes { products, width, out, .. } = sizes;
    if let Some(y) = kept {
        let pairs = dy.as_mut_slice::<f32>()?.par_iter_mut().zip(y.as_slice::<f32>()?);
        pairs.with_min_len(CHUNK).for_each(|(dy, &y)| *dy = if y > 0.0 { *dy } else { 0.0 });
    }
    let (x, weight, dy) = (x.as_slice::<f32>()?, weight.as_slice::<f32>()?, dy.as_slice::<f32>()?);
    for index in 0..products {
        let own = index * out * width..(index + 1) * out * width;
        let dy = sizes.member(dy, index, out);
        if let Some(Target { tensor, accumulate, .. }) = &mut dx {
            let weight = Matrix::new(&weight[own.clone()], out, width);
            let to = tensor.as_mut_slice::<f32>()?;
            write_member(device, sizes, (index, width), *accumulate, to, |to, accumulate| {
                matmul::nn(dy, weight, to, accumulate);
                Ok(())
            })?;
        }
        if let Some(Target { tensor, accumulate, .. }) = &mut dw {
            let x = sizes.member(x, index, width);
            matmul::tn(dy, x, &mut tensor.as_mut_slice::<f32>()?[own], *accumulate);
        }
    }
    match db {
        Some(db) => super::column_sum_gradient(dy, db),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    /// The formula, by single numbers.
    fn reference(inputs: &[Vec<f64>], [rows, heads, width, out]: [usize; 4], relu: bool) -> Vec<f64> {
        let shared = inputs[0].len() == rows * width;
        let mut y = Vec::new();
        for row in 0..rows {
            for head in 0..heads {
                let line = if shared { row } else { row * heads + head };
                for output in 0..out {
                    let at = head * out + output;
                    let products =
                        (0..width).map(|i| inputs[0][line * width + i] * inputs[1][at * width + i]);
                    let value = products.sum::<f64>() + inputs[2][at];
                    y.push(if relu { value.max(0.0) } else { value });
                }
            }
        }
        y
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for ([rows, heads, width, out], relu) in
            [([1, 1, 1, 1], false), ([5, 3, 4, 2], false), ([5, 3, 4, 2], true), ([17, 2, 33, 35], true)]
        {
            let shared: &[usize] = &[rows, width];
            let own: &[usize] = &[rows, heads, width];
            for x in [shared, own] {
                let case = Case::new(&[x, &[heads, out, width], &[heads, out]]);
                check(
                    &case,
                    |tape, inputs| layer(tape, &inputs[0], &inputs[1], &inputs[2], relu),
                    |inputs| reference(inputs, [rows, heads, width, out], relu),
                );
            }
        }
    }

    #[test]
    fn a_gradient_that_somebody_else_holds_is_left_alone() {
        let case = Case::new(&[&[3, 2, 4], &[2, 4, 4], &[2, 4]]);
        // Both uses of the sum get the same gradient; the first must not change what the second sees.
        let twice = |tape: &mut Tape<'_>, inputs: &[Var]| {
            let y = batched_linear_relu(tape, &inputs[0], &inputs[1], &inputs[2])?;
            crate::ops::add(tape, &y, &inputs[0])
        };
        check(&case, twice, |inputs| {
            let y = reference(inputs, [3, 2, 4, 4], true);
            y.iter().zip(&inputs[0]).map(|(y, x)| y + x).collect()
        });
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        for (x, bias) in [(&[2, 3][..], &[4, 6][..]), (&[2, 3, 5], &[4, 6]), (&[2, 5], &[4, 5])] {
            let case = Case::new(&[x, &[4, 6, 5], bias]);
            let error = case.run(|tape, i| batched_linear(tape, &i[0], &i[1], &i[2])).unwrap_err();
            assert!(error.to_string().contains("does not fit weight [4, 6, 5] (heads, out, in)"), "{error}");
        }
    }
}
