//! Everything about some runs on one page: tables beside the paper's, images, curves, configuration, and how it was
//! measured.

use std::path::{Path, PathBuf};

use evaluate::protocol::Task;

use crate::convergence::Convergence;
use crate::entry::{self, Entry};
use crate::page::Page;
use crate::paper::{Metric, Published, TABLES};
use crate::run_material::{self, RunMaterial};
use crate::run_names::{latest, named};
use crate::table::write_forms;
use crate::{Drawing, Result, Table, compare, figures, not_learnt, objects, ours, run_images, scatter};

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

/// How a page begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beginning<'a> {
    /// The heading.
    pub title: &'a str,
    /// What comes first.
    pub introduction: &'a str,
    /// Names of runs that should be there, too, and are not.
    pub missing: &'a [&'a str],
}

/// Writes the page and what goes beside it.
pub fn write(runs: &[RunMaterial], out: &Path, beginning: Beginning<'_>) -> Result<Written> {
    if let Some(parent) = out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        dataset::durable::create_folder(parent)?;
    }
    let mut files = Files { folder: out.with_extension("files"), written: Vec::new() };
    let mut page = Page::new(beginning.title);
    let named = named(runs);
    let latest = latest(&named);
    let all: Vec<Entry> = named.into_iter().flatten().collect();
    introduce(&mut page, runs, &latest, &beginning);
    let mut tables: Vec<Table> = Vec::new();
    results_section(&mut page, &mut tables, &latest, &mut files)?;
    curves_section(&mut page, &mut tables, runs, &all, &mut files)?;
    let warning = run_images::section(&mut page, runs, &latest, &mut files)?;
    paper_section(&mut page, &mut tables, &latest, &all);
    method_section(&mut page, runs, &latest);
    dataset::durable::write(out, page.to_html().as_bytes())?;
    files.written.push(out.to_path_buf());
    files.written.extend(write_forms(&tables, |ending| out.with_extension(ending))?);
    Ok(Written { files: files.written, warning })
}

/// Runs that can be listed without hiding the rest; lists of more are folded away.
pub(crate) const FEW_RUNS: usize = 8;

fn introduce(page: &mut Page, runs: &[RunMaterial], latest: &[Entry], beginning: &Beginning<'_>) {
    if !beginning.introduction.is_empty() {
        page.paragraph(beginning.introduction);
    }
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    for (few, many, names) in
        [("Runs", "runs", &names[..]), ("Not evaluated yet", "runs are not evaluated yet", beginning.missing)]
    {
        match names.len() {
            0 => {}
            1..=FEW_RUNS => page.paragraph(&format!("{few}: {}.", names.join(", "))),
            count => page.folded_text(&format!("{count} {many}"), &names.join("\n")),
        }
    }
    if !latest.is_empty() {
        page.paragraph(&compare::conditions(latest));
    }
    not_learnt::warn(page, runs, latest);
}

/// The lines of the floors of a probe.
fn floors(all: &[Entry], task: Task) -> Vec<figures::Floor> {
    let factor = if task == Task::Classification { 100.0 } else { 1.0 };
    figures::floors(all.iter().filter_map(|Entry { results, .. }| {
        Some((results.subject.name.as_str(), results.representations.get(&task)?.floor * factor))
    }))
}

/// A word for names of files and tables.
fn plain(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    plain.trim_matches('_').to_owned()
}

fn results_section(
    page: &mut Page,
    tables: &mut Vec<Table>,
    latest: &[Entry],
    files: &mut Files,
) -> Result<()> {
    if latest.is_empty() {
        return Ok(());
    }
    let by_data = entry::by_data(latest);
    for (data, entries) in &by_data {
        let (heading, end) = match by_data.len() {
            1 => ("Results".to_owned(), String::new()),
            _ => (format!("Results on {data}"), format!("-{}", plain(data))),
        };
        page.section(heading);
        results_on(page, tables, entries, &end, files)?;
    }
    let studies: Vec<Table> =
        [ours::capsule_counts(latest), ours::pose_sizes(latest), ours::loss_terms(latest)].concat();
    if !studies.is_empty() {
        page.section("What a setting changes");
        page.paragraph("Runs that differ in the setting of a table, and in nothing else but seeds.");
    }
    for table in studies {
        page.table(&table);
        tables.push(table);
    }
    if latest.iter().any(|entry| !entry.results.by_object.is_empty()) {
        page.section("By object and class");
        let of = |entry: &Entry| {
            let name = &entry.results.subject.name;
            // Of several seeds these are the objects of the first.
            let name = match &entry.conditions.seeds[..] {
                [seed, _, ..] => format!("{name}, seed {seed}"),
                _ => name.clone(),
            };
            let tables = objects::tables(&entry.results, &name);
            (name, tables)
        };
        let mut found: Vec<(String, Vec<Table>)> = latest
            .iter()
            .filter(|entry| !entry.is_untrained())
            .map(of)
            .filter(|(_, tables)| !tables.is_empty())
            .collect();
        // Names of tables are their anchors, so every run has its own.
        for (index, (_, tables)) in found.iter_mut().enumerate().skip(1) {
            tables.iter_mut().for_each(|table| table.name.push_str(&format!("-{}", index + 1)));
        }
        folded_if_many(page, found.len(), "The worst and the best of each run", |page| {
            found.iter().for_each(|(name, tables)| page.folded_tables(name, tables));
        });
        tables.extend(found.into_iter().flat_map(|(_, tables)| tables));
    }
    Ok(())
}

/// The results on one dataset; names of tables and files end with `end`.
fn results_on(
    page: &mut Page,
    tables: &mut Vec<Table>,
    entries: &[Entry],
    end: &str,
    files: &mut Files,
) -> Result<()> {
    let held_out = ours::held_out(entries);
    let before = tables.len();
    let mut show = |page: &mut Page, mut table: Table| {
        table.name.push_str(end);
        page.table(&table);
        tables.push(table);
    };
    let caption = format!("Probes on frozen representations, {held_out}");
    if let Some(table) = ours::probes("ours", &caption, entries, false) {
        show(page, table);
    }
    let rotation = floors(entries, Task::Rotation);
    let title = "Equivariance over invariance";
    if let Some(drawing) = figures::equivariance_over_invariance(title, entries, rotation) {
        files.keep(&format!("equivariance_invariance{end}"), &drawing)?;
        let more =
            if entries.len() > scatter::MANY { " Names without room are said by pointing." } else { "" };
        page.drawing(&drawing, &format!(
            "Rotation R\u{b2} over top-1 on representations, as in Figure 1 of the paper; up and right is better.{more}"
        ));
    }
    let mut bars = Vec::new();
    for (name, title, label, metric, task) in [
        ("rotation", "Rotation R\u{b2}", "R\u{b2}", Metric::Rotation, Task::Rotation),
        ("top1", "Classification, top-1", "%", Metric::Top1, Task::Classification),
    ] {
        if entries.iter().any(|entry| compare::measured(&entry.results, metric).is_some()) {
            let drawing = figures::bars(title, label, metric, entries, floors(entries, task));
            files.keep(&format!("{name}{end}"), &drawing)?;
            bars.push(drawing);
        }
    }
    page.drawings(&bars);
    let caption = format!("Probes on embeddings, {held_out}");
    for table in
        ours::probes("ours-embeddings", &caption, entries, true).into_iter().chain(ours::retrieval(entries))
    {
        show(page, table);
    }
    if tables.len() == before {
        let names: Vec<&str> = entries.iter().map(|entry| entry.results.subject.name.as_str()).collect();
        page.paragraph(&format!("Nothing could be measured on these data: {}.", names.join(", ")));
    }
    Ok(())
}

fn curves_section(
    page: &mut Page,
    tables: &mut Vec<Table>,
    runs: &[RunMaterial],
    all: &[Entry],
    files: &mut Files,
) -> Result<()> {
    page.section("Curves");
    let rotation = floors(all, Task::Rotation);
    let mut drawings = Vec::new();
    let convergence = [
        (
            "convergence_rotation",
            "Rotation R\u{b2} over pre-training",
            "R\u{b2}",
            Metric::Rotation,
            Task::Rotation,
        ),
        ("convergence_top1", "Top-1 over pre-training", "%", Metric::Top1, Task::Classification),
    ];
    let by_data = entry::by_data(all);
    for (name, title, label, metric, task) in convergence {
        for (data, entries) in &by_data {
            let (title, end) = match by_data.len() {
                1 => (title.to_owned(), String::new()),
                _ => (format!("{title}, {data}"), format!("_{}", plain(data))),
            };
            if let Some(convergence) = Convergence::of(metric, entries) {
                let drawing = convergence.chart(&title, label, floors(entries, task));
                files.keep(&format!("{name}{end}"), &drawing)?;
                drawings.push(drawing);
            }
        }
    }
    let mut losses = Vec::new();
    for (name, drawing) in run_material::curves(runs, &rotation) {
        files.keep(&name, &drawing)?;
        let is_loss = name.starts_with(run_material::LOSS);
        if is_loss && runs.len() > FEW_RUNS { losses.push(drawing) } else { drawings.push(drawing) }
    }
    page.drawings(&drawings);
    if !losses.is_empty() {
        page.fold(&format!("Losses of {} runs", losses.len()), |page| page.drawings(&losses));
    }
    for (name, caption, metric) in [
        ("rotation-over-training", "Rotation R\u{b2} over pre-training", Metric::Rotation),
        ("top1-over-training", "Top-1 (%) over pre-training", Metric::Top1),
    ] {
        for (data, entries) in &by_data {
            let (caption, end) = match by_data.len() {
                1 => (caption.to_owned(), String::new()),
                _ => (format!("{caption}, {data}"), format!("-{}", plain(data))),
            };
            if let Some(convergence) = Convergence::of(metric, entries) {
                let table = convergence.table(&format!("{name}{end}"), &caption);
                page.table(&table);
                tables.push(table);
            }
        }
    }
    Ok(())
}

/// The paper's tables: beside ours where the data are comparable, otherwise folded, by themselves.
fn paper_section(page: &mut Page, tables: &mut Vec<Table>, latest: &[Entry], all: &[Entry]) {
    page.section("Beside the paper");
    // Means over seeds first; then checkpoints along the way.
    let ours = compare::comparable(&[latest, all].concat());
    let (shown, others): (Vec<&Published>, Vec<&Published>) =
        TABLES.iter().partition(|published| compare::has_ours(published, &ours));
    if shown.is_empty() {
        page.paragraph(
            "These results are not comparable with the tables of the EquiCaps paper (arXiv 2506.09895), which are for objects \
             of 55 classes, never seen, with the latents of 3DIEBench or 3DIEBench-T: no number of this report stands in them.",
        );
    } else {
        page.paragraph(
            "The tables of the EquiCaps paper (arXiv 2506.09895), main text and supplement, with our numbers beside the paper's \
             where this report has one: of runs with the paper's settings, all of the same steps, batch and image size. Epochs \
             are compared by their steps.",
        );
    }
    for published in shown {
        let table = compare::beside(published, &ours);
        page.table(&table);
        tables.push(table);
    }
    let others: Vec<Table> = others.into_iter().map(|published| compare::beside(published, &[])).collect();
    if !others.is_empty() {
        page.folded_tables("Tables of the paper without numbers of ours", &others);
    }
}

fn method_section(page: &mut Page, runs: &[RunMaterial], latest: &[Entry]) {
    page.section("How it was measured");
    page.paragraph(
        "Features of all views are computed once with the frozen network in evaluation mode. Every epoch each training \
         object contributes one random view (classification) or an ordered pair of distinct views; the heads are one \
         linear layer (classification, colour) or three with ReLU between (rotation, translation), trained by Adam \
         without weight decay. R\u{b2} is computed once over all held-out views and all components with a single mean. \
         Values are means over several validation passes with fresh random views.",
    );
    let mut protocols: Vec<String> = Vec::new();
    for Entry { results, .. } in latest {
        let p = &results.protocol;
        let said = format!(
            "Protocol {}: {} epochs ({} for colour), {} sample(s) of each object an epoch, batch {}, hidden width {}, learning \
             rate {}, {} validation passes, seed {}; device {}.",
            p.preset,
            p.epochs,
            p.colour_epochs,
            p.samples_per_object,
            p.batch,
            p.hidden,
            p.learning_rate,
            p.passes,
            p.seed,
            results.device
        );
        if !protocols.contains(&said) {
            protocols.push(said);
        }
    }
    protocols.iter().for_each(|said| page.paragraph(said));
    folded_if_many(page, runs.len(), "Configurations and environments", |page| {
        for run in runs {
            if let Some(config) = &run.config_text {
                page.folded_text(&format!("Configuration of {}", run.name), config);
            }
            if let Some(environment) = &run.environment_text {
                page.folded_text(&format!("Environment of {}", run.name), environment);
            }
        }
    });
}

/// What `fill` adds for each of `count` runs, behind one heading where they are many.
fn folded_if_many(page: &mut Page, count: usize, heading: &str, fill: impl FnOnce(&mut Page)) {
    if count > FEW_RUNS { page.fold(&format!("{heading} ({count} runs)"), fill) } else { fill(page) }
}
