//! `equicaps check resume`: kills a small run repeatedly, resumes it, and compares the result, byte for byte, with a
//! run that was not interrupted. Every run is a process of its own, killed as by `kill -9`; every other kill
//! waits for a checkpoint that is being written.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use random::{Random, Stream};
use serde::Serialize;
use train::RunFolder;
use train::metrics::{self, Record};

use crate::UsageError;
use crate::itself;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps check resume`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check resume
  equicaps check resume --device cuda:0 --kills 10 --method sie")]
pub struct Arguments {
    /// Device: cpu, cuda:0, ...
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Method to train, see equicaps methods
    #[arg(long, value_name = "NAME", default_value = "equicaps")]
    method: String,
    /// Number of times to kill the run
    #[arg(long, value_name = "N", default_value_t = 6)]
    kills: u32,
    /// Seed of the moments at which the run is killed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Source of views: a dataset's folder, a folder of meshes, or procedural:CLASSESxOBJECTS
    #[arg(long, value_name = "DATA", default_value = "procedural:2x5")]
    data: String,
    /// Change any setting of the small run; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder in which to keep the two runs [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A run of some 72 small steps with a checkpoint every epoch.
const SETTINGS: [&str; 11] = [
    "epochs=24",
    "batch=3",
    "image_size=32",
    "network.width=8",
    "network.projector=[16, 16, 16]",
    "network.capsules=4",
    "checkpoints.every_epochs=1",
    "logging.every_steps=1",
    "guards.every_steps=2",
    "probes.held_out_every=4",
    "procedural.views=6",
];

/// Steps after which a kill no longer waits for a checkpoint that is being written.
const MOST_STEPS_WAITED: u64 = 6;

/// The longest a small run may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs the check.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let temporary = tempfile::Builder::new().prefix("equicaps-check-resume-").tempdir()?;
    let root = arguments.out.as_deref().unwrap_or(temporary.path());
    let (whole, broken) = (root.join("whole"), root.join("broken"));
    if whole.exists() || broken.exists() {
        bail!(UsageError(format!("{} holds an earlier check; choose another --out", root.display())));
    }
    std::fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
    terminal.note("a run without interruption");
    finish(start(arguments, &whole, None, 0)?, &whole)?;
    let expected = Remains::of(&whole)?;
    let last = expected.records.last().map_or(0, |record| record.step);

    let mut random = Random::new(arguments.seed, Stream::new("check-resume"), 0);
    let (mut kills, mut in_checkpoint) = (0, 0);
    for round in 0..arguments.kills {
        let reached = steps_done(&broken);
        let moment = Moment {
            step: reached + 1 + random.below((last / u64::from(arguments.kills)).max(1) * 2),
            delay: Duration::from_micros(random.below(40_000)),
            in_checkpoint: round % 2 == 1,
        };
        let mut child = start(arguments, &broken, Some(&whole), round)?;
        let Some(seen) = wait_for(&mut child, &broken, &moment)? else { break };
        child.kill()?;
        child.wait()?;
        kills += 1;
        in_checkpoint += u32::from(seen);
        terminal.note(format!("killed around step {} of {last}", steps_done(&broken)));
    }
    finish(start(arguments, &broken, Some(&whole), arguments.kills)?, &broken)?;
    let found = Remains::of(&broken)?;
    let resumed = Resumed {
        device: arguments.device.clone(),
        method: arguments.method.clone(),
        steps: last,
        kills,
        kills_in_checkpoint: in_checkpoint,
        checkpoint_identical: expected.checkpoint == found.checkpoint,
        metrics_identical: expected.records == found.records,
    };
    let identical = resumed.checkpoint_identical && resumed.metrics_identical;
    Ok(Outcome::new(&resumed)?
        .failed_if(!identical, "the run that was killed ended otherwise than the one that was not"))
}

/// A run that was killed beside one that was not.
#[derive(Serialize)]
struct Resumed {
    device: String,
    method: String,
    steps: u64,
    kills: u32,
    kills_in_checkpoint: u32,
    checkpoint_identical: bool,
    metrics_identical: bool,
}

impl fmt::Display for Resumed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, method, steps, kills, kills_in_checkpoint, .. } = self;
        let verdict = |same: bool| if same { "identical" } else { "DIFFERENT" };
        write!(
            formatter,
            "{method} on {device}: killed {kills} times ({kills_in_checkpoint} while a checkpoint was written) in {steps} steps\n\
             last checkpoint  {}\nmetrics          {}",
            verdict(self.checkpoint_identical),
            verdict(self.metrics_identical)
        )
    }
}

/// When to kill.
struct Moment {
    /// Once this step is written down, ...
    step: u64,
    /// ... after this time, ...
    delay: Duration,
    /// ... or rather as soon as a checkpoint is being written, if that is soon.
    in_checkpoint: bool,
}

/// Waits for the moment. Says whether a checkpoint was being written; `None` where the run ended first.
fn wait_for(child: &mut Child, run: &Path, moment: &Moment) -> anyhow::Result<Option<bool>> {
    let began = Instant::now();
    while steps_done(run) < moment.step {
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        if began.elapsed() > PATIENCE {
            child.kill()?;
            bail!("{} came no further than step {}", run.display(), steps_done(run));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if !moment.in_checkpoint {
        std::thread::sleep(moment.delay);
        return Ok(child.try_wait()?.is_none().then_some(false));
    }
    loop {
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        // Small checkpoints are written too fast to be met for sure.
        if steps_done(run) > moment.step + MOST_STEPS_WAITED {
            return Ok(Some(false));
        }
        let folder = std::fs::read_dir(run.join("checkpoints"));
        let unfinished = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".tmp");
        if folder.is_ok_and(|entries| entries.flatten().any(unfinished)) {
            return Ok(Some(true));
        }
    }
}

/// The last step that is written down.
fn steps_done(run: &Path) -> u64 {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    let lines = text.lines().rev();
    lines
        .filter_map(|line| serde_json::from_str::<Record>(line).ok())
        .map(|record| record.step)
        .next()
        .unwrap_or(0)
}

/// Begins the run, or continues it. A new one computes as `model` does, where a device has a choice: which way is the
/// fastest, and is taken, may turn out differently every time. Every other session of a continued run issues the kernels
/// of a step one by one instead of as a graph, which must not matter either.
fn start(arguments: &Arguments, run: &Path, model: Option<&Path>, round: u32) -> anyhow::Result<Child> {
    let mut command = Command::new(itself::program()?);
    command.args(["train", "--quiet", "--json"]);
    if RunFolder::open(run).is_ok() {
        command.arg("--resume").arg(run).args(["--set", &format!("graphs={}", round.is_multiple_of(2))]);
    } else {
        command.args(["--preset", "demo", "--method", &arguments.method, "--data", &arguments.data]);
        command.args(["--device", &arguments.device]).arg("--run").arg(run);
        if let Some(model) = model.filter(|model| model.join("convolutions.json").exists()) {
            command.arg("--choices-of").arg(model);
        }
        let settings = SETTINGS.iter().copied().chain(arguments.set.iter().map(String::as_str));
        settings.for_each(|setting| {
            command.args(["--set", setting]);
        });
    }
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
}

fn finish(child: Child, run: &Path) -> anyhow::Result<()> {
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", run.display(), said.trim().trim_start_matches("error: "));
    }
    Ok(())
}

/// What a run leaves behind, without what tells of the clock.
struct Remains {
    checkpoint: Vec<u8>,
    records: Vec<Record>,
}

impl Remains {
    fn of(run: &Path) -> anyhow::Result<Self> {
        let folder = RunFolder::open(run)?;
        let mut checkpoints = train::checkpoint::list(&folder.checkpoints_path())?;
        let Some((_, last)) = checkpoints.pop() else { bail!("{} has no checkpoint", run.display()) };
        let mut records = metrics::read(&folder.metrics_path())?;
        records.iter_mut().for_each(|record| record.timing.clear());
        let checkpoint = std::fs::read(&last).with_context(|| format!("cannot read {}", last.display()))?;
        Ok(Self { checkpoint, records })
    }
}
