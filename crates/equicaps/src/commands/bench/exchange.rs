//! `equicaps bench exchange`: what a step exchanges when N ranks share its batch, when each part is ready, and what of it
//! hides behind backward. One device does the step of one rank, with its share of the batch, and an exchange that only
//! writes down what it is given; the time on links of stated speed is computed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use engine::{AdamConfig, Collective, Device, Memory, SingleRank, Source, Sum};
use gpu::Event;
use methods::{BackboneName, MethodConfig, MethodName, PairBatch, Step, StepOptions, Transform};
use serde::Serialize;
use train::config::PrecisionName;

use crate::UsageError;
use crate::commands::frame::text_table;
use crate::outcome::Outcome;

/// Arguments of `equicaps bench exchange`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench exchange --device cuda:0
  equicaps bench exchange --device cuda:0 --ranks 8,64 --gigabytes-per-s 50 --microseconds 60
  equicaps bench exchange --batch 16 --size 64 --ranks 1,2

Every row is measured on this one device with the pairs of one rank (batch / N), steps as CUDA graphs where there are
any; the time on the links is computed, as for a ring: 2 (N - 1) / N of the bytes, and so many microseconds a call.")]
pub struct Arguments {
    /// Method, see equicaps methods
    #[arg(long, value_name = "NAME", default_value = "equicaps")]
    method: MethodName,
    /// Backbone: resnet18 or vit_tiny
    #[arg(long, value_name = "NAME", default_value = "resnet18")]
    backbone: BackboneName,
    /// Pairs of images in a step of all ranks together
    #[arg(long, value_name = "B", default_value_t = 1024, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..=methods::LARGEST_BATCH as u64))]
    batch: usize,
    /// Size of the images in pixels
    #[arg(long, value_name = "S", default_value_t = 256, value_parser = crate::commands::frame::image_size())]
    size: usize,
    /// Device: cpu, cuda:0, ...
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: String,
    /// Precision of activations: f32 or mixed [default: f32 on the CPU, mixed on CUDA]
    #[arg(long, value_name = "P", default_value = "auto", hide_default_value = true)]
    precision: PrecisionName,
    /// Numbers of ranks, separated by commas
    #[arg(long, value_name = "N,N", default_value = "1,2,4,8", value_delimiter = ',')]
    ranks: Vec<usize>,
    /// Speed of the links of one rank, each way
    #[arg(long, value_name = "G", default_value_t = 450.0, value_parser = positive)]
    gigabytes_per_s: f64,
    /// Time of a small exchange
    #[arg(long, value_name = "T", default_value_t = 20.0, value_parser = positive)]
    microseconds: f64,
    /// Number of measured steps, after three warm-up steps
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1e9);
    number.ok_or_else(|| "expected a positive number".to_owned())
}

/// Runs `equicaps bench exchange`.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let device = crate::device::open(&arguments.device, arguments.precision)?;
    let mut rows = Vec::new();
    for &ranks in &arguments.ranks {
        if ranks == 0 || !arguments.batch.is_multiple_of(ranks) || arguments.batch / ranks < 2 {
            return Err(UsageError(format!(
                "{ranks} ranks cannot share a batch of {}: it must be a multiple, at least 2 pairs each",
                arguments.batch
            ))
            .into());
        }
        rows.push(measure(arguments, &device, ranks)?);
    }
    let one = rows.iter().find(|row| row.ranks == 1).map(|row| row.images_per_s);
    for row in &mut rows {
        row.efficiency = one.map(|one| row.images_per_s / (one * row.ranks as f64));
    }
    Outcome::new(&Exchanges {
        method: arguments.method,
        backbone: arguments.backbone,
        device: device.name(),
        precision: device.precision().name(),
        batch: arguments.batch,
        size: arguments.size,
        gigabytes_per_s: arguments.gigabytes_per_s,
        microseconds: arguments.microseconds,
        rows,
    })
}

fn measure(arguments: &Arguments, device: &Device, ranks: usize) -> anyhow::Result<Row> {
    let pairs = arguments.batch / ranks;
    let config = MethodConfig {
        backbone: arguments.backbone,
        image_size: arguments.size,
        batch: pairs,
        ..MethodConfig::published(arguments.method)?
    };
    let batch = PairBatch::random(device, Transform::ROTATION, pairs, arguments.size)?;
    let build = |recorder: &Arc<Recorder>, graphs: bool| {
        let options = StepOptions { graphs, ..StepOptions::default() };
        let step = Step::new(&config, device, 1, options).map_err(|error| UsageError(error.to_string()))?;
        anyhow::Ok(step.with_ranks(Arc::clone(recorder) as Arc<dyn Collective>))
    };
    let adam = AdamConfig::default();
    // When everything is ready: from a step that is issued call by call.
    let recorder = Arc::new(Recorder::new(device));
    let mut step = build(&recorder, false)?;
    for _ in 0..2 {
        step.step(&batch, &adam)?.read()?;
    }
    recorder.begin()?;
    step.step(&batch, &adam)?.read()?;
    let calls = recorder.finish()?;
    drop(step);
    // How long it takes: as in a run.
    let silent = Arc::new(Recorder::new(device));
    let mut step = build(&silent, true)?;
    let mut times = Vec::new();
    for number in 0..arguments.steps + 3 {
        let start = Instant::now();
        step.step(&batch, &adam)?.read()?;
        device.synchronise()?;
        if number >= 3 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(Row::new(arguments, ranks, times[times.len() / 2], &calls))
}

/// A point in the device's work.
#[derive(Debug)]
enum Mark {
    Device(Event),
    Host(Instant),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Moments of batch norms: the step waits for them.
    Moments,
    /// What the loss needs of all ranks: the step waits for it.
    Gathered,
    /// Gradients: beside the rest of backward.
    Gradients,
    /// Backward is at its end and waits for gradients.
    Join,
    /// The step is at its end.
    End,
}

/// A call, and when it was made.
#[derive(Clone, Copy, Debug)]
struct Call {
    kind: Kind,
    bytes: usize,
    /// Milliseconds since the begin of the step.
    at: f64,
}

/// Writes down what a rank exchanges; exchanges nothing.
#[derive(Debug)]
struct Recorder {
    device: Device,
    recording: Mutex<Option<Recording>>,
}

/// A step that is recorded.
#[derive(Debug)]
struct Recording {
    begin: Mark,
    calls: Vec<(Kind, usize, Mark)>,
}

impl Recorder {
    fn new(device: &Device) -> Self {
        Self { device: device.clone(), recording: Mutex::new(None) }
    }

    fn mark(&self) -> engine::Result<Mark> {
        Ok(match &self.device {
            Device::Cuda(cuda) => {
                let event = Event::new(cuda.context())?;
                event.record()?;
                Mark::Device(event)
            }
            Device::Cpu(_) => Mark::Host(Instant::now()),
        })
    }

    fn begin(&self) -> engine::Result<()> {
        self.device.synchronise()?;
        let begin = self.mark()?;
        *self.recording.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Recording { begin, calls: Vec::new() });
        Ok(())
    }

    fn note(&self, kind: Kind, bytes: usize) -> engine::Result<()> {
        if let Some(recording) = &mut *self.recording.lock().unwrap_or_else(PoisonError::into_inner) {
            recording.calls.push((kind, bytes, self.mark()?));
        }
        Ok(())
    }

    fn finish(&self) -> engine::Result<Vec<Call>> {
        self.note(Kind::End, 0)?;
        let recorded = self.recording.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Recording { begin, calls }) = recorded else { return Ok(Vec::new()) };
        calls
            .into_iter()
            .map(|(kind, bytes, mark)| {
                let at = match (&mark, &begin) {
                    (Mark::Device(mark), Mark::Device(begin)) => mark.milliseconds_since(begin)?,
                    (Mark::Host(mark), Mark::Host(begin)) => mark.duration_since(*begin).as_secs_f64() * 1e3,
                    _ => 0.0,
                };
                Ok(Call { kind, bytes, at })
            })
            .collect()
    }
}

fn size(memory: &Memory<'_>) -> usize {
    match memory {
        Memory::Host(bytes) => bytes.len(),
        Memory::Device(view) => view.bytes,
    }
}

impl Collective for Recorder {
    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        1
    }

    /// Or else nothing would be exchanged.
    fn is_shared(&self) -> bool {
        true
    }

    fn all_reduce_sum(&self, _: Sum, memory: Memory<'_>) -> engine::Result<()> {
        self.note(Kind::Moments, size(&memory))
    }

    fn sum_beside(&self, memory: Memory<'_>) -> engine::Result<()> {
        self.note(Kind::Gradients, size(&memory))
    }

    fn join(&self) -> engine::Result<()> {
        self.note(Kind::Join, 0)
    }

    fn all_gather(&self, parts: &mut [(Source<'_>, Memory<'_>)]) -> engine::Result<()> {
        self.note(Kind::Gathered, parts.iter().map(|(_, all)| size(all)).sum())?;
        for part in parts {
            match (part, &self.device) {
                ((Source::Device(own), Memory::Device(all)), Device::Cuda(cuda)) => {
                    // SAFETY: two tensors of this context, alive and of one size, as there is one rank.
                    unsafe { cuda.context().copy(*all, *own)? };
                }
                ((own, all), _) => {
                    let all = match all {
                        Memory::Host(bytes) => Memory::Host(bytes),
                        Memory::Device(view) => Memory::Device(*view),
                    };
                    SingleRank.all_gather(&mut [(*own, all)])?;
                }
            }
        }
        Ok(())
    }

    fn broadcast(&self, _: Memory<'_>) -> engine::Result<()> {
        Ok(())
    }

    fn exchange(&self, own: &[u8]) -> engine::Result<Vec<Vec<u8>>> {
        SingleRank.exchange(own)
    }
}

/// What steps of one rank exchange.
#[derive(Serialize)]
struct Exchanges {
    method: MethodName,
    backbone: BackboneName,
    device: String,
    precision: &'static str,
    batch: usize,
    size: usize,
    gigabytes_per_s: f64,
    microseconds: f64,
    rows: Vec<Row>,
}

/// Gradients that travel together.
#[derive(Serialize)]
struct Bucket {
    bytes: usize,
    /// How long before the end of backward they are ready.
    ready_before_ms: f64,
}

/// The step of one of `ranks` ranks.
#[derive(Serialize)]
struct Row {
    ranks: usize,
    pairs: usize,
    /// Measured, with nothing exchanged.
    step_ms: f64,
    moment_calls: usize,
    moment_bytes: usize,
    gather_calls: usize,
    /// Of all ranks together.
    gather_bytes: usize,
    buckets: Vec<Bucket>,
    /// Computed: exchanges that the step waits for.
    waited_ms: f64,
    /// Computed: of gradients, in all, and after the end of backward.
    gradients_ms: f64,
    exposed_ms: f64,
    images_per_s: f64,
    /// Of N times what one rank does with the whole batch, where that is a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    efficiency: Option<f64>,
}

impl Row {
    fn new(arguments: &Arguments, ranks: usize, step_ms: f64, calls: &[Call]) -> Self {
        let of = |kind: Kind| calls.iter().filter(move |call| call.kind == kind);
        let bytes = |kind: Kind| of(kind).map(|call| call.bytes).sum::<usize>();
        let end_of = |kind: Kind| of(kind).next_back().map_or(0.0, |call| call.at);
        // Steps that are issued call by call take longer, so points in them are scaled.
        let scale = if end_of(Kind::End) > 0.0 { step_ms / end_of(Kind::End) } else { 1.0 };
        let backward = end_of(Kind::Join) * scale;
        let small_ms = if ranks > 1 { arguments.microseconds / 1e3 } else { 0.0 };
        let share = (ranks - 1) as f64 / ranks as f64;
        let link = |bytes: f64| small_ms + share * bytes / (arguments.gigabytes_per_s * 1e6);
        let (mut free, mut gradients_ms) = (0.0f64, 0.0);
        let mut buckets = Vec::new();
        for call in of(Kind::Gradients) {
            let (ready, time) = (call.at * scale, link(2.0 * call.bytes as f64));
            free = free.max(ready) + time;
            gradients_ms += time;
            buckets.push(Bucket { bytes: call.bytes, ready_before_ms: backward - ready });
        }
        let gathered = bytes(Kind::Gathered) * ranks;
        let waited = of(Kind::Moments).map(|call| link(2.0 * call.bytes as f64)).sum::<f64>()
            + of(Kind::Gathered).map(|call| link((call.bytes * ranks) as f64)).sum::<f64>();
        let exposed_ms = if ranks > 1 { (free - backward).max(0.0) } else { 0.0 };
        Self {
            ranks,
            pairs: arguments.batch / ranks,
            step_ms,
            moment_calls: of(Kind::Moments).count(),
            moment_bytes: bytes(Kind::Moments),
            gather_calls: of(Kind::Gathered).count(),
            gather_bytes: gathered,
            buckets,
            waited_ms: waited,
            gradients_ms,
            exposed_ms,
            images_per_s: 2e3 * arguments.batch as f64 / (step_ms + waited + exposed_ms),
            efficiency: None,
        }
    }
}

impl fmt::Display for Exchanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, backbone, device, batch, size, gigabytes_per_s, microseconds, rows, .. } = self;
        writeln!(
            formatter,
            "{method} with {backbone}, {batch} pairs of {size}x{size} in all, steps of one rank measured on {device}; links of \
             {gigabytes_per_s} GB/s each way and {microseconds} us a call: computed"
        )?;
        let megabytes = |bytes: usize| format!("{:.2}", bytes as f64 / 1e6);
        let headings = [
            "ranks",
            "pairs each",
            "ms/step",
            "small calls",
            "MB",
            "gathered MB",
            "waited ms",
            "gradients ms",
            "of these not hidden",
            "images/s",
            "of N times one",
        ];
        let lines = rows.iter().map(|row| {
            vec![
                row.ranks.to_string(),
                row.pairs.to_string(),
                format!("{:.2}", row.step_ms),
                (row.moment_calls + row.gather_calls).to_string(),
                megabytes(row.moment_bytes),
                megabytes(row.gather_bytes),
                format!("{:.2}", row.waited_ms),
                format!("{:.2}", row.gradients_ms),
                format!("{:.2}", row.exposed_ms),
                format!("{:.0}", row.images_per_s),
                row.efficiency.map_or(String::new(), |share| format!("{:.0} %", 100.0 * share)),
            ]
        });
        formatter.write_str(text_table(&headings, lines).trim_end())?;
        for row in rows {
            let ready =
                |bucket: &Bucket| format!("{} MB {:.2} ms", megabytes(bucket.bytes), bucket.ready_before_ms);
            let buckets: Vec<String> = row.buckets.iter().map(ready).collect();
            write!(
                formatter,
                "\ngradients with {} pairs, ready before the end of backward: {}",
                row.pairs,
                buckets.join(", ")
            )?;
        }
        Ok(())
    }
}
