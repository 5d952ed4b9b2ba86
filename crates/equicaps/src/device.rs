//! `--device`: from its name to a device, and what it is made of.

use std::sync::Once;

use engine::{Device, Precision};
use gpu::libraries::{self, Wanted};
use render::Quality;
use render::cuda::Renderer;
use train::config::PrecisionName;

use crate::{UsageError, terminal};

/// Whether it was said why the GPU is not used; several devices may be opened one after the other.
static SAID: Once = Once::new();

/// The name of whatever is best on this machine.
const AUTO: &str = "auto";

/// Opens the device called `name` (`auto`, `cpu`, `cuda`, `cuda:1`) with activations in `precision`.
pub fn open(name: &str, precision: PrecisionName) -> anyhow::Result<Device> {
    if name == AUTO {
        return open_best(precision);
    }
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

/// As [`open`], for one of several processes: those of a machine take its GPUs in turn, unless `name` names one.
pub fn open_of(world: &ranks::World, name: &str, precision: PrecisionName) -> anyhow::Result<Device> {
    if !world.is_shared() || ![AUTO, "cuda"].contains(&name) {
        return open(name, precision);
    }
    match best_gpu() {
        Ok(None) if name == AUTO => open("cpu", precision),
        Ok(_) => {
            let count = gpu::devices().map_or(1, |all| all.len().max(1));
            open(&format!("cuda:{}", world.local_rank() % count), precision)
        }
        Err(error) => Err(error),
    }
}

/// The first usable GPU, or the CPU; why a GPU that is there is not used is a warning.
fn open_best(precision: PrecisionName) -> anyhow::Result<Device> {
    let gpu = best_gpu().and_then(|found| match found {
        Some(ordinal) => open(&format!("cuda:{ordinal}"), precision).map(Some),
        None => Ok(None),
    });
    match gpu {
        Ok(Some(device)) => return Ok(device),
        Ok(None) => {}
        Err(error) => SAID.call_once(|| {
            terminal::say(format!(
                "warning: the GPU is not used: {} (equicaps devices has the details; with --device cpu nothing is said)",
                crate::sentence(&error)
            ));
        }),
    }
    open("cpu", precision)
}

/// The number of the first GPU of a kind that can be used; none where the machine has none. An error where it has one
/// but something is missing.
fn best_gpu() -> anyhow::Result<Option<usize>> {
    // A machine without a driver, or whose driver finds nothing, has no GPU that anybody would miss.
    let Ok(all) = gpu::devices() else { return Ok(None) };
    let Some(first) = all.first() else { return Ok(None) };
    let Some(usable) = all.iter().find(|device| device.refusal().is_none()) else {
        return Err(first.refusal().map_or_else(|| anyhow::anyhow!("it is too old"), Into::into));
    };
    for wanted in Wanted::ALL {
        libraries::load(wanted)?;
    }
    Ok(Some(usable.index))
}

/// The number of the CUDA device called `name`.
fn ordinal(name: &str) -> anyhow::Result<usize> {
    let number = match name.strip_prefix("cuda") {
        Some("") => Some(0),
        Some(rest) => rest.strip_prefix(':').and_then(|number| number.parse().ok()),
        None => None,
    };
    Ok(number
        .ok_or_else(|| UsageError(format!("there is no device {name:?}: use auto, cpu, cuda or cuda:N")))?)
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
    if name == "cpu" {
        return Ok(None);
    }
    let context = gpu::Context::new(ordinal(name)?)?;
    Ok(Some(Renderer::new(&context, quality)?))
}
