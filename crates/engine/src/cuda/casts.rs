//! Values in other types: weights as products take them, activations as gradients are.

use super::kernels::{Kernel, KernelFile, Program};
use super::{view, view_mut};
use crate::device::Device;
use crate::error::Result;
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// The weight in the type of activations, which is also that of gradients.
pub(crate) fn cast_weight(device: &Device, weight: &Tensor) -> Result<Tensor> {
    cast(device, weight, device.activation_dtype())
}

/// The weight for values of `dtype`.
pub(crate) fn weight_for(tape: &mut Tape<'_>, weight: &Tensor, dtype: DType) -> Result<Tensor> {
    match dtype {
        DType::F16 => tape.prepared(weight, "f16", |device, weight| cast(device, weight, DType::F16)),
        _ => tape.prepared(weight, "activation type", cast_weight),
    }
}

/// The value of `x` in the type of its gradient.
pub(crate) fn rounded(device: &Device, x: &Var) -> Result<Tensor> {
    if let Some(rounded) = x.rounded() {
        return Ok(rounded.clone());
    }
    let (Some(cuda), value) = (device.as_cuda(), x.value()) else { return Ok(x.value().clone()) };
    let mut rounded = Tensor::empty(device, value.shape(), value.dtype().of_gradient())?;
    let arguments = [view(value)?.into(), view_mut(&mut rounded)?.into(), (value.len() as i64).into()];
    let program = Program::new(KernelFile::Elementwise, value.dtype());
    cuda.launch(&program, Kernel::round_values, cuda.elementwise(value.len()), &arguments)?;
    Ok(rounded)
}

fn cast(device: &Device, weight: &Tensor, dtype: DType) -> Result<Tensor> {
    let (Some(cuda), true) = (device.as_cuda(), weight.dtype() != dtype) else { return Ok(weight.clone()) };
    let mut cast = Tensor::empty(device, weight.shape(), dtype)?;
    let arguments = [view(weight)?.into(), view_mut(&mut cast)?.into(), (weight.len() as i64).into()];
    cuda.launch(
        &Program::new(KernelFile::Elementwise, dtype),
        Kernel::from_f32,
        cuda.elementwise(weight.len()),
        &arguments,
    )?;
    Ok(cast)
}
