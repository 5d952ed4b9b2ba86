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

/// As [`open`], for one of several processes: those of a machine take its GPUs in turn, unless `name` names one.
pub fn open_of(world: &ranks::World, name: &str, precision: PrecisionName) -> anyhow::Result<Device> {
    let is_auto = parse(name)? == DeviceName::Auto;
    if !world.is_shared() || !is_auto && name != "cuda" {
        return open(name, precision);
    }
    if is_auto && !matches!(engine::usable_gpu(), Ok(Some(_))) {
        return open(name, precision);
    }
    let count = gpu::devices().map_or(1, |all| all.len().max(1));
    open(&format!("cuda:{}", world.local_rank() % count), precision)
}

fn parse(name: &str) -> anyhow::Result<DeviceName> {
    Ok(name.parse().map_err(|unknown: engine::UnknownDevice| UsageError(unknown.to_string()))?)
}

/// As [`renderer`], for one of several processes: those of a machine take its GPUs in turn, unless `name` names one.
pub fn renderer_of(world: &ranks::World, name: &str, quality: Quality) -> anyhow::Result<Option<Renderer>> {
    if !world.is_shared() || name != "cuda" {
        return renderer(name, quality);
    }
    let count = gpu::devices().map_or(1, |all| all.len().max(1));
    renderer(&format!("cuda:{}", world.local_rank() % count), quality)
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
