//! `equicaps check methods`: one step of every method in every variant, on a GPU against the CPU.

use std::collections::BTreeMap;
use std::fmt;

use methods::agreement::{Agreement, compare, published_cosine};
use serde::Serialize;
use train::config::PrecisionName;

use crate::commands::frame::{CheckedDevice, Compared, Comparison};
use crate::device::open;
use crate::outcome::Outcome;

/// Arguments of `equicaps check methods`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check methods --device cuda:0
  equicaps check methods --published")]
pub struct Arguments {
    #[command(flatten)]
    device: CheckedDevice,
    /// Compare 16 bits with f32 on the device instead: the direction of the gradient of EquiCaps' published networks
    #[arg(long, conflicts_with = "precision")]
    published: bool,
}

/// Runs `equicaps check methods`. Status 0: all agree, 1: some do not.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if arguments.published {
        return published(&arguments.device.device);
    }
    let device = arguments.device.open()?;
    Comparison::outcome(&device, Some(arguments.device.precision.name()), compare(&device)?)
}

impl Compared for Agreement {
    const WHAT: &'static str = "variants";
    const HEADINGS: &'static [&'static str] = &["variant", "loss", "gradient", "cosine"];

    fn cells(&self) -> Vec<String> {
        let Self { variant, loss_error, gradient_error, cosine, .. } = self;
        let numbers = [format!("{loss_error:.2e}"), format!("{gradient_error:.2e}"), format!("{cosine:.5}")];
        std::iter::once(variant.clone()).chain(numbers).collect()
    }
    fn is_right(&self) -> bool {
        self.right
    }
    fn repeats(&self) -> bool {
        self.repeats
    }
    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// The published networks: backbone, pairs, side.
const PUBLISHED: [(&str, usize, usize); 2] = [("resnet18", 64, 128), ("vit_tiny", 32, 256)];
/// Least cosine at which 16 bits keep the direction of the gradient.
const LEAST_COSINE: f64 = 0.97;

/// Cosines of the gradients in both precisions, by backbone.
#[derive(Serialize)]
struct Cosines {
    device: String,
    cosines: BTreeMap<&'static str, f64>,
}

impl fmt::Display for Cosines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |(name, pairs, side): &(&str, usize, usize)| {
            let cosine = self.cosines.get(name).copied().unwrap_or(f64::NAN);
            format!(
                "{name:<10} {pairs} pairs of {side}x{side}: cosine of mixed and f32 gradients {cosine:.5}"
            )
        };
        formatter.write_str(&PUBLISHED.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// The published networks in both precisions. Status 1 where 16 bits lose the direction.
fn published(device: &str) -> anyhow::Result<Outcome> {
    let devices = [open(device, PrecisionName::F32)?, open(device, PrecisionName::Mixed)?];
    let mut cosines = BTreeMap::new();
    for (name, pairs, side) in PUBLISHED {
        cosines.insert(name, published_cosine(name.parse()?, (pairs, side), devices.each_ref())?);
    }
    let kept = cosines.values().all(|cosine| *cosine >= LEAST_COSINE);
    Ok(Outcome::new(&Cosines { device: device.to_owned(), cosines })?
        .failed_if(!kept, "gradients in 16 bits point elsewhere than in 32"))
}
