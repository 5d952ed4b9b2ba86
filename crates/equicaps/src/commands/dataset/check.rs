//! `equicaps dataset check`.

use std::process::ExitCode;

use dataset::Views;
use serde_json::json;

use super::DatasetFolder;
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps dataset check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 all is well, 1 something is wrong.

Examples:
  equicaps dataset check views
  equicaps dataset check 3DIEBench --lists splits")]
pub struct Arguments {
    #[command(flatten)]
    dataset: DatasetFolder,
}

/// Problems shown as text; with `--json` all of them are in the object.
const SHOWN: usize = 50;

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let report = match arguments.dataset.open() {
        Ok(dataset) => {
            let progress = terminal.progress(dataset.objects().len() as u64, "objects");
            let report = dataset::check::check(&dataset, &|| progress.advance(1));
            progress.finish();
            report
        }
        // What cannot even be opened has one problem.
        Err(error) => dataset::check::Report { problems: vec![error.to_string()], ..Default::default() },
    };
    let folder = &arguments.dataset.folder;
    let mut lines: Vec<String> = report.problems.iter().take(SHOWN).cloned().collect();
    if report.problems.len() > SHOWN {
        lines.push(format!("... and {} more", report.problems.len() - SHOWN));
    }
    let verdict = match report.problems.len() {
        0 => "all is well".to_owned(),
        1 => "1 problem".to_owned(),
        problems => format!("{problems} problems"),
    };
    lines.push(format!(
        "{}: {} objects, {} images, {verdict}",
        folder.display(),
        report.objects,
        report.images
    ));
    terminal.result(
        lines.join("\n"),
        &json!({
            "folder": shown(folder),
            "objects": report.objects,
            "images": report.images,
            "problems": report.problems,
        }),
    );
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
