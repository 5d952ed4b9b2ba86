//! `equicaps report`: everything about some runs on one page: tables beside the paper's, pictures, curves,
//! configuration, and how it was measured.

mod material;
mod pictures;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evaluate::Results;
use evaluate::protocol::Task;
use report::page::Page;
use report::paper::{Metric, TABLES};
use report::{Drawing, SvgUse, Table, compare, figures, ours};
use serde_json::json;

use crate::terminal::{Terminal, shown};
pub use material::RunMaterial;

/// Arguments of `equicaps report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps report runs/equicaps runs/vicreg --out report.html
  equicaps report runs/* --out paper/report.html --title 'Run 7'

For every run: its curves and configuration, and all evaluations below RUN/evaluation (see
equicaps evaluate). Beside the page: the tables as .md, .tex and .csv, and the drawings as PNG
and SVG in a folder of the page's name.")]
pub struct Arguments {
    /// Folders of runs, or of evaluations
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// The heading
    #[arg(long, default_value = "EquiCaps report")]
    title: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let mut runs = Vec::new();
    for path in &arguments.runs {
        runs.push(RunMaterial::read(path)?);
    }
    let evaluations: usize = runs.iter().map(|run| run.evaluations.len()).sum();
    if evaluations == 0 {
        terminal.warn("none of these runs was evaluated yet (equicaps evaluate RUN --data DIR); there will be no tables");
    }
    let written = write(&runs, &arguments.out, &arguments.title, "", terminal)?;
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let text = format!(
        "{}, {}: {}",
        count(runs.len(), "run"),
        count(evaluations, "evaluation"),
        arguments.out.display()
    );
    terminal.result(
        text,
        &json!({ "out": shown(&arguments.out), "runs": runs.len(), "evaluations": evaluations, "files": written.iter().map(shown).collect::<Vec<_>>() }),
    );
    Ok(ExitCode::SUCCESS)
}

/// Drawings that are also written as files.
struct Files {
    folder: PathBuf,
    written: Vec<PathBuf>,
}

impl Files {
    fn keep(&mut self, name: &str, drawing: &Drawing) -> anyhow::Result<()> {
        dataset::durable::create_folder(&self.folder)?;
        for (ending, bytes) in
            [("svg", drawing.to_svg(SvgUse::File).into_bytes()), ("png", drawing.to_png(2.0)?)]
        {
            let path = self.folder.join(format!("{name}.{ending}"));
            dataset::durable::write(&path, &bytes)?;
            self.written.push(path);
        }
        Ok(())
    }
}

/// Writes the page and what goes beside it; `introduction` comes first. Lists the files written.
pub fn write(
    runs: &[RunMaterial],
    out: &Path,
    title: &str,
    introduction: &str,
    terminal: &Terminal,
) -> anyhow::Result<Vec<PathBuf>> {
    if let Some(parent) = out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        dataset::durable::create_folder(parent)?;
    }
    let mut files = Files { folder: out.with_extension("files"), written: Vec::new() };
    let mut page = Page::new(title);
    let named = named(runs);
    let latest = latest(&named);
    let all: Vec<Results> = named.into_iter().flatten().collect();
    introduce(&mut page, runs, &latest, introduction);
    let mut tables: Vec<Table> = Vec::new();
    results_section(&mut page, &mut tables, &latest, &mut files)?;
    curves_section(&mut page, &mut tables, runs, &all, &mut files)?;
    pictures::section(&mut page, runs, &latest, &mut files, terminal)?;
    paper_section(&mut page, &mut tables, &all);
    method_section(&mut page, runs, &latest);
    dataset::durable::write(out, page.to_html().as_bytes())?;
    files.written.push(out.to_path_buf());
    let join = |form: fn(&Table) -> String| tables.iter().map(form).collect::<Vec<_>>().join("\n");
    let forms =
        [("md", join(Table::to_markdown)), ("tex", join(Table::to_latex)), ("csv", join(Table::to_csv))];
    for (ending, text) in forms {
        let path = out.with_extension(ending);
        dataset::durable::write(&path, text.as_bytes())?;
        files.written.push(path);
    }
    Ok(files.written)
}

/// All evaluations under names that tell runs apart: the method's, with the folder's where several runs share it.
fn named(runs: &[RunMaterial]) -> Vec<Vec<Results>> {
    let plain = |results: &Results| results.subject.name.split(" @ ").next().unwrap_or_default().to_owned();
    let is_shared = |name: &str| {
        let has = |run: &&RunMaterial| run.evaluations.iter().any(|(_, results)| plain(results) == name);
        runs.iter().filter(has).count() > 1
    };
    let rename = |run: &RunMaterial, results: &Results| {
        let mut results = results.clone();
        let name = plain(&results);
        let own = if is_shared(&name) { format!("{name} ({})", run.name) } else { name };
        results.subject.name = own;
        results
    };
    runs.iter().map(|run| run.evaluations.iter().map(|(_, results)| rename(run, results)).collect()).collect()
}

/// The last evaluation of every run, and the untrained networks.
fn latest(named: &[Vec<Results>]) -> Vec<Results> {
    let mut untrained: Vec<Results> = Vec::new();
    let mut trained: Vec<Results> = Vec::new();
    for all in named {
        let is_untrained = |results: &&Results| results.subject.method == "untrained";
        if let Some(results) = all.iter().find(is_untrained) {
            // Untrained networks with the same backbone and data say the same thing.
            let same = untrained.iter().any(|other| {
                other.subject.backbone == results.subject.backbone
                    && other.data.data_key == results.data.data_key
            });
            if !same {
                untrained.push(results.clone());
            }
        }
        let newest = all.iter().filter(|r| !is_untrained(r)).max_by_key(|results| results.subject.epochs);
        let Some(results) = newest else { continue };
        // Supervised networks, one a task, are one row as in the paper.
        let partner = trained.iter_mut().find(|other| {
            !results.subject.task.is_empty()
                && other.subject.method == results.subject.method
                && other.subject.backbone == results.subject.backbone
                && other.data.data_key == results.data.data_key
                && results.representations.keys().all(|task| !other.representations.contains_key(task))
        });
        match partner {
            Some(partner) => {
                partner.subject.name = "Supervised".to_owned();
                partner.representations.extend(results.representations.clone());
            }
            None => trained.push(results.clone()),
        }
    }
    untrained.into_iter().chain(trained).collect()
}

fn introduce(page: &mut Page, runs: &[RunMaterial], latest: &[Results], introduction: &str) {
    if !introduction.is_empty() {
        page.paragraph(introduction);
    }
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    page.paragraph(&format!("Runs: {}.", names.join(", ")));
    if !latest.is_empty() {
        page.paragraph(&compare::conditions(latest));
    }
}

fn floor(all: &[Results], task: Task) -> Option<f64> {
    let factor = if task == Task::Classification { 100.0 } else { 1.0 };
    all.iter().find_map(|results| results.representations.get(&task).map(|probe| probe.floor * factor))
}

fn results_section(
    page: &mut Page,
    tables: &mut Vec<Table>,
    latest: &[Results],
    files: &mut Files,
) -> anyhow::Result<()> {
    if latest.is_empty() {
        return Ok(());
    }
    page.section("Results");
    let probes = ours::probes("ours", "Probes on frozen representations, held-out objects", latest, false);
    page.table(&probes);
    tables.push(probes);
    let mut bars = Vec::new();
    for (name, title, label, metric, task) in [
        ("rotation", "Rotation R\u{b2}", "R\u{b2}", Metric::Rotation, Task::Rotation),
        ("top1", "Classification, top-1", "%", Metric::Top1, Task::Classification),
    ] {
        if latest.iter().any(|results| results.representations.contains_key(&task)) {
            let drawing = figures::bars(title, label, metric, latest, floor(latest, task));
            files.keep(name, &drawing)?;
            bars.push(drawing);
        }
    }
    page.drawings(&bars);
    if latest.iter().any(|results| !results.embeddings.is_empty()) {
        let table = ours::probes("ours-embeddings", "Probes on embeddings, held-out objects", latest, true);
        page.table(&table);
        tables.push(table);
    }
    let studies = [ours::capsule_counts(latest), ours::loss_terms(latest)];
    for table in ours::retrieval(latest).into_iter().chain(studies.into_iter().flatten()) {
        page.table(&table);
        tables.push(table);
    }
    Ok(())
}

fn curves_section(
    page: &mut Page,
    tables: &mut Vec<Table>,
    runs: &[RunMaterial],
    all: &[Results],
    files: &mut Files,
) -> anyhow::Result<()> {
    page.section("Curves");
    let rotation = floor(all, Task::Rotation);
    let mut drawings = Vec::new();
    let convergence = [
        ("convergence_rotation", "Rotation R\u{b2} over pre-training", "R\u{b2}", Metric::Rotation, rotation),
        ("convergence_top1", "Top-1 over pre-training", "%", Metric::Top1, floor(all, Task::Classification)),
    ];
    for (name, title, label, metric, floor) in convergence {
        if let Some(drawing) = figures::convergence(title, label, metric, all, floor) {
            files.keep(name, &drawing)?;
            drawings.push(drawing);
        }
    }
    for (name, drawing) in material::curves(runs, rotation) {
        files.keep(&name, &drawing)?;
        drawings.push(drawing);
    }
    page.drawings(&drawings);
    let convergence = [
        ours::convergence(
            "rotation-over-epochs",
            "Rotation R\u{b2} over pre-training",
            Metric::Rotation,
            all,
        ),
        ours::convergence("top1-over-epochs", "Top-1 (%) over pre-training", Metric::Top1, all),
    ];
    for table in convergence.into_iter().flatten() {
        page.table(&table);
        tables.push(table);
    }
    Ok(())
}

fn paper_section(page: &mut Page, tables: &mut Vec<Table>, all: &[Results]) {
    page.section("Beside the paper");
    page.paragraph(
        "The tables of the EquiCaps paper (arXiv 2506.09895), main text and supplement. Where this report has a number \
         for a place in them it stands beside the paper's; the others are folded.",
    );
    for published in TABLES {
        let table = compare::beside(published, all);
        if compare::has_ours(published, all) {
            page.table(&table);
        } else {
            page.folded_table(&table);
        }
        tables.push(table);
    }
}

fn method_section(page: &mut Page, runs: &[RunMaterial], latest: &[Results]) {
    page.section("How it was measured");
    page.paragraph(
        "Features of all views are computed once with the frozen network in evaluation mode. Every epoch each training \
         object contributes one random view (classification) or an ordered pair of distinct views; the heads are one \
         linear layer (classification, colour) or three with ReLU between (rotation, translation), trained by Adam \
         without weight decay. R\u{b2} is computed once over all held-out objects and all components with a single mean. \
         Values are means over several validation passes with fresh random views.",
    );
    if let Some(results) = latest.first() {
        let p = &results.protocol;
        page.paragraph(&format!(
            "Protocol {}: {} epochs ({} for colour), {} sample(s) of each object an epoch, batch {}, hidden width {}, learning \
             rate {}, {} validation passes, seed {}; device {}.",
            p.preset, p.epochs, p.colour_epochs, p.samples_per_object, p.batch, p.hidden, p.learning_rate, p.passes, p.seed,
            results.device
        ));
    }
    for run in runs {
        if let Some(config) = &run.config_text {
            page.folded_text(&format!("Configuration of {}", run.name), config);
        }
        if let Some(environment) = &run.environment_text {
            page.folded_text(&format!("Environment of {}", run.name), environment);
        }
    }
}
