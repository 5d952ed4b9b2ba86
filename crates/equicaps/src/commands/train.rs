//! `equicaps train`: pre-training, from the beginning or from where it was interrupted.

mod ended;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::bail;
use methods::Settings;
use ranks::World;
use serde::Serialize;
use train::{Config, Event, Plan, RunFolder, Session, Start};

use crate::UsageError;
use crate::commands::training_progress::TrainingProgress;
use crate::interrupt;
use crate::outcome::Outcome;
use crate::terminal::Terminal;
use crate::world;

/// Arguments of `equicaps train`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps train --data procedural:5x4 --preset demo --run runs/first
  equicaps train --data meshes --preset own --run runs/mine
  equicaps train --data 3DIEBench --method vicreg --preset small --device cuda:0 --run runs/vicreg
  equicaps train --data 3DIEBench-T --transform rotation+object --run runs/motion --set epochs=500
  equicaps train --resume runs/first

Presets: paper (the published settings), own (your own objects: chosen from them and the device),
small (minutes on a GPU), demo (minutes on two cores). --dry-run shows what a run would do.
--print-config shows every setting that --set can change. Interrupting a run (Ctrl-C, SIGTERM,
SIGUSR1) saves it and ends with status 75; --resume resumes it, and the result is the same as
without the interruption. A second Ctrl-C ends at once without saving (status 130).")]
pub struct Arguments {
    /// Folder for a new run
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    run: Option<PathBuf>,
    /// Resume the run in this folder
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Source of views: a dataset's folder, a folder of meshes, or procedural:CLASSESxOBJECTS
    #[arg(long, value_name = "DATA")]
    data: Option<String>,
    /// Folder of the dataset's split files, where they are not in the same folder
    #[arg(long, value_name = "DIR")]
    lists: Option<String>,
    /// Method, see equicaps methods [default: equicaps]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    method: Option<String>,
    /// Preset: paper, own, small, demo, or a TOML file [default: paper]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    preset: Option<String>,
    /// Backbone: resnet18 or vit_tiny [default: the preset's]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    backbone: Option<String>,
    /// Transformation to train for: rotation, rotation+object, affine, image-rotation, ...; see equicaps methods
    /// [default: rotation]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    transform: Option<String>,
    /// Change any setting; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of initial weights, order of objects and pairs [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Device: auto (a GPU where there is a usable one), cpu, cuda:0, ... [default: auto]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// On an unreadable image or mesh: fail, or skip (use another view instead) [default: fail]
    #[arg(long, value_name = "WHAT")]
    on_bad_sample: Option<String>,
    /// Start from the weights of this checkpoint (or a run's newest), with a new optimiser state
    #[arg(long, value_name = "CHECKPOINT|RUN", conflicts_with = "resume")]
    init_from: Option<PathBuf>,
    /// Use the convolution algorithms that this run chose on its GPU, for bit-identical results
    #[arg(long, value_name = "RUN", conflicts_with = "resume")]
    choices_of: Option<PathBuf>,
    /// Print the resolved configuration without training
    #[arg(long)]
    print_config: bool,
    /// Print what would be trained (batches, steps, expected time, warnings) without training
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let world = world::start()?;
    let config = of_first(world, || {
        let config = match &arguments.resume {
            Some(run) => resumed_config(arguments, run),
            None => new_config(arguments),
        };
        config.map_err(usage)
    })?;
    if arguments.print_config {
        return for_first(world, || Outcome::new(&Resolved { toml: config.to_toml()?, config }));
    }
    let device = world::all(world, crate::device::open_of(world, &config.device, config.precision))?;
    let automatic = config.is_automatic();
    let config =
        if automatic { of_first(world, || Ok(config.chosen(&device)?))? } else { config.chosen(&device)? };
    if arguments.dry_run {
        return for_first(world, || {
            let data = train::data::open(&config, &device)?;
            Outcome::new(&Plan::of(&config, &data)?)
        });
    }
    let root = match (&arguments.resume, &arguments.run) {
        (Some(root), _) | (None, Some(root)) => root.as_path(),
        (None, None) => {
            bail!(UsageError("give --run DIR to begin a run, or --resume DIR to resume one".into()))
        }
    };
    let done = world::from_first(world, || finished(arguments, root, &config))?;
    if !done.is_empty() {
        return for_first(world, || {
            let done = train::Outcome::AlreadyFinished(done.into());
            ended::report(&RunFolder::open(root)?, &config, done, Vec::new(), terminal)
        });
    }
    interrupt::flag();
    interrupt::means_nothing_is_lost("interrupted before the run began; nothing was written");
    let ranks = world.on(&device)?;
    let data = train::data::open_shared(&config, &device, ranks).map_err(Into::into);
    let data = world::all(world, data)?;
    if automatic && !world.is_shared() {
        // What may go wrong is told when training starts.
        terminal.note(Plan { warnings: Vec::new(), ..Plan::of(&config, &data)? }.to_string());
    }
    let mut progress = TrainingProgress::new(terminal);
    let mut warnings = Vec::new();
    if arguments.resume.is_none()
        && !world.is_shared()
        && let Some(text) = train::estimate::warning(&config, &data)
    {
        terminal.warn(&text);
        warnings.push(text);
    }
    let mut tell = |event: Event<'_>| {
        if let Event::Warning(text) = &event {
            warnings.push(text.clone());
        }
        progress.tell(&event);
    };
    let session = match &arguments.resume {
        _ if !world.is_first() => Session::join(config.clone(), data),
        Some(root) => Session::resume(root, config.clone(), data),
        None => {
            let start = Start {
                init_from: arguments.init_from.as_deref(),
                choices_of: arguments.choices_of.as_deref(),
            };
            Session::begin(root, config.clone(), data, start, &mut tell)
        }
    };
    let session = world::all(world, session.map_err(usage))?;
    let folder = session.folder().cloned();
    if let Some(folder) = &folder {
        interrupt::means_nothing_is_lost(format!(
            "interrupted before the first step; continue with: {}",
            resume_command(folder)
        ));
    }
    if world.is_shared() {
        // Nobody leaves the others: they stop together.
        interrupt::means("stopping");
    }
    let is_alone_on_the_cpu = matches!(device, engine::Device::Cpu(_)) && !world.is_shared();
    let train = || session.train(&mut tell, &|| interrupt::flag().load(Ordering::Relaxed));
    // A step on the CPU is a thousand loops that threads share. Begun outside of the pool, each of them would put this thread to
    // sleep and wake it again, which takes a third of the time of small steps. Nobody else uses the pool meanwhile.
    let ended = if is_alone_on_the_cpu { rayon::scope(|_| train()) } else { train() };
    interrupt::means("stopping");
    let ended = ended.map_err(|error| with_the_way_on(error, folder.as_ref()))?;
    progress.finish();
    match folder {
        Some(folder) => ended::report(&folder, &config, ended, warnings, terminal),
        None => Ok(Outcome::nothing().interrupted_if(matches!(ended, train::Outcome::Interrupted(_)))),
    }
}

/// A configuration that the first rank makes, for all.
fn of_first(world: &World, make: impl FnOnce() -> anyhow::Result<Config>) -> anyhow::Result<Config> {
    if !world.is_shared() {
        return make();
    }
    let toml = world::from_first(world, || Ok(make()?.to_toml()?))?;
    Ok(Config::resolve(Config::settings_of("config.toml", &toml)?)?)
}

/// What the first rank alone does and says.
fn for_first(world: &World, work: impl FnOnce() -> anyhow::Result<Outcome>) -> anyhow::Result<Outcome> {
    if world.is_first() { work() } else { Ok(Outcome::nothing()) }
}

/// The last checkpoint of a run that is to be resumed but is finished; empty for one that is not. A run that is there
/// already is not begun again.
fn finished(arguments: &Arguments, root: &Path, config: &Config) -> anyhow::Result<String> {
    if arguments.resume.is_none() {
        return match RunFolder::open(root) {
            Ok(_) => Err(train::Error::RunExists { path: root.to_path_buf() }.into()),
            Err(_) => Ok(String::new()),
        };
    }
    let folder = RunFolder::open(root)?;
    let done = folder.finished(config.epochs)?;
    if done.is_some() {
        // A folder that cannot be written to is as finished.
        let _ = folder.tidy(config);
    }
    Ok(done.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default())
}

impl Arguments {
    /// Changes settings as the options say.
    fn change(&self, settings: &mut Settings) -> train::Result<()> {
        self.set.iter().try_for_each(|assignment| settings.set(assignment))?;
        let options = [
            ("--data", "data", &self.data),
            ("--lists", "lists", &self.lists),
            ("--backbone", "backbone", &self.backbone),
            ("--transform", "transform", &self.transform),
            ("--device", "device", &self.device),
            ("--on-bad-sample", "loader.on_bad_sample", &self.on_bad_sample),
            ("--seed", "seed", &self.seed.map(|seed| seed.to_string())),
        ];
        for (option, key, value) in options {
            let Some(value) = value else { continue };
            if let Some(assignment) = self.contradicting(key, value) {
                let text = format!(
                    "{option} {value} and --set {assignment} contradict each other; give one of them"
                );
                return Err(train::Error::Setting(text));
            }
            settings.set_key(option, key, value)?;
        }
        Ok(())
    }

    /// The assignment by `--set` that gives `key` another value.
    fn contradicting(&self, key: &str, value: &str) -> Option<&String> {
        let is_other = |assignment: &&String| {
            let (assigned, other) = assignment.split_once('=').unwrap_or_default();
            assigned.trim() == key && other.trim().trim_matches(['"', '\'']) != value
        };
        self.set.iter().find(is_other)
    }
}

/// The configuration of a new run.
pub fn new_config(arguments: &Arguments) -> train::Result<Config> {
    let preset = arguments.preset.as_deref().unwrap_or("paper");
    let method = match &arguments.method {
        Some(method) => method.clone(),
        None => Config::method_of(preset)?.unwrap_or_else(|| "equicaps".to_owned()),
    };
    let mut settings = Config::settings(&method, preset)?;
    arguments.change(&mut settings)?;
    // What a preset has for a group of motions comes before what the options say.
    if let Some(transform) = settings.text("transform").map(str::to_owned) {
        settings = Config::settings_for(&method, preset, &transform)?;
        arguments.change(&mut settings)?;
    }
    if let Some(other) = settings.text("method").filter(|other| *other != method) {
        // Projector, predictor and weights of the loss come with the method.
        let text =
            format!("--set method={other} would keep the other settings of {method}; give --method {other}");
        return Err(train::Error::Setting(text));
    }
    let config = Config::resolve(settings)?;
    if config.data.is_empty() && !arguments.print_config {
        let text = "give --data: a folder of views or meshes, or procedural:CLASSESxOBJECTS (such as procedural:5x4)";
        return Err(train::Error::Setting(text.to_owned()));
    }
    Ok(config)
}

/// The configuration of a run to be resumed, with changes that its weights do not depend on.
fn resumed_config(arguments: &Arguments, root: &Path) -> train::Result<Config> {
    let config = RunFolder::open(root)?.config()?;
    let mut settings = Config::settings_of("config.toml", &config.to_toml()?)?;
    arguments.change(&mut settings)?;
    let changed = Config::resolve(settings)?;
    let (before, after) = (config.identity_toml()?, changed.identity_toml()?);
    if let Some(line) = before.lines().find(|line| !after.lines().any(|other| other == *line)) {
        let key = line.split(" = ").next().unwrap_or_default();
        return Err(train::Error::Setting(format!(
            "--set {key} would change what {} trains; begin a new run (with --init-from for its weights)",
            root.display()
        )));
    }
    Ok(changed)
}

/// Wrong settings are wrong usage.
fn usage(error: train::Error) -> anyhow::Error {
    match error {
        train::Error::Setting(text) => UsageError(text).into(),
        other => other.into(),
    }
}

/// All settings of a run.
#[derive(Serialize)]
#[serde(transparent)]
struct Resolved {
    config: Config,
    #[serde(skip)]
    toml: String,
}

impl fmt::Display for Resolved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.toml)
    }
}

/// What resumes the run.
fn resume_command(folder: &RunFolder) -> String {
    format!("equicaps train --resume {}", dataset::shell_word(folder.root()))
}

/// What goes wrong with a device is often gone when the run is resumed.
fn with_the_way_on(error: train::Error, folder: Option<&RunFolder>) -> anyhow::Error {
    let saved = folder.and_then(|folder| Some((folder, folder.last_checkpoint().ok()??)));
    // The same end may be told by the driver or by the library that called it.
    use gpu::Error::{Blas, Cudnn, Driver};
    match (&error, saved) {
        (
            train::Error::Engine(engine::Error::Gpu(Driver { .. } | Blas { .. } | Cudnn { .. })),
            Some((folder, path)),
        ) => {
            anyhow::anyhow!("{error}; {} is saved, continue with: {}", path.display(), resume_command(folder))
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_its_device_ends_says_how_to_go_on() {
        let root = tempfile::tempdir().unwrap();
        let failed = || {
            let (name, description) = ("CUDA_ERROR_LAUNCH_FAILED".to_owned(), "unspecified".to_owned());
            let driver = gpu::Error::Driver { call: "cuLaunchKernel", name, description };
            train::Error::Engine(engine::Error::Gpu(driver))
        };
        std::fs::write(root.path().join("config.toml"), "").unwrap();
        let folder = RunFolder::open(root.path()).unwrap();
        // Nothing is saved yet.
        assert_eq!(with_the_way_on(failed(), Some(&folder)).to_string(), failed().to_string());
        std::fs::create_dir(root.path().join("checkpoints")).unwrap();
        let saved = root.path().join("checkpoints/epoch_00003.safetensors");
        std::fs::write(&saved, "").unwrap();
        let said = with_the_way_on(failed(), Some(&folder)).to_string();
        let way_on = format!("; {} is saved, continue with: equicaps train --resume ", saved.display());
        assert!(said.starts_with(&failed().to_string()) && said.contains(&way_on), "{said}");
        let library = gpu::Error::Blas { call: "cublasLtMatmul", status: 13, detail: String::new() };
        let library = train::Error::Engine(engine::Error::Gpu(library));
        let said = with_the_way_on(library, Some(&folder)).to_string();
        assert!(said.contains("status 13") && said.contains(&way_on), "{said}");
        let other = with_the_way_on(train::Error::Request("other".to_owned()), Some(&folder));
        assert_eq!(other.to_string(), "other");
    }
}
