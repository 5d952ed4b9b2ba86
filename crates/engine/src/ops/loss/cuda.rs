//! What the losses share on the GPU: sums in f64 in a fixed order; gradients of the single numbers stay on the device.

use gpu::{Argument, Buffer, Launch};

use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tensor::{DType, Tensor};

/// Launches a kernel of `loss.cu`.
pub(super) fn launch(
    cuda: &CudaDevice,
    kernel: Kernel,
    launch: Launch,
    arguments: &[Argument],
) -> Result<()> {
    cuda.launch(&Program::new(KernelFile::Loss, DType::F32), kernel, launch, arguments)
}

/// Blocks whose partial sums make one number.
pub(super) fn blocks(cuda: &CudaDevice, count: usize) -> usize {
    count.div_ceil(256 * 4).clamp(1, cuda.multiprocessors())
}

/// Runs `kernel`, whose last argument is `blocks` partial sums, and writes `offset + scale * sum` to `total`.
pub(super) fn sum(
    cuda: &CudaDevice,
    kernel: Kernel,
    blocks: usize,
    arguments: &[Argument],
    (scale, offset): (f64, f64),
    total: &mut Tensor,
) -> Result<()> {
    let partial = cuda.context().allocate(blocks * 8)?;
    let arguments = [arguments, &[(&partial).into()]].concat();
    launch(cuda, kernel, Launch::linear(blocks, 256), &arguments)?;
    let (scale, offset) = ((scale as f32).into(), (offset as f32).into());
    let finish = [(&partial).into(), blocks.into(), scale, offset, view_mut(total)?.into()];
    launch(cuda, Kernel::finish_sum, Launch::linear(1, 256), &finish)
}

/// Means, and roots of (variance + epsilon) where wanted, of the columns of a matrix.
pub(super) struct Moments {
    pub means: Buffer,
    pub roots: Option<Buffer>,
}

impl Moments {
    pub(super) fn new(
        cuda: &CudaDevice,
        z: &Tensor,
        (rows, columns): (usize, usize),
        epsilon: Option<f64>,
    ) -> Result<Self> {
        let means = cuda.context().allocate(columns * 4)?;
        let roots = epsilon.map(|_| cuda.context().allocate(columns * 4)).transpose()?;
        let arguments = [
            view(z)?.into(),
            rows.into(),
            columns.into(),
            Argument::F64(epsilon.unwrap_or(0.0)),
            (&means).into(),
            roots.as_ref().into(),
        ];
        launch(cuda, Kernel::column_moments, Launch::linear(columns.div_ceil(32), 1024), &arguments)?;
        Ok(Self { means, roots })
    }
}
