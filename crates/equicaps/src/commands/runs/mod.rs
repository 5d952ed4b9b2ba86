//! `equicaps runs`: inspects runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use dataset::SplitBy;
use methods::verdict::PoseVerdict;
use report::run_comparison::RunComparison;
use report::{Cell, Column, Table, run_names};
use serde::Serialize;
use train::environment::{Ended, Environment};
use train::metrics::Kind;
use train::summary::{State, Summary};
use train::verdict::{FLOORS, floor_of};
use train::{Config, RunFolder};

use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};

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
    /// List the runs in a folder with their progress and last metrics
    #[command(after_help = "Examples:
  equicaps runs list runs
  equicaps runs list --json")]
    List {
        /// Folder of runs
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Show one run: settings, sessions, checkpoints, last metrics
    #[command(after_help = "Examples:
  equicaps runs show runs/first")]
    Show {
        /// The run's folder
        run: PathBuf,
    },
    /// Show several runs side by side: settings that differ, last metrics
    #[command(after_help = "Examples:
  equicaps runs compare runs/equicaps runs/vicreg")]
    Compare {
        /// The runs' folders
        #[arg(required = true, num_args = 2..)]
        runs: Vec<PathBuf>,
    },
    /// Plot the metrics of one or more runs as PNG and SVG
    Plot(plot::Arguments),
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    match &arguments.command {
        RunsCommand::List { folder } => list(folder, terminal),
        RunsCommand::Show { run } => {
            Outcome::new(&RunDetails::of(&summary(&RunFolder::open(run)?, terminal)?))
        }
        RunsCommand::Compare { runs } => Outcome::new(&RunComparison::of(&summaries(runs, terminal)?)),
        RunsCommand::Plot(arguments) => plot::run(arguments, terminal),
    }
}

/// What is known about a run; what of it is damaged is said.
fn summary(folder: &RunFolder, terminal: &Terminal) -> train::Result<Summary> {
    let found = Summary::of(folder)?;
    found.damage.iter().for_each(|damage| terminal.warn(damage));
    Ok(found)
}

/// The runs, each by a name of its own.
fn summaries(runs: &[PathBuf], terminal: &Terminal) -> anyhow::Result<Vec<Summary>> {
    let mut found = Vec::new();
    for run in runs {
        found.push(summary(&RunFolder::open(run)?, terminal)?);
    }
    run_names::distinguish(found.iter_mut().map(|run| (&mut run.name, &*run.root)));
    Ok(found)
}

/// The numbers shown of every run: a heading, the kind of line, its name, and decimals.
const COLUMNS: [(&str, Kind, &str, usize); 5] = [
    ("loss", Kind::Epoch, "loss", 4),
    ("class", Kind::HeldOut, "probe/class_accuracy/representation", 3),
    ("kNN", Kind::HeldOut, "probe/knn_accuracy/representation", 3),
    ("rotation R2 (floor)", Kind::HeldOut, "probe/rotation_r2/representation", 3),
    ("translation R2 (floor)", Kind::HeldOut, "probe/translation_r2/representation", 3),
];

/// What is said about every run.
#[derive(Serialize)]
struct RunState {
    run: String,
    method: String,
    state: State,
    epoch: u64,
    epochs: u64,
    step: u64,
    /// What is held out: objects or views.
    split: SplitBy,
    checkpoints: Vec<String>,
    epoch_means: BTreeMap<String, f64>,
    held_out: BTreeMap<String, f64>,
    /// Whether a pose was learnt, of a run that has come to its end and was to learn it.
    pose: Option<PoseVerdict>,
    #[serde(skip)]
    name: String,
}

impl RunState {
    fn of(summary: &Summary) -> Self {
        let last = |kind| {
            let names = summary.names(kind).into_iter();
            names.filter_map(|name| Some((name.clone(), summary.last(kind, &name)?))).collect()
        };
        Self {
            run: shown(&summary.root),
            method: summary.config.method.name.name().to_owned(),
            state: summary.state,
            epoch: summary.reached.epoch,
            epochs: summary.config.epochs,
            step: summary.reached.step,
            split: summary.config.split.or(SplitBy::Objects),
            checkpoints: summary.checkpoints.iter().map(shown).collect(),
            epoch_means: last(Kind::Epoch),
            held_out: last(Kind::HeldOut),
            pose: summary.pose_verdict(),
            name: summary.name.clone(),
        }
    }

    fn last(&self, kind: Kind) -> &BTreeMap<String, f64> {
        if kind == Kind::HeldOut { &self.held_out } else { &self.epoch_means }
    }

    /// What was not learnt, and what to change.
    fn complaint(&self) -> Option<&String> {
        self.pose.as_ref().and_then(|verdict| verdict.message.as_ref())
    }
}

/// The runs of a folder.
#[derive(Serialize)]
struct RunList {
    runs: Vec<RunState>,
    #[serde(skip)]
    folder: String,
}

fn list(folder: &Path, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let mut runs = Vec::new();
    for run in RunFolder::find(folder)? {
        match summary(&run, terminal) {
            Ok(summary) => runs.push(RunState::of(&summary)),
            Err(error) => terminal.warn(error.to_string()),
        }
    }
    Outcome::new(&RunList { runs, folder: shown(folder) })
}

impl fmt::Display for RunList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs.is_empty() {
            return write!(formatter, "no runs in {}", self.folder);
        }
        let headings = ["run", "method", "state", "epoch", "step", "held out"].into_iter();
        let columns = headings.chain(COLUMNS.map(|(heading, ..)| heading)).map(Column::new).collect();
        let row = |run: &RunState| -> Vec<Cell> {
            let words = [
                run.name.clone(),
                run.method.clone(),
                run.state.name().to_owned(),
                format!("{}/{}", run.epoch, run.epochs),
                run.step.to_string(),
                run.split.to_string(),
            ];
            let number = |(_, kind, name, decimals): (&str, Kind, &str, usize)| {
                let last = run.last(kind);
                match (last.get(name), floor_of(name).and_then(|floor| last.get(&floor))) {
                    (Some(value), Some(floor)) => {
                        Cell::Text(format!("{value:.decimals$} ({floor:.decimals$})"))
                    }
                    (value, _) => Cell::number(value.copied(), decimals),
                }
            };
            words.into_iter().map(Cell::from).chain(COLUMNS.map(number)).collect()
        };
        let table = Table { columns, rows: self.runs.iter().map(row).collect(), ..Table::default() };
        formatter.write_str(table.to_text().trim_end())?;
        let mut said = self.runs.iter().filter_map(|run| Some((&run.name, run.complaint()?)));
        said.try_for_each(|(name, message)| write!(formatter, "\n{name}: {message}"))
    }
}

/// Everything about one run.
#[derive(Serialize)]
struct RunDetails {
    #[serde(flatten)]
    state: RunState,
    config: Config,
    sessions: Vec<Environment>,
    /// What the names of its numbers mean.
    meanings: BTreeMap<String, String>,
    #[serde(skip)]
    root: PathBuf,
}

impl RunDetails {
    fn of(summary: &Summary) -> Self {
        let state = RunState::of(summary);
        let names = state.epoch_means.keys().chain(state.held_out.keys());
        Self {
            meanings: names.filter_map(|name| Some((name.clone(), train::meaning(name)?))).collect(),
            state,
            config: summary.config.clone(),
            sessions: summary.sessions.clone(),
            root: summary.root.clone(),
        }
    }
}

impl fmt::Display for RunDetails {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, config, sessions, meanings, root } = self;
        writeln!(formatter, "run          {} ({})", state.run, state.state.name())?;
        writeln!(
            formatter,
            "method       {} on {}, {size} x {size} pixels",
            config.method.name,
            config.method.backbone,
            size = config.method.image_size
        )?;
        writeln!(formatter, "transform    {}", config.method.transform)?;
        writeln!(formatter, "data         {}", config.data)?;
        writeln!(formatter, "held out     {}", state.split.held_out())?;
        write!(formatter, "progress     epoch {} of {}, step {}", state.epoch, state.epochs, state.step)?;
        for session in sessions {
            let ended = match &session.ended {
                None => String::new(),
                Some(Ended::Finished) => ", finished".to_owned(),
                Some(Ended::Interrupted) => ", interrupted".to_owned(),
                Some(Ended::Failed(what)) => format!(", failed: {what}"),
            };
            let Environment { from_step, device, version, .. } = session;
            write!(formatter, "\nsession      from step {from_step} on {device}, version {version}{ended}")?;
        }
        for path in &state.checkpoints {
            write!(formatter, "\ncheckpoint   {path}")?;
        }
        for (title, numbers) in [("last epoch", &state.epoch_means), ("held-out", &state.held_out)] {
            for (name, value) in numbers.iter().filter(|(name, _)| !name.starts_with(FLOORS)) {
                write!(formatter, "\n{title:<12} {name} = {value:.5}")?;
                if let Some(floor) = floor_of(name).and_then(|floor| numbers.get(&floor)) {
                    write!(formatter, " (floor {floor:.5})")?;
                }
                meanings.get(name).map_or(Ok(()), |meaning| write!(formatter, "  {meaning}"))?;
            }
        }
        if let Some(message) = state.complaint() {
            write!(formatter, "\nresult       {message}")?;
        }
        if matches!(state.state, State::Stopped | State::Failed) {
            write!(formatter, "\nresume with  equicaps train --resume {}", dataset::shell_word(root))?;
        }
        Ok(())
    }
}
