//! Muon on the GPU: all matrices of a network in the same few launches (`ops/muon.cu`). With products of cuBLASLt an update
//! was 30 launches for each matrix, and one of that library's kernels failed beside other processes (docs/reliability.md).

use gpu::{Argument, Launch};

use super::{ITERATIONS, Numbers, POLYNOMIAL, Sides};
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, storage_view, view, view_mut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::flat::{FlatBuffer, WholeMut};
use crate::tensor::{DType, Tensor};

/// Sides of a block's part of a product, and of a matrix, as in the kernels.
const TILE: usize = 128;
const PATCH: usize = 64;
/// Threads of a block.
const THREADS: usize = 256;
/// 32-bit numbers of a `Matrix` and of a `Part` of the kernels.
const MATRIX: usize = 12;
const PART: usize = 4;

/// A parameter as the kernels see it: the shorter side first, filled up to whole tiles.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    sides: Sides,
    side: usize,
    inner: usize,
}

impl Matrix {
    fn of(sides: Sides) -> Self {
        let filled = |side: usize| side.next_multiple_of(TILE);
        Self { sides, side: filled(sides.shorter()), inner: filled(sides.longer()) }
    }

    /// (down, across) of a parameter's patches.
    fn patches(self) -> (usize, usize) {
        let (short, long) = (self.side / PATCH, self.inner / PATCH);
        if self.sides.is_wide() { (short, long) } else { (long, short) }
    }
}

/// What blocks do, by their numbers.
#[derive(Debug)]
struct List {
    parts: Tensor,
    count: usize,
}

impl List {
    /// For each of `grids`: a matrix, and how many parts it has down and across.
    fn new(device: &Device, grids: impl Iterator<Item = (usize, (usize, usize))>) -> Result<Self> {
        let mut numbers = Vec::new();
        for (matrix, (down, across)) in grids {
            for part in 0..down * across {
                numbers.extend([integer(matrix)?, integer(part / across)?, integer(part % across)?, 0]);
            }
        }
        let count = numbers.len() / PART;
        Ok(Self { parts: Tensor::from_slice(device, [count, PART], &numbers)?, count })
    }

    fn launch(&self) -> Launch {
        Launch::linear(self.count, THREADS)
    }
}

/// The matrices that Muon updates, and the parts that blocks have of them.
#[derive(Debug)]
pub(super) struct Tables {
    matrices: Tensor,
    /// Of matrices, of the products of their rows, and of the products of these with the matrices.
    patches: List,
    squares: List,
    tiles: List,
    /// Numbers of all matrices, filled up, and of all products of rows.
    lengths: [usize; 2],
    /// Operations of an update.
    work: f64,
}

impl Tables {
    /// For these parameters of `values`.
    pub(super) fn new(device: &Device, values: &FlatBuffer, indices: &[usize]) -> Result<Self> {
        let matrices: Vec<_> =
            indices.iter().map(|&index| Matrix::of(Sides::of(values.part(index).shape()))).collect();
        let mut numbers = Vec::with_capacity(matrices.len() * MATRIX);
        let (mut x, mut products, mut patches) = (0, 0, 0);
        for (&index, matrix) in indices.iter().zip(&matrices) {
            let Matrix { sides, side, inner } = *matrix;
            let (down, across) = matrix.patches();
            let fields = [
                values.offsets()[index],
                sides.rows,
                sides.columns,
                side,
                inner,
                x,
                products,
                patches,
                down * across,
                usize::from(!sides.is_wide()),
                0,
                0,
            ];
            for field in fields {
                numbers.push(integer(field)?);
            }
            x += side * inner;
            products += side * side;
            patches += down * across;
        }
        // Those whose sums are the longest come first, so that none of them is left for the end.
        let mut order: Vec<usize> = (0..matrices.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(matrices[index].inner));
        let squares =
            order.iter().map(|&index| (index, (matrices[index].side / TILE, matrices[index].side / TILE)));
        let tiles =
            order.iter().map(|&index| (index, (matrices[index].side / TILE, matrices[index].inner / TILE)));
        let work = |matrix: &Matrix| {
            let Sides { rows, columns } = matrix.sides;
            let side = matrix.sides.shorter();
            ITERATIONS as f64 * 2.0 * (side * (2 * rows * columns + side * side)) as f64
        };
        Ok(Self {
            matrices: Tensor::from_slice(device, [matrices.len(), MATRIX], &numbers)?,
            patches: List::new(device, matrices.iter().map(|matrix| matrix.patches()).enumerate())?,
            squares: List::new(device, squares)?,
            tiles: List::new(device, tiles)?,
            lengths: [x, products],
            work: matrices.iter().map(work).sum(),
        })
    }

    /// One update of them all, of the flat buffers of values, gradients and momenta. Products are in the type of
    /// activations, as the rest of the step has them. Memory is not scratch, where the outputs of the step still lie.
    pub(super) fn update(
        &self,
        device: &Device,
        cuda: &CudaDevice,
        numbers: Numbers,
        buffers: [Result<WholeMut<'_>>; 3],
    ) -> Result<()> {
        let [values, gradients, momenta] = buffers;
        let (mut values, mut gradients, mut momenta) = (values?, gradients?, momenta?);
        let [values, gradients, momenta] = [
            storage_view(values.storage())?,
            storage_view(gradients.storage())?,
            storage_view(momenta.storage())?,
        ];
        let dtype = device.activation_dtype();
        let [length, products] = self.lengths;
        let _scope = cuda.context().scope(|| "muon".into(), self.work, 24.0 * length as f64);
        let program = Program::new(KernelFile::Muon, dtype);
        let launch = |kernel, list: &List, arguments: &[Argument]| {
            cuda.launch(&program, kernel, list.launch(), arguments)
        };
        let matrices: Argument = view(&self.matrices)?.into();
        let [patches, square_tiles, tiles]: [Argument; 3] = [
            view(&self.patches.parts)?.into(),
            view(&self.squares.parts)?.into(),
            view(&self.tiles.parts)?.into(),
        ];
        let mut squares = Tensor::empty(device, [self.patches.count], DType::F32)?;
        let mut x = Tensor::empty(device, [length], dtype)?;
        let mut next = Tensor::empty(device, [length], dtype)?;
        let mut gram = Tensor::empty(device, [products], dtype)?;
        let mut factor = Tensor::empty(device, [products], dtype)?;
        let (decay, momentum) = (numbers.decay.into(), numbers.momentum.into());
        let parameters: [Argument; 5] = [values.into(), gradients.into(), momenta.into(), matrices, patches];
        let arguments = [&parameters[..], &[view_mut(&mut squares)?.into(), decay, momentum]].concat();
        launch(Kernel::muon_momentum, &self.patches, &arguments)?;
        let more = [view(&squares)?.into(), view_mut(&mut x)?.into(), decay, momentum];
        launch(Kernel::muon_start, &self.patches, &[&parameters[..], &more].concat())?;
        let [a, b, c] = POLYNOMIAL;
        for _ in 0..ITERATIONS {
            let arguments = [matrices, square_tiles, view(&x)?.into(), view_mut(&mut gram)?.into()];
            launch(Kernel::muon_gram, &self.squares, &arguments)?;
            let (from, to) = (view(&gram)?.into(), view_mut(&mut factor)?.into());
            launch(
                Kernel::muon_factor,
                &self.squares,
                &[matrices, square_tiles, from, to, b.into(), c.into()],
            )?;
            let (from, to) = (view(&x)?.into(), view_mut(&mut next)?.into());
            launch(
                Kernel::muon_turn,
                &self.tiles,
                &[matrices, tiles, view(&factor)?.into(), from, to, a.into()],
            )?;
            std::mem::swap(&mut x, &mut next);
        }
        let rate = (numbers.rate as f32).into();
        launch(Kernel::muon_apply, &self.patches, &[values.into(), matrices, patches, view(&x)?.into(), rate])
    }
}

/// A number of the tables.
fn integer(value: usize) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::from(gpu::Error::BeyondInt(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn numbers(tensor: &Tensor) -> Vec<i32> {
        tensor.to_vec().unwrap()
    }

    #[test]
    fn every_number_of_every_matrix_is_in_one_part() {
        // A wide matrix, one that Muon does not update, a tall one, and a convolution.
        let shapes: [&[usize]; 4] = [&[40, 150], &[7], &[300, 129], &[128, 2, 2, 32]];
        let device = Device::cpu();
        let values = FlatBuffer::zeros("test", &device, &shapes.map(Shape::new), DType::F32).unwrap();
        let tables = Tables::new(&device, &values, &[0, 2, 3]).unwrap();
        let matrices = numbers(&tables.matrices);
        let wanted = [
            [0, 40, 150, 128, 256, 0, 0, 0, 8, 0],
            [6080, 300, 129, 256, 384, 32768, 16384, 8, 24, 1],
            [44800, 128, 128, 128, 128, 131_072, 81920, 32, 4, 0],
        ];
        for (found, wanted) in matrices.chunks(MATRIX).zip(wanted) {
            assert_eq!(found[..10], wanted);
        }
        assert_eq!(tables.lengths, [147_456, 98304]);
        // Patches lie over the parameter as it is; those of the tall one are 6 down and 4 across.
        let patches = numbers(&tables.patches.parts);
        assert_eq!(patches.len(), 36 * PART);
        assert_eq!(patches[7 * PART..10 * PART], [0, 1, 3, 0, 1, 0, 0, 0, 1, 0, 1, 0]);
        assert_eq!(patches[31 * PART..32 * PART], [1, 5, 3, 0]);
        // Products: the longest sums first.
        let squares = numbers(&tables.squares.parts);
        assert_eq!(squares.chunks(PART).map(|part| part[0]).collect::<Vec<_>>(), [1, 1, 1, 1, 0, 2]);
        let tiles = numbers(&tables.tiles.parts);
        assert_eq!(tiles.chunks(PART).map(|part| part[0]).collect::<Vec<_>>(), [1, 1, 1, 1, 1, 1, 0, 0, 2]);
        assert_eq!(tiles[3 * PART..6 * PART], [1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 2, 0]);
    }

    #[test]
    fn numbers_that_an_int_does_not_count_are_refused() {
        assert!(integer(1 << 31).is_err());
        assert_eq!(integer((1 << 31) - 1).unwrap(), i32::MAX);
    }
}
