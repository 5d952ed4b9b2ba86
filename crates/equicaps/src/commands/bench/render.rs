//! `equicaps bench render`: views per second, from a mesh in memory to the bytes of a JPEG, on all cores.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dataset::jpeg::{self, ChannelOrder};
use render::{PreparedMesh, Quality};
use scene::{LatentRanges, Mesh};
use serde::Serialize;

use crate::commands::{frame, meshes};
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Views for which one hierarchy is built, as in the published datasets.
pub(super) const VIEWS_PER_OBJECT: u64 = 50;
/// Seed of the latents.
pub(super) const SEED: u64 = 2025;

/// Arguments of `equicaps bench render`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench render --quality fast
  equicaps bench render --device cuda:0 --size 128")]
pub struct Arguments {
    /// Quality preset: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t)]
    pub(super) quality: Quality,
    /// Size of a view in pixels
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(super) size: u32,
    /// How long to measure
    #[arg(long, value_name = "S", default_value = "10", value_parser = frame::seconds)]
    pub(super) seconds: f64,
    /// Where to render: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(super) device: String,
    /// Views rendered together on a GPU
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65536))]
    pub(super) batch: usize,
    /// Measure the cost for spheres of 1,000 to 1,000,000 triangles: on the CPU instead (CPU time of one thread), on a GPU
    /// in addition
    #[arg(long)]
    pub(super) growth: bool,
    /// Folder of meshes (CLASS/OBJECT...) instead of the built-in set of 20 procedural objects
    #[arg(long, value_name = "DIR")]
    meshes: Option<PathBuf>,
}

/// Sums over all threads, times in nanoseconds.
#[derive(Default)]
struct Totals {
    images: AtomicU64,
    rays: AtomicU64,
    bytes: AtomicU64,
    build: AtomicU64,
    trace: AtomicU64,
    encode: AtomicU64,
}

/// Runs `equicaps bench render`.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    if arguments.growth && arguments.device == "cpu" {
        return super::growth::run(arguments, terminal);
    }
    let meshes = match &arguments.meshes {
        Some(root) => meshes::load_all(root, terminal)?,
        None => procedural::benchmark_set(),
    };
    let triangles_mean =
        meshes.iter().map(|mesh| mesh.triangles.len()).sum::<usize>() as f64 / meshes.len() as f64;
    terminal.note(format!(
        "{} objects of {triangles_mean:.0} triangles on average, {} quality, {} x {} pixels",
        meshes.len(),
        arguments.quality,
        arguments.size,
        arguments.size
    ));
    if arguments.device != "cpu" {
        return super::render_device::run(arguments, &meshes);
    }
    // Tables that are made once a program are no part of the rate.
    render::render(None, &latents(0, 0), 16, arguments.quality);

    let totals = Totals::default();
    let cpu_start = cpu_seconds();
    let next = AtomicU64::new(0);
    let start = Instant::now();
    let deadline = start + Duration::from_secs_f64(arguments.seconds);
    let failed = std::sync::Mutex::new(None);
    rayon::broadcast(|_| {
        while Instant::now() < deadline {
            let object = next.fetch_add(1, Ordering::Relaxed);
            let mesh = &meshes[object as usize % meshes.len()];
            if let Err(error) = render_object(arguments, mesh, object, deadline, &totals)
                && let Ok(mut failed) = failed.lock()
            {
                *failed = Some(error);
            }
        }
    });
    let elapsed = start.elapsed().as_secs_f64();
    if let Ok(Some(error)) = failed.into_inner() {
        return Err(error);
    }

    let cpu_seconds = cpu_seconds().zip(cpu_start).map(|(end, start)| end - start);
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let images = read(&totals.images);
    let [build, trace, encode] = [&totals.build, &totals.trace, &totals.encode].map(read);
    let busy = build + trace + encode;
    Outcome::new(&Rates {
        quality: arguments.quality.to_string(),
        size: arguments.size,
        threads: rayon::current_num_threads(),
        seconds: elapsed,
        images,
        images_per_s: images / elapsed,
        rays_per_s: read(&totals.rays) / elapsed,
        rays_per_image: read(&totals.rays) / images,
        objects: meshes.len(),
        triangles_mean,
        cpu_ms_per_image: cpu_seconds.map(|seconds| 1e3 * seconds / images),
        jpeg_bytes_mean: read(&totals.bytes) / images,
        share_bvh: build / busy,
        share_tracing: trace / busy,
        share_encoding: encode / busy,
    })
}

/// How fast views were rendered and encoded.
#[derive(Serialize)]
struct Rates {
    quality: String,
    size: u32,
    threads: usize,
    seconds: f64,
    images: f64,
    images_per_s: f64,
    rays_per_s: f64,
    rays_per_image: f64,
    objects: usize,
    triangles_mean: f64,
    cpu_ms_per_image: Option<f64>,
    jpeg_bytes_mean: f64,
    share_bvh: f64,
    share_tracing: f64,
    share_encoding: f64,
}

impl fmt::Display for Rates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu = self.cpu_ms_per_image.map(|ms| format!(", {ms:.1} ms of CPU time per image"));
        writeln!(
            formatter,
            "{:.1} images/s, {:.1} million rays/s on {} threads{}",
            self.images_per_s,
            self.rays_per_s / 1e6,
            self.threads,
            cpu.unwrap_or_default()
        )?;
        let [build, trace, encode] =
            [self.share_bvh, self.share_tracing, self.share_encoding].map(|share| 100.0 * share);
        write!(formatter, "hierarchy {build:.1} %, tracing {trace:.1} %, encoding {encode:.1} %")
    }
}

/// Processor time of this program so far, which other programs on the machine do not disturb; Linux only.
pub(super) fn cpu_seconds() -> Option<f64> {
    /// Clock ticks a second in `/proc`, the same on every Linux.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, in parentheses, may contain anything; user and system time are the 14th and 15th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

fn latents(object: u64, view: u64) -> scene::Latents {
    LatentRanges::BENCH_T.sample(SEED, &format!("bench/{object}"), view)
}

/// Fifty views of one object, or as many as there is time for.
fn render_object(
    arguments: &Arguments,
    mesh: &Mesh,
    object: u64,
    deadline: Instant,
    totals: &Totals,
) -> anyhow::Result<()> {
    let add = |counter: &AtomicU64, since: Instant| {
        let now = Instant::now();
        counter.fetch_add((now - since).as_nanos() as u64, Ordering::Relaxed);
        now
    };
    let start = Instant::now();
    let prepared = PreparedMesh::new(mesh);
    let mut now = add(&totals.build, start);
    for view in 0..VIEWS_PER_OBJECT {
        if now >= deadline {
            break;
        }
        let latents = latents(object, view);
        let (image, stats) =
            render::render_with_stats(Some(&prepared), &latents, arguments.size, arguments.quality);
        now = add(&totals.trace, now);
        let bytes = jpeg::encode(&image.pixels, arguments.size as u16, ChannelOrder::Rgb)
            .map_err(anyhow::Error::msg)?;
        now = add(&totals.encode, now);
        totals.images.fetch_add(1, Ordering::Relaxed);
        totals.rays.fetch_add(stats.rays, Ordering::Relaxed);
        totals.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}
