//! `equicaps bench`: how fast is it here? One file a subcommand.

use std::process::ExitCode;

use clap::Subcommand;

use crate::terminal::Terminal;

mod evaluate;
mod fresh;
mod growth;
mod loader;
mod render;
mod render_device;
mod soak;
mod step;
mod step_profile;
mod step_table;

/// Arguments of `equicaps bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench loader views
  equicaps bench step --device cuda:0")]
pub struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Measure how long probes and retrieval take on made-up features of a given size
    Evaluate(evaluate::Arguments),
    /// Measure what rendering views while training on them costs on a GPU
    Fresh(fresh::Arguments),
    /// Measure how many pictures of a dataset a second are read and decoded
    Loader(loader::Arguments),
    /// Measure how many views a second are rendered and encoded
    Render(render::Arguments),
    /// Train for a while on sets of different sizes and watch the memory
    Soak(soak::Arguments),
    /// Measure how many images a second a training step or inference takes
    Step(step::Arguments),
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    match &arguments.bench {
        Bench::Evaluate(arguments) => evaluate::run(arguments, terminal),
        Bench::Fresh(arguments) => fresh::run(arguments, terminal),
        Bench::Loader(arguments) => loader::run(arguments, terminal),
        Bench::Render(arguments) => render::run(arguments, terminal),
        Bench::Soak(arguments) => soak::run(arguments, terminal),
        Bench::Step(arguments) => step::run(arguments, terminal),
    }
}
