//! Everything about some runs on one page: tables beside the paper's, images, curves, configuration, and how it was
//! measured.

use std::path::{Path, PathBuf};

use evaluate::Results;
use evaluate::protocol::Task;

use crate::page::Page;
use crate::paper::{Metric, TABLES};
use crate::run_material::{self, RunMaterial};
use crate::run_names::{latest, named};
use crate::table::write_forms;
use crate::{Drawing, Result, Table, compare, figures, objects, ours, run_images};

/// Drawings that are also written as files.
pub(crate) struct Files {
    folder: PathBuf,
    written: Vec<PathBuf>,
}

impl Files {
    pub(crate) fn keep(&mut self, name: &str, drawing: &Drawing) -> Result<()> {
        for ending in ["svg", "png"] {
            let path = self.folder.join(format!("{name}.{ending}"));
            drawing.write(&path)?;
            self.written.push(path);
        }
        Ok(())
    }
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The files, the page among them.
    pub files: Vec<PathBuf>,
    /// What had to be left out.
    pub warning: Option<String>,
}

/// Writes the page and what goes beside it; `introduction` comes first.
pub fn write(runs: &[RunMaterial], out: &Path, title: &str, introduction: &str) -> Result<Written> {
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
    let warning = run_images::section(&mut page, runs, &latest, &mut files)?;
    paper_section(&mut page, &mut tables, &all);
    method_section(&mut page, runs, &latest);
    dataset::durable::write(out, page.to_html().as_bytes())?;
    files.written.push(out.to_path_buf());
    files.written.extend(write_forms(&tables, |ending| out.with_extension(ending))?);
    Ok(Written { files: files.written, warning })
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
    let evaluated = latest.iter().map(|results| (&results.subject.name, results.pose_verdict()));
    let others = runs.iter().filter(|run| run.evaluations.is_empty());
    for (name, verdict) in evaluated.chain(others.map(|run| (&run.name, run.pose.clone()))) {
        if let Some(message) = verdict.and_then(|verdict| verdict.message) {
            page.warning(&format!("{name}: {message}."));
        }
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
) -> Result<()> {
    if latest.is_empty() {
        return Ok(());
    }
    page.section("Results");
    let held_out = ours::held_out(latest);
    let caption = format!("Probes on frozen representations, {held_out}");
    let probes = ours::probes("ours", &caption, latest, false);
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
        let caption = format!("Probes on embeddings, {held_out}");
        let table = ours::probes("ours-embeddings", &caption, latest, true);
        page.table(&table);
        tables.push(table);
    }
    let studies = [ours::capsule_counts(latest), ours::loss_terms(latest)];
    for table in ours::retrieval(latest).into_iter().chain(studies.into_iter().flatten()) {
        page.table(&table);
        tables.push(table);
    }
    if latest.iter().any(|results| !results.by_object.is_empty()) {
        page.section("By object and class");
        let trained = latest.iter().filter(|results| results.subject.method != "untrained");
        for table in trained.flat_map(objects::tables) {
            page.table(&table);
            tables.push(table);
        }
    }
    Ok(())
}

fn curves_section(
    page: &mut Page,
    tables: &mut Vec<Table>,
    runs: &[RunMaterial],
    all: &[Results],
    files: &mut Files,
) -> Result<()> {
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
    for (name, drawing) in run_material::curves(runs, rotation) {
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
         without weight decay. R\u{b2} is computed once over all held-out views and all components with a single mean. \
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
