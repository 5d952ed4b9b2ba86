//! `equicaps check ops`: every operation of the engine, forward and backward, on a GPU against the CPU.

use engine::agreement::{Agreement, compare};

use crate::commands::frame::{CheckedDevice, Compared, Comparison};
use crate::outcome::Outcome;

/// Arguments of `equicaps check ops`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check ops
  equicaps check ops --device cuda:1 --precision mixed")]
pub struct Arguments {
    #[command(flatten)]
    device: CheckedDevice,
}

/// Runs `equicaps check ops`.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let device = arguments.device.open()?;
    Comparison::outcome(&device, None, compare(&device))
}

impl Compared for Agreement {
    const WHAT: &'static str = "tensors";
    const HEADINGS: &'static [&'static str] = &["operation", "tensor", "error", "bound"];

    fn cells(&self) -> Vec<String> {
        let numbers = [format!("{:.2e}", self.error), format!("{:.0e}", self.bound)];
        [self.operation.clone(), self.tensor.clone()].into_iter().chain(numbers).collect()
    }
    fn is_right(&self) -> bool {
        Self::is_right(self)
    }
    fn repeats(&self) -> bool {
        self.repeats
    }
    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
