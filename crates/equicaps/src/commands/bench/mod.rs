//! `equicaps bench`: measures the speed on this machine. One file a subcommand, in the frame of [`super::frame`].

use clap::Subcommand;

use crate::outcome::Outcome;
use crate::terminal::Terminal;

mod evaluate;
mod exchange;
mod explore;
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
    /// Measure the time of probes and retrieval on random features of a given size
    Evaluate(evaluate::Arguments),
    /// Measure what ranks that share a batch exchange in a step, and what of it hides behind backward
    Exchange(exchange::Arguments),
    /// Measure how fast the explorer's page gets its pictures while an object is turned
    Explore(explore::Arguments),
    /// Measure the cost of rendering views during training on a GPU
    Fresh(fresh::Arguments),
    /// Measure how many images of a dataset are read and decoded per second
    Loader(loader::Arguments),
    /// Measure how many views are rendered and encoded per second
    Render(render::Arguments),
    /// Train for a while on datasets of different sizes and record the memory use
    Soak(soak::Arguments),
    /// Measure the images per second of a training step or of inference
    Step(step::Arguments),
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    match &arguments.bench {
        Bench::Evaluate(arguments) => evaluate::run(arguments, terminal),
        Bench::Exchange(arguments) => exchange::run(arguments),
        Bench::Explore(arguments) => explore::run(arguments, terminal),
        Bench::Fresh(arguments) => fresh::run(arguments, terminal),
        Bench::Loader(arguments) => loader::run(arguments, terminal),
        Bench::Render(arguments) => render::run(arguments, terminal),
        Bench::Soak(arguments) => soak::run(arguments, terminal),
        Bench::Step(arguments) => step::run(arguments),
    }
}
