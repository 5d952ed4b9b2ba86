//! `equicaps bench loader`: images per second, from the files of a dataset to decoded batches in memory.

use std::fmt;
use std::time::{Duration, Instant};

use dataset::{DataSpec, Loader, LoaderOptions, OnTheFlyOptions, order};
use render::Quality;
use scene::LatentRanges;
use serde::Serialize;

use super::render::cpu_seconds;
use crate::commands::frame;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps bench loader`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench loader views
  equicaps bench loader procedural:5x20 --size 64 --seconds 5")]
pub struct Arguments {
    /// A dataset's folder, or procedural:CLASSESxOBJECTS for views rendered on the fly
    #[arg(value_name = "DATA")]
    data: DataSpec,
    /// Size of the decoded images in pixels [default: as stored]
    #[arg(long, value_name = "PX", value_parser = clap::value_parser!(u16).range(1..=8192))]
    size: Option<u16>,
    /// Objects (pairs of images) in a batch
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch: u32,
    /// How long to measure
    #[arg(long, value_name = "S", default_value = "10", value_parser = frame::seconds)]
    seconds: f64,
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let on_the_fly = OnTheFlyOptions {
        views: 50,
        held_out_views: 0,
        side: arguments.size.map_or(256, usize::from),
        seed: 0,
        ranges: LatentRanges::BENCH_T,
        memory: 0,
        prepared: 1024,
        ready: false,
    };
    let views = arguments.data.open(on_the_fly, Quality::Standard)?;
    let objects = views.objects().len();
    let counts: Vec<usize> = (0..objects).map(|object| views.views_in(object)).collect();
    let side = arguments.size.map_or(views.side(), usize::from);
    let workers = rayon::current_num_threads();
    terminal.note(format!("{}; decoded at {side}x{side} by {workers} workers", views.description()));
    let batch = arguments.batch as usize;
    let plan = (0..).flat_map(move |epoch| {
        let order = order::epoch_order(0, epoch, objects);
        let items = |object: &u32| {
            let (first, second) = order::pair(0, epoch, *object as usize, counts[*object as usize]);
            [(*object as usize, first), (*object as usize, second)]
        };
        let batches = order::batches(&order, batch, order::Cut::Published).into_iter();
        batches.map(|objects| objects.iter().flat_map(items).collect()).collect::<Vec<_>>()
    });
    let mut loader = Loader::start(views, plan, LoaderOptions { side: Some(side), workers, queue: 2 })?;
    let (began, cpu_before) = (Instant::now(), cpu_seconds());
    let mut images = 0_usize;
    while began.elapsed() < Duration::from_secs_f64(arguments.seconds) {
        let Some(loaded) = loader.next().transpose()? else { break };
        images += loaded.items.len();
        loader.recycle(loaded);
    }
    let seconds = began.elapsed().as_secs_f64();
    let per_core =
        cpu_before.zip(cpu_seconds()).map(|(before, after)| images as f64 / (after - before).max(1e-9));
    Outcome::new(&Loaded {
        images,
        seconds,
        workers,
        size: side,
        images_per_s: images as f64 / seconds,
        images_per_cpu_s: per_core,
    })
}

/// How fast images were loaded.
#[derive(Serialize)]
struct Loaded {
    images: usize,
    seconds: f64,
    workers: usize,
    size: usize,
    images_per_s: f64,
    images_per_cpu_s: Option<f64>,
}

impl fmt::Display for Loaded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { images, seconds, workers, images_per_s, .. } = self;
        write!(
            formatter,
            "{images} images in {seconds:.1} s: {images_per_s:.0} images/s with {workers} workers"
        )?;
        let per_cpu = self.images_per_cpu_s.map(|rate| format!(", {rate:.0} images per second of CPU time"));
        formatter.write_str(&per_cpu.unwrap_or_default())
    }
}
