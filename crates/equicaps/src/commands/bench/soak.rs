//! `equicaps bench soak`: does memory grow with time, or with the size of the dataset? Runs the whole training loop
//! (loader, steps, probes, metrics, checkpoints) on made-up views, and looks at the memory of the process and the device.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use dataset::{Class, Object, Split, Views};
use engine::Device;
use scene::{LatentRanges, Latents};
use serde::Serialize;
use train::data::Data;
use train::{Config, Session, Start};

use crate::UsageError;
use crate::commands::frame::{self, text_table};
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps bench soak`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench soak
  equicaps bench soak --device cuda:0 --preset small --seconds 60 --objects 2000,200000")]
pub struct Arguments {
    /// Device: cpu, cuda:0, ...
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// How long to train on each dataset, in seconds (at least 2)
    #[arg(long, value_name = "S", default_value = "30", value_parser = frame::seconds)]
    seconds: f64,
    /// Sizes of the datasets: numbers of objects
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1000,10000,100000")]
    objects: Vec<usize>,
    /// Preset: paper, small or demo
    #[arg(long, value_name = "NAME", default_value = "demo")]
    preset: String,
    /// Change any setting of the run; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Views without images worth looking at: a pattern, as fast as memory is written.
struct MadeUp {
    objects: Vec<Object>,
    classes: Vec<Class>,
}

const CLASSES: usize = 55;

impl MadeUp {
    fn new(count: usize) -> Self {
        let held_out = (count / 5).clamp(1, 500);
        let object = |index: usize| Object {
            synset: format!("{:08}", index % CLASSES),
            name: format!("{index:032x}"),
            label: (index % CLASSES) as u32,
            split: if index < count { Split::Train } else { Split::Val },
        };
        let class = |label| Class { label, synset: format!("{label:08}"), name: format!("class {label}") };
        Self {
            objects: (0..count + held_out).map(object).collect(),
            classes: (0..CLASSES as u32).map(class).collect(),
        }
    }
}

impl Views for MadeUp {
    fn objects(&self) -> &[Object] {
        &self.objects
    }
    fn classes(&self) -> &[Class] {
        &self.classes
    }
    fn views(&self) -> usize {
        50
    }
    fn side(&self) -> usize {
        256
    }
    fn has_translation(&self) -> bool {
        true
    }
    fn latents(&self, object: usize, view: usize) -> Latents {
        LatentRanges::BENCH_T.sample(0, &self.objects[object].name, view as u64)
    }
    fn image(&self, object: usize, view: usize, _side: usize, pixels: &mut [u8]) -> dataset::Result<()> {
        let start = object * 31 + view * 7;
        pixels.iter_mut().enumerate().for_each(|(at, byte)| *byte = (start + at * 3) as u8);
        Ok(())
    }
    fn description(&self) -> String {
        format!("{} made-up objects", self.objects.len())
    }
}

/// What is in use at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: f64,
    process_mib: f64,
    device_mib: f64,
}

fn sample(began: Instant, device: &Device) -> Sample {
    let pool = match device {
        Device::Cpu(_) => 0,
        Device::Cuda(_) => device.memory().reserved,
    };
    Sample {
        seconds: began.elapsed().as_secs_f64(),
        process_mib: resident_bytes().unwrap_or(0) as f64 / 1048576.0,
        device_mib: pool as f64 / 1048576.0,
    }
}

/// Memory of this process that is really there; Linux only.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The memory of training on each set.
#[derive(Serialize)]
struct Soaked {
    device: String,
    sets: Vec<Memory>,
}

/// Memory at the end of training on one set, and how it grows.
#[derive(Serialize)]
struct Memory {
    objects: usize,
    steps: u64,
    seconds: f64,
    process_mib: f64,
    process_mib_per_minute: f64,
    device_mib: f64,
    device_mib_per_minute: f64,
    /// Seconds, MiB of the process, MiB of the device.
    samples: Vec<[f64; 3]>,
}

impl fmt::Display for Soaked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |memory: &Memory| {
            vec![
                memory.objects.to_string(),
                memory.steps.to_string(),
                format!("{:.0}", memory.process_mib),
                format!("{:+.2}", memory.process_mib_per_minute),
                format!("{:.0}", memory.device_mib),
                format!("{:+.2}", memory.device_mib_per_minute),
            ]
        };
        let headings = ["objects", "steps", "process MiB", "growth/min", "device MiB", "growth/min"];
        formatter.write_str(text_table(&headings, self.sets.iter().map(row)).trim_end())
    }
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    if arguments.seconds < 2.0 {
        bail!(UsageError("--seconds must be at least 2".to_owned()));
    }
    if arguments.objects.iter().any(|&count| count < 2) {
        bail!(UsageError("a set has at least 2 objects".to_owned()));
    }
    let root = tempfile::Builder::new().prefix("equicaps-soak-").tempdir()?;
    let sets = arguments.objects.iter().map(|&count| soak(arguments, count, root.path(), terminal));
    let sets = sets.collect::<anyhow::Result<_>>()?;
    Outcome::new(&Soaked { device: arguments.device.clone(), sets })
}

/// Trains on `count` objects.
fn soak(arguments: &Arguments, count: usize, root: &Path, terminal: &Terminal) -> anyhow::Result<Memory> {
    let mut settings = Config::settings("equicaps", &arguments.preset)?;
    let ours = ["data=made-up", "epochs=99999", "probes.held_out_every=2", "checkpoints.every_minutes=0.05"];
    let mut all = ours.into_iter().chain(arguments.set.iter().map(String::as_str));
    all.try_for_each(|text| settings.set(text))?;
    settings.set_key("--device", "device", &arguments.device)?;
    let config = Config::resolve(settings)?;
    let device = crate::device::open(&config.device, config.precision)?;
    let views: Arc<dyn Views> = Arc::new(MadeUp::new(count));
    let data = Data::on_host(views, &device);
    let root = root.join(count.to_string());
    let session = Session::begin(&root, config, data, Start::default(), &mut |_| ())?;
    let folder = train::RunFolder::open(&root)?;
    let began = Instant::now();
    let (samples, next) = (RefCell::new(Vec::new()), RefCell::new(Duration::ZERO));
    let interval = Duration::from_secs_f64(arguments.seconds / 40.0);
    // Asked before every step.
    let stop = || {
        let elapsed = began.elapsed();
        if elapsed >= *next.borrow() {
            samples.borrow_mut().push(sample(began, &device));
            *next.borrow_mut() = elapsed + interval;
        }
        elapsed.as_secs_f64() >= arguments.seconds
    };
    terminal.note(format!("{count} objects for {} s", arguments.seconds));
    session.train(&mut |_| (), &stop)?;
    let steps = train::summary::Summary::of(&folder)?.position.step;
    let samples = samples.into_inner();
    // The first half is for filling pools and queues.
    let settled = &samples[samples.len() / 2..];
    let last = settled.last().context("no step was done")?;
    let growth = |value: fn(&Sample) -> f64| 60.0 * slope(settled, value);
    Ok(Memory {
        objects: count,
        steps,
        seconds: last.seconds,
        process_mib: last.process_mib,
        process_mib_per_minute: growth(|s| s.process_mib),
        device_mib: last.device_mib,
        device_mib_per_minute: growth(|s| s.device_mib),
        samples: samples.iter().map(|s| [s.seconds, s.process_mib, s.device_mib]).collect(),
    })
}

/// The slope of the best line through the samples, per second.
fn slope(samples: &[Sample], value: fn(&Sample) -> f64) -> f64 {
    let count = samples.len().max(1) as f64;
    let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (time, level) = (mean(&|s| s.seconds), mean(&|s| value(s)));
    let (mut both, mut spread) = (0.0, 0.0);
    for sample in samples {
        both += (sample.seconds - time) * (value(sample) - level);
        spread += (sample.seconds - time).powi(2);
    }
    if spread > 0.0 { both / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found() {
        let at = |k: u32| Sample {
            seconds: f64::from(k),
            process_mib: 5.0 + 0.25 * f64::from(k),
            device_mib: 9.0,
        };
        let samples: Vec<Sample> = (0..10).map(at).collect();
        assert!((slope(&samples, |s| s.process_mib) - 0.25).abs() < 1e-12);
        assert_eq!(slope(&samples, |s| s.device_mib), 0.0);
        assert_eq!(slope(&samples[..1], |s| s.process_mib), 0.0);
    }
}
