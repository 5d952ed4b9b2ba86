//! `equicaps`: the command line. Parses arguments, runs one command, and turns its outcome into the contract that
//! all commands share:
//!
//! - with `--json` exactly one JSON object goes to standard output, everything else to standard error; a failure is an
//!   object too: `{"error": SENTENCE, "status": STATUS}`, or the result with `error` added;
//! - exit status 0: done, 1: failed, 2: wrong usage, 75: interrupted; progress is saved, rerun to resume; 130: ended at once
//!   by a second interruption.

mod commands;
mod device;
mod hints;
mod interrupt;
mod itself;
mod out;
mod outcome;
mod terminal;
mod world;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Pose-aware pre-training with capsule networks: render views of 3D objects, train, evaluate.
#[derive(Debug, Parser)]
#[command(
    name = "equicaps",
    version,
    propagate_version = true,
    after_help = "Start with `equicaps demo`, or with your own meshes (objects/CLASS/OBJECT.obj, .glb, .stl ...):
  equicaps train --data objects --preset own --run runs/first
  equicaps evaluate runs/first
  equicaps report runs/first --out report.html
  equicaps embed runs/first photos --out features.npy
  equicaps explore runs/first

`equicaps COMMAND --help` has more. Exit status: 0 done, 1 failed, 2 wrong usage, 75 interrupted
(progress is saved; the same command, or train --resume RUN, goes on)."
)]
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

/// A mistake in how a command was called, found after parsing: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Interrupted work that the same command resumes: exit status 75.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; progress is saved; rerun to resume")]
pub struct Interrupted;

fn main() -> ExitCode {
    dataset::descriptors::prepare();
    let words: Vec<OsString> = std::env::args_os().collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(error, &words),
    };
    let terminal = Terminal::new(arguments.common.json, arguments.common.quiet);
    match run(arguments, &terminal).map(|outcome| outcome.print(&terminal)) {
        Ok(code) => {
            world::part();
            code
        }
        Err(error) => {
            world::note_error(&error);
            let text = sentence(&error);
            let (status, line) = if error.is::<Interrupted>() {
                (interrupt::TRY_AGAIN, text.clone())
            } else {
                (if error.is::<UsageError>() { 2 } else { 1 }, format!("error: {text}"))
            };
            terminal::say(line);
            terminal.failure(&text, status);
            world::fail(&error);
            ExitCode::from(status)
        }
    }
}

/// Says what is wrong with a command line, or shows the help that it asked for.
fn refuse(mut error: clap::Error, words: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    hints::add(&mut error, words);
    let _ = error.print();
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    let json = words.iter().any(|word| word == "--json");
    Terminal::new(json, false).failure(first.strip_prefix("error: ").unwrap_or(first), 2);
    ExitCode::from(2)
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
    dataset::printable(&text).into_owned()
}

fn run(arguments: Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    if let Some(threads) = arguments.common.threads.map(usize::from).or_else(world::threads) {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    arguments.command.run(terminal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The examples in the help of `command` and of everything below it; `path` is how it is called.
    fn examples(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        if command.get_name() == "help" {
            return;
        }
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().map(|line| line.trim().to_owned());
        let own: Vec<String> = lines.filter(|line| line.starts_with(path)).collect();
        assert!(path == "equicaps" || !own.is_empty(), "the help of `{path}` has no example of it");
        found.extend(own);
        for inner in command.get_subcommands() {
            examples(inner, &format!("{path} {}", inner.get_name()), found);
        }
    }

    /// Whether the command line takes `line`.
    fn parse(line: &str) {
        // What follows is the shell's.
        let ends = [" #", " > ", " | "].iter().filter_map(|end| line.find(end)).min();
        let words = line[..ends.unwrap_or(line.len())].split_whitespace();
        if let Err(error) = Arguments::try_parse_from(words) {
            panic!("`{line}`: {error}");
        }
    }

    #[test]
    fn every_command_has_examples_that_it_takes() {
        let mut found = Vec::new();
        examples(&Arguments::command(), "equicaps", &mut found);
        assert!(found.len() > 40, "{found:?}");
        for line in &found {
            parse(line);
            // Longer ones would be broken in two, and could not be copied.
            assert!(line.chars().count() <= 96, "too long for the help: `{line}`");
        }
    }

    #[test]
    fn commands_in_the_documents_are_taken() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut paths = vec![root.join("README.md")];
        paths.extend(std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
        let mut count = 0;
        for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
            let text = std::fs::read_to_string(path).unwrap().replace("\\\n", " ");
            for line in text.lines().map(str::trim).filter(|line| line.starts_with("equicaps ")) {
                parse(line);
                count += 1;
            }
        }
        assert!(count > 10, "the documents show {count} commands");
    }
}
