//! Layers of several heads on the GPU: one matrix product of all heads, forward and for each gradient, by cuBLASLt in
//! float32, never TF32. Bias and ReLU are one kernel, their gradients another.

use gpu::matmul::MatmulShape;
use gpu::{Argument, Launch, Precision};

use super::Sizes;
use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::ops::operation::To;
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

fn program() -> Program {
    Program::new(KernelFile::Heads, DType::F32)
}

impl Sizes {
    /// Numbers between rows, and between members, of x, W and y.
    fn strides(&self) -> [(usize, usize); 3] {
        let Self { products, width, out, .. } = *self;
        [(products * width, width), (width, out * width), (products * out, out)]
    }

    /// A product of every head; `parts` are the strides of its operands.
    fn shape(&self, sides: [usize; 3], turned: [bool; 2], parts: [(usize, usize); 3]) -> MatmulShape {
        let [rows, columns, inner] = sides;
        let plain = MatmulShape::new(rows, columns, inner, Precision::F32, Precision::F32)
            .transposed(turned[0], turned[1]);
        if self.products == 1 {
            return plain;
        }
        let (row_strides, batch_strides) = (parts.map(|part| part.0), parts.map(|part| part.1));
        MatmulShape { batch: self.products, row_strides, batch_strides, ..plain }
    }

    fn flops(&self) -> f64 {
        2.0 * (self.products * self.rows * self.width * self.out) as f64
    }
}

fn multiply(cuda: &CudaDevice, shape: &MatmulShape, beta: f32, [a, b, c]: [u64; 3]) -> Result<()> {
    let context = cuda.context();
    // SAFETY: the tensors have the sizes of the shape.
    unsafe { context.matmuls()?.multiply(context, shape, (1.0, beta), a, b, c)? };
    Ok(())
}

pub(super) fn forward(
    cuda: &CudaDevice,
    sizes: Sizes,
    [x, weight, bias]: [&Tensor; 3],
    relu: bool,
    y: &mut Tensor,
) -> Result<()> {
    let Sizes { products, rows, width, out } = sizes;
    let bytes = 4.0 * (x.len() + weight.len() + 3 * y.len()) as f64;
    let _scope = cuda.context().scope(|| format!("{products} x linear {width}->{out}"), sizes.flops(), bytes);
    let [of_x, of_w, of_y] = sizes.strides();
    let shape = sizes.shape([rows, out, width], [false, true], [of_x, of_w, of_y]);
    let to = view_mut(y)?;
    multiply(cuda, &shape, 0.0, [view(x)?.address, view(weight)?.address, to.address])?;
    let arguments =
        [to.into(), view(bias)?.into(), (y.len() as i64).into(), bias.len().into(), i32::from(relu).into()];
    cuda.launch(&program(), Kernel::add_biases, cuda.elementwise(y.len()), &arguments)
}

pub(super) fn backward(
    cuda: &CudaDevice,
    sizes: Sizes,
    [x, weight]: [&Tensor; 2],
    kept: Option<&Tensor>,
    dy: &mut Tensor,
    [dx, dw, db]: To<3>,
) -> Result<()> {
    let Sizes { products, rows, width, out } = sizes;
    let bytes = 4.0 * (2 * (x.len() + weight.len()) + 4 * dy.len()) as f64;
    let _scope = cuda.context().scope(
        || format!("{products} x linear {width}->{out} backward"),
        2.0 * sizes.flops(),
        bytes,
    );
    let gradient = view(dy)?;
    if kept.is_some() || db.is_some() {
        let columns = products * out;
        let (sums, add) = match db {
            Some(db) => (view_mut(&mut db.tensor)?.into(), i32::from(db.accumulate)),
            None => (Argument::Address(0), 0),
        };
        // Where there is a ReLU, `dy` is ours alone.
        let arguments = [
            gradient.into(),
            kept.map(view).transpose()?.into(),
            gradient.into(),
            rows.into(),
            columns.into(),
            sums,
            add.into(),
        ];
        let launch = Launch::linear(columns.div_ceil(32), 1024);
        cuda.launch(&program(), Kernel::relu_column_sums, launch, &arguments)?;
    }
    let [of_x, of_w, of_y] = sizes.strides();
    let beta = |target: &Target| if target.accumulate { 1.0 } else { 0.0 };
    if let Some(target) = dw {
        let shape = sizes.shape([out, width, rows], [true, false], [of_y, of_x, of_w]);
        let to = view_mut(&mut target.tensor)?.address;
        multiply(cuda, &shape, beta(target), [gradient.address, view(x)?.address, to])?;
    }
    if let Some(target) = dx {
        let shape = sizes.shape([rows, width, out], [false, false], [of_y, of_w, of_x]);
        let to = view_mut(&mut target.tensor)?.address;
        multiply(cuda, &shape, beta(target), [gradient.address, view(weight)?.address, to])?;
    }
    Ok(())
}
