//! The first layer: a convolution that reads images, normalises pixels on the way, and has no gradient for them.
//!
//! y[n, oh, ow, o] = b[o] + sum over kh, kw, c of v[n, oh s + kh - top, ow s + kw - left, c] W[o, kh, kw, c], where
//! v = pixel * scale[c] + shift[c] inside the image and 0 in the padding.
//!
//! Shapes: images (n, height, width, 3), W (out, kernel height, kernel width, 3), b (out), y (n, oh, ow, out).

mod cpu;
pub(crate) mod cuda;

use super::operation::{Cpu, Fixed, Operation, To};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::conv2d::cpu::pack_forward;
use crate::ops::conv2d::{Geometry, Padding};
use crate::pool::CpuPool;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// A batch of images (n, height, width, channels) as they come in: bytes, or floats already normalised.
#[derive(Clone, Debug)]
pub struct Images {
    /// u8 or f32.
    pub pixels: Tensor,
    /// Normalised value = pixel * scale + shift, by channel.
    pub scale: [f32; 3],
    /// See `scale`.
    pub shift: [f32; 3],
}

impl Images {
    /// Bytes (n, height, width, 3), to be scaled to 0..1 and normalised by `mean` and `std`.
    pub fn from_bytes(
        device: &Device,
        dims: [usize; 3],
        bytes: &[u8],
        mean: [f32; 3],
        std: [f32; 3],
    ) -> Result<Self> {
        let [batch, height, width] = dims;
        Ok(Self::from_pixels(Tensor::from_slice(device, [batch, height, width, 3], bytes)?, mean, std))
    }

    /// As [`Self::from_bytes`], for bytes (n, height, width, 3) that are on the device already.
    pub fn from_pixels(pixels: Tensor, mean: [f32; 3], std: [f32; 3]) -> Self {
        Self {
            pixels,
            scale: std.map(|std| 1.0 / (255.0 * std)),
            shift: std::array::from_fn(|c| -mean[c] / std[c]),
        }
    }

    /// Normalised floats in the order (n, 3, height, width).
    pub fn from_planes(device: &Device, dims: [usize; 3], planes: &[f32]) -> Result<Self> {
        let [batch, height, width] = dims;
        let pixels = height * width;
        if planes.len() != batch * 3 * pixels {
            let detail = format!("{} values for [{batch}, 3, {height}, {width}]", planes.len());
            return Err(Error::shape("images", detail));
        }
        let mut values = Vec::with_capacity(planes.len());
        for image in planes.chunks_exact((3 * pixels).max(1)) {
            for p in 0..pixels {
                values.extend([image[p], image[pixels + p], image[2 * pixels + p]]);
            }
        }
        let pixels = Tensor::from_slice(device, [batch, height, width, 3], &values)?;
        Ok(Self { pixels, scale: [1.0; 3], shift: [0.0; 3] })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.pixels.dims()[0]
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Height and width.
    pub fn size(&self) -> (usize, usize) {
        (self.pixels.dims()[1], self.pixels.dims()[2])
    }
}

/// Convolves images with `weight` (out, kh, kw, 3).
pub fn image_conv(
    tape: &mut Tape<'_>,
    images: &Images,
    weight: &Var,
    bias: Option<&Var>,
    stride: usize,
    padding: Padding,
) -> Result<Var> {
    let dtype = tape.device().activation_dtype();
    image_conv_in(tape, images, weight, bias, (stride, padding), dtype)
}

/// As [`image_conv`], with y in a type of one's own.
pub(crate) fn image_conv_in(
    tape: &mut Tape<'_>,
    images: &Images,
    weight: &Var,
    bias: Option<&Var>,
    (stride, padding): (usize, Padding),
    dtype: DType,
) -> Result<Var> {
    let geometry = Geometry::new("image_conv", images.pixels.shape(), weight.shape(), stride, padding)?;
    if !matches!(images.pixels.dtype(), DType::U8 | DType::F32) || geometry.input[2] != 3 {
        let detail = format!("pixels {} of {}", images.pixels.shape(), images.pixels.dtype().name());
        return Err(Error::shape("image_conv", detail));
    }
    if let Some(bias) = bias.filter(|bias| bias.shape().dims() != [geometry.output[2]]) {
        let detail = format!("bias {} for weight {}", bias.shape(), weight.shape());
        return Err(Error::shape("image_conv", detail));
    }
    let op = ImageConv { geometry, images: images.clone() };
    tape.apply("image_conv", op, [weight, bias.unwrap_or(&Var::absent())], (geometry.output_shape(), dtype))
}

struct ImageConv {
    geometry: Geometry,
    images: Images,
}

impl Operation<CpuPool, Fixed<2>> for ImageConv {
    type Saved = ();

    fn forward(&self, cpu: &mut Cpu, [weight, bias]: [&Var; 2], y: &mut Tensor) -> Result<()> {
        let packed = cpu.tape.prepared(weight.value(), "conv2d forward", pack_forward)?;
        let bias = bias.present().map(Tensor::as_slice).transpose()?;
        cpu::forward(&self.geometry, &self.images, packed.as_slice()?, bias, y.as_mut_slice()?)
    }

    fn backward(&self, _: &mut Cpu, (): &(), dy: Tensor, [dw, db]: To<2>) -> Result<()> {
        let dy = dy.as_slice()?;
        if let Some(Target { tensor, accumulate, .. }) = dw {
            cpu::weight_gradient(&self.geometry, &self.images, dy, tensor.as_mut_slice()?, *accumulate)?;
        }
        match db {
            Some(db) => super::column_sum_gradient(dy, db),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::conv2d::tests::reference;
    use crate::ops::testing::{Case, check};
    use crate::shape::Shape;

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (batch, height, width, out, kernel, stride, padding) in [
            (3, 9, 12, 5, 7, 2, Padding::before_after(2, 3)),
            (5, 8, 35, 33, 7, 2, Padding::before_after(2, 3)),
            (2, 8, 12, 6, 4, 4, Padding::default()),
        ] {
            let (x, w) = ([batch, height, width, 3], [out, kernel, kernel, 3]);
            let geometry = Geometry::new("test", Shape::from(x), Shape::from(w), stride, padding).unwrap();
            let bytes: Vec<u8> = (0..batch * height * width * 3).map(|i| (i * 37 % 251) as u8).collect();
            let (mean, std) = ([0.5, 0.4, 0.6], [0.1, 0.2, 0.3]);
            let normalised: Vec<f64> = bytes
                .iter()
                .enumerate()
                .map(|(i, &b)| (f64::from(b) / 255.0 - f64::from(mean[i % 3])) / f64::from(std[i % 3]))
                .collect();
            check(
                &Case::new(&[&w, &[out]]),
                |tape, inputs| {
                    let images =
                        Images::from_bytes(&tape.device(), [batch, height, width], &bytes, mean, std)?;
                    image_conv(tape, &images, &inputs[0], Some(&inputs[1]), stride, padding)
                },
                |inputs| {
                    let mut y = reference(&geometry, &normalised, &inputs[0]);
                    y.iter_mut().enumerate().for_each(|(i, y)| *y += inputs[1][i % out]);
                    y
                },
            );
        }
    }
}
