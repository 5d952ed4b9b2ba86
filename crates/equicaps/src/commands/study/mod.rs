//! `equicaps study`: all runs of a study, each part once, whatever interrupts it.
//!
//! A study is nothing but commands that anybody could give: `render`, `train`, `evaluate`, each in a process of its own,
//! and a report of what they left. What is done is found in the folders of data and runs.

mod block;
mod done;
mod file;
mod make;
mod plan;
mod process;
mod share;
mod site;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dataset::work::Shard;
use ranks::Launch;
use report::run_material::RunMaterial;
use report::run_page::{self, Beginning};
use serde::Serialize;
use train::Config;

use self::file::Run;
pub use self::file::Study;
use self::make::Made;
use self::plan::StudyPlan;
use self::share::Share;
use self::site::Progress;
pub use self::site::Site;
use crate::commands::render::parse_shard;
use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};
use crate::{Interrupted, UsageError, interrupt, out};

/// Arguments of `equicaps study`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  What would be done, and how long it should take:
    equicaps study studies/hour.toml --dry-run
  All of it; the same command goes on after an interruption:
    equicaps study studies/hour.toml --out hour
  The second of four processes that share the runs:
    equicaps study studies/paper.toml --out paper --shard 1/4 --device cuda:1
  Three runs at a time on one large GPU:
    equicaps study studies/hour.toml --jobs 3
  Some of the runs:
    equicaps study studies/hour.toml --only T-equicaps --only T-sie
  The report of what is there so far:
    equicaps study studies/hour.toml --report

Ranks of mpirun or srun and tasks of a Slurm array (SLURM_ARRAY_TASK_ID) share the runs by
themselves. Runs that fail are listed at the end, and the others go on; the same command tries
them again. docs/studies.md explains the file.

Exit status: 0 done, 1 a run failed, 2 wrong usage or a mistake in the file, 75 interrupted
(progress is saved; rerun to resume).")]
pub struct Arguments {
    /// The study's file
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Folder for data, runs and report [default: the file's name without its ending]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the runs, their progress and the expected time without doing anything
    #[arg(long, conflicts_with = "report")]
    dry_run: bool,
    /// Write the report of what is there, without doing anything else
    #[arg(long)]
    report: bool,
    /// Make part I of N of the runs (I from 0); all parts share one --out
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    shard: Option<Shard>,
    /// Make so many runs at a time on one device, for a large GPU or many cores
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Only runs whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Device: auto (a GPU where there is a usable one), cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// Stop in order after so many seconds, as an interruption does
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    stop_after: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let deadline = arguments.stop_after.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let stem = arguments.file.file_stem().map(PathBuf::from).unwrap_or_default();
    let launch = Launch::of_environment()?;
    let variable = |name: &str| std::env::var(name).ok();
    let share = Share::of(arguments.shard, &launch, &variable)?;
    let out = arguments.out.clone().unwrap_or(stem);
    if out.is_file() {
        let why =
            if arguments.out.is_none() { "; its folder needs another name: give --out DIR" } else { "" };
        bail!(UsageError(format!("{} is a file, expected a folder{why}", out.display())));
    }
    refuse_others(&out)?;
    let study = Study::read(&arguments.file)?;
    let site = Site::new(arguments.file.display().to_string(), study, out, device(&arguments.device, &share));
    let configurations = site.configurations()?;
    let runs: Vec<(&Run, &Config)> = site
        .study
        .runs
        .iter()
        .zip(&configurations)
        .filter(|(run, _)| {
            arguments.only.is_empty() || arguments.only.iter().any(|part| run.name.contains(part))
        })
        .collect();
    if runs.is_empty() {
        let names: Vec<&str> = site.study.runs.iter().map(|run| run.name.as_str()).collect();
        bail!(UsageError(format!("no run has such a name (runs: {})", names.join(", "))));
    }
    if arguments.dry_run {
        let plan = StudyPlan::of(&site, &runs, &share, terminal)?;
        let outcome = Outcome::new(&plan)?;
        return Ok(match plan.problem() {
            Some(problem) => outcome.failed(problem),
            None => outcome,
        });
    }
    interrupt::flag();
    if arguments.report {
        return finish(&site, &runs, None, true, launch.ranks > 1, terminal);
    }
    let made = make::all(&site, &runs, &share, usize::from(arguments.jobs), deadline, terminal)?;
    let is_alone = share.shard.count == 1;
    finish(&site, &runs, Some(made), is_alone, launch.ranks > 1, terminal)
}

/// Makes all of a study, and returns where its report is.
pub fn make_alone(site: &Site, terminal: &Terminal) -> anyhow::Result<String> {
    refuse_others(&site.out)?;
    let configurations = site.configurations()?;
    let runs: Vec<(&Run, &Config)> = site.study.runs.iter().zip(&configurations).collect();
    interrupt::flag();
    let made = make::all(site, &runs, &Share::ALL, 1, None, terminal)?;
    if made.interrupted {
        return Err(Interrupted.into());
    }
    if let Some((name, why)) = made.failed.into_iter().next() {
        bail!("{name}: {why}");
    }
    report(site, terminal)?.context("no run was evaluated")
}

/// Refuses a folder with something else in it.
fn refuse_others(out: &Path) -> Result<(), UsageError> {
    out::refuse_others(out, "study", |path| ["data", "runs", "state"].iter().any(|name| path.ends_with(name)))
}

/// The device of this process: those of a machine that were started together take its GPUs in turn.
fn device(asked: &str, share: &Share) -> String {
    let gpus = || gpu::devices().map_or(0, |all| all.len());
    match share.local_rank {
        Some(rank) if ["auto", "cuda"].contains(&asked) && gpus() > 0 => format!("cuda:{}", rank % gpus()),
        _ => asked.to_owned(),
    }
}

/// What became of a study.
#[derive(Serialize)]
struct Finished {
    out: String,
    report: Option<String>,
    runs: usize,
    finished: usize,
    failed: BTreeMap<String, String>,
    /// Runs that failed the last time, where none was tried now, and why.
    failed_before: BTreeMap<String, String>,
    /// Runs that are neither finished nor failed now.
    left: Vec<String>,
    interrupted: bool,
    /// Who writes the report, where that is not this process.
    #[serde(skip)]
    reporter: Option<String>,
}

/// So many runs that are left are named; `--json` names all.
const MOST_NAMED: usize = 8;

impl fmt::Display for Finished {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { out, runs, finished, failed, failed_before, left, .. } = self;
        for (name, why) in failed {
            writeln!(formatter, "failed: {name}: {why}")?;
        }
        for (name, why) in failed_before {
            writeln!(formatter, "failed the last time: {name}: {why}")?;
        }
        write!(formatter, "{out}: {finished} of {} finished", count(*runs, "run"))?;
        if !failed.is_empty() {
            write!(formatter, ", {} failed (the same command tries again)", failed.len())?;
        }
        if self.interrupted {
            return formatter.write_str("; interrupted, progress is saved; rerun to resume");
        }
        if !left.is_empty() {
            let (named, others) = left.split_at(left.len().min(MOST_NAMED));
            write!(formatter, "; not finished: {}", named.join(", "))?;
            if !others.is_empty() {
                write!(formatter, " and {} more", others.len())?;
            }
        }
        match (&self.report, &self.reporter) {
            (Some(report), _) => write!(formatter, "\nreport: {report}"),
            (None, Some(reporter)) => write!(formatter, "\n{reporter}"),
            (None, None) => formatter.write_str("\nnothing has been evaluated yet: there is no report"),
        }
    }
}

/// Writes the report, where it is due, and says what became of the study. Where nothing was tried (`made` is none), what
/// failed before is a remark.
fn finish(
    site: &Site,
    runs: &[(&Run, &Config)],
    made: Option<Made>,
    wants_report: bool,
    has_ranks: bool,
    terminal: &Terminal,
) -> anyhow::Result<Outcome> {
    let was_tried = made.is_some();
    let made = made.unwrap_or_default();
    let mut done = Finished {
        out: shown(&site.out),
        report: None,
        runs: runs.len(),
        finished: 0,
        failed: made.failed,
        failed_before: BTreeMap::new(),
        left: Vec::new(),
        interrupted: made.interrupted,
        reporter: None,
    };
    for (run, config) in runs {
        if site.progress(run, config).is_ok_and(|progress| progress == Progress::Finished) {
            // Whoever finished it.
            done.failed.remove(&run.name);
            done.finished += 1;
        } else if let Some(why) = make::failure(site, run).filter(|_| was_tried) {
            done.failed.entry(run.name.clone()).or_insert(why);
        } else if !done.failed.contains_key(&run.name) {
            done.failed_before.extend(make::failure(site, run).map(|why| (run.name.clone(), why)));
            done.left.push(run.name.clone());
        }
    }
    let is_last = done.left.is_empty();
    if (wants_report || is_last) && !done.interrupted {
        done.report = report(site, terminal)?;
    } else {
        let file = dataset::shell_word(site.file.as_ref());
        let out = dataset::shell_word(&site.out);
        done.reporter = Some(format!(
            "who finishes last writes the report, or: equicaps study {file} --out {out} --report"
        ));
    }
    let failed = done.failed.len();
    let names: Vec<&str> = done.failed.keys().map(String::as_str).collect();
    let why = format!("{} failed: {}", count(failed, "run"), names.join(", "));
    let interrupted = done.interrupted;
    let outcome = Outcome::new(&done)?;
    // A launcher ends all ranks where one ends with an error; the last one says it for all.
    let counts = failed > 0 && (!has_ranks || is_last);
    Ok(if counts { outcome.failed(why) } else { outcome }.interrupted_if(interrupted))
}

/// Writes the report of all runs of the study that are there; where it is. None where nothing has been evaluated.
fn report(site: &Site, terminal: &Terminal) -> anyhow::Result<Option<String>> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for run in &site.study.runs {
        match RunMaterial::read(&site.root(run)) {
            Ok(material) if !material.evaluations.is_empty() => {
                material.damage.iter().for_each(|damage| terminal.warn(damage));
                found.push(material);
            }
            read => {
                if let (Err(error), true) = (read, site.root(run).is_dir()) {
                    terminal.warn(error.to_string());
                }
                missing.push(run.name.as_str());
            }
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let title = if site.study.title.is_empty() { "EquiCaps study" } else { &site.study.title };
    let html = site.out.join("report.html");
    let beginning = Beginning { title, introduction: site.study.introduction.trim(), missing: &missing };
    let written = run_page::write(&found, &html, beginning)?;
    written.warning.iter().for_each(|warning| terminal.warn(warning));
    Ok(Some(shown(&html)))
}

#[cfg(test)]
mod tests;
