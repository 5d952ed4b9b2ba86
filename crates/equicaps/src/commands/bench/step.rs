//! `equicaps bench step`: a training step (forward of both views, loss, backward, Adam) or inference on random
//! images: images a second, memory, and the time of every kind of operation.

use std::fmt;
use std::time::{Duration, Instant};

use engine::{AdamConfig, Device, MuonConfig, ProfileEntry, Tape};
use gpu::convolution::Choice;
use methods::{
    BackboneName, MethodConfig, MethodName, Network, PairBatch, ProbesConfig, Step, StepOptions, Transform,
};
use serde::Serialize;
use train::config::PrecisionName;

use super::render::cpu_seconds;
use super::step_profile::{Ceilings, Operation, operation_table};
use crate::UsageError;
use crate::outcome::Outcome;

/// Arguments of `equicaps bench step`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench step --batch 16 --size 64
  equicaps bench step --method sie --device cuda:0 --json")]
pub struct Arguments {
    /// Method, see equicaps methods
    #[arg(long, value_name = "NAME", default_value = "equicaps")]
    method: MethodName,
    /// Backbone: resnet18 or vit_tiny
    #[arg(long, value_name = "NAME", default_value = "resnet18")]
    backbone: BackboneName,
    /// Transformation to train for: rotation, rotation+object, affine, ...; see equicaps methods
    #[arg(long, value_name = "T", default_value = "rotation")]
    transform: Transform,
    /// Pairs of images in a step
    #[arg(long, value_name = "B", default_value_t = 1024, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..=methods::LARGEST_BATCH as u64))]
    pub(super) batch: usize,
    /// Size of the images in pixels
    #[arg(long, value_name = "S", default_value_t = 256, value_parser = crate::commands::frame::image_size())]
    pub(super) size: usize,
    /// Device: cpu, cuda:0, ...
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: String,
    /// Precision of activations: f32 or mixed [default: f32 on the CPU, mixed on CUDA]
    #[arg(long, value_name = "P", default_value = "auto", hide_default_value = true)]
    precision: PrecisionName,
    /// Measure the backbone in evaluation mode instead of a training step
    #[arg(long)]
    inference: bool,
    /// Number of measured steps, after three warm-up steps
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Recompute activations in the backward pass: less memory, more time
    #[arg(long)]
    recompute: bool,
    /// Update with Muon instead of Adam
    #[arg(long, conflicts_with_all = ["inference", "profile"])]
    muon: bool,
    /// Train the online probes too, as a run does
    #[arg(long, conflicts_with = "inference")]
    probes: bool,
    /// Capture the step as a CUDA graph and replay it, as a run on CUDA does
    #[arg(long, conflicts_with_all = ["inference", "profile"])]
    graphs: bool,
    /// List the time of every kind of operation
    #[arg(long)]
    profile: bool,
    /// Measure in one table every method with ResNet-18, and EquiCaps, SIE and CapsIE with ViT-Tiny
    #[arg(long, conflicts_with_all = ["method", "backbone", "profile"])]
    all: bool,
}

/// A batch of the sizes asked for.
pub(super) fn random_batch(device: &Device, arguments: &Arguments) -> engine::Result<PairBatch> {
    PairBatch::random(device, arguments.transform, arguments.batch, arguments.size)
}

/// Runs `equicaps bench step`.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let device = crate::device::open(&arguments.device, arguments.precision)?;
    if arguments.all {
        return super::step_table::run(arguments, &device);
    }
    let config = arguments.config(arguments.method, arguments.backbone)?;
    match measure(arguments, &device, &config) {
        Err(error) if is_out_of_memory(&error) => Err(with_largest_batch(error, &device, &config)),
        measured => Outcome::new(&measured?),
    }
}

impl Arguments {
    /// The network of `method` on `backbone`, with the sizes asked for.
    pub(super) fn config(&self, method: MethodName, backbone: BackboneName) -> anyhow::Result<MethodConfig> {
        Ok(MethodConfig {
            backbone,
            transform: self.transform,
            image_size: self.size,
            batch: self.batch,
            ..MethodConfig::published(method)?
        })
    }

    /// Images in a step.
    fn images(&self) -> f64 {
        2.0 * self.batch as f64
    }

    /// "inference" or "training".
    pub(super) fn mode(&self) -> &'static str {
        if self.inference { "inference" } else { "training" }
    }

    /// A step as asked for.
    fn step(&self, step: &mut Step, batch: &PairBatch) -> engine::Result<()> {
        if self.inference {
            step.network_mut().features(&batch.views[0])?;
            step.network_mut().features(&batch.views[1])?;
            return Ok(());
        }
        step.step(batch, &AdamConfig::default())?.read().map(|_| ())
    }
}

/// Speed and size of a network.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Figures {
    pub(super) images_per_s: f64,
    pub(super) step_ms: f64,
    pub(super) peak_bytes: usize,
    parameters: usize,
}

/// What steps took.
pub(super) struct Measured {
    pub(super) figures: Figures,
    best: Duration,
    /// Processor time of all steps.
    cpu_secs: Option<f64>,
    reserved: usize,
    /// Memory taken from the system after the warm-up.
    growth: usize,
    step: Step,
}

/// Measures the steps of a network, after three to warm up.
pub(super) fn measure_steps(
    arguments: &Arguments,
    device: &Device,
    config: &MethodConfig,
    batch: &PairBatch,
) -> anyhow::Result<Measured> {
    let probes = ProbesConfig::of_objects(config.classes, &[pose::Part::Rotation, pose::Part::Translation]);
    let options = StepOptions {
        probes: arguments.probes.then_some(probes),
        graphs: arguments.graphs,
        recompute: arguments.recompute,
        muon: arguments.muon.then(MuonConfig::default),
    };
    let mut step = Step::new(config, device, 1, options).map_err(|error| UsageError(error.to_string()))?;
    // One chooses and compiles, one captures, one repeats. A captured step takes its memory once, so the peak counts
    // from there.
    arguments.step(&mut step, batch)?;
    device.synchronise()?;
    device.reset_peak();
    for _ in 0..2 {
        arguments.step(&mut step, batch)?;
    }
    device.synchronise()?;
    let reserved = device.memory().reserved;
    let (cpu_start, mut times) = (cpu_seconds(), Vec::new());
    for _ in 0..arguments.steps {
        let start = Instant::now();
        arguments.step(&mut step, batch)?;
        device.synchronise()?;
        times.push(start.elapsed());
    }
    let cpu_secs = cpu_seconds().zip(cpu_start).map(|(end, start)| end - start);
    let memory = device.memory();
    times.sort();
    let (median, best) = (times[times.len() / 2], times[0]);
    let figures = Figures {
        images_per_s: arguments.images() / median.as_secs_f64(),
        step_ms: median.as_secs_f64() * 1e3,
        peak_bytes: memory.peak,
        parameters: step.network().store.parameter_count(),
    };
    let growth = memory.reserved - reserved;
    Ok(Measured { figures, best, cpu_secs, reserved: memory.reserved, growth, step })
}

/// A training step with the time of every operation, as the program sees it.
fn profiled_step(
    network: &mut Network,
    device: &Device,
    batch: &PairBatch,
) -> engine::Result<Vec<Operation>> {
    network.store.clear_gradients();
    let mut tape = Tape::training(&mut network.store).with_profile();
    let loss = network.model.loss(&mut tape, batch)?;
    tape.backward(&loss.total)?;
    let mut profile = tape.profile().to_vec();
    drop((loss, tape));
    let start = Instant::now();
    network.store.update(&AdamConfig::default())?;
    device.synchronise()?;
    profile.push(ProfileEntry { op: "adam", backward: true, calls: 1, time: start.elapsed() });
    profile.sort_by_key(|entry| std::cmp::Reverse(entry.time));
    Ok(profile.into_iter().map(Operation::from).collect())
}

fn is_out_of_memory(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(engine::Error::OutOfMemory { .. } | engine::Error::Gpu(gpu::Error::OutOfMemory { .. }))
    )
}

/// Adds how many pairs would fit.
fn with_largest_batch(error: anyhow::Error, device: &Device, config: &MethodConfig) -> anyhow::Error {
    let Device::Cuda(cuda) = device else { return error };
    let free = cuda.context().free_bytes().map_err(engine::Error::from);
    match free.and_then(|free| methods::largest_batch(config, device, free)) {
        Ok(pairs) if pairs >= 2 => {
            let text = format!(
                "a batch of {} pairs is too large: without --recompute about {pairs} fit",
                config.batch
            );
            error.context(text)
        }
        _ => error,
    }
}

fn measure(arguments: &Arguments, device: &Device, config: &MethodConfig) -> anyhow::Result<StepRate> {
    let batch = random_batch(device, arguments)?;
    let mut measured = measure_steps(arguments, device, config, &batch)?;
    let remark = measured.step.take_remark();
    let (mut operations, mut ceilings) = (Vec::new(), None);
    match device {
        // Work on a GPU runs behind the program, so it is timed there.
        Device::Cuda(cuda) if arguments.profile => {
            cuda.context().start_profile();
            arguments.step(&mut measured.step, &batch)?;
            let best = ceilings.insert(Ceilings::measure(cuda.context())?);
            let kernels = cuda.context().finish_profile()?.into_iter();
            operations = kernels.map(|kernel| best.operation(kernel)).collect();
        }
        _ if arguments.profile && !arguments.inference => {
            operations = profiled_step(measured.step.network_mut(), device, &batch)?;
        }
        _ => {}
    }
    let images = arguments.images() * f64::from(arguments.steps);
    Ok(StepRate {
        method: config.name,
        backbone: arguments.backbone,
        mode: arguments.mode(),
        device: device.name(),
        precision: device.precision().name(),
        batch: arguments.batch,
        size: arguments.size,
        threads: rayon::current_num_threads(),
        figures: measured.figures,
        best_images_per_s: arguments.images() / measured.best.as_secs_f64(),
        cpu_ms_per_image: measured.cpu_secs.map(|seconds| 1e3 * seconds / images),
        reserved_bytes: measured.reserved,
        reserved_growth_bytes: measured.growth,
        remark,
        operations,
        ceilings,
        convolutions: match device {
            Device::Cuda(cuda) => cuda.context().convolutions().ok().map(|all| all.choices()),
            Device::Cpu(_) => None,
        },
    })
}

/// How fast steps are, and where their time goes.
#[derive(Serialize)]
struct StepRate {
    method: MethodName,
    backbone: BackboneName,
    mode: &'static str,
    device: String,
    precision: &'static str,
    batch: usize,
    size: usize,
    threads: usize,
    #[serde(flatten)]
    figures: Figures,
    best_images_per_s: f64,
    cpu_ms_per_image: Option<f64>,
    reserved_bytes: usize,
    reserved_growth_bytes: usize,
    /// What holds for these steps and is not as asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
    operations: Vec<Operation>,
    #[serde(skip)]
    ceilings: Option<Ceilings>,
    /// Which algorithm computes each convolution, on a GPU.
    convolutions: Option<Vec<Choice>>,
}

impl fmt::Display for StepRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, best_images_per_s, reserved_growth_bytes: growth, .. } = self;
        let (images_per_s, gigabytes) = (self.figures.images_per_s, self.figures.peak_bytes as f64 / 1e9);
        let cpu = self.cpu_ms_per_image.map(|ms| format!(", {ms:.2} ms of CPU time per image"));
        write!(
            formatter,
            "{mode}: {images_per_s:.1} images/s (best step {best_images_per_s:.1}), {gigabytes:.2} GB at most{}",
            cpu.unwrap_or_default()
        )?;
        if *growth != 0 {
            write!(formatter, "\nmemory grew by {growth} bytes after the warm-up")?;
        }
        if let Some(remark) = &self.remark {
            write!(formatter, "\n{remark}")?;
        }
        if let Some(ceilings) = &self.ceilings {
            write!(formatter, "\n{ceilings}")?;
        }
        if !self.operations.is_empty() {
            write!(formatter, "\n{}", operation_table(&self.operations).trim_end())?;
        }
        Ok(())
    }
}
