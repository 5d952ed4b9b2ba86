//! `equicaps render`: a dataset of views from meshes or from the built-in library.

mod arguments;
mod options;
mod planned;
mod views;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use dataset::card::{Counts, Settings};
use dataset::plan::Plan;
use dataset::work::{self, ProduceOptions, Shard, Skipped, produce};
use dataset::{CpuRenderer, CudaRenderer};
use ranks::World;
use serde::Serialize;

use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};
use crate::{UsageError, interrupt, world};

use arguments::DatasetArguments;

pub use options::{Preset, parse_shard};
pub use planned::{difference, like_published, planned};

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
    let ranges = arguments.ranges()?;
    if let Some(root) = &arguments.meshes {
        refuse_inside(&out, root)?;
    }
    let (set, origin) = arguments.objects()?;
    // Who gives a list knows the objects.
    if let (Some(root), None) = (&arguments.meshes, &arguments.objects)
        && let Some(wrong) = dataset::wrong_depth(root, &set.ids())
    {
        let meant = dataset::shell_word(&wrong.meant);
        terminal.warn(format!("{wrong} (equicaps render --meshes {meant} ...)"));
    }
    set.unused().iter().for_each(|text| terminal.warn(text));
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
        settings: arguments.settings(ranges, origin, device),
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
    let is_complete = outcome.as_ref().is_ok_and(|outcome| outcome.complete.is_some());
    let listed = if is_complete { format!(", all of them in {}", work::WARNINGS) } else { String::new() };
    let warnings = dataset::shown_warnings(request.renderer.loader().warnings(), &listed);
    warnings.iter().for_each(|text| terminal.warn(text));
    Ok(Made { objects, outcome: outcome?, seconds: began.elapsed().as_secs_f64() })
}

/// How many skipped objects are shown; all of them are in `skipped.json`.
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
    let loader = request.renderer.loader();
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
        warnings: loader.set.unused().iter().cloned().chain(loader.warnings()).collect(),
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
    warnings: Vec<String>,
    #[serde(skip)]
    shard: Shard,
    #[serde(skip)]
    finish: String,
}

impl fmt::Display for Rendered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { out, images_rendered, seconds, images_per_s, shard, finish, objects_missing, .. } = self;
        let rendered = count(images_rendered, "image");
        let done = format!("{rendered} in {seconds:.1} s ({images_per_s:.1} images/s)");
        if self.complete {
            let counts = self.counts.as_ref();
            let objects = self.objects - self.skipped.len();
            let images = count(counts.map_or(0, |counts| counts.images), "image");
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
            write!(formatter, "{out}: complete, {images} of {objects}{skipped}; {now}")
        } else if self.interrupted {
            write!(formatter, "interrupted after {done}; progress is saved; rerun to resume")
        } else {
            write!(
                formatter,
                "{out}: shard {}/{} is done, {done}; {} of other shards {} missing (the last shard \
                 completes the dataset; `{finish}` does it by hand)",
                shard.index,
                shard.count,
                count(objects_missing, "object"),
                if *objects_missing == 1 { "is" } else { "are" }
            )
        }
    }
}
