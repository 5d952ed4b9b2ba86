//! `equicaps bench evaluate`: probes and retrieval on random features of any size, generated where they are used: the
//! time of a whole evaluation without its data.

use std::fmt;
use std::time::Instant;

use engine::Device;
use evaluate::agreement::{MadeUp, random_truth};
use evaluate::cuda::retrieval::{Blocks, DeviceSearch};
use evaluate::prediction::{PoseMatrices, Transformation};
use evaluate::probe;
use evaluate::protocol::Task;
use evaluate::retrieval::{self, HostSearch, Search};
use evaluate::{FeatureTable, GroundTruth, Preset, Protocol};
use pose::Group;
use serde::Serialize;
use train::config::PrecisionName;

use crate::UsageError;
use crate::commands::frame::{amount, text_table};
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps bench evaluate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench evaluate --device cuda:0    # all of 3DIEBench: 52,472 objects, 50 views
  equicaps bench evaluate --device cuda:0 --objects 11000 --held-out 2200
  equicaps bench evaluate --objects 200 --views 10 --epochs 5 --device cpu")]
pub struct Arguments {
    /// Objects, training and held-out together
    #[arg(long, value_name = "N", default_value_t = 52_472, value_parser = amount())]
    objects: usize,
    /// Held-out objects [default: a fifth]
    #[arg(long, value_name = "N", value_parser = amount())]
    held_out: Option<usize>,
    /// Views of every object
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = amount())]
    views: usize,
    /// Width of representations
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = amount())]
    width: usize,
    /// Capsules of the embedding
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = amount())]
    capsules: usize,
    /// Side of the capsules' matrices: 3 (rotations) or 4 (motions)
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(3..=4))]
    pose: u16,
    /// Epochs of the probes (at most 50 for colour)
    #[arg(long, value_name = "N", default_value_t = 300)]
    epochs: u32,
    /// Query objects of each side [default: all]
    #[arg(long, value_name = "N", value_parser = amount())]
    queries: Option<usize>,
    /// Rows of one product on a GPU: queries x candidates
    #[arg(long, value_name = "QxC", value_parser = parse_blocks)]
    blocks: Option<Blocks>,
    /// Parts to measure, separated by commas: probes, embeddings, retrieval
    #[arg(long, value_name = "PARTS", value_delimiter = ',', default_value = "probes,embeddings,retrieval", value_parser = ["probes", "embeddings", "retrieval"])]
    parts: Vec<String>,
    /// Where to compute: cpu, cuda:0, ...
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: String,
}

fn parse_blocks(text: &str) -> Result<Blocks, String> {
    let parsed = text.split_once('x').and_then(|(q, c)| Some((q.parse().ok()?, c.parse().ok()?)));
    match parsed {
        Some((queries, candidates)) if queries > 0 && candidates > 0 => Ok(Blocks { queries, candidates }),
        _ => Err("expected two numbers such as 4096x16384".to_owned()),
    }
}

/// One line of the outcome.
#[derive(Serialize)]
struct Line {
    #[serde(rename = "part")]
    what: String,
    seconds: f64,
    rate: String,
}

/// The time of an evaluation.
#[derive(Serialize)]
struct Times {
    device: String,
    objects: usize,
    held_out: usize,
    views: usize,
    width: usize,
    embedding_width: usize,
    epochs: u32,
    parts: Vec<Line>,
    seconds: f64,
    peak_bytes: usize,
}

impl fmt::Display for Times {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, held_out, views, .. } = self;
        writeln!(formatter, "{objects} objects, {held_out} held out, {views} views")?;
        let memory = format!("{:.1} GB at most", self.peak_bytes as f64 / 1e9);
        let total = Line { what: "together".to_owned(), seconds: self.seconds, rate: memory };
        let row = |line: &Line| vec![line.what.clone(), format!("{:.2}", line.seconds), line.rate.clone()];
        let rows = self.parts.iter().chain([&total]).map(row);
        formatter.write_str(text_table(&["part", "seconds", ""], rows).trim_end())
    }
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let held_out = arguments.held_out.unwrap_or(arguments.objects / 5);
    if held_out == 0 || held_out >= arguments.objects || arguments.views < 2 {
        return Err(UsageError("there must be training and held-out objects and two views".to_owned()).into());
    }
    let device = crate::device::open(&arguments.device, PrecisionName::F32)?;
    let truth = random_truth(arguments.objects - held_out, held_out, arguments.views, 55);
    let protocol = Protocol {
        epochs: arguments.epochs,
        colour_epochs: arguments.epochs.min(50),
        query_objects: arguments.queries,
        ..Protocol::new(Preset::Paper, 0, truth.train_objects, truth.train_objects)
    };
    let layout = PoseMatrices {
        capsules: arguments.capsules,
        group: if arguments.pose == 3 { Group::ROTATION } else { Group::ROTATION_OBJECT },
    };
    let wants = |part: &str| arguments.parts.iter().any(|name| name == part);
    let mut lines = Vec::new();
    if wants("probes") {
        let features = FeatureTable::random(&device, truth.poses.len(), arguments.width)?;
        probes(&Task::PUBLISHED, "", &features, &truth, &protocol, &device, terminal, &mut lines)?;
    }
    if wants("embeddings") || wants("retrieval") {
        let features = FeatureTable::random(&device, truth.poses.len(), layout.width())?;
        if wants("embeddings") {
            let tasks = [Task::Rotation, Task::TranslationObject];
            probes(&tasks, " of embeddings", &features, &truth, &protocol, &device, terminal, &mut lines)?;
        }
        if wants("retrieval") {
            let blocks = arguments.blocks.unwrap_or_default();
            lines.extend(search(&features, layout, &truth, &protocol, &device, blocks, terminal)?);
        }
    }
    Outcome::new(&Times {
        device: device.name(),
        objects: arguments.objects,
        held_out,
        views: arguments.views,
        width: arguments.width,
        embedding_width: layout.width(),
        epochs: arguments.epochs,
        seconds: lines.iter().map(|line| line.seconds).sum(),
        parts: lines,
        peak_bytes: device.memory().peak,
    })
}

#[allow(clippy::too_many_arguments)]
fn probes(
    tasks: &[Task],
    what: &str,
    features: &FeatureTable<'_>,
    truth: &GroundTruth,
    protocol: &Protocol,
    device: &Device,
    terminal: &Terminal,
    lines: &mut Vec<Line>,
) -> anyhow::Result<()> {
    for group in probe::groups(tasks) {
        let names: Vec<&str> = group.iter().map(|task| task.name()).collect();
        let what = format!("{} probe{what}", names.join(", "));
        terminal.note(&what);
        device.synchronise()?;
        let began = Instant::now();
        probe::run_group(&group, features, device, truth, protocol, |_| {}, &|| false)?;
        let seconds = began.elapsed().as_secs_f64();
        let epochs = group.first().map_or(0, |&task| protocol.epochs_of(task));
        let steps = u64::from(epochs) * truth.train_objects.div_ceil(protocol.batch) as u64;
        let rate = format!("{steps} steps, {:.0} us each", 1e6 * seconds / steps.max(1) as f64);
        lines.push(Line { what, seconds, rate });
    }
    Ok(())
}

fn search(
    features: &FeatureTable<'_>,
    layout: PoseMatrices,
    truth: &GroundTruth,
    protocol: &Protocol,
    device: &Device,
    blocks: Blocks,
    terminal: &Terminal,
) -> anyhow::Result<[Line; 2]> {
    let transformation = Transformation::PoseMatrices(layout);
    terminal.note("retrieval");
    device.synchronise()?;
    let began = Instant::now();
    let mut search: Box<dyn Search> = match (features, device) {
        (FeatureTable::Device(table), Device::Cuda(cuda)) => {
            Box::new(DeviceSearch::new(cuda, table, None, transformation, truth, blocks)?)
        }
        (FeatureTable::Host(table), _) => Box::new(HostSearch::new(table, transformation, truth, device)?),
        _ => anyhow::bail!("the features lie on another device"),
    };
    device.synchronise()?;
    let prepared = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let mut encoder = MadeUp { transformation, width: layout.width() };
    let found = retrieval::with(&mut *search, &mut encoder, truth, protocol, |_| {}, &|| false)?;
    let seconds = began.elapsed().as_secs_f64();
    // Sums for val-all contain those for val-val.
    let pairs: f64 = ["train-train", "val-all"]
        .iter()
        .filter_map(|set| found.pre.get(*set))
        .map(|pre| pre.queries as f64 * pre.candidates as f64)
        .sum();
    let rate = format!(
        "{:.2e} similarities of {} numbers, {:.1} TFLOP/s",
        pairs,
        layout.width(),
        2.0 * pairs * layout.width() as f64 / seconds / 1e12
    );
    Ok([
        Line { what: "normalising candidates".to_owned(), seconds: prepared, rate: String::new() },
        Line { what: "retrieval: MRR, H@k, PRE".to_owned(), seconds, rate },
    ])
}
