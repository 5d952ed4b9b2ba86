//! Muon: the update of a matrix is its momentum, made orthogonal. All directions of a layer then learn at one rate, those
//! with small gradients too, which Adam leaves to the end. Convolutions are matrices of (out, all inputs).
//!
//! ```text
//! m <- momentum m + g + weight_decay p         x <- (g + weight_decay p + momentum m) / norm
//! ITERATIONS times, with G = x x^T:            x <- a x + (b G + c G^2) x       (Newton-Schulz: singular values near 1)
//! p <- p - lr rate sqrt(longer side) x         (root mean square: lr rate)
//! ```
//!
//! Momentum lies where Adam keeps its first moment.

use gpu::matmul::MatmulShape;

use crate::adam::AdamConfig;
use crate::cpu::matmul::{self, Matrix};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, precision_of, view, view_mut};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::{DType, Tensor};

const ITERATIONS: usize = 5;
/// a, b and c.
const POLYNOMIAL: [f32; 3] = [3.4445, -4.7750, 2.0315];

/// The settings of Muon; learning rate and weight decay are Adam's.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MuonConfig {
    /// Decay of the sum of gradients.
    pub momentum: f64,
    /// Root mean square of an update, in learning rates.
    pub rate: f64,
}

impl Default for MuonConfig {
    fn default() -> Self {
        Self { momentum: 0.95, rate: 0.2 }
    }
}

/// The sides of a parameter as a matrix.
#[derive(Clone, Copy, Debug)]
struct Sides {
    rows: usize,
    columns: usize,
}

impl Sides {
    fn of(parameter: &Tensor) -> Self {
        let rows = parameter.dims().first().copied().unwrap_or(1).max(1);
        Self { rows, columns: parameter.len() / rows }
    }

    /// Rows are at most as many as columns, so their products are the smaller ones.
    fn is_wide(self) -> bool {
        self.rows <= self.columns
    }

    fn shorter(self) -> usize {
        self.rows.min(self.columns)
    }
}

/// Updates one parameter and its momentum by its gradient.
pub(crate) fn update(
    device: &Device,
    config: &MuonConfig,
    adam: &AdamConfig,
    value: &mut Tensor,
    gradient: &Tensor,
    momentum: &mut Tensor,
) -> Result<()> {
    let sides = Sides::of(value);
    let longer = sides.rows.max(sides.columns) as f64;
    let numbers = Numbers {
        decay: adam.weight_decay as f32,
        momentum: config.momentum as f32,
        scale: (adam.learning_rate * config.rate * longer.sqrt()) as f32,
    };
    match device {
        Device::Cpu(_) => on_cpu(device, sides, numbers, [value, momentum], gradient),
        Device::Cuda(cuda) => on_cuda(device, cuda, sides, numbers, [value, momentum], gradient),
    }
}

/// The numbers of one update.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    decay: f32,
    momentum: f32,
    scale: f32,
}

fn on_cpu(
    device: &Device,
    sides: Sides,
    Numbers { decay, momentum: keep, scale }: Numbers,
    [value, momentum]: [&mut Tensor; 2],
    gradient: &Tensor,
) -> Result<()> {
    let Sides { rows, columns } = sides;
    let side = sides.shorter();
    let mut x = Tensor::empty(device, [rows, columns], DType::F32)?;
    let mut next = Tensor::empty(device, [rows, columns], DType::F32)?;
    let (mut gram, mut square) =
        (Tensor::empty(device, [side, side], DType::F32)?, Tensor::empty(device, [side, side], DType::F32)?);
    let mut squares = 0.0_f64;
    let terms = value.as_slice::<f32>()?.iter().zip(gradient.as_slice::<f32>()?);
    for ((m, x), (p, g)) in
        momentum.as_mut_slice::<f32>()?.iter_mut().zip(x.as_mut_slice::<f32>()?).zip(terms)
    {
        let gradient = g + decay * p;
        *m = keep * *m + gradient;
        *x = gradient + keep * *m;
        squares += f64::from(*x) * f64::from(*x);
    }
    if squares == 0.0 {
        return Ok(());
    }
    let norm = squares.sqrt() as f32;
    x.as_mut_slice::<f32>()?.iter_mut().for_each(|x| *x /= norm);
    let [a, b, c] = POLYNOMIAL;
    for _ in 0..ITERATIONS {
        let from = Matrix::new(x.as_slice()?, rows, columns);
        if sides.is_wide() {
            matmul::nt(device, from, from, gram.as_mut_slice()?, false)?;
        } else {
            matmul::tn(from, from, gram.as_mut_slice()?, false);
        }
        let factor = Matrix::new(gram.as_slice()?, side, side);
        matmul::nn(factor, factor, square.as_mut_slice()?, false);
        let gram = gram.as_slice::<f32>()?;
        square.as_mut_slice::<f32>()?.iter_mut().zip(gram).for_each(|(s, g)| *s = b * g + c * *s);
        let factor = Matrix::new(square.as_slice()?, side, side);
        let (left, right) = if sides.is_wide() { (factor, from) } else { (from, factor) };
        matmul::nn(left, right, next.as_mut_slice()?, false);
        let next = next.as_slice::<f32>()?;
        x.as_mut_slice::<f32>()?.iter_mut().zip(next).for_each(|(x, next)| *x = a * *x + next);
    }
    let x = x.as_slice::<f32>()?;
    value.as_mut_slice::<f32>()?.iter_mut().zip(x).for_each(|(p, x)| *p -= scale * x);
    Ok(())
}

/// Products in the type of activations, as the rest of the step has them. Memory is not scratch, where the outputs of the
/// step still lie.
fn on_cuda(
    device: &Device,
    cuda: &CudaDevice,
    sides: Sides,
    numbers: Numbers,
    [value, momentum]: [&mut Tensor; 2],
    gradient: &Tensor,
) -> Result<()> {
    let Sides { rows, columns } = sides;
    let (side, count, dtype) = (sides.shorter(), value.len(), device.activation_dtype());
    let work = ITERATIONS as f64 * 2.0 * (side * (2 * count + side * side)) as f64;
    let _scope = cuda.context().scope(|| format!("muon {rows}x{columns}"), work, 24.0 * count as f64);
    let program = Program::new(KernelFile::Muon, dtype);
    let launch = |kernel, length: usize, arguments: &[gpu::Argument]| {
        cuda.launch(&program, kernel, cuda.elementwise(length), arguments)
    };
    let mut x = Tensor::empty(device, [rows, columns], dtype)?;
    let mut next = Tensor::empty(device, [rows, columns], dtype)?;
    let mut gram = Tensor::empty(device, [side, side], dtype)?;
    let mut square = Tensor::empty(device, [side, side], dtype)?;
    let mut exact = Tensor::empty(device, [side, side], DType::F32)?;
    let mut factor = Tensor::empty(device, [1], DType::F32)?;
    let length = (count as i64).into();
    launch(
        Kernel::muon_momentum,
        count,
        &[
            view(value)?.into(),
            view(gradient)?.into(),
            view_mut(momentum)?.into(),
            view_mut(&mut x)?.into(),
            length,
            numbers.decay.into(),
            numbers.momentum.into(),
        ],
    )?;
    let precision = precision_of(dtype)?;
    // x x^T, or x^T x where that is smaller.
    let products = |output| {
        let inner = rows.max(columns);
        MatmulShape::new(side, side, inner, precision, output).transposed(!sides.is_wide(), sides.is_wide())
    };
    // The trace of the products is the squared norm.
    cuda.multiply(&products(gpu::Precision::F32), 0.0, [view(&x)?, view(&x)?, view_mut(&mut exact)?])?;
    let arguments = [view(&exact)?.into(), view_mut(&mut factor)?.into(), side.into()];
    cuda.launch(&program, Kernel::muon_norm, gpu::Launch::linear(1, 256), &arguments)?;
    launch(Kernel::muon_scale, count, &[view_mut(&mut x)?.into(), view(&factor)?.into(), length])?;
    let [a, b, c] = POLYNOMIAL;
    for _ in 0..ITERATIONS {
        cuda.multiply(&products(precision), 0.0, [view(&x)?, view(&x)?, view_mut(&mut gram)?])?;
        let shape = MatmulShape::new(side, side, side, precision, precision);
        cuda.multiply(&shape, 0.0, [view(&gram)?, view(&gram)?, view_mut(&mut square)?])?;
        let entries = side * side;
        let arguments =
            [view(&gram)?.into(), view_mut(&mut square)?.into(), (entries as i64).into(), b.into(), c.into()];
        launch(Kernel::muon_polynomial, entries, &arguments)?;
        next.copy_from(&x)?;
        let shape = MatmulShape::new(rows, columns, side, precision, precision);
        let (left, right) = if sides.is_wide() { (&square, &x) } else { (&x, &square) };
        cuda.multiply(&shape, a, [view(left)?, view(right)?, view_mut(&mut next)?])?;
        std::mem::swap(&mut x, &mut next);
    }
    launch(
        Kernel::muon_apply,
        count,
        &[view_mut(value)?.into(), view(&x)?.into(), length, numbers.scale.into()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Initialise;
    use crate::parameters::{Layout, State, StoreBuilder};

    /// The update of a parameter of this shape by one gradient, over its scale, and how the parameter beside it moved.
    fn updates(shape: &[usize], layout: Layout, gradient: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let mut builder = StoreBuilder::new();
        let start = Initialise::Constant(0.0);
        let before = builder.parameter("bias.0", [3], Layout::Published, start);
        let id = builder.parameter("weight", crate::Shape::new(shape), layout, start);
        let after = builder.parameter("bias.1", [2], Layout::Published, start);
        let mut store = builder.build(&Device::cpu(), 3).unwrap();
        store.orthogonalise(MuonConfig { momentum: 0.9, rate: 0.2 }, |name, _| name == "weight");
        store.import(State::Gradient, before, &[1.0, -2.0, 3.0]).unwrap();
        store.import(State::Gradient, id, gradient).unwrap();
        store.import(State::Gradient, after, &[-0.5, 0.0]).unwrap();
        let config = AdamConfig { learning_rate: 0.5, weight_decay: 0.0, ..AdamConfig::default() };
        store.update(&config).unwrap();
        let longer = shape[0].max(gradient.len() / shape[0]) as f32;
        let scale = 0.5 * 0.2 * longer.sqrt();
        let update = store.export(State::Value, id).unwrap().iter().map(|value| -value / scale).collect();
        let others = [before, after].map(|id| store.export(State::Value, id).unwrap()).concat();
        (update, others)
    }

    #[test]
    fn small_directions_move_as_much_as_large_ones_and_the_rest_is_adams() {
        // Singular values 1, 0.3 and 0.1, turned by nothing: the update is close to the identity beside zeros.
        for (shape, wide) in [([3, 4], true), ([4, 3], false)] {
            let mut gradient = [0.0_f32; 12];
            let at = |i: usize| if wide { i * 4 + i } else { i * 3 + i };
            [1.0, 0.3, 0.1].into_iter().enumerate().for_each(|(i, value)| gradient[at(i)] = value);
            let (update, others) = updates(&shape, Layout::Published, &gradient);
            for (i, value) in update.iter().enumerate() {
                match (0..3).any(|k| at(k) == i) {
                    true => assert!((0.6..1.3).contains(value), "{update:?}"),
                    false => assert!(value.abs() < 1e-6, "{update:?}"),
                }
            }
            // Adam's first step is the learning rate against the gradient's sign, and nothing for none.
            for (moved, wanted) in others.iter().zip([-0.5, 0.5, -0.5, 0.5, 0.0]) {
                assert!((moved - wanted).abs() < 1e-4, "{others:?}");
            }
        }
    }

    #[test]
    fn the_update_is_newton_schulz_in_float64() {
        let (rows, columns) = (5, 18);
        let gradient: Vec<f32> = (0..90).map(|i| ((i * i) as f32 * 0.37).sin()).collect();
        let (update, _) = updates(&[5, 2, 3, 3], Layout::Convolution, &gradient);
        // The order of columns does not matter to it: inside they are (height, width, in).
        let norm = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        let mut x: Vec<f64> = gradient.iter().map(|&g| f64::from(g) / norm).collect();
        let [a, b, c] = POLYNOMIAL.map(f64::from);
        let product =
            |l: &[f64], r: &dyn Fn(usize, usize) -> f64, n: usize, k: usize, m: usize| -> Vec<f64> {
                (0..n * m).map(|i| (0..k).map(|j| l[i / m * k + j] * r(j, i % m)).sum()).collect()
            };
        for _ in 0..ITERATIONS {
            let gram = product(&x, &|j, i| x[i * columns + j], rows, columns, rows);
            let square = product(&gram, &|j, i| gram[j * rows + i], rows, rows, rows);
            let factor: Vec<f64> = gram.iter().zip(&square).map(|(g, s)| b * g + c * s).collect();
            let step = product(&factor, &|j, i| x[j * columns + i], rows, rows, columns);
            x.iter_mut().zip(&step).for_each(|(x, step)| *x = a * *x + step);
        }
        for (found, wanted) in update.iter().zip(&x) {
            assert!((f64::from(*found) - wanted).abs() < 1e-4, "{found} {wanted}");
        }
    }

    #[test]
    fn without_a_gradient_nothing_moves() {
        let (update, _) = updates(&[3, 4], Layout::Published, &[0.0; 12]);
        assert!(update.iter().all(|&value| value == 0.0), "{update:?}");
    }
}
