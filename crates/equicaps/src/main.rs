//! `equicaps`: the command line. Parses arguments, runs one command, and turns its outcome into the contract that
//! all commands share:
//!
//! - with `--json` exactly one JSON object goes to standard output, everything else to standard error;
//! - exit status 0: done, 1: failed, 2: wrong usage, 75: interrupted, the same command goes on where it was.

mod commands;
mod contact_sheet;
mod device;
mod interrupt;
mod parquet;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;
use crate::terminal::Terminal;

/// Pose-aware pre-training with capsule networks: render views of 3D objects, train, evaluate.
#[derive(Debug, Parser)]
#[command(name = "equicaps", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: CommonOptions,
}

/// Options that every command takes.
#[derive(Clone, Debug, clap::Args)]
struct CommonOptions {
    /// Print exactly one JSON object on standard output; everything else goes to standard error
    #[arg(long, global = true, help_heading = "Common options")]
    json: bool,
    /// Print no progress and no notes
    #[arg(long, global = true, help_heading = "Common options")]
    quiet: bool,
    /// Number of CPU threads [default: all cores]
    #[arg(long, global = true, help_heading = "Common options", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// A mistake in how a command was called, found after parsing: ends the program with status 2.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Work that somebody interrupted and that the same command takes up again: ends the program with status 75.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("interrupted; run the same command again to go on")
    }
}

impl std::error::Error for Interrupted {}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let terminal = Terminal::new(arguments.common.json, arguments.common.quiet);
    match run(arguments, &terminal) {
        Ok(code) => code,
        Err(error) => {
            if error.is::<Interrupted>() {
                terminal::say(error.to_string());
                return ExitCode::from(interrupt::TRY_AGAIN);
            }
            terminal::say(format!("error: {}", sentence(&error)));
            if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::from(1) }
        }
    }
}

/// The error and its causes in one line; causes that the message already quotes are not repeated.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Libraries that reword a cause leave out the error number.
        let plain = cause.rfind(" (os error ").map_or(cause.as_str(), |end| &cause[..end]);
        if !text.to_lowercase().contains(&plain.to_lowercase()) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text
}

fn run(arguments: Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    if let Some(threads) = arguments.common.threads {
        rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global()?;
    }
    arguments.command.run(terminal)
}
