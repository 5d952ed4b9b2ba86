//! `equicaps completions` and `equicaps man`: what shells and `man` need to know, made from the command line itself.

use std::fmt;
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use serde::Serialize;

use crate::outcome::{Outcome, count};
use crate::terminal::shown;

/// Arguments of `equicaps completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps completions bash > ~/.local/share/bash-completion/completions/equicaps
  equicaps completions zsh > ~/.zfunc/_equicaps   # with fpath+=~/.zfunc before compinit in .zshrc
  equicaps completions fish > ~/.config/fish/completions/equicaps.fish")]
pub struct CompletionArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `equicaps man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps man | man -l -
  equicaps man --out ~/.local/share/man/man1")]
pub struct ManArguments {
    /// Write the pages of all commands into this folder: equicaps.1, equicaps-train.1, ...
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Text for another program.
#[derive(Serialize)]
struct Text {
    text: String,
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The end of the line is added when it is printed.
        formatter.write_str(self.text.trim_end())
    }
}

/// Pages that were written.
#[derive(Serialize)]
struct Pages {
    pages: Vec<String>,
    #[serde(skip)]
    folder: String,
}

impl fmt::Display for Pages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} in {}", count(self.pages.len(), "page"), self.folder)
    }
}

/// Runs `equicaps completions`.
pub fn completions(arguments: &CompletionArguments) -> anyhow::Result<Outcome> {
    let mut bytes = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "equicaps", &mut bytes);
    Outcome::new(&Text { text: String::from_utf8(bytes)? })
}

/// Runs `equicaps man`.
pub fn man(arguments: &ManArguments) -> anyhow::Result<Outcome> {
    // As for help, options that all commands take belong to each of them.
    let mut command = crate::Arguments::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &arguments.out else {
        return Outcome::new(&Text { text: page(command)? });
    };
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let mut pages = Vec::new();
    for (name, text) in pages_of(&command, "equicaps")? {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        pages.push(shown(&path));
    }
    Outcome::new(&Pages { pages, folder: shown(folder) })
}

fn page(command: clap::Command) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command).render(&mut bytes)?;
    Ok(String::from_utf8(bytes)?)
}

/// The pages of `command`, called `name`, and of everything below it.
fn pages_of(command: &clap::Command, name: &str) -> anyhow::Result<Vec<(String, String)>> {
    let mut pages = vec![(name.to_owned(), page(command.clone())?)];
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages.extend(pages_of(inner, &format!("{name}-{}", inner.get_name()))?);
    }
    Ok(pages)
}
