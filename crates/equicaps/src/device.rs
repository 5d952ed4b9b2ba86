//! `--device`: from its name to a device, and what it is made of.

use engine::{Device, Precision};
use render::Quality;
use render::cuda::Renderer;
use train::config::PrecisionName;

use crate::UsageError;

/// Opens the device called `name` (`cpu`, `cuda`, `cuda:1`) with activations in `precision`.
pub fn open(name: &str, precision: PrecisionName) -> anyhow::Result<Device> {
    if name == "cpu" {
        if precision == PrecisionName::Mixed {
            anyhow::bail!(UsageError(
                "precision mixed needs a CUDA device; the CPU computes in f32".to_owned()
            ));
        }
        return Ok(Device::cpu());
    }
    let ordinal = ordinal(name)?;
    Ok(Device::cuda(ordinal, precision.of_engine().unwrap_or(Precision::Mixed))?)
}

/// The number of the CUDA device called `name`.
fn ordinal(name: &str) -> anyhow::Result<usize> {
    let number = match name.strip_prefix("cuda") {
        Some("") => Some(0),
        Some(rest) => rest.strip_prefix(':').and_then(|number| number.parse().ok()),
        None => None,
    };
    Ok(number.ok_or_else(|| UsageError(format!("there is no device {name:?}: use cpu, cuda or cuda:N")))?)
}

/// A renderer on the device called `name`; none for `cpu`, which needs none.
pub fn renderer(name: &str, quality: Quality) -> anyhow::Result<Option<Renderer>> {
    if name == "cpu" {
        return Ok(None);
    }
    let context = gpu::Context::new(ordinal(name)?)?;
    Ok(Some(Renderer::new(&context, quality)?))
}
