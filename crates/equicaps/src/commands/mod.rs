//! One file a command. A command takes its parsed arguments and a [`Terminal`], does its work through the library
//! crates, and returns its exit status.

use std::process::ExitCode;

use clap::Subcommand;

use crate::terminal::Terminal;

mod demo;
mod devices;

/// What `equicaps` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what this is in a few minutes: the first command to try
    Demo(demo::Arguments),
    /// List the processors and GPUs that can be used, and what is missing where one cannot
    Devices(devices::Arguments),
}

impl Command {
    /// Runs the command.
    pub fn run(self, terminal: &Terminal) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(arguments) => demo::run(&arguments, terminal),
            Self::Devices(arguments) => devices::run(&arguments, terminal),
        }
    }
}
