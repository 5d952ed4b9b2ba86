//! `equicaps bench loader`: pictures a second, from the files of a dataset to decoded batches in memory.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use dataset::{DataSpec, Loader, LoaderOptions, OnTheFlyOptions, order};
use render::Quality;
use scene::LatentRanges;
use serde_json::json;

use super::render::cpu_seconds;
use crate::UsageError;
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
    /// Side of the decoded pictures in pixels [default: as stored]
    #[arg(long, value_name = "PX", value_parser = clap::value_parser!(u16).range(1..=8192))]
    size: Option<u16>,
    /// Objects (pairs of pictures) of a batch
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch: u32,
    /// How long to measure
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    if !(arguments.seconds > 0.0 && arguments.seconds < 1e6) {
        return Err(UsageError("--seconds must be a positive number".to_owned()).into());
    }
    let on_the_fly = OnTheFlyOptions {
        views: 50,
        side: arguments.size.map_or(256, usize::from),
        seed: 0,
        ranges: LatentRanges::BENCH_T,
        memory: 0,
        prepared: 1024,
        ready: false,
    };
    let views = arguments.data.open(on_the_fly, Quality::Standard)?;
    let (objects, count) = (views.objects().len(), views.views());
    let side = arguments.size.map_or(views.side(), usize::from);
    let workers = rayon::current_num_threads();
    terminal.note(format!("{}; decoded at {side}x{side} by {workers} workers", views.description()));
    let batch = arguments.batch as usize;
    let plan = (0..).flat_map(move |epoch| {
        let order = order::epoch_order(0, epoch, objects);
        let items = |object: &u32| {
            let (first, second) = order::pair(0, epoch, *object as usize, count);
            [(*object as usize, first), (*object as usize, second)]
        };
        let batches = order::batches(&order, batch).into_iter();
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
    let rate = images as f64 / seconds;
    let core =
        per_core.map_or(String::new(), |per_core| format!(", {per_core:.0} images a second of CPU time"));
    terminal.result(
        format!("{images} images in {seconds:.1} s: {rate:.0} images/s with {workers} workers{core}"),
        &json!({
            "images": images,
            "seconds": seconds,
            "workers": workers,
            "size": side,
            "images_per_s": rate,
            "images_per_cpu_s": per_core,
        }),
    );
    Ok(ExitCode::SUCCESS)
}
