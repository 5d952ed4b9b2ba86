//! One file a command. A command takes its parsed arguments and a [`Terminal`], does its work through the library
//! crates, and returns an [`Outcome`].

use clap::Subcommand;

use crate::outcome::Outcome;
use crate::terminal::Terminal;

mod bench;
mod check;
mod completions;
mod dataset;
mod demo;
mod devices;
mod embed;
mod evaluate;
mod explore;
mod export;
mod frame;
mod import;
mod left_out;
mod meshes;
mod methods;
mod neighbours;
mod network;
mod render;
mod report;
mod runs;
mod steer;
mod study;
mod train;
mod training_progress;

/// What `equicaps` can do, in the order in which people come to it.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a small version of the whole study in a few minutes: the first command to try
    Demo(demo::Arguments),
    /// Render views of 3D objects: a dataset from meshes or from the built-in library
    Render(Box<render::Arguments>),
    /// Inspect, verify and complete a dataset of views
    Dataset(dataset::Arguments),
    /// Pre-train a network on pairs of views, or resume an interrupted run
    Train(Box<train::Arguments>),
    /// Inspect runs: list, show, compare, plot
    Runs(runs::Arguments),
    /// Evaluate a frozen encoder: probes and retrieval, by the published protocols
    Evaluate(Box<evaluate::Arguments>),
    /// Write an HTML report of some runs: tables beside the paper's, images, curves
    Report(report::Arguments),
    /// Make all runs of a study: render, train, evaluate, report; interruptible, over several GPUs
    Study(study::Arguments),
    /// Open a page in the browser: turn objects, steer poses, see all views as a map, curves, errors
    Explore(explore::Arguments),
    /// Compute features of images with a trained network
    Embed(embed::Arguments),
    /// Find the images nearest to a query by the features of a trained network
    Neighbours(neighbours::Arguments),
    /// Transform a pose embedding by a known rotation and list the nearest images
    Steer(steer::Arguments),
    /// Write a trained network for other programs: ONNX, PyTorch, safetensors, Hugging Face
    Export(export::Arguments),
    /// Convert weights of the published code (.pth) to a checkpoint
    Import(import::Arguments),
    /// List the training methods, or show one with its preset and layers
    Methods(methods::Arguments),
    /// List the CPU and the GPUs, and what is missing to use them
    Devices(devices::Arguments),
    /// Verify what this program computes against references
    Check(check::Arguments),
    /// Measure the speed on this machine
    Bench(bench::Arguments),
    /// Print completions for a shell
    Completions(completions::CompletionArguments),
    /// Print the manual page, or write those of all commands
    Man(completions::ManArguments),
}

impl Command {
    /// Runs the command.
    pub fn run(self, terminal: &Terminal) -> anyhow::Result<Outcome> {
        match self {
            Self::Demo(arguments) => demo::run(&arguments, terminal),
            Self::Render(arguments) => render::run(&arguments, terminal),
            Self::Dataset(arguments) => dataset::run(&arguments, terminal),
            Self::Train(arguments) => train::run(&arguments, terminal),
            Self::Runs(arguments) => runs::run(&arguments, terminal),
            Self::Evaluate(arguments) => evaluate::run(&arguments, terminal),
            Self::Report(arguments) => report::run(&arguments, terminal),
            Self::Study(arguments) => study::run(&arguments, terminal),
            Self::Explore(arguments) => explore::run(&arguments, terminal),
            Self::Embed(arguments) => embed::run(&arguments, terminal),
            Self::Neighbours(arguments) => neighbours::run(&arguments, terminal),
            Self::Steer(arguments) => steer::run(&arguments, terminal),
            Self::Export(arguments) => export::run(&arguments, terminal),
            Self::Import(arguments) => import::run(&arguments, terminal),
            Self::Methods(arguments) => methods::run(&arguments),
            Self::Devices(_) => devices::run(),
            Self::Check(arguments) => check::run(&arguments, terminal),
            Self::Bench(arguments) => bench::run(&arguments, terminal),
            Self::Completions(arguments) => completions::completions(&arguments),
            Self::Man(arguments) => completions::man(&arguments),
        }
    }
}
