//! Convolution on the GPU. cuDNN takes the 3x3 ones; a 1x1 convolution is a matrix product of its pixels (every
//! `stride`-th of them); what neither takes is computed by plain loops. cuDNN pads evenly only, so other paddings are
//! written out first.

use gpu::convolution::ConvolutionShape;
use gpu::matmul::MatmulShape;
use gpu::{Argument, View};

use super::{Conv2d, Geometry, Padding};
use crate::cuda::kernels::{Kernel, KernelFile, Program, vector};
use crate::cuda::{CudaDevice, casts, precision_of, view, view_mut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::operation::{Cuda, Fixed, Operation, To};
use crate::shape::Shape;
use crate::tape::{Target, Var};
use crate::tensor::{DType, Tensor};

impl Operation<CudaDevice, Fixed<2>> for Conv2d {
    /// What backward needs of x, and W.
    type Saved = [Tensor; 2];

    fn forward(&self, cuda: &mut Cuda, [x, weight]: [&Var; 2], y: &mut Tensor) -> Result<[Tensor; 2]> {
        let cast = casts::weight_for(cuda.tape, weight.value(), y.dtype())?;
        let mut kept = forward(cuda, cuda.device, &self.0, x.value(), &cast, y)?;
        if y.dtype() == DType::F16 && cuda.tape.is_training() {
            kept = kept_input(cuda, cuda.device, &self.0, &casts::rounded(cuda.device, x)?)?;
        }
        Ok([kept, weight.value().clone()])
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        [kept, weight]: &[Tensor; 2],
        dy: Tensor,
        [dx, dw]: To<2>,
    ) -> Result<()> {
        let weight = cuda.tape.prepared(weight, "activation type", casts::cast_weight)?;
        backward(cuda, &self.0, kept, &weight, &dy, dw, dx)
    }
}

/// How a convolution is computed.
enum Way {
    /// By cuDNN, of this shape; the input may have been padded.
    Cudnn(ConvolutionShape),
    /// As a product of (pixels, in) and (in, out).
    Product,
}

fn way(geometry: &Geometry, dtype: DType) -> Result<Way> {
    let [height, width, channels_in] = geometry.input;
    let Padding { top, left, bottom, right } = geometry.padding;
    if geometry.kernel == [1, 1] && geometry.padding == Padding::default() {
        return Ok(Way::Product);
    }
    let even = has_even_padding(geometry);
    Ok(Way::Cudnn(ConvolutionShape {
        batch: geometry.batch,
        height: if even { height } else { height + top + bottom },
        width: if even { width } else { width + left + right },
        channels_in,
        channels_out: geometry.output[2],
        kernel: geometry.kernel,
        padding: if even { [top, left] } else { [0, 0] },
        stride: [geometry.stride; 2],
        precision: precision_of(dtype)?,
    }))
}

fn has_even_padding(geometry: &Geometry) -> bool {
    let Padding { top, left, bottom, right } = geometry.padding;
    top == bottom && left == right
}

/// Names a convolution in a profile.
fn title(geometry: &Geometry) -> String {
    let ([height, _, channels], [kernel, _]) = (geometry.input, geometry.kernel);
    format!("conv {kernel}x{kernel}/{} {channels}->{} at {height}", geometry.stride, geometry.output[2])
}

fn operations(geometry: &Geometry) -> f64 {
    let ([oh, ow, out], [kh, kw]) = (geometry.output, geometry.kernel);
    2.0 * (geometry.batch * oh * ow * out) as f64 * (kh * kw * geometry.input[2]) as f64
}

/// Bytes of input and output.
fn traffic(geometry: &Geometry, dtype: DType) -> f64 {
    let elements = geometry.input.iter().product::<usize>() + geometry.output.iter().product::<usize>();
    (geometry.batch * elements * dtype.size()) as f64
}

/// Computes `y` and returns what backward needs of the input: the input itself, padded, or every `stride`-th pixel.
pub(crate) fn forward(
    cuda: &CudaDevice,
    device: &Device,
    geometry: &Geometry,
    x: &Tensor,
    weight: &Tensor,
    y: &mut Tensor,
) -> Result<Tensor> {
    let context = cuda.context();
    let way = way(geometry, x.dtype())?;
    let kept = prepare_input(cuda, device, geometry, &way, x)?;
    let _scope = context.scope(|| title(geometry), operations(geometry), traffic(geometry, x.dtype()));
    let (from, w, to) = (view(&kept)?, view(weight)?, view_mut(y)?);
    match way {
        Way::Product => {
            let (precision, [oh, ow, out]) = (precision_of(x.dtype())?, geometry.output);
            let pixels = geometry.batch * oh * ow;
            let shape = MatmulShape::new(pixels, out, geometry.input[2], precision, precision)
                .transposed(false, true);
            cuda.multiply(&shape, 0.0, [from, w, to])?;
        }
        Way::Cudnn(shape) => {
            if let Err(error) = context.convolutions()?.forward(context, &shape, from, w, to) {
                fall_back(error)?;
                let mut arguments = vec![from.into(), w.into(), to.into()];
                arguments.extend(sizes(&shape));
                let program = Program::new(KernelFile::Conv2d, x.dtype());
                cuda.launch(&program, Kernel::direct_forward, cuda.elementwise(y.len()), &arguments)?;
            }
        }
    }
    Ok(kept)
}

/// What [`backward`] needs of the input `x`.
pub(crate) fn kept_input(
    cuda: &CudaDevice,
    device: &Device,
    geometry: &Geometry,
    x: &Tensor,
) -> Result<Tensor> {
    prepare_input(cuda, device, geometry, &way(geometry, x.dtype())?, x)
}

/// Writes the gradients, given what [`forward`] returned.
pub(crate) fn backward(
    cuda: &CudaDevice,
    geometry: &Geometry,
    kept: &Tensor,
    weight: &Tensor,
    dy: &Tensor,
    dw: Option<&mut Target>,
    dx: Option<&mut Target>,
) -> Result<()> {
    let context = cuda.context();
    let dtype = dy.dtype();
    let way = way(geometry, dtype)?;
    if let Some(dw) = dw {
        let name = || title(geometry) + " weight gradient";
        let _scope = context.scope(name, operations(geometry), traffic(geometry, dtype));
        weight_gradient(cuda, geometry, &way, kept, dy, dw)?;
    }
    if let Some(dx) = dx {
        let name = || title(geometry) + " data gradient";
        let _scope = context.scope(name, operations(geometry), traffic(geometry, dtype));
        data_gradient(cuda, geometry, &way, weight, dy, dx)?;
    }
    Ok(())
}

fn weight_gradient(
    cuda: &CudaDevice,
    geometry: &Geometry,
    way: &Way,
    kept: &Tensor,
    dy: &Tensor,
    dw: &mut Target,
) -> Result<()> {
    let context = cuda.context();
    let (from, gradient) = (view(kept)?, view(dy)?);
    let (add, count) = (dw.accumulate, dw.tensor.len());
    let to = view_mut(&mut dw.tensor)?;
    match way {
        Way::Product => {
            let (precision, [oh, ow, out]) = (precision_of(dy.dtype())?, geometry.output);
            let pixels = geometry.batch * oh * ow;
            let shape = MatmulShape::new(out, geometry.input[2], pixels, precision, gpu::Precision::F32)
                .transposed(true, false);
            cuda.multiply(&shape, dw.beta(), [gradient, from, to])?;
        }
        Way::Cudnn(shape) => {
            // In the type of activations, then added up in f32.
            let own = context.allocate(count * shape.precision.bytes())?;
            match context.convolutions()?.weight_gradient(context, shape, from, gradient, own.view()) {
                Ok(()) => {
                    let program = Program::new(KernelFile::Elementwise, dy.dtype());
                    let arguments = [(&own).into(), to.into(), (count as i64).into(), i32::from(add).into()];
                    cuda.launch(&program, Kernel::to_f32, cuda.elementwise(count), &arguments)?;
                }
                Err(error) => {
                    fall_back(error)?;
                    let mut arguments = vec![from.into(), gradient.into(), to.into(), i32::from(add).into()];
                    arguments.extend(sizes(shape));
                    let program = Program::new(KernelFile::Conv2d, dy.dtype());
                    let launch = gpu::Launch::linear(count, 256);
                    cuda.launch(&program, Kernel::direct_weight_gradient, launch, &arguments)?;
                }
            }
        }
    }
    Ok(())
}

fn data_gradient(
    cuda: &CudaDevice,
    geometry: &Geometry,
    way: &Way,
    weight: &Tensor,
    dy: &Tensor,
    dx: &mut Target,
) -> Result<()> {
    let context = cuda.context();
    let (w, gradient) = (view(weight)?, view(dy)?);
    let to = view_mut(&mut dx.tensor)?;
    match way {
        Way::Product => {
            let (precision, [oh, ow, out]) = (precision_of(dy.dtype())?, geometry.output);
            let (pixels, channels) = (geometry.batch * oh * ow, geometry.input[2]);
            let shape = MatmulShape::new(pixels, channels, out, precision, precision);
            if geometry.stride == 1 {
                return cuda.multiply(&shape, dx.beta(), [gradient, w, to]);
            }
            let own = context.allocate(pixels * channels * dy.dtype().size())?;
            cuda.multiply(&shape, 0.0, [gradient, w, own.view()])?;
            let [height, width, _] = geometry.input;
            let arguments = [
                (&own).into(),
                to.into(),
                geometry.batch.into(),
                height.into(),
                width.into(),
                channels.into(),
                geometry.stride.into(),
                oh.into(),
                ow.into(),
            ];
            let program = Program::with_channels(KernelFile::Pool, dy.dtype(), channels);
            let (kernel, count) = if dx.accumulate {
                (Kernel::subsample_backward_add, pixels * channels)
            } else {
                (Kernel::subsample_backward_set, dx.tensor.len())
            };
            cuda.launch(&program, kernel, cuda.elementwise(count / vector(channels)), &arguments)
        }
        Way::Cudnn(shape) if has_even_padding(geometry) => {
            by_cudnn(cuda, shape, w, gradient, to, dx.accumulate, dy.dtype())
        }
        Way::Cudnn(shape) => {
            let own = context
                .allocate(shape.batch * shape.height * shape.width * shape.channels_in * dy.dtype().size())?;
            by_cudnn(cuda, shape, w, gradient, own.view(), false, dy.dtype())?;
            let [height, width, channels] = geometry.input;
            let arguments = [
                (&own).into(),
                to.into(),
                i32::from(dx.accumulate).into(),
                geometry.batch.into(),
                height.into(),
                width.into(),
                channels.into(),
                geometry.padding.top.into(),
                geometry.padding.left.into(),
                shape.height.into(),
                shape.width.into(),
            ];
            let program = Program::with_channels(KernelFile::Pool, dy.dtype(), channels);
            let launch = cuda.elementwise(dx.tensor.len() / vector(channels));
            cuda.launch(&program, Kernel::pad_backward, launch, &arguments)
        }
    }
}

fn by_cudnn(
    cuda: &CudaDevice,
    shape: &ConvolutionShape,
    w: View,
    dy: View,
    dx: View,
    add: bool,
    dtype: DType,
) -> Result<()> {
    let context = cuda.context();
    let Err(error) = context.convolutions()?.data_gradient(context, shape, w, dy, dx, add) else {
        return Ok(());
    };
    fall_back(error)?;
    let mut arguments = vec![dy.into(), w.into(), dx.into(), i32::from(add).into()];
    arguments.extend(sizes(shape));
    let count = shape.batch * shape.height * shape.width * shape.channels_in;
    cuda.launch(
        &Program::new(KernelFile::Conv2d, dtype),
        Kernel::direct_data_gradient,
        cuda.elementwise(count),
        &arguments,
    )
}

/// That cuDNN cannot do a shape is no error: plain loops can. Anything else is.
fn fall_back(error: gpu::Error) -> Result<()> {
    match error {
        gpu::Error::NoEngine(_) => Ok(()),
        other => Err(Error::from(other)),
    }
}

/// The last arguments of the plain loops.
fn sizes(shape: &ConvolutionShape) -> [Argument; 12] {
    let [oh, ow] = shape.output_size();
    [
        shape.batch.into(),
        shape.height.into(),
        shape.width.into(),
        shape.channels_in.into(),
        oh.into(),
        ow.into(),
        shape.channels_out.into(),
        shape.kernel[0].into(),
        shape.kernel[1].into(),
        shape.stride[0].into(),
        shape.padding[0].into(),
        shape.padding[1].into(),
    ]
}

/// The input as the convolution reads it.
fn prepare_input(
    cuda: &CudaDevice,
    device: &Device,
    geometry: &Geometry,
    way: &Way,
    x: &Tensor,
) -> Result<Tensor> {
    let [height, width, channels] = geometry.input;
    let program = Program::with_channels(KernelFile::Pool, x.dtype(), channels);
    let (kernel, size, middle): (_, [usize; 2], Vec<Argument>) = match way {
        Way::Product if geometry.stride > 1 => {
            (Kernel::subsample, [geometry.output[0], geometry.output[1]], vec![geometry.stride.into()])
        }
        Way::Cudnn(shape) if !has_even_padding(geometry) => {
            let Padding { top, left, .. } = geometry.padding;
            (Kernel::pad, [shape.height, shape.width], vec![top.into(), left.into()])
        }
        _ => return Ok(x.clone()),
    };
    let mut prepared =
        Tensor::empty(device, Shape::new(&[geometry.batch, size[0], size[1], channels]), x.dtype())?;
    let bytes = (2 * prepared.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| format!("{} at {height}", kernel.name()), 0.0, bytes);
    let mut arguments = vec![
        view(x)?.into(),
        view_mut(&mut prepared)?.into(),
        geometry.batch.into(),
        height.into(),
        width.into(),
        channels.into(),
    ];
    arguments.extend(middle);
    arguments.extend([Argument::from(size[0]), size[1].into()]);
    cuda.launch(&program, kernel, cuda.elementwise(prepared.len() / vector(channels)), &arguments)?;
    Ok(prepared)
}
