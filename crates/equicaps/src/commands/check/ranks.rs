//! `equicaps check ranks`: starts several ranks, lets them train small networks for a few steps, and compares losses,
//! gradients and weights with those of one rank. For a cluster, before anything is trained on it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail};
use engine::{Collective, Device, SingleRank};
use methods::rank_parity::{Course, GRADIENT_BOUND, LOSS_BOUND, Order, Task, course};
use methods::{BackboneName, MethodConfig, MethodName};
use serde::{Deserialize, Serialize};
use train::config::PrecisionName;

use crate::UsageError;
use crate::itself;
use crate::outcome::Outcome;
use crate::terminal::Terminal;
use crate::world;

/// Arguments of `equicaps check ranks`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check ranks --ranks 4
  equicaps check ranks --ranks 2 --device cuda --method equicaps
  equicaps check ranks --ranks 16 --device cuda --launch srun

Losses of the first step must agree to 1e-5, its gradients to 1e-4 of their norm, and the weights
after the last step as well as those of one rank that takes the same sums in other orders; the same
ranks must give the same bits twice. Status 1 otherwise.")]
pub struct Arguments {
    /// How many ranks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=1024))]
    ranks: u16,
    /// Device: cpu, cuda (every rank takes another GPU of its machine), cuda:0 (all take this one) ...
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Method [default: all]
    #[arg(long, value_name = "NAME")]
    method: Option<MethodName>,
    /// Backbone: resnet18 or vit_tiny [default: both]
    #[arg(long, value_name = "NAME")]
    backbone: Option<BackboneName>,
    /// Steps
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    steps: u16,
    /// Command that starts the ranks: a program that takes -n N, or all words of it in quotes [default: mpirun]
    #[arg(long, value_name = "COMMAND")]
    launch: Option<String>,
    /// What a rank does that this command starts: writes what it found to this file
    #[arg(long, value_name = "FILE", hide = true)]
    worker: Option<PathBuf>,
}

/// Precision in which ranks are compared.
const PRECISION: PrecisionName = PrecisionName::F32;
/// Pairs in a batch, at least.
const PAIRS: usize = 24;

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    match &arguments.worker {
        Some(file) => work(arguments, file),
        None => check(arguments, terminal),
    }
}

impl Arguments {
    /// The networks that are compared.
    fn configs(&self) -> anyhow::Result<Vec<MethodConfig>> {
        let ranks = usize::from(self.ranks);
        let methods = self.method.map_or_else(MethodName::all, |method| vec![method]);
        let backbones = match self.backbone {
            Some(backbone) => vec![backbone],
            None => vec![BackboneName::ResNet18, BackboneName::VitTiny],
        };
        let mut configs = Vec::new();
        for method in methods {
            for &backbone in &backbones {
                let mut config = MethodConfig::published(method)?;
                (config.backbone, config.image_size, config.classes) = (backbone, 64, 5);
                config.batch = ranks * PAIRS.div_ceil(ranks);
                let network = &mut config.network;
                (network.width, network.projector, network.capsules) = (16, vec![48, 48, 24], 8);
                (network.vit.width, network.vit.depth, network.vit.heads) = (48, 2, 2);
                configs.push(config);
            }
        }
        Ok(configs)
    }

    fn task<'a>(&self, config: &'a MethodConfig) -> Task<'a> {
        let steps = usize::from(self.steps);
        Task { config, steps, probes: true, graphs: true, recompute: false }
    }
}

/// What one rank of several does. The first writes down what it found.
fn work(arguments: &Arguments, file: &Path) -> anyhow::Result<Outcome> {
    let world = world::start()?;
    if world.ranks() != usize::from(arguments.ranks) {
        bail!("{} ranks were started, not {}", world.ranks(), arguments.ranks);
    }
    let device = world::all(world, crate::device::open_of(world, &arguments.device, PRECISION))?;
    let ranks = world.on(&device)?;
    let mut found = Vec::new();
    for config in &arguments.configs()? {
        let task = arguments.task(config);
        let once = course(&task, &device, &ranks, Order::Forward)?;
        let again = course(&task, &device, &ranks, Order::Forward)?;
        // What every rank has must be the same.
        let sum = ranks.exchange(&digest(&once).to_le_bytes())?;
        let alike = sum.iter().all(|other| *other == sum[0]);
        found.push(Found { repeats: once == again, alike, course: once });
    }
    if world.is_first() {
        std::fs::write(file, serde_json::to_vec(&found)?)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    Ok(Outcome::nothing())
}

fn digest(course: &Course) -> u64 {
    let numbers = course.gradients.iter().flatten().chain(&course.weights);
    let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
    random::fnv1a(&bytes)
}

/// What ranks found for one network.
#[derive(Serialize, Deserialize)]
struct Found {
    repeats: bool,
    alike: bool,
    course: Course,
}

fn check(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let configs = arguments.configs()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("found.json");
    terminal.note(format!("{} ranks on {} ...", arguments.ranks, arguments.device));
    launch(arguments, &file)?;
    let found: Vec<Found> = serde_json::from_slice(&std::fs::read(&file)?)?;
    terminal.note("one rank ...");
    let device = match arguments.device.as_str() {
        "cuda" => crate::device::open("cuda:0", PRECISION)?,
        name => crate::device::open(name, PRECISION)?,
    };
    let mut rows = Vec::new();
    for (config, found) in configs.iter().zip(&found) {
        rows.push(compare(arguments, config, found, &device)?);
    }
    let outside = rows.iter().filter(|row| !row.within).count();
    let report =
        Report { ranks: arguments.ranks, device: device.description(), steps: arguments.steps, rows };
    Ok(Outcome::new(&report)?.failed_if(outside > 0, "several ranks differ from one by more than the bounds"))
}

fn compare(
    arguments: &Arguments,
    config: &MethodConfig,
    found: &Found,
    device: &Device,
) -> anyhow::Result<Row> {
    let one: Arc<dyn Collective> = Arc::new(SingleRank);
    let task = arguments.task(config);
    let alone = |order: Order| course(&task, device, &one, order);
    let forward = alone(Order::Forward)?;
    let apart = forward.apart(&found.course);
    let mut drift: f64 = 0.0;
    for order in [Order::Backward, Order::Odd] {
        drift = drift.max(forward.apart(&alone(order)?).weights);
    }
    Ok(Row {
        method: config.name,
        backbone: config.backbone,
        loss: apart.first_loss,
        gradients: apart.gradients,
        weights: apart.weights,
        other_orders: drift,
        same_bits: found.repeats && found.alike,
        within: apart.is_within(drift) && found.repeats && found.alike,
    })
}

/// Starts the ranks and waits for them.
fn launch(arguments: &Arguments, file: &Path) -> anyhow::Result<()> {
    let program = itself::program()?;
    let mut words = vec![
        "check".to_owned(),
        "ranks".to_owned(),
        format!("--ranks={}", arguments.ranks),
        format!("--device={}", arguments.device),
        format!("--steps={}", arguments.steps),
    ];
    words.extend(arguments.method.map(|method| format!("--method={method}")));
    words.extend(arguments.backbone.map(|backbone| format!("--backbone={backbone}")));
    let add = |command: &mut Command| {
        command.args(&words).arg("--worker").arg(file).stdin(Stdio::null());
    };
    if arguments.launch.is_none() && ranks::mpi_version().is_none() {
        if arguments.device == "cpu" {
            bail!(UsageError(
                "ranks on CPUs meet by MPI: build equicaps with `cargo build --release --features mpi`"
                    .into()
            ));
        }
        return launch_by_address(arguments, &program, add);
    }
    let launcher = match arguments.launch.as_deref().unwrap_or("mpirun") {
        "mpirun" => format!("mpirun --oversubscribe --bind-to none -n {}", arguments.ranks),
        words if words.contains(' ') => words.to_owned(),
        program => format!("{program} -n {}", arguments.ranks),
    };
    let mut parts = launcher.split_whitespace();
    let mut command = Command::new(parts.next().unwrap_or("mpirun"));
    command.args(parts).arg(&program);
    add(&mut command);
    // In a container everybody is root, which Open MPI refuses without these.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let status = command.status().with_context(|| format!("`{launcher}` cannot be started"))?;
    if !status.success() || !file.exists() {
        bail!("the ranks that `{launcher}` started did not come to their end ({status})");
    }
    Ok(())
}

/// Without MPI: processes of this machine that find each other by an address.
fn launch_by_address(
    arguments: &Arguments,
    program: &Path,
    add: impl Fn(&mut Command),
) -> anyhow::Result<()> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut children = Vec::new();
    for rank in 0..arguments.ranks {
        let mut command = Command::new(program);
        add(&mut command);
        command
            .env("RANK", rank.to_string())
            .env("LOCAL_RANK", rank.to_string())
            .env("WORLD_SIZE", arguments.ranks.to_string())
            .env("LOCAL_WORLD_SIZE", arguments.ranks.to_string())
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", port.to_string());
        children.push(command.spawn().context("a rank cannot be started")?);
    }
    let mut failed = None;
    for (rank, child) in children.iter_mut().enumerate() {
        let status = child.wait()?;
        if !status.success() && failed.is_none() {
            failed = Some((rank, status));
        }
    }
    match failed {
        Some((rank, status)) => bail!("rank {rank} did not come to its end ({status})"),
        None => Ok(()),
    }
}

/// One network on one rank and on several.
#[derive(Serialize)]
struct Row {
    method: MethodName,
    backbone: BackboneName,
    /// Relative difference of the first losses.
    loss: f64,
    /// Largest relative difference of gradients.
    gradients: f64,
    /// Relative difference of weights after the last step.
    weights: f64,
    /// The same between different orders of the same sums on one rank.
    other_orders: f64,
    /// Whether all ranks, and the same ranks again, have the same bits.
    same_bits: bool,
    within: bool,
}

#[derive(Serialize)]
struct Report {
    ranks: u16,
    device: String,
    steps: u16,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, device, steps, rows } = self;
        writeln!(formatter, "{ranks} ranks against one on {device}, float32, {steps} steps")?;
        writeln!(
            formatter,
            "{:15} {:9} {:>9} {:>9} {:>9} {:>13}  same bits",
            "method", "backbone", "loss", "gradients", "weights", "other orders"
        )?;
        for row in rows {
            let bits = if row.same_bits { "yes" } else { "no" };
            writeln!(
                formatter,
                "{:15} {:9} {:9.1e} {:9.1e} {:9.1e} {:13.1e}  {bits}{}",
                row.method.to_string(),
                row.backbone.to_string(),
                row.loss,
                row.gradients,
                row.weights,
                row.other_orders,
                if row.within { "" } else { "   OUTSIDE" }
            )?;
        }
        let outside = rows.iter().filter(|row| !row.within).count();
        match outside {
            0 => {
                write!(formatter, "all within bounds (loss {LOSS_BOUND:.0e}, gradients {GRADIENT_BOUND:.0e})")
            }
            _ => write!(formatter, "{outside} of {} outside their bounds", rows.len()),
        }
    }
}
