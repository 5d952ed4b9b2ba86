//! What a study would do, before it does it: every run with its steps and how long they should take.

use std::collections::BTreeMap;
use std::fmt;

use report::{Cell, Column, Table};
use serde::Serialize;
use train::{Config, Plan, RunFolder, estimate, metrics};

use super::file::Run;
use super::share::Share;
use super::site::{Progress, Site};
use crate::outcome::count;
use crate::terminal::{Terminal, shown};

/// The plan of a study.
#[derive(Serialize)]
pub struct StudyPlan {
    out: String,
    device: String,
    runs: Vec<PlannedRun>,
    /// Runs that cannot be made as the file says, and why.
    problems: BTreeMap<String, String>,
    /// Of what is not trained yet.
    estimated_seconds: f64,
    warnings: Vec<String>,
}

/// One run.
#[derive(Serialize)]
struct PlannedRun {
    name: String,
    /// Whether it is this process's.
    own: bool,
    progress: String,
    epochs: u64,
    steps: u64,
    batch: usize,
    image_size: usize,
    evaluations: usize,
    /// Of its training, from the beginning.
    estimated_seconds: f64,
    /// Of what is left of it.
    left_seconds: f64,
    /// The command that trains it.
    command: String,
}

impl StudyPlan {
    /// Plans `runs`, each with its configuration. Measures a few steps of every network.
    pub fn of(
        site: &Site,
        runs: &[(&Run, &Config)],
        share: &Share,
        terminal: &Terminal,
    ) -> anyhow::Result<Self> {
        let mut planner = Planner { site, terminal, measured: BTreeMap::new(), remarks: Remarks::default() };
        let mut plan = Self {
            out: shown(&site.out),
            device: site.device.clone(),
            runs: Vec::new(),
            problems: BTreeMap::new(),
            estimated_seconds: 0.0,
            warnings: Vec::new(),
        };
        for (index, &(run, config)) in runs.iter().enumerate() {
            match planner.plan(run, config) {
                Ok((planned, device)) => {
                    plan.device = device.unwrap_or(plan.device);
                    let own = share.has(index);
                    plan.estimated_seconds += if own { planned.left_seconds } else { 0.0 };
                    plan.runs.push(PlannedRun { own, ..planned });
                }
                // The others are planned all the same.
                Err(error) => _ = plan.problems.insert(run.name.clone(), crate::sentence(&error)),
            }
        }
        plan.warnings = planner.remarks.sentences(runs.len());
        Ok(plan)
    }

    /// What stands in the way, in a sentence.
    pub fn problem(&self) -> Option<String> {
        let all: Vec<String> = self.problems.iter().map(|(run, why)| format!("{run}: {why}")).collect();
        let runs = count(all.len(), "run");
        (!all.is_empty()).then(|| format!("{runs} cannot be made as the file says: {}", all.join("; ")))
    }
}

/// Plans one run after the other.
struct Planner<'a> {
    site: &'a Site,
    terminal: &'a Terminal,
    /// Seconds for a pair, of every network.
    measured: BTreeMap<String, f64>,
    remarks: Remarks,
}

impl Planner<'_> {
    /// What is to be done of a run, and the device's name.
    fn plan(&mut self, run: &Run, config: &Config) -> anyhow::Result<(PlannedRun, Option<String>)> {
        let site = self.site;
        let progress = site.progress(run, config)?;
        let row = |config: &Config| PlannedRun {
            name: run.name.clone(),
            own: true,
            progress: progress.words(),
            epochs: config.epochs,
            steps: 0,
            batch: config.method.batch,
            image_size: config.method.image_size,
            evaluations: run.evaluations.len(),
            estimated_seconds: 0.0,
            left_seconds: 0.0,
            command: command(&site.train_words(run, &progress)),
        };
        let device = crate::device::open(&config.device, config.precision)?;
        let (config, views) = match site.planned(run, config, &device) {
            Ok(planned) => planned,
            // What is finished needs its data no more.
            Err(_) if progress == Progress::Finished => {
                let folder = RunFolder::open(&site.root(run))?;
                let (config, (records, _)) =
                    (folder.config()?, metrics::read_undamaged(&folder.metrics_path())?);
                let steps = records.last().map_or(0, |record| record.step);
                return Ok((PlannedRun { steps, ..row(&config) }, None));
            }
            Err(error) => return Err(error),
        };
        if let Some(path) = site.lacks(&run.data) {
            let data = &run.data;
            self.remarks.add(&run.name, format!("{path}, the data {data} of this study, are not there"));
        }
        let network = network(&config)?;
        let pair = match self.measured.get(&network) {
            Some(seconds) => *seconds,
            None => {
                self.terminal.note(format!("measuring a step of {}", run.name));
                let seconds = estimate::pair_seconds(&config, &*views, &device)?;
                self.measured.insert(network, seconds);
                seconds
            }
        };
        let planned = Plan::taking(&config, &*views, &device, |plan| estimate::training_seconds(plan, pair))?;
        let share_left = match &progress {
            Progress::Missing | Progress::Running => 1.0,
            Progress::Begun(epoch) => 1.0 - *epoch as f64 / config.epochs.max(1) as f64,
            Progress::Trained(_) | Progress::Finished => 0.0,
        };
        planned.warnings.iter().for_each(|warning| self.remarks.add(&run.name, warning.clone()));
        let run = PlannedRun {
            epochs: planned.epochs,
            steps: planned.steps,
            image_size: planned.image_size,
            estimated_seconds: planned.estimated_seconds,
            left_seconds: planned.estimated_seconds * share_left,
            ..row(&config)
        };
        Ok((run, Some(planned.device)))
    }
}

/// What may go wrong, and with which runs.
#[derive(Default)]
struct Remarks(Vec<(String, Vec<String>)>);

/// So many runs with the same remark are named.
const MOST_NAMED: usize = 3;

impl Remarks {
    fn add(&mut self, run: &str, text: String) {
        match self.0.iter_mut().find(|(known, _)| *known == text) {
            Some((_, runs)) => runs.push(run.to_owned()),
            None => self.0.push((text, vec![run.to_owned()])),
        }
    }

    /// Each remark once, where there are `all` runs.
    fn sentences(self, all: usize) -> Vec<String> {
        let sentence = |(text, runs): (String, Vec<String>)| match runs.len() {
            count if count == all && all > 1 => format!("all runs: {text}"),
            count if count > MOST_NAMED => {
                format!("{} and {} more: {text}", runs[..MOST_NAMED].join(", "), count - MOST_NAMED)
            }
            _ => format!("{}: {text}", runs.join(", ")),
        };
        self.0.into_iter().map(sentence).collect()
    }
}

/// A command as a person would write it.
fn command(words: &[String]) -> String {
    let words = words.iter().map(|word| dataset::shell_word(word.as_ref()));
    std::iter::once("equicaps".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The settings that the time of a step depends on.
fn network(config: &Config) -> anyhow::Result<String> {
    let same = ["seed", "transform", "split", "learning_rate", "weight_decay", "loss.", "probes.held_out"];
    let text = config.identity_toml()?;
    let lines = text.lines().filter(|line| !same.iter().any(|key| line.starts_with(key)));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

impl fmt::Display for StudyPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        let parts = [self.table(), self.summary()].into_iter().flatten().chain(warnings);
        formatter.write_str(&parts.collect::<Vec<_>>().join("\n"))
    }
}

impl StudyPlan {
    /// The runs that can be made; none where there is none.
    fn table(&self) -> Option<String> {
        if self.runs.is_empty() {
            return None;
        }
        let headings = ["run", "steps", "batch", "size", "training", "evaluations", ""];
        let rows = self.runs.iter().map(|run| {
            let other = if run.own { "" } else { ", another shard's" };
            let size = format!("{0}x{0}", run.image_size);
            let (time, state) =
                (estimate::in_words(run.estimated_seconds), format!("{}{other}", run.progress));
            let texts = [
                run.name.clone(),
                run.steps.to_string(),
                run.batch.to_string(),
                size,
                time,
                run.evaluations.to_string(),
                state,
            ];
            texts.into_iter().map(Cell::from).collect()
        });
        let columns = headings.map(Column::new).to_vec();
        let table = Table { columns, rows: rows.collect(), ..Table::default() };
        Some(table.to_text().trim_end().to_owned())
    }

    /// What is left of the runs of this process; none where it has none.
    fn summary(&self) -> Option<String> {
        let own = self.runs.iter().filter(|run| run.own).count();
        let left = match self.estimated_seconds {
            0.0 => "no training is left".to_owned(),
            seconds => {
                let time = estimate::in_words(seconds);
                let are = if time.starts_with("1 ") { "is" } else { "are" };
                format!("about {time} of training {are} left; rendering and evaluation come on top")
            }
        };
        (own > 0).then(|| format!("{} on {}, into {}: {left}", count(own, "run"), self.device, self.out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_remark_about_several_runs_is_one() {
        let mut remarks = Remarks::default();
        for run in ["a", "b", "c", "d", "e"] {
            remarks.add(run, "short".to_owned());
            if run != "e" {
                remarks.add(run, "few".to_owned());
            }
        }
        remarks.add("b", "odd".to_owned());
        remarks.add("c", "odd".to_owned());
        assert_eq!(remarks.sentences(5), ["all runs: short", "a, b, c and 1 more: few", "b, c: odd"]);
        let mut one = Remarks::default();
        one.add("a", "short".to_owned());
        assert_eq!(one.sentences(1), ["a: short"]);
    }
}
