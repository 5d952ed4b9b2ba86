//! `equicaps check`: verifies what this program computes. One file a subcommand, in the frame of [`super::frame`].

use clap::Subcommand;

use crate::outcome::Outcome;
use crate::terminal::Terminal;

mod evaluate;
mod faults;
mod methods;
mod ops;
mod parity;
mod ranks;
mod renders;
mod resume;
mod warps;

/// Arguments of `equicaps check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check resume
  equicaps check parity --fixture step.safetensors --inputs inputs.safetensors")]
pub struct Arguments {
    #[command(subcommand)]
    check: Check,
}

#[derive(Debug, Subcommand)]
enum Check {
    /// Compare probes and retrieval on a GPU with the CPU
    Evaluate(evaluate::Arguments),
    /// Damage, kill and starve a small dataset, run and evaluation, and count what came of it
    Faults(faults::Arguments),
    /// Compare a step of every method in every variant on a GPU with the CPU
    Methods(methods::Arguments),
    /// Compare every operation of the engine on a GPU with the CPU
    Ops(ops::Arguments),
    /// Compare losses, gradients and updates with those of the published code
    Parity(parity::Arguments),
    /// Compare training on several ranks (processes, GPUs, machines) with training on one
    Ranks(ranks::Arguments),
    /// Compare rendered views with reference images of the same scenes
    Renders(renders::Arguments),
    /// Kill and resume a small run repeatedly, and compare it with an uninterrupted one
    Resume(resume::Arguments),
    /// Compare warped photographs on a GPU with the CPU
    Warps(warps::Arguments),
}

/// Runs the check.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    match &arguments.check {
        Check::Evaluate(arguments) => evaluate::run(arguments, terminal),
        Check::Faults(arguments) => faults::run(arguments, terminal),
        Check::Methods(arguments) => methods::run(arguments),
        Check::Ops(arguments) => ops::run(arguments),
        Check::Parity(arguments) => parity::run(arguments),
        Check::Ranks(arguments) => ranks::run(arguments, terminal),
        Check::Renders(arguments) => renders::run(arguments, terminal),
        Check::Resume(arguments) => resume::run(arguments, terminal),
        Check::Warps(arguments) => warps::run(arguments),
    }
}
