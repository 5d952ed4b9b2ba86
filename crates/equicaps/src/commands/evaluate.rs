//! `equicaps evaluate`: probes and retrieval on a frozen encoder, by the published protocols.

mod data;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::bail;
use dataset::{ObjectSet, Split, Views, shown_warnings};
use engine::{Device, Precision};
use evaluate::evaluation::{self, DataSource, Event, Wanted};
use evaluate::features::{self, Extraction, data_key, extract};
use evaluate::prediction::Transformation;
use evaluate::probe::{has_spread, nothing_to_probe};
use evaluate::results::FILE;
use evaluate::weights::{self, Opened, Weights, Which};
use evaluate::{Encoder, GroundTruth, Preset, Protocol, Results, Task};
use methods::verdict::PoseVerdict;
use pose::{Part, Space};
use report::{evaluation_folder, pose_sweep};
use serde::Serialize;
use train::config::{OnBadSample, PrecisionName, SplitName};
use train::{Config, RunFolder};

use crate::commands::left_out;
use crate::outcome::Outcome;
use crate::terminal::{Progress, Terminal, shown};
use crate::{Interrupted, UsageError, interrupt, out, world};

/// Arguments of `equicaps evaluate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  A first look:
    equicaps evaluate runs/first --data views --preset quick
  All tasks by the published protocol:
    equicaps evaluate runs/equicaps --data 3DIEBench --device cuda:0
  Every checkpoint that was kept:
    equicaps evaluate runs/equicaps --data 3DIEBench --epochs all --tasks rotation,classification
  The network before training:
    equicaps evaluate runs/equicaps --data 3DIEBench --untrained
  Out of range: the probes of one dataset on another (render --preset 3diebench-ood):
    equicaps evaluate runs/equicaps --data 3DIEBench --also ood
  On what the run was trained on (stored views, meshes or procedural objects):
    equicaps evaluate runs/mine

Tasks: classification, rotation, translation-object, translation-base, scale, shear, perspective,
colour, embeddings, retrieval, all (that the data have). A supervised run (train --method supervised --set network.task=rotation) is
evaluated with its own head, on its own task.
Features of all views are computed once and cached (--cache); progress is saved, rerun to resume.
Results of another protocol, seed, dataset, size of images or network are kept in separate files.")]
pub struct Arguments {
    /// A run's folder, or a checkpoint
    #[arg(value_name = "RUN|CHECKPOINT")]
    weights: PathBuf,
    /// A dataset's folder, a folder of meshes, or procedural:CLASSESxOBJECTS [default: the run's data]
    #[arg(long, value_name = "DATA")]
    data: Option<String>,
    /// The meshes that a dataset was rendered from: one of them is turned for the images of rotations in pose space
    #[arg(long, value_name = "DIR")]
    meshes: Option<PathBuf>,
    /// A further dataset, tested with the probes of the first; may be repeated
    #[arg(long, value_name = "DATA")]
    also: Vec<String>,
    /// Folder of the split files, where they are not in the same folder
    #[arg(long, value_name = "DIR")]
    lists: Option<String>,
    /// What is held out: objects (never seen), views (of known objects), or auto: as the run was trained
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    split: SplitName,
    /// Tasks, separated by commas
    #[arg(long, value_name = "TASKS", value_delimiter = ',', default_value = "all")]
    tasks: Vec<String>,
    /// Protocol: paper (as published), or quick, for a first look and small datasets
    #[arg(long, value_name = "PRESET", default_value_t = Preset::Paper)]
    preset: Preset,
    /// Folder for results [default: RUN/evaluation]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Which checkpoints of a run: newest, all, or those at the ends of epochs, separated by commas
    #[arg(long, value_name = "WHICH", default_value = "newest")]
    epochs: String,
    /// Evaluate the run's network before training instead
    #[arg(long, conflicts_with = "epochs")]
    untrained: bool,
    /// Device: auto (a GPU where there is a usable one), cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// Seed of heads, orders, pairs and query subsets
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Folder of cached features [default: OUT/features]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Arithmetic of the network; probes and retrieval are always in f32
    #[arg(long, value_name = "P", default_value = "f32")]
    precision: PrecisionName,
    /// Largest batch of images [default: 128, 512 on a GPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Train probes on the frozen backbone of a supervised run instead of using its own head
    #[arg(long)]
    frozen: bool,
    /// Write no images (nearest neighbours, rotations in pose space)
    #[arg(long = "no-images", alias = "no-pictures")]
    no_images: bool,
    /// On images that cannot be read: fail, or skip, which reads all images before and leaves these out [default: as the run was trained]
    #[arg(long, value_name = "WHAT")]
    on_bad_sample: Option<OnBadSample>,
    /// Input size in pixels [default: training size]
    #[arg(long, value_name = "PIXELS", value_parser = crate::commands::frame::image_size())]
    image_size: Option<usize>,
}

/// One evaluation, as other commands ask for it.
pub struct Request<'a> {
    /// The weights.
    pub weights: &'a Weights,
    /// Whether several checkpoints of one run are evaluated.
    pub several: bool,
    /// The views, and further datasets that are tested with the same probes.
    pub data: &'a [DataSource<'a>],
    /// What to measure.
    pub wanted: &'a Wanted,
    /// How.
    pub protocol: Protocol,
    /// The device's name.
    pub device: &'a str,
    /// The meshes behind the views, where they are known.
    pub meshes: Option<&'a ObjectSet>,
    /// Folder for results.
    pub out: &'a Path,
    /// Folder of cached features.
    pub cache: PathBuf,
    /// Arithmetic of the network.
    pub precision: PrecisionName,
    /// Images in a batch, at most.
    pub batch: Option<usize>,
    /// Whether to write images.
    pub images: bool,
}

impl Arguments {
    /// What is measured, and of which weights.
    pub fn asked(&self) -> anyhow::Result<(Wanted, Which)> {
        let wanted = Wanted::parse(&self.tasks).map_err(|error| UsageError(error.to_string()))?;
        Ok((Wanted { frozen: self.frozen, ..wanted }, which(self)?))
    }

    /// What results do not say of how they were measured: those of another way would take their place.
    pub fn way(&self) -> (Option<usize>, PrecisionName) {
        (self.image_size, self.precision)
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let world = world::start()?;
    let (wanted, which) = arguments.asked()?;
    if let Some(out) = &arguments.out {
        let is_ours = |path: &Path| {
            path.ends_with(FILE) || path.ends_with(features::FOLDER) || path.join(FILE).is_file()
        };
        out::refuse_others(out, "evaluation", is_ours)?;
    }
    let all = weights::find(&arguments.weights, &which)?;
    let config = data_config(arguments, &all)?;
    let device = crate::device::open_of(world, &arguments.device, arguments.precision)?;
    let mut said = Vec::new();
    let mut open =
        |config: &Config| data::open(&arguments.weights, config, &all, &device, &mut said, terminal);
    let views = open(&config)?;
    let key = |views: &dyn Views| data_key(views).map_err(left_out::or_without);
    let mut data = vec![(config.data.clone(), key(&*views)?, Arc::clone(&views))];
    for also in &arguments.also {
        let (lists, split) = (String::new(), views.split_by().into());
        let config = Config { data: also.clone(), lists, split, ..config.clone() };
        let views = open(&config)?;
        data.push((config.data, key(&*views)?, views));
    }
    let data: Vec<DataSource<'_>> =
        data.iter().map(|(path, key, views)| DataSource { views, path, key }).collect();
    let protocol = Protocol::new(
        arguments.preset,
        arguments.seed,
        views.split(Split::Train).len(),
        views.split(Split::Val).len(),
    );
    refuse_without_spread(arguments, &*views, &protocol)?;
    let all: Vec<Weights> = all.into_iter().map(|weights| weights.at_size(arguments.image_size)).collect();
    let base = match (&arguments.out, arguments.weights.is_dir()) {
        (Some(out), _) => out.clone(),
        (None, true) => arguments.weights.join("evaluation"),
        // A checkpoint of a run lies in RUN/checkpoints.
        (None, false) => match arguments.weights.parent().and_then(Path::parent) {
            Some(run) if RunFolder::open(run).is_ok() => run.join("evaluation"),
            _ => bail!(UsageError("give --out DIR for the results of a checkpoint outside of a run".into())),
        },
    };
    // Of built-in objects, and without any, the same one is always turned.
    let meshes = train::objects::behind(&config, arguments.meshes.as_deref())?;
    let meshes = meshes.filter(|set| matches!(set, ObjectSet::Meshes { .. }));
    let mut found = Vec::new();
    let mut folders = Vec::new();
    for weights in &all {
        let out = if arguments.out.is_some() && all.len() == 1 {
            base.clone()
        } else {
            base.join(weights.folder_name())
        };
        let request = Request {
            weights,
            several: all.len() > 1,
            data: &data,
            wanted: &wanted,
            protocol,
            device: &arguments.device,
            meshes: meshes.as_ref(),
            out: &out,
            cache: arguments.cache.clone().unwrap_or_else(|| base.join(features::FOLDER)),
            precision: arguments.precision,
            batch: arguments.batch.map(|n| n as usize),
            images: !arguments.no_images,
        };
        if compute_features_together(&request, terminal)? {
            found.push(one(&request, terminal)?);
            folders.push(out);
        }
    }
    if !world.is_first() {
        return Ok(Outcome::nothing());
    }
    let mut seen = BTreeSet::new();
    let noticed = data.iter().flat_map(|source| source.views.warnings());
    let noticed = noticed.filter(|text| seen.insert(text.clone())).collect();
    shown_warnings(noticed, "").iter().for_each(|text| terminal.warn(text));
    let pose = found.iter().map(Results::pose_verdict).collect();
    Outcome::new(&Evaluated { results: found, folders: folders.iter().map(shown).collect(), pose })
}

/// Refuses tasks that are named and ask for what is the same in all held-out views.
fn refuse_without_spread(
    arguments: &Arguments,
    views: &dyn Views,
    protocol: &Protocol,
) -> anyhow::Result<()> {
    let is_named = |task: &Task| arguments.tasks.iter().any(|name| name == task.name());
    let named: Vec<Task> = Task::ALL.into_iter().filter(is_named).collect();
    if named.iter().all(|task| *task == Task::Classification) {
        return Ok(());
    }
    let truth = GroundTruth::read(views);
    match named.into_iter().find(|&task| truth.has_targets(task) && !has_spread(task, &truth, protocol)) {
        Some(task) => bail!("--tasks {task}: {}", nothing_to_probe(task)),
        None => Ok(()),
    }
}

/// The configuration of the first of `all`, with the data and the split that are asked for.
fn data_config(arguments: &Arguments, all: &[Weights]) -> anyhow::Result<Config> {
    let Some(first) = all.first() else { bail!("{} has no weights", arguments.weights.display()) };
    let mut config = first.config.clone();
    if let Some(data) = &arguments.data {
        config.data.clone_from(data);
        config.lists.clear();
    }
    if config.data.is_empty() {
        bail!(UsageError("give --data: the checkpoint does not say where its data are".into()));
    }
    config.lists = arguments.lists.clone().unwrap_or(config.lists);
    if arguments.split != SplitName::Auto {
        config.split = arguments.split;
    }
    config.loader.on_bad_sample = arguments.on_bad_sample.unwrap_or(config.loader.on_bad_sample);
    Ok(config)
}

/// What was measured, and where it lies.
#[derive(Serialize)]
struct Evaluated {
    results: Vec<Results>,
    folders: Vec<String>,
    /// Whether each, where it was to learn poses, has learnt them.
    pose: Vec<Option<PoseVerdict>>,
}

impl fmt::Display for Evaluated {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = evaluation_folder::to_text(&self.results);
        if !tables.is_empty() {
            writeln!(formatter, "{tables}")?;
        }
        for (results, verdict) in self.results.iter().zip(&self.pose) {
            if let Some(message) = verdict.as_ref().and_then(|verdict| verdict.message.as_ref()) {
                writeln!(formatter, "{}: {message}", results.subject.name)?;
            }
        }
        write!(formatter, "results in {}", self.folders.join(", "))
    }
}

fn which(arguments: &Arguments) -> anyhow::Result<Which> {
    if arguments.untrained {
        return Ok(Which::Untrained);
    }
    match arguments.epochs.as_str() {
        "newest" => Ok(Which::Newest),
        "all" => Ok(Which::All),
        list => {
            let epochs: Result<Vec<u64>, _> = list.split(',').map(|epoch| epoch.trim().parse()).collect();
            let wrong = || {
                UsageError(format!("--epochs is {list:?}, expected newest, all, or numbers such as 100,500"))
            };
            Ok(Which::Epochs(epochs.map_err(|_| wrong())?))
        }
    }
}

/// How the features of `encoder` are computed and kept.
fn extraction(
    request: &Request<'_>,
    device: &Device,
    encoder: &dyn Encoder,
    weights_key: &str,
) -> Extraction {
    // Every dataset has its own key.
    let extraction = Extraction::new(Some(request.cache.clone()), weights_key, encoder, device);
    Extraction { batch: request.batch.unwrap_or(extraction.batch), ..extraction }
}

/// Several ranks compute features, each its parts, which the first then finds where features are kept. Says whether
/// this rank goes on with them.
fn compute_features_together(request: &Request<'_>, terminal: &Terminal) -> anyhow::Result<bool> {
    let world = world::current();
    if !world.is_shared() {
        return Ok(true);
    }
    let compute = || -> anyhow::Result<bool> {
        let device = crate::device::open_of(world, request.device, request.precision)?;
        let Opened { mut encoder, key, .. } = request.weights.open(&device)?;
        let weights_key = request.weights.subject(&key, request.several).weights_key;
        let stop = || interrupt::flag().load(Ordering::Relaxed);
        for source in request.data {
            let extraction = Extraction {
                data_key: source.key.to_owned(),
                share: (world.rank(), world.ranks()),
                ..extraction(request, &device, &encoder, &weights_key)
            };
            let total = (source.views.objects().len() * source.views.views()) as u64;
            let progress = terminal.progress(total, "views");
            let ranks = world.ranks() as u64;
            let done =
                extract(&mut encoder, source.views, &extraction, |n| progress.advance(n * ranks), &stop);
            progress.finish();
            match done {
                Err(evaluate::Error::Interrupted) => return Ok(false),
                other => other?,
            };
        }
        Ok(true)
    };
    let computed = world::all(world, compute())?;
    let all = world.control().exchange(&[u8::from(computed)])?;
    if all.iter().any(|done| done != &[1]) {
        return Err(Interrupted.into());
    }
    Ok(world.is_first())
}

/// Evaluates one set of weights and writes its folder: `results.json`, tables, images.
pub fn one(request: &Request<'_>, terminal: &Terminal) -> anyhow::Result<Results> {
    let device = crate::device::open_of(world::current(), request.device, request.precision)?;
    let Opened { mut encoder, key, note } = request.weights.open(&device)?;
    note.iter().for_each(|note| terminal.note(note));
    let subject = request.weights.subject(&key, request.several);
    terminal.note(format!("evaluating {} with the {} protocol", subject.name, request.protocol.preset));
    let extraction = extraction(request, &device, &encoder, &subject.weights_key);
    let stop = interrupt::flag();
    interrupt::means("stopping after the work in hand; features so far are kept; once more to end at once");
    let progress = std::cell::RefCell::new(None::<Progress>);
    let outcome = evaluation::run(
        &mut encoder,
        subject,
        request.data,
        request.wanted,
        &request.protocol,
        &extraction,
        &device,
        |event| match event {
            Event::Begin(name, total, unit) => {
                if let Some(previous) = progress.replace(None) {
                    previous.finish();
                }
                let next = terminal.progress(total, unit);
                next.message(name);
                progress.replace(Some(next));
            }
            Event::Advance(count) => {
                if let Some(progress) = &*progress.borrow() {
                    progress.advance(count);
                }
            }
        },
        &|| stop.load(Ordering::Relaxed),
    );
    if let Some(progress) = progress.replace(None) {
        progress.finish();
    }
    let mut outcome = match outcome {
        Err(evaluate::Error::Interrupted) => return Err(Interrupted.into()),
        other => other.map_err(left_out::or_without)?,
    };
    outcome.left_out.iter().for_each(|sentence| terminal.note(sentence));
    if device.precision() != Precision::F32 {
        let precision = device.precision().name();
        outcome.results.device = format!("{}, features in {precision}", outcome.results.device);
    }
    if let Some(aside) = outcome.results.merge_from(request.out)? {
        terminal.note(format!("earlier results under other conditions are kept in {}", aside.display()));
    }
    let views = request.data.first().map(|source| &**source.views);
    let stored = |object, view| views.map_or((object, view), |views| views.stored(object, view));
    evaluation_folder::write(request.out, &outcome, request.images, &stored, &device)?;
    let has_poses = matches!(encoder.transformation(), Some(Transformation::PoseMatrices(_)));
    if request.images && has_poses && outcome.truth.space == Space::Object {
        terminal.note("rotating an object in pose space");
        let has_translation = outcome.truth.has[Part::Translation];
        let own = request.meshes.zip(views);
        pose_sweep::write(&mut encoder, request.out, own, request.protocol.seed, has_translation)?;
    }
    Ok(outcome.results)
}
