//! `equicaps render`: a dataset of views from meshes or from the built-in library.

mod options;
mod planned;
mod views;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use dataset::card::{Counts, Origin, Settings};
use dataset::plan::Plan;
use dataset::work::{self, ProduceOptions, Shard, Skipped, produce};
use dataset::{CpuRenderer, CudaRenderer, FEWEST_VIEWS, ObjectSet, ProceduralSize};
use ranks::World;
use render::Quality;
use serde::Serialize;

use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};
use crate::{UsageError, interrupt, world};

pub use options::parse_shard;
pub use options::{Format, Order, Preset, Split};
use options::{RangeOption, Up};
pub use planned::{Planned, planned};

/// Arguments of `equicaps render`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  A dataset from the built-in library:
    equicaps render --procedural 55x20 --out views
  From ShapeNet, or from any CLASS/OBJECT folders:
    equicaps render --meshes ShapeNetCore.v2 --out views
  Objects of other sizes and shapes, and ranges of your own:
    equicaps render --procedural 55x20 --preset 3diebench-a --latents my.toml --out views
  Smaller rotations, no translations:
    equicaps render --meshes objects --preset 3diebench --range rotation=-pi/4,pi/4 --out views
  The first of eight processes that share the work:
    equicaps render --meshes objects --shard 0/8 --out views
  Known objects, new views (for collections whose objects have no common front):
    equicaps render --meshes objects --split views --out views
  On a GPU, as tar shards:
    equicaps render --procedural 55x20 --device cuda:0 --format shards --out views
  Images for given latents:
    equicaps render views --views views.json --root . --out again

Resumable and shardable; the output is byte-identical for any number of jobs, shards and
interruptions.

Exit status: 0 done (skipped objects are listed), 1 failed, no usable object, or --strict and
any skipped, 2 wrong usage, 75 interrupted (progress is saved; rerun to resume)."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Subcommand>,
    #[command(flatten)]
    dataset: DatasetArguments,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Render views for given latents, as PNG
    Views(views::Arguments),
}

/// What to render, and how.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("objects_from").required(true).args(["meshes", "procedural"]))]
struct DatasetArguments {
    /// Which published dataset to follow; 3diebench-s and -a also scale and shear objects, and 3diebench-ood has rotations
    /// out of the range of 3DIEBench
    #[arg(long, value_enum, default_value_t = Preset::BenchT)]
    preset: Preset,
    /// Folder of meshes: ShapeNetCore v2, or CLASS/OBJECT.ext, or CLASS/OBJECT/*.ext (obj, glb, gltf, ply, off, stl)
    #[arg(long, value_name = "DIR")]
    meshes: Option<PathBuf>,
    /// List of the objects to render: a NumPy array of (class, object), or text with CLASS/OBJECT lines
    #[arg(long, value_name = "LIST", requires = "meshes")]
    objects: Option<PathBuf>,
    /// Objects of the built-in library: number of classes (at most 55) and of objects in each
    #[arg(long, value_name = "CLASSESxOBJECTS")]
    procedural: Option<ProceduralSize>,
    /// Folder of the dataset, created if missing
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
    /// Views of each object
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    views: u32,
    /// What is held out: objects that training never sees, or the last fifth of the views of every object
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Split::Objects)]
    split: Split,
    /// Width and height of a view in pixels
    #[arg(long, default_value_t = 256, value_name = "PX", value_parser = clap::value_parser!(u16).range(8..=8192))]
    size: u16,
    /// Seed of latents, split and built-in objects
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Rendering quality: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t = Quality::Standard)]
    quality: Quality,
    /// Where to render: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Resume a dataset that was started on another kind of device (images differ by rounding; the card records it)
    #[arg(long)]
    allow_mixed_devices: bool,
    /// Layout on disk: the published folders, or tar shards for WebDataset with an index
    #[arg(long, value_enum, default_value_t = Format::Files)]
    format: Format,
    /// Objects of one tar archive
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    objects_per_tar: u32,
    /// Render part I of N (I from 0); all parts may share one --out
    #[arg(long, default_value = "0/1", value_name = "I/N", value_parser = parse_shard)]
    shard: Shard,
    /// Objects and views processed at the same time [default: --threads, twice as many with a GPU]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Order of the colour channels in the files; the published ones are bgr (red and blue exchanged)
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Rgb)]
    channel_order: Order,
    /// Render at most N objects, spread over the classes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Axis that points up in the mesh files [default: y for obj and gltf, z for stl, ply and off]
    #[arg(long, value_name = "AXIS", value_enum, requires = "meshes")]
    up: Option<Up>,
    /// Ranges and distributions of latents, over those of the preset: a TOML file (docs/groups.md shows one)
    #[arg(long, value_name = "FILE")]
    latents: Option<PathBuf>,
    /// Range of a latent, for example rot_x=-pi/4,pi/4 or translation=-0.2,0.2; may be repeated
    #[arg(long = "range", value_name = "NAME=LOW,HIGH", allow_hyphen_values = true)]
    ranges: Vec<RangeOption>,
    /// Fail if any object had to be skipped
    #[arg(long)]
    strict: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    match &arguments.command {
        Some(Subcommand::Views(arguments)) => views::run(arguments, terminal),
        None => render_dataset(&arguments.dataset, terminal),
    }
}

fn render_dataset(arguments: &DatasetArguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let world = world::start()?;
    let out = arguments.out.clone().context("--out is missing")?;
    let mut ranges = arguments.preset.ranges();
    if let Some(file) = &arguments.latents {
        train::latents_file::apply(file, &mut ranges).map_err(|error| UsageError(error.to_string()))?;
    }
    for range in &arguments.ranges {
        range.apply(&mut ranges).map_err(UsageError)?;
    }
    ranges.validate().map_err(|error| UsageError(error.to_string()))?;
    if arguments.split == Split::Views && (arguments.views as usize) < FEWEST_VIEWS {
        let message = format!(
            "--split views needs --views {FEWEST_VIEWS} or more: a pair for training and a pair that is held out"
        );
        return Err(UsageError(message).into());
    }
    let (set, origin) = match (&arguments.meshes, arguments.procedural) {
        (Some(root), _) => {
            refuse_inside(&out, root)?;
            let set = ObjectSet::meshes(root, arguments.objects.as_deref(), arguments.up.map(Into::into))?;
            // Who gives a list knows the objects.
            if arguments.objects.is_none()
                && let Some(wrong) = dataset::wrong_depth(root, &set.ids())
            {
                let meant = dataset::shell_word(&wrong.meant);
                terminal.warn(format!("{wrong} (equicaps render --meshes {meant} ...)"));
            }
            (set, Origin::Meshes { up: arguments.up.map(|up| up.to_string()) })
        }
        (None, Some(size)) => {
            let origin = Origin::Procedural { classes: size.classes, objects: size.objects };
            (ObjectSet::procedural(size, arguments.seed), origin)
        }
        (None, None) => {
            return Err(UsageError("give --meshes DIR or --procedural CLASSESxOBJECTS".into()).into());
        }
    };
    let format = dataset::card::Format::from(arguments.format);
    let sharded = arguments.format == Format::Shards;
    let loader = CpuRenderer::new(set, arguments.quality);
    if arguments.device == "cpu" && gpu::devices().is_ok_and(|found| !found.is_empty()) {
        terminal.note("rendering on the CPU; --device cuda:0 renders on the GPU, many times as fast");
    }
    let (renderer, device) = match crate::device::renderer_of(world, &arguments.device, arguments.quality)? {
        None => (AnyRenderer::Cpu(loader), "cpu".to_owned()),
        Some(renderer) => {
            let kind = CudaRenderer::kind(renderer.context());
            (AnyRenderer::Cuda(CudaRenderer::new(loader, renderer)?), kind)
        }
    };
    // Half of the jobs wait for the GPU while the others load and encode.
    let threads = rayon::current_num_threads();
    let jobs = if matches!(renderer, AnyRenderer::Cuda(_)) { 2 * threads + 2 } else { threads };
    let mut request = Request {
        settings: Settings {
            preset: arguments.preset.to_string(),
            origin,
            limit: arguments.limit.map(|limit| limit as usize),
            objects: 0,
            objects_digest: String::new(),
            views: arguments.views as usize,
            split: arguments.split.into(),
            size: usize::from(arguments.size),
            seed: arguments.seed,
            quality: arguments.quality.to_string(),
            device,
            mixed_devices: Vec::new(),
            channel_order: arguments.channel_order.into(),
            format,
            objects_per_tar: sharded.then_some(arguments.objects_per_tar as usize),
            ranges: Some(ranges),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        renderer,
        out,
        shard: shard_of(arguments, world)?,
        jobs: arguments.jobs.map_or(jobs, usize::from),
        allow_mixed_devices: arguments.allow_mixed_devices,
    };
    let made = world::all(world, make(&request, terminal))?;
    let Some(made) = joined(world, &mut request, made)? else { return Ok(Outcome::nothing()) };
    report(&request, made, arguments.strict, terminal)
}

/// The part of this process: its own of those that were started together, unless one is named.
fn shard_of(arguments: &DatasetArguments, world: &World) -> anyhow::Result<Shard> {
    if !world.is_shared() {
        return Ok(arguments.shard);
    }
    if arguments.shard.count > 1 {
        bail!(UsageError(
            "--shard is for processes that were not started together; mpirun needs none".into()
        ));
    }
    Ok(Shard { index: world.rank(), count: world.ranks() })
}

/// What all processes made together; for the first one to report.
fn joined(world: &World, request: &mut Request, mut made: Made) -> anyhow::Result<Option<Made>> {
    if !world.is_shared() {
        return Ok(Some(made));
    }
    let (images, objects) = (made.outcome.images_rendered, made.outcome.objects_rendered as u64);
    let own =
        [images.to_le_bytes(), objects.to_le_bytes(), u64::from(made.outcome.interrupted).to_le_bytes()];
    let mut sums = [0; 3];
    for bytes in world.control().exchange(&own.concat())? {
        for (sum, number) in sums.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *sum += u64::from_le_bytes(*number);
        }
    }
    if !world.is_first() {
        return Ok(None);
    }
    let seconds = made.seconds;
    if sums[2] == 0 {
        // Everything is there; whoever came last has completed the dataset, or this does it.
        request.shard = Shard { index: 0, count: 1 };
        made = make(request, &Terminal::new(false, true))?;
    }
    made.outcome.interrupted = sums[2] > 0;
    (made.outcome.images_rendered, made.outcome.objects_rendered) = (sums[0], sums[1] as usize);
    Ok(Some(Made { seconds, ..made }))
}

/// A dataset among its own meshes would be taken for meshes the next time.
fn refuse_inside(out: &Path, meshes: &Path) -> anyhow::Result<()> {
    if std::path::absolute(out)?.starts_with(std::path::absolute(meshes)?) {
        let message = format!("--out {} lies inside --meshes {}", out.display(), meshes.display());
        return Err(UsageError(message).into());
    }
    Ok(())
}

/// What renders a dataset.
pub enum AnyRenderer {
    /// The CPU.
    Cpu(CpuRenderer),
    /// A GPU.
    Cuda(CudaRenderer),
}

impl AnyRenderer {
    /// What loads the objects.
    fn loader(&self) -> &CpuRenderer {
        match self {
            Self::Cpu(loader) => loader,
            Self::Cuda(renderer) => renderer.loader(),
        }
    }
}

/// A dataset to make.
pub struct Request {
    /// What determines its bytes.
    pub settings: Settings,
    /// What renders it.
    pub renderer: AnyRenderer,
    /// Where it goes.
    pub out: PathBuf,
    /// The part to do.
    pub shard: Shard,
    /// Views rendered at the same time.
    pub jobs: usize,
    /// Whether a dataset begun on another kind of device may be continued.
    pub allow_mixed_devices: bool,
}

/// What became of a request.
pub struct Made {
    /// Objects of the whole dataset, before any is skipped.
    pub objects: usize,
    /// What producing came to.
    pub outcome: work::Outcome,
    /// How long it took.
    pub seconds: f64,
}

/// Renders a dataset, or resumes it, with progress on the terminal.
pub fn make(request: &Request, terminal: &Terminal) -> anyhow::Result<Made> {
    let plan = Plan::new(request.settings.clone(), &request.renderer.loader().set.ids());
    let objects = plan.objects.len();
    let progress = std::sync::OnceLock::new();
    let begin = |before: usize, images: u64| {
        if before > 0 {
            let are = if before == 1 { "is" } else { "are" };
            terminal.note(format!("{} {are} already rendered", count(before, "object")));
        }
        let _ = progress.set(terminal.progress(images, "images"));
    };
    let options = ProduceOptions {
        jobs: request.jobs,
        shard: request.shard,
        allow_mixed_devices: request.allow_mixed_devices,
        stop: interrupt::flag(),
        on_begin: &begin,
        on_images: &|images| {
            if let Some(progress) = progress.get() {
                progress.advance(images);
            }
        },
    };
    interrupt::means("stopping after the views in hand; progress is saved; once more to end at once");
    let began = Instant::now();
    let outcome = match &request.renderer {
        AnyRenderer::Cpu(renderer) => produce(&request.out, plan, renderer, &options),
        AnyRenderer::Cuda(renderer) => produce(&request.out, plan, renderer, &options),
    };
    if let Some(progress) = progress.get() {
        progress.finish();
    }
    for warning in request.renderer.loader().warnings().iter().take(SHOWN) {
        terminal.warn(warning);
    }
    let more = request.renderer.loader().warnings().len().saturating_sub(SHOWN);
    if more > 0 {
        terminal.warn(format!("{more} more warnings about meshes"));
    }
    Ok(Made { objects, outcome: outcome?, seconds: began.elapsed().as_secs_f64() })
}

/// How many warnings and skipped objects are shown; all skipped ones are in `skipped.json`.
const SHOWN: usize = 10;

fn report(request: &Request, made: Made, strict: bool, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let Made { objects, outcome, seconds } = made;
    for skipped in outcome.skipped.iter().take(SHOWN) {
        // Most reasons begin with the mesh's file.
        let id = format!("{}/{}", skipped.synset, skipped.name);
        let place = if skipped.reason.starts_with(&id) { String::new() } else { format!("{id}: ") };
        terminal.warn(format!("skipped {place}{}", skipped.reason));
    }
    if outcome.skipped.len() > SHOWN {
        let list = if outcome.complete.is_some() { ", all of them in skipped.json" } else { "" };
        terminal.warn(format!("{} more objects skipped{list}", outcome.skipped.len() - SHOWN));
    }
    let (interrupted, skipped) = (outcome.interrupted, outcome.skipped.len());
    let rendered = Rendered {
        out: shown(&request.out),
        complete: outcome.complete.is_some(),
        interrupted,
        objects,
        counts: outcome.complete.and_then(|card| card.counts),
        objects_before: outcome.objects_before,
        objects_rendered: outcome.objects_rendered,
        objects_missing: outcome.objects_missing,
        images_rendered: outcome.images_rendered,
        seconds,
        images_per_s: outcome.images_rendered as f64 / seconds.max(1e-9),
        skipped: outcome.skipped,
        shard: request.shard,
        finish: format!("equicaps dataset finish {}", dataset::shell_word(&request.out)),
    };
    let outcome = Outcome::new(&rendered)?;
    if strict && skipped > 0 {
        let why = format!("{} skipped, which --strict does not allow", count(skipped, "object"));
        return Ok(outcome.failed(why).interrupted_if(interrupted));
    }
    Ok(outcome.interrupted_if(interrupted))
}

/// What rendering came to.
#[derive(Serialize)]
struct Rendered {
    out: String,
    complete: bool,
    interrupted: bool,
    objects: usize,
    counts: Option<Counts>,
    objects_before: usize,
    objects_rendered: usize,
    objects_missing: usize,
    images_rendered: u64,
    seconds: f64,
    images_per_s: f64,
    skipped: Vec<Skipped>,
    #[serde(skip)]
    shard: Shard,
    #[serde(skip)]
    finish: String,
}

impl fmt::Display for Rendered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { out, images_rendered, seconds, images_per_s, shard, finish, objects_missing, .. } = self;
        let done = format!("{images_rendered} images in {seconds:.1} s ({images_per_s:.1} images/s)");
        if self.complete {
            let counts = self.counts.as_ref();
            let objects = self.objects - self.skipped.len();
            let images = counts.map_or(0, |counts| counts.images);
            let skipped = match self.skipped.len() {
                0 => String::new(),
                skipped => format!(", {} skipped", count(skipped, "object")),
            };
            let now = match (images_rendered, self.skipped.len()) {
                (0, 0) => "nothing was left to do",
                (0, _) => {
                    "nothing was left to do (a complete dataset is not changed: use another --out after repairing \
                     skipped objects)"
                }
                _ => &done,
            };
            let objects = count(objects, "object");
            write!(formatter, "{out}: complete, {images} images of {objects}{skipped}; {now}")
        } else if self.interrupted {
            write!(formatter, "interrupted after {done}; progress is saved; rerun to resume")
        } else {
            write!(
                formatter,
                "{out}: shard {}/{} is done, {done}; {objects_missing} objects of other shards are missing (the last \
                 shard completes the dataset; `{finish}` does it by hand)",
                shard.index, shard.count
            )
        }
    }
}
