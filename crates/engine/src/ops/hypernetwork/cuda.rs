//! The hypernetwork on the GPU: the expanded embedding times the weights, in f32.

use gpu::Precision;
use gpu::matmul::MatmulShape;

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

fn program() -> Program {
    Program::new(kernels::LOSS, DType::F32)
}

/// x[n, i Z + k] = e[n, i] z[n, k]
fn expand(cuda: &CudaDevice, e: &Tensor, parameters: &Tensor) -> Result<gpu::Buffer> {
    if e.dtype() != DType::F32 {
        return Err(Error::shape("hypernetwork", format!("embeddings of {} on the GPU", e.dtype().name())));
    }
    let (d, z) = (e.dims()[1], parameters.dims()[1]);
    let count = e.len() * z;
    let x = cuda.context().allocate(count * 4)?;
    let arguments =
        [view(e)?.into(), view(parameters)?.into(), (count as i64).into(), d.into(), z.into(), (&x).into()];
    cuda.launch(&program(), "expand", cuda.elementwise(count), &arguments)?;
    Ok(x)
}

pub(super) fn forward(
    cuda: &CudaDevice,
    e: &Tensor,
    parameters: &Tensor,
    weight: &Tensor,
    y: &mut Tensor,
) -> Result<()> {
    let (rows, d, z) = (e.dims()[0], e.dims()[1], parameters.dims()[1]);
    let x = expand(cuda, e, parameters)?;
    let shape = MatmulShape::new(rows, d, d * z, Precision::F32, Precision::F32).transposed(false, true);
    let (context, w, to) = (cuda.context(), view(weight)?.address, view_mut(y)?.address);
    // SAFETY: the tensors have the sizes of the shape.
    unsafe { context.matmuls()?.multiply(context, &shape, (1.0, 0.0), x.address(), w, to)? };
    Ok(())
}

pub(super) fn backward(
    cuda: &CudaDevice,
    (e, parameters, weight): (&Tensor, &Tensor, &Tensor),
    dy: &Tensor,
    de: Option<&mut Target>,
    dw: Option<&mut Target>,
) -> Result<()> {
    let (rows, d, z) = (e.dims()[0], e.dims()[1], parameters.dims()[1]);
    let (context, gradient) = (cuda.context(), view(dy)?.address);
    if let Some(dw) = dw {
        let x = expand(cuda, e, parameters)?;
        let shape = MatmulShape::new(d, d * z, rows, Precision::F32, Precision::F32).transposed(true, false);
        let beta = if dw.accumulate { 1.0 } else { 0.0 };
        let to = view_mut(&mut dw.tensor)?.address;
        // SAFETY: the tensors have the sizes of the shape.
        unsafe { context.matmuls()?.multiply(context, &shape, (1.0, beta), gradient, x.address(), to)? };
    }
    let Some(de) = de else { return Ok(()) };
    let dx = context.allocate(e.len() * z * 4)?;
    let shape = MatmulShape::new(rows, d * z, d, Precision::F32, Precision::F32);
    let w = view(weight)?.address;
    // SAFETY: the tensors have the sizes of the shape.
    unsafe { context.matmuls()?.multiply(context, &shape, (1.0, 0.0), gradient, w, dx.address())? };
    let add = i32::from(de.accumulate);
    let arguments = [
        (&dx).into(),
        view(parameters)?.into(),
        (e.len() as i64).into(),
        d.into(),
        z.into(),
        view_mut(&mut de.tensor)?.into(),
        add.into(),
    ];
    cuda.launch(&program(), "contract", cuda.elementwise(e.len()), &arguments)
}
