//! `equicaps demo`: the newcomer's first command. Everything once, small: views of built-in objects are rendered, a
//! baseline and EquiCaps are pre-trained on them, both and the untrained network are evaluated, and a report shows it.
//!
//! Every part resumes where it was interrupted, so the same command may be given again at any time.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use dataset::card::{Format, Origin, Settings};
use dataset::jpeg::ChannelOrder;
use dataset::work::Shard;
use dataset::{CpuRenderer, Dataset, ObjectSet, ProceduralSize, Split, SplitBy, Views};
use evaluate::evaluation::{DataSource, Wanted};
use evaluate::features::data_key;
use evaluate::protocol::Task;
use evaluate::weights::{self, Which};
use evaluate::{Preset, Protocol, Results};
use methods::verdict::PoseVerdict;
use render::Quality;
use report::run_material::RunMaterial;
use report::{Cell, Table, contact_sheet, ours, run_page};
use serde::Serialize;
use train::config::PrecisionName;
use train::{Config, Session};

use crate::commands::evaluate as evaluation;
use crate::commands::explore;
use crate::commands::render::{AnyRenderer, Preset as Latents, Request as RenderRequest, make};
use crate::commands::training_progress::TrainingProgress;
use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};
use crate::{Interrupted, interrupt};

/// Arguments of `equicaps demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps demo
  equicaps demo --out first --seed 1
  equicaps demo --explore")]
pub struct Arguments {
    /// Folder for all outputs
    #[arg(long, value_name = "DIR", default_value = "equicaps-demo")]
    out: PathBuf,
    /// Seed of views, initial weights, order of objects and probes
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Open the explorer on the trained runs at the end
    #[arg(long)]
    explore: bool,
}

const SIZE: ProceduralSize = ProceduralSize { classes: 5, objects: 60 };
const VIEWS: usize = 20;
const SIDE: usize = 64;
const QUALITY: Quality = Quality::Fast;
/// The methods that are trained: the baseline, then ours.
const METHODS: [&str; 2] = ["vicreg", "equicaps"];

/// Runs the demo; what is there already is not made again.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let views_folder = arguments.out.join("views");
    let dataset = render_views(arguments, &views_folder, terminal)?;
    let sheet = arguments.out.join("contact-sheet.png");
    let layout = contact_sheet::DatasetSheet { cell: SIDE, per_class: 8, axes: false };
    contact_sheet::of_dataset(&dataset, &sheet, layout)?;
    let views: Arc<dyn Views> = Arc::new(dataset);
    for method in METHODS {
        pretrain(&arguments.out.join(method), method, &views_folder, arguments.seed, terminal)?;
    }
    let all = evaluate_all(arguments, &views, &views_folder, terminal)?;
    let runs: Vec<RunMaterial> = METHODS
        .iter()
        .map(|method| RunMaterial::read(&arguments.out.join(method)))
        .collect::<report::Result<_>>()?;
    let html = arguments.out.join("report.html");
    let introduction = "Made by `equicaps demo`: a tiny version of the whole study, on views of built-in objects. The \
                        numbers show that something is learnt; they are not comparable with the paper's.";
    run_page::write(&runs, &html, "EquiCaps demo", introduction)?
        .warning
        .iter()
        .for_each(|text| terminal.warn(text));
    let first = views.objects().first().map(dataset::Object::id).unwrap_or_default();
    let network = |results: &Results| {
        let value = |task| results.representations.get(&task).map(|probe| probe.value.value);
        let (name, method) = (results.subject.name.clone(), results.subject.method.clone());
        let (rotation_r2, top1) = (value(Task::Rotation), value(Task::Classification));
        Network { name, method, rotation_r2, top1, pose: results.pose_verdict() }
    };
    let rotation = all.first().and_then(|results| results.representations.get(&Task::Rotation));
    let explored: Vec<PathBuf> = METHODS.iter().rev().map(|method| arguments.out.join(method)).collect();
    let made = Outcome::new(&Made {
        out: shown(&arguments.out),
        report: shown(&html),
        contact_sheet: shown(&sheet),
        views: shown(&views_folder),
        networks: all.iter().map(network).collect(),
        rotation_floor: rotation.map(|probe| probe.floor),
        seconds: began.elapsed().as_secs_f64(),
        table: summary(&all).to_text(),
        next: format!(
            "equicaps neighbours {} {} --among {} --by poses --out near.png",
            dataset::shell_word(&arguments.out.join("equicaps")),
            dataset::shell_word(&views_folder.join(first).join("image_0.jpg")),
            dataset::shell_word(&views_folder)
        ),
        explore: explore::command_line(&explored),
    })?;
    if !arguments.explore {
        return Ok(made);
    }
    made.print(terminal);
    explore::serve(&explore::Arguments::of_runs(explored), terminal, |url| {
        crate::terminal::say(url);
        Ok(())
    })
}

/// What the demo made.
#[derive(Serialize)]
struct Made {
    out: String,
    report: String,
    contact_sheet: String,
    views: String,
    networks: Vec<Network>,
    rotation_floor: Option<f64>,
    seconds: f64,
    #[serde(skip)]
    table: String,
    /// A command to try next.
    #[serde(skip)]
    next: String,
    /// The command that opens the explorer on both runs.
    explore: String,
}

#[derive(Serialize)]
struct Network {
    name: String,
    method: String,
    rotation_r2: Option<f64>,
    top1: Option<f64>,
    /// Whether it has learnt poses, where it was to.
    pose: Option<PoseVerdict>,
}

impl fmt::Display for Made {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, contact_sheet, seconds, table, next, explore, .. } = self;
        let floor = self
            .rotation_floor
            .map_or_else(String::new, |floor| format!("{floor:.2} is reached without any information, "));
        writeln!(formatter, "{table}\nRotation R\u{b2} on held-out objects: {floor}1 is perfect.")?;
        for network in &self.networks {
            if let Some(message) = network.pose.as_ref().and_then(|verdict| verdict.message.as_ref()) {
                writeln!(formatter, "{}: {message}", network.name)?;
            }
        }
        write!(
            formatter,
            "{seconds:.0} s. Look at\n  {report}  tables, curves, nearest neighbours, rotation in pose space\n  \
             {contact_sheet}  the views\nThen try\n  {next}\n  {explore}"
        )
    }
}

fn render_views(arguments: &Arguments, folder: &Path, terminal: &Terminal) -> anyhow::Result<Dataset> {
    terminal.note(format!(
        "rendering {VIEWS} views of {} objects of {} classes into {}",
        SIZE.classes * SIZE.objects,
        SIZE.classes,
        folder.display()
    ));
    let request = RenderRequest {
        settings: settings(arguments.seed),
        renderer: AnyRenderer::Cpu(CpuRenderer::new(ObjectSet::procedural(SIZE, arguments.seed), QUALITY)),
        allow_mixed_devices: false,
        out: folder.to_path_buf(),
        shard: Shard::WHOLE,
        jobs: rayon::current_num_threads(),
    };
    if make(&request, terminal)?.outcome.complete.is_none() {
        return Err(Interrupted.into());
    }
    Ok(Dataset::open(folder)?)
}

fn settings(seed: u64) -> Settings {
    Settings {
        preset: Latents::Bench.to_string(),
        origin: Origin::Procedural { classes: SIZE.classes, objects: SIZE.objects },
        limit: None,
        objects: 0,
        objects_digest: String::new(),
        views: VIEWS,
        split: SplitBy::Objects,
        size: SIDE,
        seed,
        quality: QUALITY.to_string(),
        device: "cpu".to_owned(),
        mixed_devices: Vec::new(),
        channel_order: ChannelOrder::Rgb,
        format: Format::Files,
        objects_per_tar: None,
        ranges: Some(Latents::Bench.ranges()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Trains one method, or resumes its run.
fn pretrain(root: &Path, method: &str, data: &Path, seed: u64, terminal: &Terminal) -> anyhow::Result<()> {
    let mut settings = Config::settings(method, "demo")?;
    settings.set_key("demo", "data", &data.display().to_string())?;
    settings.set_key("demo", "seed", &seed.to_string())?;
    // The times and numbers of the demo are those of a CPU.
    settings.set_key("demo", "device", "cpu")?;
    let config = Config::resolve(settings)?;
    let data = train::data::open(&config, &engine::Device::cpu())?;
    interrupt::flag();
    interrupt::means_nothing_is_lost("interrupted before the first step; rerun to resume");
    let session = Session::begin_or_resume(root, config, data)?;
    let mut progress = TrainingProgress::new(terminal);
    let mut tell = |event: train::Event<'_>| progress.tell(&event);
    let outcome = session.train(&mut tell, &|| interrupt::flag().load(Ordering::Relaxed))?;
    progress.finish();
    match outcome {
        train::Outcome::Interrupted(_) => Err(Interrupted.into()),
        train::Outcome::Finished(_) | train::Outcome::AlreadyFinished(_) => Ok(()),
    }
}

/// The untrained network, the baseline and ours, in this order.
fn evaluate_all(
    arguments: &Arguments,
    views: &Arc<dyn Views>,
    data: &Path,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Results>> {
    let data = &data.display().to_string();
    let key = data_key(&**views)?;
    let ours = arguments.out.join(METHODS[1]);
    let subjects =
        [(&ours, Which::Untrained), (&arguments.out.join(METHODS[0]), Which::Newest), (&ours, Which::Newest)];
    let mut all = Vec::new();
    for (root, which) in subjects {
        let weights = weights::find(root, &which)?.remove(0);
        let out = root.join("evaluation").join(weights.folder_name());
        let subject = weights.subject(&weights.key()?, false);
        let protocol = Protocol::new(
            Preset::Quick,
            arguments.seed,
            views.split(Split::Train).len(),
            views.split(Split::Val).len(),
        );
        let wanted = Wanted {
            probes: vec![Task::Classification, Task::Rotation],
            embeddings: false,
            retrieval: which != Which::Untrained,
            frozen: false,
        };
        if let Ok(known) = Results::read(&out.join("results.json"))
            && known.subject == subject
            && known.data.data_key == key
            && known.protocol == protocol
        {
            all.push(known);
            continue;
        }
        let request = evaluation::Request {
            weights: &weights,
            several: false,
            data: &[DataSource { views, path: data, key: &key }],
            wanted: &wanted,
            protocol,
            device: "cpu",
            out: &out,
            cache: root.join("evaluation").join("features"),
            precision: PrecisionName::F32,
            batch: None,
            images: true,
        };
        all.push(evaluation::one(&request, terminal)?);
    }
    Ok(all)
}

/// The table at the end: one row a network, and what is reached without information.
fn summary(all: &[Results]) -> Table {
    let mut table = ours::probes("demo", "", all, false);
    for row in &mut table.rows {
        if let Some(Cell::Text(name)) = row.first_mut()
            && name.starts_with("untrained")
        {
            *name = "untrained".to_owned();
        }
    }
    table
}
