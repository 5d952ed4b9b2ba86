//! One file a command. A command takes its parsed arguments and a [`Terminal`], does its work through the library
//! crates, and returns its exit status.

use std::process::ExitCode;

use clap::Subcommand;

use crate::terminal::Terminal;

mod bench;
mod check;
mod dataset;
mod demo;
mod devices;
mod embed;
mod evaluate;
mod images;
mod import;
mod methods;
mod neighbours;
mod picture_file;
mod pose_sweep;
mod render;
mod report;
mod runs;
mod steer;
mod subject;
mod train;
mod training_progress;

/// What `equicaps` can do, in the order in which people come to it.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what this is in a few minutes: the first command to try
    Demo(demo::Arguments),
    /// Render views of 3D objects: a dataset from meshes or from the built-in library
    Render(Box<render::Arguments>),
    /// Look at a dataset of views, check it, finish it
    Dataset(dataset::Arguments),
    /// Pre-train a network on pairs of views, or continue where a run was interrupted
    Train(Box<train::Arguments>),
    /// Tell about runs: list, show, compare, draw their curves
    Runs(runs::Arguments),
    /// Measure what frozen weights are worth: probes and retrieval, by the published protocols
    Evaluate(Box<evaluate::Arguments>),
    /// Put everything about some runs on one page: tables beside the paper's, pictures, curves
    Report(report::Arguments),
    /// Compute features of pictures with a trained network
    Embed(embed::Arguments),
    /// Find the pictures that look alike to a trained network
    Neighbours(neighbours::Arguments),
    /// Move a pose embedding by a known rotation and see which pictures it lands on
    Steer(steer::Arguments),
    /// Take weights of the published code (.pth) as a checkpoint
    Import(import::Arguments),
    /// List the training methods, or show one with its preset and layers
    Methods(methods::Arguments),
    /// List the processors and GPUs that can be used, and what is missing where one cannot
    Devices(devices::Arguments),
    /// Check what this program computes against references
    Check(check::Arguments),
    /// Measure how fast this program is on this machine
    Bench(bench::Arguments),
}

impl Command {
    /// Runs the command.
    pub fn run(self, terminal: &Terminal) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(arguments) => demo::run(&arguments, terminal),
            Self::Render(arguments) => render::run(&arguments, terminal),
            Self::Dataset(arguments) => dataset::run(&arguments, terminal),
            Self::Train(arguments) => train::run(&arguments, terminal),
            Self::Runs(arguments) => runs::run(&arguments, terminal),
            Self::Evaluate(arguments) => evaluate::run(&arguments, terminal),
            Self::Report(arguments) => report::run(&arguments, terminal),
            Self::Embed(arguments) => embed::run(&arguments, terminal),
            Self::Neighbours(arguments) => neighbours::run(&arguments, terminal),
            Self::Steer(arguments) => steer::run(&arguments, terminal),
            Self::Import(arguments) => import::run(&arguments, terminal),
            Self::Methods(arguments) => methods::run(&arguments, terminal),
            Self::Devices(arguments) => devices::run(&arguments, terminal),
            Self::Check(arguments) => check::run(&arguments, terminal),
            Self::Bench(arguments) => bench::run(&arguments, terminal),
        }
    }
}
