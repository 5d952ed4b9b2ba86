//! Linear on the GPU: three matrix products by cuBLASLt. bf16 inputs meet weights rounded to bf16; sums are f32.
//! `weight` comes in the type of `x`.

use gpu::matmul::MatmulShape;

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, precision_of, sums, view, view_mut};
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::Tensor;

pub(super) fn forward(
    cuda: &CudaDevice,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    y: &mut Tensor,
) -> Result<()> {
    let (rows, width, out) = (x.dims()[0], x.dims()[1], weight.dims()[0]);
    let _scope = cuda.context().scope(
        || format!("linear {width}->{out}"),
        2.0 * (rows * width * out) as f64,
        ((x.len() + y.len()) * x.dtype().size() + weight.len() * 4) as f64,
    );
    let precision = precision_of(x.dtype())?;
    let shape = MatmulShape::new(rows, out, width, precision, precision).transposed(false, true);
    let (from, w, to) = (view(x)?.address, view(weight)?.address, view_mut(y)?.address);
    let context = cuda.context();
    // SAFETY: the tensors have the sizes of the shape.
    unsafe { context.matmuls()?.multiply(context, &shape, (1.0, 0.0), from, w, to)? };
    if let Some(bias) = bias {
        let arguments = [view_mut(y)?.into(), view(bias)?.into(), (y.len() as i64).into(), out.into()];
        let program = Program::new(kernels::ELEMENTWISE, y.dtype());
        cuda.launch(&program, "add_bias", cuda.elementwise(y.len()), &arguments)?;
    }
    Ok(())
}

pub(super) fn backward(
    cuda: &CudaDevice,
    x: &Tensor,
    weight: &Tensor,
    dy: &Tensor,
    [dx, dw, db]: [&mut Option<Target>; 3],
) -> Result<()> {
    let (rows, width, out) = (x.dims()[0], x.dims()[1], weight.dims()[0]);
    let _scope = cuda.context().scope(
        || format!("linear {width}->{out} backward"),
        4.0 * (rows * width * out) as f64,
        (2 * (x.len() + dy.len()) * x.dtype().size() + 2 * weight.len() * 4) as f64,
    );
    let precision = precision_of(x.dtype())?;
    let context = cuda.context();
    let matmuls = context.matmuls()?;
    let beta = |target: &Target| if target.accumulate { 1.0 } else { 0.0 };
    if let Some(target) = dx {
        let shape = MatmulShape::new(rows, width, out, precision, precision);
        let (from, w, to) = (view(dy)?.address, view(weight)?.address, view_mut(&mut target.tensor)?.address);
        // SAFETY: the tensors have the sizes of the shape.
        unsafe { matmuls.multiply(context, &shape, (1.0, beta(target)), from, w, to)? };
    }
    if let Some(target) = dw {
        let shape =
            MatmulShape::new(out, width, rows, precision, gpu::Precision::F32).transposed(true, false);
        let (dy, x, to) = (view(dy)?.address, view(x)?.address, view_mut(&mut target.tensor)?.address);
        // SAFETY: the tensors have the sizes of the shape.
        unsafe { matmuls.multiply(context, &shape, (1.0, beta(target)), dy, x, to)? };
    }
    if let Some(target) = db {
        sums::column_sums(cuda, dy, out, target)?;
    }
    Ok(())
}
