//! The losses on the GPU: sums in f64 in a fixed order; gradients of the single numbers stay on the device.

use gpu::{Argument, Buffer, Launch, View};

use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::device::Device;
use crate::error::Result;
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

fn program() -> Program {
    Program::new(kernels::LOSS, DType::F32)
}

/// Blocks whose partial sums make one number.
fn blocks(cuda: &CudaDevice, count: usize) -> usize {
    count.div_ceil(256 * 4).clamp(1, cuda.multiprocessors())
}

/// Runs `kernel`, whose last argument is `blocks` partial sums, and returns `offset + scale * sum`.
fn sum(
    cuda: &CudaDevice,
    device: &Device,
    kernel: &'static str,
    blocks: usize,
    arguments: &[Argument],
    (scale, offset): (f64, f64),
) -> Result<Tensor> {
    let partial = cuda.context().allocate(blocks * 8)?;
    let mut arguments = arguments.to_vec();
    arguments.push((&partial).into());
    cuda.launch(&program(), kernel, Launch::linear(blocks, 256), &arguments)?;
    let mut total = Tensor::empty(device, [1], DType::F32)?;
    let finish = [
        (&partial).into(),
        blocks.into(),
        (scale as f32).into(),
        (offset as f32).into(),
        view_mut(&mut total)?.into(),
    ];
    cuda.launch(&program(), "finish_sum", Launch::linear(1, 256), &finish)?;
    Ok(total)
}

fn place(target: Option<&mut Target>) -> Result<[Argument; 2]> {
    match target {
        None => Ok([Argument::Address(0), 0.into()]),
        Some(target) => Ok([view_mut(&mut target.tensor)?.into(), i32::from(target.accumulate).into()]),
    }
}

pub(super) fn mse(cuda: &CudaDevice, device: &Device, u: &Tensor, v: &Tensor) -> Result<Tensor> {
    let arguments = [view(u)?.into(), view(v)?.into(), (u.len() as i64).into()];
    sum(cuda, device, "mse", blocks(cuda, u.len()), &arguments, (1.0 / u.len() as f64, 0.0))
}

pub(super) fn mse_backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    (u, v): (&Tensor, &Tensor),
    du: Option<&mut Target>,
    dv: Option<&mut Target>,
) -> Result<()> {
    let mut arguments = vec![view(dy)?.into(), view(u)?.into(), view(v)?.into(), (u.len() as i64).into()];
    arguments.extend(place(du)?);
    arguments.extend(place(dv)?);
    cuda.launch(&program(), "mse_backward", cuda.elementwise(u.len()), &arguments)
}

pub(super) fn cross_entropy(
    cuda: &CudaDevice,
    device: &Device,
    (p, t): (&Tensor, &Tensor),
    rows: usize,
    smallest: f32,
) -> Result<Tensor> {
    let arguments = [view(p)?.into(), view(t)?.into(), (p.len() as i64).into(), smallest.into()];
    sum(cuda, device, "cross_entropy", blocks(cuda, p.len()), &arguments, (-1.0 / rows as f64, 0.0))
}

pub(super) fn cross_entropy_backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    (p, t): (&Tensor, &Tensor),
    (rows, smallest): (usize, f32),
    dp: Option<&mut Target>,
    dt: Option<&mut Target>,
) -> Result<()> {
    let mut arguments = vec![
        view(dy)?.into(),
        view(p)?.into(),
        view(t)?.into(),
        (p.len() as i64).into(),
        rows.into(),
        smallest.into(),
    ];
    arguments.extend(place(dp)?);
    arguments.extend(place(dt)?);
    cuda.launch(&program(), "cross_entropy_backward", cuda.elementwise(p.len()), &arguments)
}

/// Means, and roots of (variance + epsilon) where wanted, of the columns of a matrix.
pub(super) struct Moments {
    means: Buffer,
    roots: Option<Buffer>,
}

fn moments(cuda: &CudaDevice, z: View, rows: usize, columns: usize, epsilon: Option<f64>) -> Result<Moments> {
    let means = cuda.context().allocate(columns * 4)?;
    let roots = epsilon.map(|_| cuda.context().allocate(columns * 4)).transpose()?;
    let arguments = [
        z.into(),
        rows.into(),
        columns.into(),
        Argument::F64(epsilon.unwrap_or(0.0)),
        (&means).into(),
        roots.as_ref().into(),
    ];
    cuda.launch(&program(), "column_moments", Launch::linear(columns.div_ceil(32), 1024), &arguments)?;
    Ok(Moments { means, roots })
}

pub(super) fn variance_hinge(
    cuda: &CudaDevice,
    device: &Device,
    z: &Tensor,
    (rows, columns): (usize, usize),
    epsilon: f64,
) -> Result<(Tensor, Moments)> {
    let moments = moments(cuda, view(z)?, rows, columns, Some(epsilon))?;
    let arguments = [moments.roots.as_ref().into(), columns.into()];
    let loss = sum(cuda, device, "hinge_sum", 1, &arguments, (0.5 / columns as f64, 0.0))?;
    Ok((loss, moments))
}

pub(super) fn variance_hinge_backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    z: &Tensor,
    (rows, columns): (usize, usize),
    moments: &Moments,
    dz: &mut Target,
) -> Result<()> {
    let mut arguments = vec![
        view(dy)?.into(),
        view(z)?.into(),
        (&moments.means).into(),
        moments.roots.as_ref().into(),
        rows.into(),
        columns.into(),
    ];
    arguments.extend(place(Some(dz))?);
    cuda.launch(&program(), "hinge_backward", cuda.elementwise(z.len()), &arguments)
}

pub(super) fn me_max(
    cuda: &CudaDevice,
    device: &Device,
    a: &Tensor,
    (rows, columns): (usize, usize),
) -> Result<(Tensor, Moments)> {
    let moments = moments(cuda, view(a)?, rows, columns, None)?;
    let arguments = [(&moments.means).into(), columns.into()];
    let loss = sum(cuda, device, "entropy_sum", 1, &arguments, (1.0, (columns as f64).ln()))?;
    Ok((loss, moments))
}

pub(super) fn me_max_backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    (rows, columns): (usize, usize),
    moments: &Moments,
    da: &mut Target,
) -> Result<()> {
    let mut arguments = vec![view(dy)?.into(), (&moments.means).into(), rows.into(), columns.into()];
    arguments.extend(place(Some(da))?);
    cuda.launch(&program(), "me_max_backward", cuda.elementwise(rows * columns), &arguments)
}

pub(super) fn covariance(
    cuda: &CudaDevice,
    device: &Device,
    z: &Tensor,
    divisor: usize,
    centred: &mut Tensor,
    cov: &mut Tensor,
) -> Result<Tensor> {
    let (rows, columns) = (z.dims()[0], z.dims()[1]);
    let moments = moments(cuda, view(z)?, rows, columns, None)?;
    let arguments = [
        view(z)?.into(),
        (&moments.means).into(),
        (z.len() as i64).into(),
        columns.into(),
        view_mut(centred)?.into(),
    ];
    cuda.launch(&program(), "centre", cuda.elementwise(z.len()), &arguments)?;
    let shape =
        gpu::matmul::MatmulShape::new(columns, columns, rows, gpu::Precision::F32, gpu::Precision::F32)
            .transposed(true, false);
    let (from, to) = (view(centred)?.address, view_mut(cov)?);
    let context = cuda.context();
    // SAFETY: the tensors have the sizes of the shape.
    unsafe { context.matmuls()?.multiply(context, &shape, (1.0, 0.0), from, from, to.address)? };
    let arguments = [to.into(), columns.into(), (divisor as f32).into()];
    let blocks = blocks(cuda, columns * columns);
    sum(cuda, device, "off_diagonal", blocks, &arguments, (1.0 / columns as f64, 0.0))
}

pub(super) fn covariance_backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    centred: &Tensor,
    cov: &Tensor,
    divisor: usize,
    dz: &mut Target,
) -> Result<()> {
    let (rows, columns) = (centred.dims()[0], centred.dims()[1]);
    let context = cuda.context();
    let product = context.allocate(centred.len() * 4)?;
    let shape =
        gpu::matmul::MatmulShape::new(rows, columns, columns, gpu::Precision::F32, gpu::Precision::F32);
    let (a, b) = (view(centred)?.address, view(cov)?.address);
    // SAFETY: the tensors have the sizes of the shape.
    unsafe { context.matmuls()?.multiply(context, &shape, (1.0, 0.0), a, b, product.address())? };
    let factor = (4.0 / (columns as f64 * divisor as f64)) as f32;
    let mut arguments =
        vec![view(dy)?.into(), factor.into(), (&product).into(), (centred.len() as i64).into()];
    arguments.extend(place(Some(dz))?);
    cuda.launch(&program(), "scale_into", cuda.elementwise(centred.len()), &arguments)
}

pub(super) fn weighted_sum(cuda: &CudaDevice, device: &Device, terms: &[(&Tensor, f32)]) -> Result<Tensor> {
    let mut total = Tensor::empty(device, [1], DType::F32)?;
    for (index, (term, weight)) in terms.iter().enumerate() {
        weigh(cuda, term, *weight, view_mut(&mut total)?, index > 0)?;
    }
    if terms.is_empty() {
        total.fill_zero()?;
    }
    Ok(total)
}

/// `to (+)= weight * from`, for single numbers.
pub(super) fn weigh(cuda: &CudaDevice, from: &Tensor, weight: f32, to: View, add: bool) -> Result<()> {
    let arguments = [view(from)?.into(), weight.into(), to.into(), i32::from(add).into()];
    cuda.launch(&program(), "weigh", Launch::linear(1, 1), &arguments)
}

pub(super) fn class_cross_entropy(
    cuda: &CudaDevice,
    device: &Device,
    logits: &Tensor,
    labels: &Tensor,
) -> Result<Tensor> {
    let (rows, classes) = (logits.dims()[0], logits.dims()[1]);
    let arguments = [view(logits)?.into(), view(labels)?.into(), rows.into(), classes.into()];
    let blocks = blocks(cuda, rows);
    sum(cuda, device, "class_cross_entropy", blocks, &arguments, (1.0 / rows as f64, 0.0))
}

pub(super) fn class_cross_entropy_backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    logits: &Tensor,
    labels: &Tensor,
    dlogits: &mut Target,
) -> Result<()> {
    let (rows, classes) = (logits.dims()[0], logits.dims()[1]);
    let mut arguments =
        vec![view(dy)?.into(), view(logits)?.into(), view(labels)?.into(), rows.into(), classes.into()];
    arguments.extend(place(Some(dlogits))?);
    cuda.launch(&program(), "class_cross_entropy_backward", cuda.elementwise(rows), &arguments)
}

/// The contrastive loss; writes the normalised `rows`, their `norms`, and G to `similarity`.
pub(super) fn info_nce(
    cuda: &CudaDevice,
    device: &Device,
    (u, v): (&Tensor, &Tensor),
    (tau, smallest): (f32, f32),
    rows: &mut Tensor,
    norms: &mut Tensor,
    similarity: &mut Tensor,
) -> Result<Tensor> {
    let (n, d) = (u.dims()[0], u.dims()[1]);
    let f = view_mut(rows)?;
    let arguments = [
        view(u)?.into(),
        view(v)?.into(),
        n.into(),
        d.into(),
        smallest.into(),
        f.into(),
        view_mut(norms)?.into(),
    ];
    cuda.launch(&program(), "normalise_rows", Launch::linear(2 * n, 256), &arguments)?;
    let shape = gpu::matmul::MatmulShape::new(2 * n, 2 * n, d, gpu::Precision::F32, gpu::Precision::F32)
        .transposed(false, true);
    let (context, s) = (cuda.context(), view_mut(similarity)?);
    // SAFETY: the tensors have the sizes of the shape.
    unsafe { context.matmuls()?.multiply(context, &shape, (1.0, 0.0), f.address, f.address, s.address)? };
    let arguments = [s.into(), n.into(), tau.into()];
    sum(cuda, device, "contrast_rows", 2 * n, &arguments, (0.5 / n as f64, 0.0))
}

pub(super) fn info_nce_backward(
    cuda: &CudaDevice,
    dy: &Tensor,
    (rows, norms, similarity): (&Tensor, &Tensor, &Tensor),
    tau: f32,
    targets: [Option<&mut Target>; 2],
) -> Result<()> {
    let (size, d) = (rows.dims()[0], rows.dims()[1]);
    let context = cuda.context();
    let symmetric = context.allocate(size * size * 4)?;
    let arguments =
        [view(dy)?.into(), view(similarity)?.into(), size.into(), tau.into(), (&symmetric).into()];
    cuda.launch(&program(), "symmetric", cuda.elementwise(size * size), &arguments)?;
    let df = context.allocate(size * d * 4)?;
    let shape = gpu::matmul::MatmulShape::new(size, d, size, gpu::Precision::F32, gpu::Precision::F32);
    let f = view(rows)?;
    // SAFETY: the tensors have the sizes of the shape.
    unsafe {
        context.matmuls()?.multiply(
            context,
            &shape,
            (1.0, 0.0),
            symmetric.address(),
            f.address,
            df.address(),
        )?
    };
    for (index, target) in targets.into_iter().enumerate() {
        let Some(target) = target else { continue };
        let mut arguments =
            vec![(&df).into(), f.into(), view(norms)?.into(), (index * size / 2).into(), d.into()];
        arguments.extend(place(Some(target))?);
        cuda.launch(&program(), "through_norm", Launch::linear(size / 2, 256), &arguments)?;
    }
    Ok(())
}
