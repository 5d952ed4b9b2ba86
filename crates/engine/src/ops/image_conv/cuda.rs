//! The convolution of images on the GPU: patches that do not overlap are cut out and are then the rows of a matrix
//! product; others go through normalised pixels and [`conv2d`](crate::ops::conv2d)'s ways. (The published first layer
//! has its own: see [`stem`](crate::ops::stem).)

use gpu::Argument;
use gpu::matmul::MatmulShape;

use super::Images;
use crate::cuda::kernels::{self, Program};
use crate::cuda::{CudaDevice, precision_of, sums, view, view_mut};
use crate::device::Device;
use crate::error::Result;
use crate::ops::conv2d::{self, Geometry, Padding};
use crate::tape::Target;
use crate::tensor::{DType, Tensor};

/// Whether the windows tile the image, each pixel in one of them.
fn is_patches(geometry: &Geometry) -> bool {
    let ([height, width, _], [kh, kw], stride) = (geometry.input, geometry.kernel, geometry.stride);
    kh == stride
        && kw == stride
        && geometry.padding == Padding::default()
        && height.is_multiple_of(stride)
        && width.is_multiple_of(stride)
}

/// The normalised pixels of every patch, (patches, patch patch 3).
fn cut_patches(cuda: &CudaDevice, device: &Device, geometry: &Geometry, images: &Images) -> Result<Tensor> {
    let ([height, width, _], patch) = (geometry.input, geometry.stride);
    let dtype = device.activation_dtype();
    let bytes = images.pixels.len() * (images.pixels.dtype().size() + dtype.size());
    let _scope = cuda.context().scope(|| "cut patches".into(), images.pixels.len() as f64, bytes as f64);
    let rows = geometry.batch * geometry.output[0] * geometry.output[1];
    let mut patches = Tensor::empty(device, [rows, patch * patch * 3], dtype)?;
    let mut arguments = pixel_arguments(images)?;
    arguments.push(view_mut(&mut patches)?.into());
    arguments.extend([geometry.batch, height, width, patch].map(Argument::from));
    // Eight numbers at a time where they lie in one row of a patch, at addresses that are multiples of eight.
    let group = if (3 * width).is_multiple_of(8) { 3 * patch } else { 1 };
    let program = Program::with_channels(kernels::TOKENS, dtype, group);
    let launch = cuda.elementwise(images.pixels.len() / kernels::vector(group));
    cuda.launch(&program, "cut_patches", launch, &arguments)?;
    Ok(patches)
}

/// The pixels and how they are normalised, as the first arguments of a kernel.
pub(crate) fn pixel_arguments(images: &Images) -> Result<Vec<Argument>> {
    let is_bytes = i32::from(images.pixels.dtype() == DType::U8);
    let mut arguments = vec![view(&images.pixels)?.into(), is_bytes.into()];
    arguments.extend(images.scale.map(Argument::from));
    arguments.extend(images.shift.map(Argument::from));
    Ok(arguments)
}

/// Height and width of images and of the convolution's output, and the number of images.
pub(crate) fn sizes(geometry: &Geometry) -> [Argument; 5] {
    let ([height, width, _], [oh, ow, _]) = (geometry.input, geometry.output);
    [geometry.batch.into(), height.into(), width.into(), oh.into(), ow.into()]
}

/// Pixels, normalised, as `dtype`.
fn normalised(cuda: &CudaDevice, device: &Device, images: &Images, dtype: DType) -> Result<Tensor> {
    let mut pixels = Tensor::empty(device, images.pixels.shape(), dtype)?;
    let mut arguments = pixel_arguments(images)?;
    arguments.extend([Argument::from(view_mut(&mut pixels)?), (images.pixels.len() as i64).into()]);
    let launch = cuda.elementwise(images.pixels.len());
    cuda.launch(&Program::new(kernels::ELEMENTWISE, dtype), "normalise_pixels", launch, &arguments)?;
    Ok(pixels)
}

/// Computes `y`; `weight` is in its type.
pub(super) fn forward(
    cuda: &CudaDevice,
    device: &Device,
    geometry: &Geometry,
    images: &Images,
    weight: &Tensor,
    bias: Option<&Tensor>,
    y: &mut Tensor,
) -> Result<()> {
    if is_patches(geometry) && y.dtype() == device.activation_dtype() {
        let patches = cut_patches(cuda, device, geometry, images)?;
        let (rows, inner, out) = (patches.dims()[0], patches.dims()[1], geometry.output[2]);
        let operations = 2.0 * (rows * inner * out) as f64;
        let bytes = ((patches.len() + y.len()) * y.dtype().size()) as f64;
        let context = cuda.context();
        let _scope = context.scope(|| "patch embedding".into(), operations, bytes);
        let precision = precision_of(y.dtype())?;
        let shape = MatmulShape::new(rows, out, inner, precision, precision).transposed(false, true);
        let (from, w, to) = (view(&patches)?.address, view(weight)?.address, view_mut(y)?.address);
        // SAFETY: the tensors have the sizes of the shape.
        unsafe { context.matmuls()?.multiply(context, &shape, (1.0, 0.0), from, w, to)? };
    } else {
        let pixels = normalised(cuda, device, images, y.dtype())?;
        conv2d::cuda::forward(cuda, device, geometry, &pixels, weight, y)?;
    }
    if let Some(bias) = bias {
        let channels = geometry.output[2];
        let arguments = [view_mut(y)?.into(), view(bias)?.into(), (y.len() as i64).into(), channels.into()];
        let program = Program::new(kernels::ELEMENTWISE, y.dtype());
        cuda.launch(&program, "add_bias", cuda.elementwise(y.len()), &arguments)?;
    }
    Ok(())
}

/// Writes the gradients of weight and bias.
#[expect(clippy::too_many_arguments, reason = "one call for one formula")]
pub(super) fn backward(
    cuda: &CudaDevice,
    device: &Device,
    geometry: &Geometry,
    images: &Images,
    cast: &Tensor,
    dy: &Tensor,
    mut dw: Option<&mut Target>,
    db: Option<&mut Target>,
) -> Result<()> {
    if let (Some(dw), true) = (&mut dw, is_patches(geometry)) {
        let patches = cut_patches(cuda, device, geometry, images)?;
        let (rows, inner, out) = (patches.dims()[0], patches.dims()[1], geometry.output[2]);
        let operations = 2.0 * (rows * inner * out) as f64;
        let bytes = ((patches.len() + dy.len()) * dy.dtype().size()) as f64;
        let context = cuda.context();
        let _scope = context.scope(|| "patch embedding weight gradient".into(), operations, bytes);
        let shape = MatmulShape::new(out, inner, rows, precision_of(dy.dtype())?, gpu::Precision::F32)
            .transposed(true, false);
        let scales = (1.0, if dw.accumulate { 1.0 } else { 0.0 });
        let (gradient, from) = (view(dy)?.address, view(&patches)?.address);
        let to = view_mut(&mut dw.tensor)?.address;
        // SAFETY: the tensors have the sizes of the shape.
        unsafe { context.matmuls()?.multiply(context, &shape, scales, gradient, from, to)? };
    } else if dw.is_some() {
        let pixels = normalised(cuda, device, images, dy.dtype())?;
        let kept = conv2d::cuda::kept_input(cuda, device, geometry, &pixels)?;
        conv2d::cuda::backward(cuda, geometry, &kept, cast, dy, dw, None)?;
    }
    if let Some(db) = db {
        sums::column_sums(cuda, dy, geometry.output[2], db)?;
    }
    Ok(())
}
