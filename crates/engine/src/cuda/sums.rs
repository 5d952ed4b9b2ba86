//! Sums over the rows of a matrix on the GPU, column by column, in a fixed order: partial sums of blocks, then the sum
//! of those. An operation whose backward pass goes over all rows anyway makes the partial sums itself.

use gpu::{Argument, Buffer, Launch};

use crate::cuda::kernels::{Kernel, KernelFile, Program, vector};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

/// Threads of a block.
const THREADS: usize = 256;

/// How the threads of a kernel share rows and columns, where each keeps to its columns.
pub(crate) struct Layout {
    /// Groups of columns side by side in a block.
    pub columns: usize,
    /// Blocks over the rows, so many partial sums there are.
    pub blocks: usize,
    /// Blocks over the columns.
    pub across: usize,
}

impl Layout {
    /// For `rows` of `channels`, with about `per_multiprocessor` blocks for each.
    pub(crate) fn new(cuda: &CudaDevice, rows: usize, channels: usize, per_multiprocessor: usize) -> Self {
        let groups = channels / vector(channels);
        let columns = groups.clamp(1, THREADS);
        let across = groups.div_ceil(columns).max(1);
        let most = (cuda.multiprocessors() * per_multiprocessor).div_ceil(across);
        Self { columns, blocks: rows.div_ceil(THREADS / columns).clamp(1, most), across }
    }

    /// The launch.
    pub(crate) fn launch(&self) -> Launch {
        Launch::grid([self.blocks, self.across, 1], THREADS)
    }
}

/// Partial sums (blocks, targets, columns), to be added up over the blocks.
pub(crate) struct Partial {
    buffer: Buffer,
    blocks: usize,
    targets: usize,
    columns: usize,
}

impl Partial {
    /// Room for `blocks` partial sums of `columns` columns for each of `targets` gradients (at most three).
    pub(crate) fn new(cuda: &CudaDevice, blocks: usize, targets: usize, columns: usize) -> Result<Self> {
        let buffer = cuda.context().allocate(blocks * targets * columns * 4)?;
        Ok(Self { buffer, blocks, targets, columns })
    }

    /// Where they lie.
    pub(crate) fn argument(&self) -> Argument {
        (&self.buffer).into()
    }

    /// Adds them up into the gradients of parameters; those that are not wanted are left out.
    pub(crate) fn finish(&self, cuda: &CudaDevice, targets: [Option<&mut Target>; 3]) -> Result<()> {
        let total = self.targets * self.columns;
        let mut arguments: Vec<Argument> =
            vec![self.argument(), self.blocks.into(), total.into(), self.targets.into()];
        for target in targets {
            match target {
                None => arguments.extend([Argument::Address(0), 0.into()]),
                Some(target) => {
                    let add = i32::from(target.accumulate);
                    arguments.extend([Argument::from(view_mut(&mut target.tensor)?), add.into()]);
                }
            }
        }
        let program = Program::with_channels(KernelFile::Columns, DType::F32, self.columns);
        cuda.launch(&program, Kernel::finish_columns, Launch::linear(total.div_ceil(32), 1024), &arguments)
    }
}

/// The sums of the `columns` columns of `x`, into an f32 gradient.
pub(crate) fn column_sums(cuda: &CudaDevice, x: &Tensor, columns: usize, target: &mut Target) -> Result<()> {
    let rows = x.len() / columns.max(1);
    let layout = Layout::new(cuda, rows, columns, 4);
    let bytes = (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| "column sums".into(), x.len() as f64, bytes);
    let partial = Partial::new(cuda, layout.blocks, 1, columns)?;
    let arguments =
        [view(x)?.into(), partial.argument(), (rows as i64).into(), columns.into(), layout.columns.into()];
    let program = Program::with_channels(KernelFile::Columns, x.dtype(), columns);
    cuda.launch(&program, Kernel::column_partials, layout.launch(), &arguments)?;
    partial.finish(cuda, [Some(target), None, None])
}
