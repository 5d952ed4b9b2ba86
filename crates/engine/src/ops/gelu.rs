//! GELU, exact: y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)), elementwise.
//! Backward: dx = dy (Phi(x) + x phi(x)), phi(x) = exp(-x^2/2) / sqrt(2 pi).

use rayon::prelude::*;

use super::operation::{Cpu, Cuda, Fixed, Operation, To};
use crate::cpu::exp;
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::sums::{Layout, Partial};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::ops::linear;
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::Tensor;

const CHUNK: usize = 1 << 12;

/// The Gaussian error linear unit of every element.
pub fn gelu(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    tape.apply("gelu", Gelu, x, x.spec())
}

/// gelu(x W^T + b). On CUDA the bias is added, and its gradient made, in the passes of the GELU.
pub fn linear_gelu(tape: &mut Tape<'_>, x: &Var, weight: &Var, bias: &Var) -> Result<Var> {
    let device = tape.device();
    let Some(cuda) = device.as_cuda() else {
        let y = linear(tape, x, weight, Some(bias))?;
        return gelu(tape, &y);
    };
    let product = linear(tape, x, weight, None)?;
    if bias.shape().dims() != &product.shape().dims()[1..] {
        let detail = format!("bias {} does not fit weight {}", bias.shape(), weight.shape());
        return Err(Error::shape("linear_gelu", detail));
    }
    tape.apply_on("linear_gelu", cuda.clone(), BiasGelu, [&product, bias], product.spec())
}

struct Gelu;

impl Operation<CpuPool> for Gelu {
    /// x.
    type Saved = Tensor;

    fn forward(&self, _: &mut Cpu, x: &Var, y: &mut Tensor) -> Result<Tensor> {
        let from = x.value().as_slice::<f32>()?.par_chunks(CHUNK);
        from.zip(y.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK)).for_each(|(x, y)| forward(x, y));
        Ok(x.value().clone())
    }

    fn backward(&self, _: &mut Cpu, x: &Tensor, dy: Tensor, dx: &mut Target) -> Result<()> {
        let accumulate = dx.accumulate;
        let dx = dx.tensor.as_mut_slice::<f32>()?.par_chunks_mut(CHUNK);
        let from = dy.as_slice::<f32>()?.par_chunks(CHUNK).zip(x.as_slice::<f32>()?.par_chunks(CHUNK));
        dx.zip(from).for_each(|(dx, (dy, x))| backward(x, dy, accumulate, dx));
        Ok(())
    }
}

impl Operation<CudaDevice> for Gelu {
    /// x.
    type Saved = Tensor;

    fn forward(&self, cuda: &mut Cuda, x: &Var, y: &mut Tensor) -> Result<Tensor> {
        forward_on_cuda(cuda, x.value(), None, y)?;
        Ok(x.value().clone())
    }

    fn backward(&self, cuda: &mut Cuda, x: &Tensor, dy: Tensor, dx: &mut Target) -> Result<()> {
        backward_on_cuda(cuda, &dy, x, None, dx, None)
    }
}

/// gelu(x + b), on CUDA only.
struct BiasGelu;

impl Operation<CudaDevice, Fixed<2>> for BiasGelu {
    /// x and b.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, [x, bias]: [&Var; 2], y: &mut Tensor) -> Result<[Tensor; 2]> {
        forward_on_cuda(cuda, x.value(), Some(bias.value()), y)?;
        Ok([x.value().clone(), bias.value().clone()])
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        [x, bias]: &[Tensor; 2],
        dy: Tensor,
        [dx, dbias]: To<2>,
    ) -> Result<()> {
        // Where x wants no gradient it goes nowhere.
        let mut unused = None;
        let dx = match dx {
            Some(dx) => dx,
            None => unused.insert(Target::unplaced(cuda.empty(x.shape(), dy.dtype())?)),
        };
        backward_on_cuda(cuda, &dy, x, Some(bias), dx, dbias)
    }
}

/// Rows and columns: those of the bias, or all as one row of eight at a time.
fn columns(x: &Tensor, bias: Option<&Tensor>) -> usize {
    match bias {
        Some(bias) => bias.len(),
        None if x.len().is_multiple_of(2048) => 2048,
        None => x.dims().last().copied().unwrap_or(1),
    }
}

fn forward_on_cuda(cuda: &CudaDevice, x: &Tensor, bias: Option<&Tensor>, y: &mut Tensor) -> Result<()> {
    let channels = columns(x, bias);
    let rows = x.len() / channels.max(1);
    let bytes = 2.0 * (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| format!("gelu {channels}"), 14.0 * x.len() as f64, bytes);
    let layout = Layout::new(cuda, rows, channels, 16);
    let arguments = [
        view(x)?.into(),
        bias.map(view).transpose()?.into(),
        view_mut(y)?.into(),
        (rows as i64).into(),
        channels.into(),
        layout.columns.into(),
    ];
    let program = Program::with_channels(KernelFile::Gelu, x.dtype(), channels);
    cuda.launch(&program, Kernel::gelu, layout.launch(), &arguments)
}

fn backward_on_cuda(
    cuda: &CudaDevice,
    dy: &Tensor,
    x: &Tensor,
    bias: Option<&Tensor>,
    dx: &mut Target,
    dbias: Option<&mut Target>,
) -> Result<()> {
    let channels = columns(x, bias);
    let rows = x.len() / channels.max(1);
    let bytes = 3.0 * (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| format!("gelu {channels} backward"), 20.0 * x.len() as f64, bytes);
    let layout = Layout::new(cuda, rows, channels, 8);
    let partial = dbias.is_some().then(|| Partial::new(cuda, layout.blocks, 1, channels)).transpose()?;
    let [to, add] = dx.arguments()?;
    let arguments = [
        view(dy)?.into(),
        view(x)?.into(),
        bias.map(view).transpose()?.into(),
        to,
        add,
        partial.as_ref().map_or(gpu::Argument::Address(0), Partial::argument),
        (rows as i64).into(),
        channels.into(),
        layout.columns.into(),
    ];
    let program = Program::with_channels(KernelFile::Gelu, x.dtype(), channels);
    cuda.launch(&program, Kernel::gelu_backward, layout.launch(), &arguments)?;
    match partial {
        Some(partial) => partial.finish(cuda, [dbias, None, None]),
        None => Ok(()),
    }
}

/// Phi(x) = (1 + erf(x / sqrt 2)) / 2 to 1e-7: erf by formula 7.1.26 of Abramowitz and Stegun.
#[inline(always)]
fn normal_distribution(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let p = 1.061_405_4 * t - 1.453_152;
    let p = p * t + 1.421_413_7;
    let p = p * t - 0.284_496_74;
    let p = p * t + 0.254_829_6;
    let tail = 0.5 * p * t * exp(-z * z);
    if x >= 0.0 { 1.0 - tail } else { tail }
}

multiversion! {
    fn forward(x: &[f32], y: &mut [f32]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = x * normal_distribution(x);
        }
    }
}

multiversion! {
    fn backward(x: &[f32], dy: &[f32], accumulate: bool, dx: &mut [f32]) {
        const INVERSE_ROOT_TAU: f32 = 0.398_942_3;
        for ((dx, dy), &x) in dx.iter_mut().zip(dy).zip(x) {
            let gradient = dy * (normal_distribution(x) + x * INVERSE_ROOT_TAU * exp(-0.5 * x * x));
            *dx = if accumulate { *dx + gradient } else { gradient };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    /// erf by its series, in float64.
    fn erf(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        2.0 / std::f64::consts::PI.sqrt() * sum
    }

    #[test]
    fn gradient_agrees_with_finite_differences() {
        check(
            &Case::with(&[&[13, 17]], |_, random| random.range(-4.0, 4.0)),
            |tape, i| gelu(tape, &i[0]),
            |i| i[0].iter().map(|x| 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt()))).collect(),
        );
    }

    #[test]
    fn behind_a_linear_layer_gradients_agree_with_finite_differences() {
        let (rows, width, out) = (3, 4, 6);
        check(
            &Case::new(&[&[rows, width], &[out, width], &[out]]),
            |tape, i| linear_gelu(tape, &i[0], &i[1], &i[2]),
            |i| {
                let at = |row: usize, o: usize| -> f64 {
                    (0..width).map(|k| i[0][row * width + k] * i[1][o * width + k]).sum::<f64>() + i[2][o]
                };
                let all = (0..rows).flat_map(|row| (0..out).map(move |o| (row, o)));
                all.map(|(row, o)| at(row, o)).map(|x| 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt()))).collect()
            },
        );
    }

    #[test]
    fn far_from_zero_it_is_the_identity_or_nothing() {
        let mut case = Case::new(&[&[4]]);
        case.inputs[0] = vec![-60.0, -20.0, 20.0, 60.0];
        let y = case.run(|tape, i| gelu(tape, &i[0])).unwrap();
        assert!(y[0].abs() < 1e-30 && y[1].abs() < 1e-30 && y[2..] == [20.0, 60.0], "{y:?}");
    }
}
