//! `equicaps runs`: tells about runs without opening files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use train::environment::Ended;
use train::metrics::Kind;
use train::summary::{State, Summary};
use train::{Config, RunFolder};

use crate::terminal::{Terminal, shown};

mod compare;
mod plot;

/// Arguments of `equicaps runs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps runs list runs
  equicaps runs show runs/first
  equicaps runs compare runs/equicaps runs/vicreg
  equicaps runs plot runs/equicaps runs/vicreg --out curves")]
pub struct Arguments {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RunsCommand {
    /// List the runs in a folder: how far, how good
    #[command(after_help = "Examples:
  equicaps runs list runs
  equicaps runs list --json")]
    List {
        /// Folder with runs in it
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Show one run: settings, sessions, checkpoints, last numbers
    #[command(after_help = "Examples:
  equicaps runs show runs/first")]
    Show {
        /// The run's folder
        run: PathBuf,
    },
    /// Show several runs side by side: settings that differ, last numbers
    #[command(after_help = "Examples:
  equicaps runs compare runs/equicaps runs/vicreg")]
    Compare {
        /// The runs' folders
        #[arg(required = true, num_args = 2..)]
        runs: Vec<PathBuf>,
    },
    /// Draw curves of one or more runs as PNG and SVG
    Plot(plot::Arguments),
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        RunsCommand::List { folder } => list(folder, terminal)?,
        RunsCommand::Show { run } => show(run, terminal)?,
        RunsCommand::Compare { runs } => compare::run(&summaries(runs)?, terminal),
        RunsCommand::Plot(arguments) => plot::run(arguments, terminal)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs, each by a name of its own: folders of the same name by their whole path.
fn summaries(runs: &[PathBuf]) -> anyhow::Result<Vec<Summary>> {
    let mut found = Vec::new();
    for run in runs {
        found.push(Summary::of(&RunFolder::open(run)?)?);
    }
    let names: Vec<String> = found.iter().map(|run| run.name.clone()).collect();
    for run in &mut found {
        if names.iter().filter(|name| **name == run.name).count() > 1 {
            run.name = run.root.display().to_string();
        }
    }
    Ok(found)
}

/// The numbers shown of every run: a heading, the kind of line, its name, and decimals.
const COLUMNS: [(&str, Kind, &str, usize); 4] = [
    ("loss", Kind::Epoch, "loss", 4),
    ("class", Kind::HeldOut, "probe/class_accuracy/representation", 3),
    ("rotation R2", Kind::HeldOut, "probe/rotation_r2/representation", 3),
    ("translation R2", Kind::HeldOut, "probe/translation_r2/representation", 3),
];

fn list(folder: &Path, terminal: &Terminal) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for run in RunFolder::find(folder)? {
        match Summary::of(&run) {
            Ok(summary) => found.push(summary),
            Err(error) => terminal.warn(error.to_string()),
        }
    }
    let mut columns = vec![report::Column::new("run"), report::Column::new("method")];
    columns.extend(["state", "epoch", "step"].map(report::Column::new));
    columns.extend(COLUMNS.iter().map(|(heading, ..)| report::Column::new(*heading)));
    let rows = found.iter().map(|summary| {
        let reached = summary.reached;
        let mut cells: Vec<report::Cell> = vec![
            summary.name.clone().into(),
            summary.config.method.name.name().into(),
            summary.state.name().into(),
            format!("{}/{}", reached.epoch, summary.config.epochs).into(),
            reached.step.to_string().into(),
        ];
        cells.extend(
            COLUMNS
                .iter()
                .map(|(_, kind, name, decimals)| report::Cell::number(summary.last(*kind, name), *decimals)),
        );
        cells
    });
    let text = if found.is_empty() {
        format!("no runs in {}", folder.display())
    } else {
        text_table(columns, rows.collect())
    };
    let runs: Vec<Value> = found.iter().map(to_json).collect();
    terminal.result(text, &json!({ "runs": runs }));
    Ok(())
}

/// A plain table.
fn text_table(columns: Vec<report::Column>, rows: Vec<Vec<report::Cell>>) -> String {
    report::Table { columns, rows, ..report::Table::default() }.to_text().trim_end().to_owned()
}

fn to_json(summary: &Summary) -> Value {
    let last = |kind| -> Value {
        summary
            .names(kind)
            .into_iter()
            .filter_map(|name| Some((name.clone(), summary.last(kind, &name)?)))
            .collect()
    };
    json!({
        "run": shown(&summary.root),
        "method": summary.config.method.name,
        "state": summary.state,
        "epoch": summary.reached.epoch,
        "epochs": summary.config.epochs,
        "step": summary.reached.step,
        "checkpoints": summary.checkpoints.iter().map(shown).collect::<Vec<_>>(),
        "epoch_means": last(Kind::Epoch),
        "held_out": last(Kind::HeldOut),
    })
}

fn show(run: &Path, terminal: &Terminal) -> anyhow::Result<()> {
    let summary = Summary::of(&RunFolder::open(run)?)?;
    let (config, method) = (&summary.config, &summary.config.method);
    let mut lines = vec![
        format!("run          {} ({})", summary.root.display(), summary.state.name()),
        format!(
            "method       {} on {}, {} x {} pixels",
            method.name, method.backbone, method.image_size, method.image_size
        ),
        format!("transform    {}", method.transform),
        format!("data         {}", config.data),
        format!(
            "progress     epoch {} of {}, step {}",
            summary.reached.epoch, config.epochs, summary.reached.step
        ),
    ];
    for session in &summary.sessions {
        let ended = match &session.ended {
            None => String::new(),
            Some(Ended::Finished) => ", finished".to_owned(),
            Some(Ended::Interrupted) => ", interrupted".to_owned(),
            Some(Ended::Failed(what)) => format!(", failed: {what}"),
        };
        lines.push(format!(
            "session      from step {} on {}, version {}{ended}",
            session.from_step, session.device, session.version
        ));
    }
    for path in &summary.checkpoints {
        lines.push(format!("checkpoint   {}", path.display()));
    }
    for (title, kind) in [("last epoch", Kind::Epoch), ("held-out", Kind::HeldOut)] {
        for name in summary.names(kind) {
            if let Some(value) = summary.last(kind, &name) {
                lines.push(format!("{title:<12} {name} = {value:.5}"));
            }
        }
    }
    if matches!(summary.state, State::Stopped | State::Failed) {
        lines.push(format!("continue it  equicaps train --resume {}", dataset::shell_word(&summary.root)));
    }
    let mut value = to_json(&summary);
    if let Value::Object(map) = &mut value {
        map.insert("config".to_owned(), serde_json::to_value(config)?);
        map.insert("sessions".to_owned(), serde_json::to_value(&summary.sessions)?);
    }
    terminal.result(lines.join("\n"), &value);
    Ok(())
}

/// The settings of `config` as (dotted key, text).
fn flat_settings(config: &Config) -> Vec<(String, String)> {
    fn walk(prefix: &str, value: &Value, flat: &mut Vec<(String, String)>) {
        match value {
            Value::Object(map) => {
                for (name, inner) in map {
                    let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    walk(&key, inner, flat);
                }
            }
            Value::String(text) => flat.push((prefix.to_owned(), text.clone())),
            other => flat.push((prefix.to_owned(), other.to_string())),
        }
    }
    let mut flat = Vec::new();
    walk("", &serde_json::to_value(config).unwrap_or_default(), &mut flat);
    flat
}
