//! `equicaps demo`: the newcomer's first command.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::terminal::Terminal;

/// Arguments of `equicaps demo`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder for everything the demo makes
    #[arg(long, value_name = "DIR", default_value = "equicaps-demo")]
    out: PathBuf,
}

/// Runs the demo.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let out = arguments.out.display();
    terminal.result(format!("nothing to show in {out} yet"), &json!({ "out": arguments.out }));
    Ok(ExitCode::SUCCESS)
}
