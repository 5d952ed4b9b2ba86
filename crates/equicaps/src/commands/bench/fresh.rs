//! `equicaps bench fresh`: what do fresh views cost a training run? Trains on views from the pool alone, renders alone,
//! and does both, on the same objects, with the whole training loop.

use std::cell::Cell;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use dataset::Split;
use engine::Device;
use serde_json::{Value, json};
use train::data::Data;
use train::{Config, Session, Start};

use crate::UsageError;
use crate::terminal::Terminal;

/// Arguments of `equicaps bench fresh`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench fresh --device cuda:0
  equicaps bench fresh --device cuda:0 --refresh 0.1,0.5,1 --set image_size=256 --set batch=1024
  equicaps bench fresh --device cuda:0 --data meshes/ --set procedural.objects_mib=2048")]
pub struct Arguments {
    /// A CUDA device: cuda:0, ...
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    device: String,
    /// Where views come from: a folder of meshes, or procedural:CLASSESxOBJECTS
    #[arg(long, value_name = "DATA", default_value = "procedural:55x40")]
    data: String,
    /// Values of the setting `refresh` to train with
    #[arg(long, value_name = "SHARE,...", value_delimiter = ',', default_value = "0.1,1")]
    refresh: Vec<f64>,
    /// How long to measure each
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    seconds: f64,
    /// How long to train before measuring, for pools and caches to fill
    #[arg(long, value_name = "S", default_value_t = 3.0)]
    warm_up: f64,
    /// Scale of the run: paper, small or demo
    #[arg(long, value_name = "NAME", default_value = "small")]
    preset: String,
    /// Change any setting of the run; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Views of the whole plan that are rendered in turn when rendering alone is measured.
const RENDERED: usize = 8192;

/// What training came to.
struct Trained {
    images_per_s: f64,
    fresh_per_s: f64,
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let is_time = |seconds: f64| seconds > 0.0 && seconds < 1e6;
    if !(is_time(arguments.seconds) && is_time(arguments.warm_up)) {
        return Err(UsageError("--seconds and --warm-up must be positive numbers".to_owned()).into());
    }
    let config = |refresh: f64| config(arguments, refresh);
    let first = config(0.0)?;
    arguments.refresh.iter().try_for_each(|&refresh| config(refresh).map(|_| ()))?;
    let device = crate::device::open(&first.device, first.precision)?;
    if matches!(device, Device::Cpu(_)) {
        let text = "bench fresh needs a CUDA device; on the CPU the loader renders, see bench loader";
        return Err(UsageError(text.to_owned()).into());
    }
    let root = std::env::temp_dir().join(format!("equicaps-fresh-{}", std::process::id()));
    let outcome = measure(arguments, &config, &device, &root, terminal);
    let _ = std::fs::remove_dir_all(&root);
    let (text, report) = outcome?;
    terminal.result(text.trim_end(), &report);
    Ok(ExitCode::SUCCESS)
}

fn config(arguments: &Arguments, refresh: f64) -> anyhow::Result<Config> {
    let mut settings = Config::settings("equicaps", &arguments.preset)?;
    let ours = [
        "epochs=99999",
        "procedural.views=20",
        "probes.held_out_every=0",
        "checkpoints.every_epochs=0",
        "checkpoints.every_minutes=0.0",
        "logging.image_pairs=0",
        // A few large meshes are no training set: that the representation collapses on them does not matter here.
        "guards.collapse_rank=0.0",
        "guards.collapse_std=0.0",
    ];
    let theirs = arguments.set.iter().map(String::as_str);
    ours.into_iter()
        .chain(theirs)
        .try_for_each(|text| settings.set(text))
        .map_err(|error| UsageError(error.to_string()))?;
    settings.set_key("--device", "device", &arguments.device)?;
    settings.set_key("--data", "data", &arguments.data)?;
    settings
        .set_key("--refresh", "refresh", &format!("{refresh:?}"))
        .map_err(|error| UsageError(error.to_string()))?;
    Ok(Config::resolve(settings).map_err(|error| UsageError(error.to_string()))?)
}

fn measure(
    arguments: &Arguments,
    config: &dyn Fn(f64) -> anyhow::Result<Config>,
    device: &Device,
    root: &Path,
    terminal: &Terminal,
) -> anyhow::Result<(String, Value)> {
    let train = |refresh: f64| -> anyhow::Result<Trained> {
        terminal.note(format!("training with refresh {refresh}"));
        train(arguments, &config(refresh)?, device, &root.join(refresh.to_string()))
    };
    let step = train(0.0)?.images_per_s;
    let settings = config(1.0)?;
    terminal.note("rendering alone");
    let render = render_alone(arguments, &settings, device)?;
    let mut text = format!(
        "{} at {size} x {size}, batch {}, {} quality, {} views of each object in the pool\n\
         training alone   {step:>9.0} images/s\n\
         rendering alone  {render:>9.0} images/s\n\
         {:>7}  {:>9}  {:>9}  {:>7}  {:>7}  of the rate of one after the other\n",
        arguments.data,
        settings.method.batch,
        settings.procedural.quality,
        settings.procedural.views,
        "refresh",
        "images/s",
        "fresh/s",
        "fresh",
        "lost",
        size = settings.method.image_size,
    );
    let mut rows = Vec::new();
    for &refresh in &arguments.refresh {
        let Trained { images_per_s, fresh_per_s } = train(refresh)?;
        let share = fresh_per_s / images_per_s;
        let in_turn = 1.0 / (1.0 / step + share / render);
        let lost = 1.0 - images_per_s / step;
        writeln!(
            text,
            "{refresh:>7}  {images_per_s:>9.0}  {fresh_per_s:>9.0}  {:>5.1} %  {:>5.1} %  {:.3}",
            100.0 * share,
            100.0 * lost,
            images_per_s / in_turn
        )?;
        rows.push(json!({
            "refresh": refresh,
            "images_per_s": images_per_s,
            "fresh_per_s": fresh_per_s,
            "fresh_share": share,
            "lost_share": lost,
            "one_after_the_other_images_per_s": in_turn,
            "ratio": images_per_s / in_turn,
        }));
    }
    let report = json!({
        "device": device.description(),
        "data": arguments.data,
        "size": settings.method.image_size,
        "batch": settings.method.batch,
        "quality": settings.procedural.quality.name(),
        "views": settings.procedural.views,
        "step_images_per_s": step,
        "render_images_per_s": render,
        "refresh": rows,
    });
    Ok((text, report))
}

/// Trains with the whole loop, and measures after the warm-up.
fn train(arguments: &Arguments, config: &Config, device: &Device, root: &Path) -> anyhow::Result<Trained> {
    let data = train::data::open(config, device)?;
    let rendered = data.rendered.as_ref();
    let rendered = rendered.with_context(|| format!("{} holds views, not objects", arguments.data))?;
    let watch = Watch::new(rendered.rendered_counter(), arguments);
    let session = Session::begin(root, config.clone(), data, Start::default(), &mut |_| ())?;
    let images_per_step = session.images_per_step()?;
    session.train(&mut |_| (), &|| watch.step())?;
    watch.trained(images_per_step).context("no step was measured")
}

/// Counts steps, from the end of the warm-up on.
struct Watch {
    counter: Arc<AtomicU64>,
    warm_up: Duration,
    time: Duration,
    steps: Cell<u64>,
    first_step: Cell<Option<Instant>>,
    from: Cell<Option<(Instant, u64, u64)>>,
    to: Cell<Option<(Instant, u64, u64)>>,
}

impl Watch {
    fn new(counter: Arc<AtomicU64>, arguments: &Arguments) -> Self {
        Self {
            counter,
            warm_up: Duration::from_secs_f64(arguments.warm_up),
            time: Duration::from_secs_f64(arguments.seconds),
            steps: Cell::new(0),
            first_step: Cell::new(None),
            from: Cell::new(None),
            to: Cell::new(None),
        }
    }

    /// Called before every step; whether it was the last.
    fn step(&self) -> bool {
        let now = (Instant::now(), self.steps.get(), self.counter.load(Ordering::Relaxed));
        self.steps.set(now.1 + 1);
        // The first steps fill the pool, and choose and compile.
        if now.1 == 3 {
            self.first_step.set(Some(now.0));
        }
        match (self.first_step.get(), self.from.get()) {
            (Some(first), None) if now.0 - first >= self.warm_up => self.from.set(Some(now)),
            (_, Some((began, ..))) if now.0 - began >= self.time => self.to.set(Some(now)),
            _ => {}
        }
        self.to.get().is_some()
    }

    fn trained(&self, images_per_step: f64) -> Option<Trained> {
        let ((from, steps, fresh), (to, all_steps, all_fresh)) = (self.from.get()?, self.to.get()?);
        let seconds = (to - from).as_secs_f64();
        Some(Trained {
            images_per_s: (all_steps - steps) as f64 * images_per_step / seconds,
            fresh_per_s: (all_fresh - fresh) as f64 / seconds,
        })
    }
}

/// Views a second when nothing else is done, of all objects in turn.
fn render_alone(arguments: &Arguments, config: &Config, device: &Device) -> anyhow::Result<f64> {
    let Data { views, rendered, .. } = train::data::open(config, device)?;
    let mut on_device = rendered.with_context(|| format!("{} holds views, not objects", arguments.data))?;
    let objects = views.split(Split::Train).len();
    // Steps that share no factor with the number of objects visit them all, far apart.
    let items: Vec<(usize, usize)> = (0..RENDERED).map(|k| (k * 7919 % objects, k / objects)).collect();
    Ok(on_device.rendering_rate(&items, Duration::from_secs_f64(arguments.seconds))?)
}
