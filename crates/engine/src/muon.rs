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

mod cuda;

use crate::adam::AdamConfig;
use crate::cpu::matmul::{self, Matrix};
use crate::device::Device;
use crate::error::Result;
use crate::flat::FlatBuffer;
use crate::shape::Shape;
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
    fn of(shape: Shape) -> Self {
        let rows = shape.dims().first().copied().unwrap_or(1).max(1);
        Self { rows, columns: shape.len() / rows }
    }

    /// Rows are at most as many as columns, so their products are the smaller ones.
    fn is_wide(self) -> bool {
        self.rows <= self.columns
    }

    fn shorter(self) -> usize {
        self.rows.min(self.columns)
    }

    fn longer(self) -> usize {
        self.rows.max(self.columns)
    }
}

/// The parameters of a store that Muon updates, and how.
#[derive(Debug, Default)]
pub(crate) struct Muon {
    config: MuonConfig,
    /// Whether each parameter of the store is one.
    chosen: Vec<bool>,
    /// Where they lie on a GPU, once they were updated there.
    tables: Option<cuda::Tables>,
}

impl Muon {
    pub(crate) fn new(config: MuonConfig, chosen: Vec<bool>) -> Self {
        Self { config, chosen, tables: None }
    }

    /// Whether parameter `index` is updated here and not by Adam.
    pub(crate) fn takes(&self, index: usize) -> bool {
        self.chosen.get(index).copied().unwrap_or(false)
    }

    /// Updates parameters and their momentum by their gradients.
    pub(crate) fn update(
        &mut self,
        device: &Device,
        adam: &AdamConfig,
        values: &mut FlatBuffer,
        gradients: &mut FlatBuffer,
        momenta: &mut FlatBuffer,
    ) -> Result<()> {
        let indices: Vec<usize> = (0..self.chosen.len()).filter(|&index| self.chosen[index]).collect();
        if indices.is_empty() {
            return Ok(());
        }
        let numbers = Numbers {
            decay: adam.weight_decay as f32,
            momentum: self.config.momentum as f32,
            rate: adam.learning_rate * self.config.rate,
        };
        match device {
            Device::Cpu(_) => indices.into_iter().try_for_each(|index| {
                let parameter = [values.part_mut(index), momenta.part_mut(index)];
                on_cpu(device, numbers, parameter, gradients.part(index))
            }),
            Device::Cuda(cuda) => {
                let tables = match &self.tables {
                    Some(tables) => tables,
                    None => self.tables.insert(cuda::Tables::new(device, values, &indices)?),
                };
                tables.update(device, cuda, numbers, [values, gradients, momenta].map(FlatBuffer::whole_mut))
            }
        }
    }
}

/// The numbers of one update.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    decay: f32,
    momentum: f32,
    /// Root mean square of the update.
    rate: f64,
}

/// Updates one parameter.
fn on_cpu(
    device: &Device,
    Numbers { decay, momentum: keep, rate }: Numbers,
    [value, momentum]: [&mut Tensor; 2],
    gradient: &Tensor,
) -> Result<()> {
    let sides = Sides::of(value.shape());
    let Sides { rows, columns } = sides;
    let scale = (rate * (sides.longer() as f64).sqrt()) as f32;
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
