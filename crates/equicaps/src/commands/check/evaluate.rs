//! `equicaps check evaluate`: probes and retrieval on a GPU against the CPU.

use evaluate::agreement::{Agreement, compare};
use train::config::PrecisionName;

use crate::commands::frame::{Compared, Comparison};
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps check evaluate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check evaluate --device cuda:0")]
pub struct Arguments {
    /// The device to check: cpu, cuda:0, ...
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    device: String,
}

/// Runs the check.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let device = crate::device::open(&arguments.device, PrecisionName::F32)?;
    let agreements = compare(&device, |agreement| terminal.note(&agreement.what))?;
    Comparison::outcome(&device, None, agreements)
}

impl Compared for Agreement {
    const WHAT: &'static str = "values";
    const HEADINGS: &'static [&'static str] = &["value", "cpu", "device", "bound"];

    fn cells(&self) -> Vec<String> {
        let Self { what, cpu, device, bound, .. } = self;
        vec![what.clone(), format!("{cpu:.6}"), format!("{device:.6}"), format!("{bound:.0e}")]
    }
    fn is_right(&self) -> bool {
        Self::is_right(self)
    }
    fn repeats(&self) -> bool {
        self.repeats
    }
    fn failure(&self) -> Option<&str> {
        None
    }
}
