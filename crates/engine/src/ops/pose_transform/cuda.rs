//! Transformed, normalised poses on the GPU: a thread per capsule.

use gpu::Launch;

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

fn plan(poses: &Tensor, pose: usize) -> (Program, Launch, usize, usize) {
    let (batch, capsules) = (poses.dims()[0], poses.dims()[1] / pose);
    let program = Program::new(kernels::POSE_TRANSFORM, DType::F32).define("SIDE", pose.isqrt());
    (program, Launch::linear((batch * capsules).div_ceil(128), 128), batch, capsules)
}

pub(super) fn forward(
    cuda: &CudaDevice,
    poses: &Tensor,
    pose: usize,
    transform: Option<&Tensor>,
    x: &mut Tensor,
) -> Result<()> {
    let (program, launch, batch, capsules) = plan(poses, pose);
    let transform = transform.map(view).transpose()?;
    let arguments =
        [view(poses)?.into(), transform.into(), view_mut(x)?.into(), batch.into(), capsules.into()];
    cuda.launch(&program, "pose_transform", launch, &arguments)
}

pub(super) fn backward(
    cuda: &CudaDevice,
    (poses, pose): (&Tensor, usize),
    transform: Option<&Tensor>,
    x: &Tensor,
    dx: &Tensor,
    dp: &mut Target,
) -> Result<()> {
    let (program, launch, batch, capsules) = plan(poses, pose);
    let arguments = [
        view(poses)?.into(),
        transform.map(view).transpose()?.into(),
        view(x)?.into(),
        view(dx)?.into(),
        view_mut(&mut dp.tensor)?.into(),
        i32::from(dp.accumulate).into(),
        batch.into(),
        capsules.into(),
    ];
    cuda.launch(&program, "pose_transform_backward", launch, &arguments)
}
