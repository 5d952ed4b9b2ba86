//! The convolution of images on the GPU: patches that do not overlap are cut out and are then the rows of a matrix
//! product; others go through normalised pixels and [`conv2d`](crate::ops::conv2d)'s ways. (The published first layer
//! has its own: see [`stem`](crate::ops::stem).)

use gpu::Argument;
use gpu::matmul::MatmulShape;

use super::{ImageConv, Images};
use crate::cuda::kernels::{self, Kernel, KernelFile, Program};
use crate::cuda::{CudaDevice, casts, precision_of, sums, view, view_mut};
use crate::device::Device;
use crate::error::Result;
use crate::ops::conv2d::{self, Geometry, Padding};
use crate::ops::linear::add_bias;
use crate::ops::operation::{Cuda, Fixed, Operation, To};
use crate::tape::Var;
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
    let program = Program::with_channels(KernelFile::Tokens, dtype, group);
    let launch = cuda.elementwise(images.pixels.len() / kernels::vector(group));
    cuda.launch(&program, Kernel::cut_patches, launch, &arguments)?;
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
    cuda.launch(&Program::new(KernelFile::Elementwise, dtype), Kernel::normalise_pixels, launch, &arguments)?;
    Ok(pixels)
}

impl Operation<CudaDevice, Fixed<2>> for ImageConv {
    /// W.
    type Saved = Tensor;

    fn forward(&self, cuda: &mut Cuda, [weight, bias]: [&Var; 2], y: &mut Tensor) -> Result<Tensor> {
        let Self { geometry, images } = self;
        let cast = casts::weight_for(cuda.tape, weight.value(), y.dtype())?;
        if is_patches(geometry) && y.dtype() == cuda.device.activation_dtype() {
            let patches = cut_patches(cuda, cuda.device, geometry, images)?;
            let (rows, inner, out) = (patches.dims()[0], patches.dims()[1], geometry.output[2]);
            let operations = 2.0 * (rows * inner * out) as f64;
            let bytes = ((patches.len() + y.len()) * y.dtype().size()) as f64;
            let _scope = cuda.context().scope(|| "patch embedding".into(), operations, bytes);
            let precision = precision_of(y.dtype())?;
            let shape = MatmulShape::new(rows, out, inner, precision, precision).transposed(false, true);
            cuda.multiply(&shape, 0.0, [view(&patches)?, view(&cast)?, view_mut(y)?])?;
        } else {
            let pixels = normalised(cuda, cuda.device, images, y.dtype())?;
            conv2d::cuda::forward(cuda, cuda.device, geometry, &pixels, &cast, y)?;
        }
        if let Some(bias) = bias.present() {
            add_bias(cuda, y, bias)?;
        }
        Ok(weight.value().clone())
    }

    fn backward(&self, cuda: &mut Cuda, weight: &Tensor, dy: Tensor, [dw, db]: To<2>) -> Result<()> {
        let Self { geometry, images } = self;
        match dw {
            Some(dw) if is_patches(geometry) => {
                let patches = cut_patches(cuda, cuda.device, geometry, images)?;
                let (rows, inner, out) = (patches.dims()[0], patches.dims()[1], geometry.output[2]);
                let operations = 2.0 * (rows * inner * out) as f64;
                let bytes = ((patches.len() + dy.len()) * dy.dtype().size()) as f64;
                let name = || "patch embedding weight gradient".into();
                let _scope = cuda.context().scope(name, operations, bytes);
                let precision = precision_of(dy.dtype())?;
                let shape = MatmulShape::new(out, inner, rows, precision, gpu::Precision::F32)
                    .transposed(true, false);
                let to = view_mut(&mut dw.tensor)?;
                cuda.multiply(&shape, dw.beta(), [view(&dy)?, view(&patches)?, to])?;
            }
            Some(dw) => {
                let pixels = normalised(cuda, cuda.device, images, dy.dtype())?;
                let kept = conv2d::cuda::kept_input(cuda, cuda.device, geometry, &pixels)?;
                conv2d::cuda::backward(cuda, geometry, &kept, weight, &dy, Some(dw), None)?;
            }
            None => {}
        }
        match db {
            Some(db) => sums::column_sums(cuda, &dy, geometry.output[2], db),
            None => Ok(()),
        }
    }
}
