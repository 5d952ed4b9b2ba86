//! `--device`: from its name to a device, and what it is made of.

use std::sync::Once;

use engine::{Device, DeviceName};
use render::Quality;
use render::cuda::Renderer;
use train::config::PrecisionName;

use crate::{UsageError, terminal};

/// Whether it was said why the GPU is not used; several devices may be opened one after the other.
static SAID: Once = Once::new();

/// Opens the device called `name` (`auto`, `cpu`, `cuda`, `cuda:1`) with activations in `precision`. Why a GPU that is there
/// is not used is a warning.
pub fn open(name: &str, precision: PrecisionName) -> anyhow::Result<Device> {
    let (device, why_not) = parse(name)?.open(precision.of_engine())?;
    if let Some(why) = why_not {
        SAID.call_once(|| {
            terminal::say(format!(
                "warning: the GPU is not used: {} (equicaps devices has the details; with --device cpu nothing is said)",
                crate::sentence(&why.into())
            ));
        });
    }
    if matches!(device, Device::Cpu(_)) && precision == PrecisionName::Mixed {
        anyhow::bail!(UsageError("precision mixed needs a CUDA device; the CPU computes in f32".to_owned()));
    }
    Ok(device)
}

fn parse(name: &str) -> anyhow::Result<DeviceName> {
    Ok(name.parse().map_err(|unknown: engine::UnknownDevice| UsageError(unknown.to_string()))?)
}

/// A renderer on the device called `name`; none for `cpu`, which needs none.
pub fn renderer(name: &str, quality: Quality) -> anyhow::Result<Option<Renderer>> {
    let ordinal = match parse(name)? {
        DeviceName::Cpu => return Ok(None),
        DeviceName::Cuda(ordinal) => ordinal,
        // A renderer is only where it was asked for.
        DeviceName::Auto => {
            return Err(UsageError(format!(
                "there is no device {name:?} to render on: use cpu, cuda or cuda:N"
            ))
            .into());
        }
    };
    let context = gpu::Context::new(ordinal)?;
    Ok(Some(Renderer::new(&context, quality)?))
}
