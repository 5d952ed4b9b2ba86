//! `equicaps evaluate`: probes and retrieval on frozen weights, by the published protocols.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dataset::{Dataset, Split, Views};
use evaluate::Encoder;
use evaluate::evaluation::{self, Event, Outcome, Wanted};
use evaluate::features::{Extraction, data_key};
use evaluate::neighbours::{self, NeighbourQuery};
use evaluate::{Preset, Protocol, Results};
use report::ours;
use serde_json::json;
use train::RunFolder;

use crate::commands::pose_sweep;
use crate::commands::subject::{self, Weights, Which};
use crate::interrupt;
use crate::terminal::{Progress, Terminal, shown};
use crate::{Interrupted, UsageError};

/// Arguments of `equicaps evaluate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  A first look:
    equicaps evaluate runs/first --data views --preset quick
  All tasks by the published protocol:
    equicaps evaluate runs/equicaps --data 3DIEBench --device cuda:0
  Every checkpoint that was kept:
    equicaps evaluate runs/equicaps --data 3DIEBench --epochs all --tasks rotation,classification
  The network before training:
    equicaps evaluate runs/equicaps --data 3DIEBench --untrained

Tasks: classification, rotation, translation-object, translation-base, colour, embeddings,
retrieval, all. A supervised run (train --method supervised --set network.task=rotation) is
measured by its own head, on its own task.
Features of all views are computed once and kept (--cache); an interrupted evaluation goes on
where it was. Results of another protocol, seed or dataset are kept beside the new ones.")]
pub struct Arguments {
    /// A run's folder, or a checkpoint
    #[arg(value_name = "RUN|CHECKPOINT")]
    weights: PathBuf,
    /// The dataset's folder
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folder of the split files, where they are not beside the pictures
    #[arg(long, value_name = "DIR")]
    lists: Option<PathBuf>,
    /// What to measure, separated by commas
    #[arg(long, value_name = "TASKS", value_delimiter = ',', default_value = "all")]
    tasks: Vec<String>,
    /// The published protocol, or a quick one for a first look and small sets
    #[arg(long, value_enum, default_value_t = PresetName::Paper)]
    preset: PresetName,
    /// Folder for results [default: RUN/evaluation]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Which checkpoints of a run: newest, all, or epochs separated by commas
    #[arg(long, value_name = "WHICH", default_value = "newest")]
    epochs: String,
    /// Evaluate the run's network before training instead
    #[arg(long, conflicts_with = "epochs")]
    untrained: bool,
    /// cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Seed of heads, orders, pairs and query subsets
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Folder of kept features [default: OUT/features]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Arithmetic of the network; probes and retrieval are always in f32
    #[arg(long, value_name = "P", default_value = "f32", value_parser = ["f32", "bf16"])]
    precision: String,
    /// Pictures in a batch, at most [default: 128, 512 on a GPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Train probes on the frozen backbone of a supervised run too, instead of asking its own head
    #[arg(long)]
    frozen: bool,
    /// Make no pictures (nearest neighbours, rotations in pose space)
    #[arg(long)]
    no_pictures: bool,
    /// Side of the images in pixels, where it is to be another than in training
    #[arg(long, value_name = "PIXELS")]
    image_size: Option<usize>,
}

/// The presets on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PresetName {
    /// The published protocol.
    Paper,
    /// Fewer epochs, narrower heads.
    Quick,
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::Paper => Self::Paper,
            PresetName::Quick => Self::Quick,
        }
    }
}

/// One evaluation, as other commands ask for it.
pub struct Request<'a> {
    /// The weights.
    pub weights: &'a Weights,
    /// Whether several checkpoints of one run are evaluated.
    pub several: bool,
    /// The views.
    pub views: &'a Arc<dyn Views>,
    /// Their folder.
    pub data: &'a Path,
    /// Hash of the data.
    pub data_key: &'a str,
    /// What to measure.
    pub wanted: &'a Wanted,
    /// How.
    pub protocol: Protocol,
    /// The device's name.
    pub device: &'a str,
    /// Folder for results.
    pub out: &'a Path,
    /// Folder of kept features.
    pub cache: PathBuf,
    /// Arithmetic of the network: `f32` or `bf16`.
    pub precision: &'a str,
    /// Pictures in a batch, at most.
    pub batch: usize,
    /// Whether to make pictures.
    pub pictures: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let wanted = Wanted::parse(&arguments.tasks).map_err(|error| UsageError(error.to_string()))?;
    let wanted = Wanted { frozen: arguments.frozen, ..wanted };
    let which = which(arguments)?;
    let lists = arguments.lists.as_deref().unwrap_or(&arguments.data);
    let all: Vec<Weights> = subject::find(&arguments.weights, &which)?
        .into_iter()
        .map(|weights| weights.at_size(arguments.image_size))
        .collect();
    let views: Arc<dyn Views> = Arc::new(Dataset::open_with_lists(&arguments.data, lists)?);
    terminal.note(views.description());
    let base = match (&arguments.out, arguments.weights.is_dir()) {
        (Some(out), _) => out.clone(),
        (None, true) => arguments.weights.join("evaluation"),
        // A checkpoint of a run lies in RUN/checkpoints.
        (None, false) => match arguments.weights.parent().and_then(Path::parent) {
            Some(run) if RunFolder::open(run).is_ok() => run.join("evaluation"),
            _ => {
                let text = "give --out DIR for the results of a checkpoint outside of a run";
                return Err(UsageError(text.to_owned()).into());
            }
        },
    };
    let key = data_key(&*views)?;
    let mut found = Vec::new();
    let mut folders = Vec::new();
    for weights in &all {
        let out = if arguments.out.is_some() && all.len() == 1 {
            base.clone()
        } else {
            base.join(weights.folder_name())
        };
        let request = Request {
            weights,
            several: all.len() > 1,
            views: &views,
            data: &arguments.data,
            data_key: &key,
            wanted: &wanted,
            protocol: Protocol::new(arguments.preset.into(), arguments.seed, views.split(Split::Train).len()),
            device: &arguments.device,
            out: &out,
            cache: arguments.cache.clone().unwrap_or_else(|| base.join("features")),
            precision: &arguments.precision,
            batch: arguments.batch.map_or(if arguments.device == "cpu" { 128 } else { 512 }, |n| n as usize),
            pictures: !arguments.no_pictures,
        };
        found.push(one(&request, terminal)?);
        folders.push(out);
    }
    let mut text = ours::probes("probes", "", &found, false).to_text();
    if found.iter().any(|results| !results.embeddings.is_empty()) {
        text.push_str("\nembeddings\n");
        text.push_str(&ours::probes("embeddings", "", &found, true).to_text());
    }
    for table in ours::retrieval(&found) {
        text.push_str(&format!("\n{}\n{}", table.caption, table.to_text()));
    }
    let places: Vec<String> = folders.iter().map(shown).collect();
    text.push_str(&format!("\nresults in {}", places.join(", ")));
    terminal.result(text, &json!({ "results": found, "folders": places }));
    Ok(ExitCode::SUCCESS)
}

fn which(arguments: &Arguments) -> anyhow::Result<Which> {
    if arguments.untrained {
        return Ok(Which::Untrained);
    }
    match arguments.epochs.as_str() {
        "newest" => Ok(Which::Newest),
        "all" => Ok(Which::All),
        list => {
            let epochs: Result<Vec<u64>, _> = list.split(',').map(|epoch| epoch.trim().parse()).collect();
            let wrong = || {
                UsageError(format!("--epochs is {list:?}, expected newest, all, or numbers such as 100,500"))
            };
            Ok(Which::Epochs(epochs.map_err(|_| wrong())?))
        }
    }
}

/// Evaluates one set of weights and writes its folder: `results.json`, tables, pictures.
pub fn one(request: &Request<'_>, terminal: &Terminal) -> anyhow::Result<Results> {
    let device = crate::device::open(request.device, request.precision)?;
    let mut encoder = request.weights.open(&device, terminal)?;
    let subject = request.weights.subject(request.several)?;
    terminal.note(format!("evaluating {} with the {} protocol", subject.name, request.protocol.preset));
    let extraction = Extraction {
        cache: Some(request.cache.clone()),
        weights_key: subject.weights_key.clone(),
        data_key: request.data_key.to_owned(),
        kind: match request.precision {
            "f32" => encoder.side().to_string(),
            other => format!("{}-{other}", encoder.side()),
        },
        batch: request.batch,
        workers: rayon::current_num_threads(),
    };
    let stop = interrupt::flag();
    let progress = std::cell::RefCell::new(None::<Progress>);
    let outcome = evaluation::run(
        &mut encoder,
        subject,
        request.views,
        &request.data.display().to_string(),
        request.wanted,
        &request.protocol,
        &extraction,
        &device,
        |event| match event {
            Event::Begin(name, total, unit) => {
                if let Some(previous) = progress.replace(None) {
                    previous.finish();
                }
                let next = terminal.progress(total, unit);
                next.message(name);
                progress.replace(Some(next));
            }
            Event::Advance(count) => {
                if let Some(progress) = &*progress.borrow() {
                    progress.advance(count);
                }
            }
        },
        &|| stop.load(Ordering::Relaxed),
    );
    if let Some(progress) = progress.replace(None) {
        progress.finish();
    }
    let mut outcome = match outcome {
        Err(evaluate::Error::Interrupted) => return Err(Interrupted.into()),
        other => other?,
    };
    if request.precision != "f32" {
        outcome.results.device = format!("{}, features in {}", outcome.results.device, request.precision);
    }
    // What was measured before under the same conditions stays, what was measured otherwise is kept beside.
    let beside = request.out.join(outcome.results.name_aside());
    if let Ok(known) = Results::read(&request.out.join(RESULTS)) {
        let is_current = known.subject.weights_key == outcome.results.subject.weights_key;
        if is_current && !known.is_measured_like(&outcome.results) {
            let aside = request.out.join(known.name_aside());
            known.write(&aside)?;
            terminal.note(format!("what was measured otherwise before is kept in {}", aside.display()));
            if let Ok(earlier) = Results::read(&beside) {
                outcome.results.keep(earlier);
            }
        }
        outcome.results.keep(known);
    }
    write(request, &outcome, &device)?;
    // It is in the main file again.
    let _ = std::fs::remove_file(beside);
    if request.pictures {
        pose_sweep::write(&mut encoder, request, terminal)?;
    }
    Ok(outcome.results)
}

/// File of everything measured.
pub const RESULTS: &str = "results.json";
/// File of the nearest neighbours found, read again by `equicaps report`.
pub const NEIGHBOURS: &str = "neighbours.json";
/// Queries of the neighbour picture, and neighbours of each.
const QUERIES: usize = 6;
const NEIGHBOURS_EACH: usize = 3;

fn write(request: &Request<'_>, outcome: &Outcome, device: &engine::Device) -> anyhow::Result<()> {
    let out = request.out;
    dataset::durable::create_folder(out)?;
    let all = [outcome.results.clone()];
    let mut tables = vec![ours::probes("probes", "Probes on representations", &all, false)];
    if !outcome.results.embeddings.is_empty() {
        tables.push(ours::probes("embeddings", "Probes on embeddings", &all, true));
    }
    tables.extend(ours::retrieval(&all));
    let join = |form: fn(&report::Table) -> String| tables.iter().map(form).collect::<Vec<_>>().join("\n");
    let files = [
        ("tables.md", join(report::Table::to_markdown)),
        ("tables.tex", join(report::Table::to_latex)),
        ("tables.csv", join(report::Table::to_csv)),
    ];
    for (name, text) in files {
        dataset::durable::write(&out.join(name), text.as_bytes())?;
    }
    if request.pictures {
        let queries = neighbours::choose_queries(&outcome.truth, QUERIES, request.protocol.seed);
        let table = &outcome.features.representation;
        let found: Vec<NeighbourQuery> =
            neighbours::find(table, &outcome.truth, &queries, NEIGHBOURS_EACH, device)?;
        dataset::durable::write(&out.join(NEIGHBOURS), serde_json::to_string_pretty(&found)?.as_bytes())?;
    }
    // Last, so that its presence says that the folder is complete.
    outcome.results.write(&out.join(RESULTS))?;
    Ok(())
}
