//! `equicaps bench fresh`: what do fresh views cost a training run? Trains on views from the pool alone, renders alone,
//! and does both, on the same objects, with the whole training loop.

use std::cell::Cell;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use dataset::Split;
use dataset::cuda::DeviceImages;
use engine::Device;
use serde::Serialize;
use train::data::Data;
use train::{Config, Session, Start};

use crate::UsageError;
use crate::commands::frame::{self, text_table};
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps bench fresh`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench fresh --device cuda:0
  equicaps bench fresh --device cuda:0 --refresh 0.1,0.5,1 --set image_size=256 --set batch=1024
  equicaps bench fresh --device cuda:0 --data meshes/ --set procedural.objects_mib=2048")]
pub struct Arguments {
    /// CUDA device: cuda:0, ...
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    device: String,
    /// Source of views: a folder of meshes, or procedural:CLASSESxOBJECTS
    #[arg(long, value_name = "DATA", default_value = "procedural:55x40")]
    data: String,
    /// Values of the setting `refresh` to train with
    #[arg(long, value_name = "SHARE,...", value_delimiter = ',', default_value = "0.1,1")]
    refresh: Vec<f64>,
    /// How long to measure each value, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = frame::seconds)]
    seconds: f64,
    /// How long to train before measuring, in seconds, until pools and caches are filled
    #[arg(long, value_name = "S", default_value = "3", value_parser = frame::seconds)]
    warm_up: f64,
    /// Preset: paper, small or demo
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
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let config = |refresh: f64| config(arguments, refresh);
    let first = config(0.0)?;
    arguments.refresh.iter().try_for_each(|&refresh| config(refresh).map(|_| ()))?;
    let device = crate::device::open(&first.device, first.precision)?;
    if matches!(device, Device::Cpu(_)) {
        let text = "bench fresh needs a CUDA device; on the CPU the loader renders, see bench loader";
        bail!(UsageError(text.to_owned()));
    }
    let root = tempfile::Builder::new().prefix("equicaps-fresh-").tempdir()?;
    let train = |refresh: f64| -> anyhow::Result<Trained> {
        terminal.note(format!("training with refresh {refresh}"));
        train(arguments, &config(refresh)?, &device, &root.path().join(refresh.to_string()))
    };
    let step = train(0.0)?.images_per_s;
    let settings = config(1.0)?;
    terminal.note("rendering alone");
    let render = render_alone(arguments, &settings, &device)?;
    let mut rows = Vec::new();
    for &refresh in &arguments.refresh {
        let Trained { images_per_s, fresh_per_s } = train(refresh)?;
        let fresh_share = fresh_per_s / images_per_s;
        let in_turn = 1.0 / (1.0 / step + fresh_share / render);
        rows.push(Row {
            refresh,
            images_per_s,
            fresh_per_s,
            fresh_share,
            lost_share: 1.0 - images_per_s / step,
            one_after_the_other_images_per_s: in_turn,
            ratio: images_per_s / in_turn,
        });
    }
    Outcome::new(&Cost {
        device: device.description(),
        data: arguments.data.clone(),
        size: settings.method.image_size,
        batch: settings.method.batch,
        quality: settings.procedural.quality.name(),
        views: settings.procedural.views,
        step_images_per_s: step,
        render_images_per_s: render,
        refresh: rows,
    })
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
    let mut all = ours.into_iter().chain(arguments.set.iter().map(String::as_str));
    all.try_for_each(|text| settings.set(text)).map_err(|error| UsageError(error.to_string()))?;
    settings.set_key("--device", "device", &arguments.device)?;
    settings.set_key("--data", "data", &arguments.data)?;
    settings
        .set_key("--refresh", "refresh", &format!("{refresh:?}"))
        .map_err(|error| UsageError(error.to_string()))?;
    Ok(Config::resolve(settings).map_err(|error| UsageError(error.to_string()))?)
}

/// What fresh views cost.
#[derive(Serialize)]
struct Cost {
    device: String,
    data: String,
    size: usize,
    batch: usize,
    quality: &'static str,
    views: usize,
    step_images_per_s: f64,
    render_images_per_s: f64,
    refresh: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    refresh: f64,
    images_per_s: f64,
    fresh_per_s: f64,
    fresh_share: f64,
    lost_share: f64,
    one_after_the_other_images_per_s: f64,
    ratio: f64,
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { data, size, batch, quality, views, .. } = self;
        let alone = [self.step_images_per_s, self.render_images_per_s];
        let [step, render] = alone.map(|rate| format!("{rate:>9.0} images/s"));
        writeln!(
            formatter,
            "{data} at {size} x {size}, batch {batch}, {quality} quality, {views} views of each object in the pool\n\
             training alone   {step}\nrendering alone  {render}"
        )?;
        let row = |row: &Row| {
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            let rates = [row.images_per_s, row.fresh_per_s].map(|rate| format!("{rate:.0}"));
            let shares = [percent(row.fresh_share), percent(row.lost_share), format!("{:.3}", row.ratio)];
            std::iter::once(row.refresh.to_string()).chain(rates).chain(shares).collect()
        };
        let headings =
            ["refresh", "images/s", "fresh/s", "fresh", "lost", "of the rate of one after the other"];
        formatter.write_str(text_table(&headings, self.refresh.iter().map(row)).trim_end())
    }
}

/// Trains with the whole loop, and measures after the warm-up.
fn train(arguments: &Arguments, config: &Config, device: &Device, root: &Path) -> anyhow::Result<Trained> {
    let data = train::data::open(config, device)?;
    let rendered = data.rendered.as_ref().and_then(DeviceImages::rendered);
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
    let rendered = rendered.and_then(DeviceImages::into_rendered);
    let mut on_device = rendered.with_context(|| format!("{} holds views, not objects", arguments.data))?;
    let objects = views.split(Split::Train).len();
    // Steps that share no factor with the number of objects visit them all, far apart.
    let items: Vec<(usize, usize)> = (0..RENDERED).map(|k| (k * 7919 % objects, k / objects)).collect();
    Ok(on_device.rendering_rate(&items, Duration::from_secs_f64(arguments.seconds))?)
}
