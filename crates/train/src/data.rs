//! Where a run's views come from: a dataset on disk, or objects (meshes, or the procedural library) rendered on the fly,
//! on the CPU or on the GPU that trains on them.

use std::path::Path;
use std::sync::Arc;

use dataset::cuda::{CudaRenderer, DeviceImages, DeviceObjects, PoolMemory, RenderPool, WarpPool};
use dataset::work::ViewSource;
use dataset::{
    CpuRenderer, DataSpec, Dataset, ObjectSet, OnTheFly, OnTheFlyOptions, Photos, PhotosOptions, Split,
    SplitBy, Views, shown_warnings,
};
use engine::{Collective, Device, SingleRank};
use methods::{MethodConfig, MethodName, Task};
use pose::{Group, Part, Space};
use scene::LatentRanges;

use crate::batches::training_plan;
use crate::config::{Config, LatentsName, LatentsSetting, OnBadSample};
use crate::error::{Error, Result};

/// The views of a run, and where it is trained on them.
pub struct Data {
    /// What they are.
    pub views: Arc<dyn Views>,
    /// Where they are trained on.
    pub device: Device,
    /// On a GPU, where they are rendered or warped on the fly: what does so there.
    pub rendered: Option<DeviceImages>,
    /// Who trains on them together.
    pub ranks: Arc<dyn Collective>,
}

impl Data {
    /// Views whose images come from the host.
    pub fn on_host(views: Arc<dyn Views>, device: &Device) -> Self {
        Self { views, device: device.clone(), rendered: None, ranks: Arc::new(SingleRank) }
    }
}

/// Views of every object that are held out at most, where they are rendered on the fly and the split is by views.
const MOST_HELD_OUT_VIEWS: usize = 50;

/// What `config.data` names.
pub(crate) enum Source {
    /// Stored views.
    Stored(Arc<dyn Views>),
    /// Objects to be rendered.
    Objects(ObjectSet),
    /// Photographs to be warped.
    Photos(Arc<Photos>),
}

pub(crate) fn find(config: &Config) -> Result<Source> {
    let named = |problem: String| Error::Request(format!("--data {}: {problem}", config.data));
    match config.data.parse().map_err(named)? {
        DataSpec::Folder(folder) if ObjectSet::is_mesh_folder(&folder) => {
            Ok(Source::Objects(ObjectSet::meshes(&folder, None, None)?))
        }
        DataSpec::Folder(folder) if config.method.transform.group().space == Space::Image => {
            if !folder.is_dir() {
                return Err(Error::Request(format!(
                    "there is no folder of photographs at {}",
                    folder.display()
                )));
            }
            Ok(Source::Photos(Arc::new(Photos::open(&folder, photos_options(config))?)))
        }
        DataSpec::Folder(folder) => {
            let dataset = open_folder(&folder, &config.lists)?;
            let split = config.split.or(Views::split_by(&dataset));
            Ok(Source::Stored(Arc::new(dataset.with_split(split)?)))
        }
        DataSpec::Procedural(size) => {
            Ok(Source::Objects(ObjectSet::procedural(size, config.procedural.seed)))
        }
    }
}

/// Opens the views that `config.data` names, for training on `device`.
pub fn open(config: &Config, device: &Device) -> Result<Data> {
    open_shared(config, device, Arc::new(SingleRank))
}

/// As [`open`], for training together with others.
pub fn open_shared(config: &Config, device: &Device, ranks: Arc<dyn Collective>) -> Result<Data> {
    match find(config)? {
        Source::Stored(views) => {
            check(config, &*views)?;
            Ok(Data { ranks, ..Data::on_host(views, device) })
        }
        Source::Objects(set) => on_the_fly(config, set, device, ranks),
        Source::Photos(photos) => {
            check(config, &*photos)?;
            let mut data = Data { ranks, ..Data::on_host(Arc::clone(&photos) as Arc<dyn Views>, device) };
            if let Device::Cuda(cuda) = device {
                let (side, memory) = (config.method.image_size, object_bytes(config));
                let pool = WarpPool::new(photos, cuda.context(), side, memory)?;
                data.rendered = Some(DeviceImages::Warped(Box::new(pool)));
            }
            Ok(data)
        }
    }
}

/// Opens the views that `config.data` names, for somebody who does not train on them: images come from the host. Meshes that
/// cannot be used are left out where the configuration says so, and `warn` gets the reasons.
pub fn open_views(config: &Config, warn: &mut dyn FnMut(String)) -> Result<Arc<dyn Views>> {
    open_views_on(config, &Device::cpu(), warn)
}

/// As [`open_views`], for somebody who computes on `device`: objects are rendered there.
pub fn open_views_on(
    config: &Config,
    device: &Device,
    warn: &mut dyn FnMut(String),
) -> Result<Arc<dyn Views>> {
    match find(config)? {
        Source::Stored(views) => Ok(views),
        Source::Photos(photos) => Ok(photos),
        Source::Objects(set) => {
            set.unused().iter().for_each(|text| warn(text.clone()));
            let (ids, options) = (set.ids(), on_the_fly_options(config)?);
            let loader = CpuRenderer::new(set, config.procedural.quality);
            Ok(match device {
                Device::Cpu(_) => usable(config, OnTheFly::new(loader, &ids, options), warn),
                Device::Cuda(cuda) => {
                    let renderer = CudaRenderer::beside(loader, cuda.context(), object_bytes(config))?;
                    usable(config, OnTheFly::new(renderer, &ids, options), warn)
                }
            })
        }
    }
}

/// The views without meshes that cannot be used, where `config` says so.
fn usable<S: ViewSource + Send + 'static>(
    config: &Config,
    views: OnTheFly<S>,
    warn: &mut dyn FnMut(String),
) -> Arc<dyn Views> {
    if config.loader.on_bad_sample == OnBadSample::Fail {
        return Arc::new(views);
    }
    let (views, problems) = views.without_unusable();
    problems.into_iter().for_each(|problem| warn(format!("left out: {problem}")));
    shown_warnings(views.warnings(), "").into_iter().for_each(warn);
    Arc::new(views)
}

/// Device memory for objects, where the configuration says how much.
fn object_bytes(config: &Config) -> Option<usize> {
    Some(config.procedural.objects_mib << 20).filter(|&bytes| bytes > 0)
}

/// The parts of poses that a setting cannot do without, besides rotations, and which setting that is.
fn wanted_parts(config: &Config) -> Vec<(Part, String)> {
    let MethodConfig { name, transform, network, .. } = &config.method;
    let parts = transform.group().parts.iter().filter(|part| **part != Part::Rotation);
    let mut wanted: Vec<(Part, String)> =
        parts.map(|&part| (part, format!("transform {transform}"))).collect();
    let asked = network.task.part().filter(|part| *name == MethodName::SUPERVISED && *part != Part::Rotation);
    if let Some(part) = asked.filter(|part| !transform.group().has(*part)) {
        wanted.push((part, format!("network.task {}", network.task)));
    }
    wanted
}

/// The ranges of latents that views made for `config` have.
pub(crate) fn ranges(config: &Config) -> Result<LatentRanges> {
    let wants = |part: Part| wanted_parts(config).iter().any(|(wanted, _)| *wanted == part);
    let name = match config.procedural.latents {
        LatentsSetting::Named(name) => name,
        LatentsSetting::File(_) | LatentsSetting::Own(_) => LatentsName::Auto,
    };
    let ranges = match name {
        LatentsName::Bench => LatentRanges::BENCH,
        LatentsName::BenchT => LatentRanges::BENCH_T,
        LatentsName::BenchS => LatentRanges::BENCH_S,
        LatentsName::BenchA => LatentRanges::BENCH_A,
        LatentsName::Auto if wants(Part::Shear) => LatentRanges::BENCH_A,
        LatentsName::Auto if wants(Part::Scale) => LatentRanges::BENCH_S,
        LatentsName::Auto if wants(Part::Translation) => LatentRanges::BENCH_T,
        LatentsName::Auto => LatentRanges::BENCH,
    };
    let LatentsSetting::Own(own) = &config.procedural.latents else { return Ok(ranges) };
    own.over(ranges).map_err(|message| Error::Setting(format!("procedural.latents: {message}")))
}

/// Whether it is a supervised network that only learns classes, for which a pair may be one image twice.
fn is_classifier(config: &Config) -> bool {
    config.method.name == MethodName::SUPERVISED && config.method.network.task == Task::Classification
}

/// Whether it is a supervised network that learns hues.
fn wants_hues(config: &Config) -> bool {
    config.method.name == MethodName::SUPERVISED && config.method.network.task == Task::Colour
}

/// The setting that cannot do without poses, if one is like that.
fn wants_pose(config: &Config) -> Option<String> {
    let MethodConfig { name, network, .. } = &config.method;
    if *name == MethodName::SUPERVISED {
        let learns = matches!(network.task, Task::Rotation | Task::Translation);
        return learns.then(|| format!("network.task {}", network.task));
    }
    if name.learns_pose() {
        return Some(format!("method {name}"));
    }
    (config.curriculum.candidates > 1 && config.curriculum.epochs > 0).then(|| "curriculum".to_owned())
}

/// Refuses views that a run with `config` cannot be trained on.
pub fn check(config: &Config, views: &dyn Views) -> Result<()> {
    let (group, has_poses) = (config.method.transform.group(), views.without_pose().is_none());
    if group.space != views.space() && (group.space == Space::Image || has_poses) {
        return Err(Error::Request(match group.space {
            Space::Image => format!(
                "transform {group} warps photographs, but {} has views of objects; give a folder of images",
                config.data
            ),
            Space::Object => format!(
                "transform {group} moves objects, but {} has photographs; use one of {}",
                config.data,
                image_groups()
            ),
        }));
    }
    let missing = |(part, _): &(Part, String)| match part {
        // Imported data without poses are refused for that.
        Part::Translation => !views.has_translation(),
        part => has_poses && !views.has(*part),
    };
    if let Some((part, wants)) = wanted_parts(config).into_iter().find(missing) {
        let (what, set) = match part {
            Part::Scale => ("scales", "3DIEBench-S or -A"),
            Part::Shear => ("shears", "3DIEBench-A"),
            _ => ("translations", "3DIEBench-T"),
        };
        return Err(Error::Request(format!(
            "{wants} needs views with {what} ({set}), but {} has none",
            config.data
        )));
    }
    if config.refresh > 0.0 && !views.has_more_views() {
        return Err(Error::Request(format!(
            "refresh is {}, but {} has stored views; only meshes and procedural objects have fresh ones",
            config.refresh, config.data
        )));
    }
    if let Some((wants, missing)) = wants_pose(config).zip(views.without_pose()) {
        return Err(Error::Request(format!(
            "{wants} needs the pose of every view, but {missing} (photographs without poses are trained on by \
             --transform image-rotation --data FOLDER, docs/groups.md)"
        )));
    }
    if wants_hues(config) && !views.has_light() {
        return Err(Error::Request(format!("network.task colour needs hues, but {} has none", config.data)));
    }
    let most = views.split(Split::Train).map(|object| views.views_of(Split::Train, object).len()).max();
    if most.is_none() {
        let all = views.objects().len();
        return Err(Error::Request(format!(
            "{} has no training objects: all of its {all} are held out",
            config.data
        )));
    }
    if most.unwrap_or(0) < 2 && !is_classifier(config) {
        return Err(Error::Request(format!(
            "{} has one view of every object, but a pair needs two different ones; of photographs more views are made by \
             --transform image-affine --data FOLDER (docs/groups.md)",
            config.data
        )));
    }
    training_plan(config, views).map(|_| ())
}

/// The names of the groups of images.
fn image_groups() -> String {
    let images = Group::ALL.into_iter().filter(|group| group.space == Space::Image);
    images.map(|group| group.name).collect::<Vec<_>>().join(", ")
}

fn require_folder(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Err(Error::Request("no data are named; give --data".to_owned()));
    }
    if !folder.exists() {
        return Err(Error::Request(format!(
            "there is no dataset at {}; make one with: equicaps render --out {}, or try --data procedural:5x4",
            folder.display(),
            dataset::shell_word(folder)
        )));
    }
    Ok(())
}

/// Views of every object for training and, where the split is by views, those held out.
fn view_numbers(config: &Config) -> (usize, usize) {
    let views = config.procedural.views;
    let by_views = config.split.or(SplitBy::Objects) == SplitBy::Views;
    (views, if by_views { views.min(MOST_HELD_OUT_VIEWS) } else { 0 })
}

fn photos_options(config: &Config) -> PhotosOptions {
    let (views, held_out_views) = view_numbers(config);
    PhotosOptions {
        group: config.method.transform.group(),
        ranges: config.photos,
        views,
        held_out_views,
        side: config.method.image_size,
        seed: config.procedural.seed,
        memory: config.procedural.memory_mib << 20,
    }
}

fn open_folder(folder: &Path, lists: &str) -> Result<Dataset> {
    require_folder(folder)?;
    let lists = if lists.is_empty() { folder } else { Path::new(lists) };
    Ok(Dataset::open_with_lists(folder, lists)?)
}

fn on_the_fly_options(config: &Config) -> Result<OnTheFlyOptions> {
    let settings = &config.procedural;
    let (views, held_out_views) = view_numbers(config);
    Ok(OnTheFlyOptions {
        views,
        held_out_views,
        side: config.method.image_size,
        seed: settings.seed,
        ranges: ranges(config)?,
        memory: settings.memory_mib << 20,
        prepared: settings.prepared_objects,
        ready: config.refresh > 0.0,
    })
}

fn on_the_fly(config: &Config, set: ObjectSet, device: &Device, ranks: Arc<dyn Collective>) -> Result<Data> {
    let (settings, ids, options) = (&config.procedural, set.ids(), on_the_fly_options(config)?);
    let memory = options.memory;
    let renderer = CpuRenderer::new(set, settings.quality);
    let Device::Cuda(cuda) = device else {
        let views: Arc<dyn Views> = Arc::new(OnTheFly::new(renderer, &ids, options));
        check(config, &*views)?;
        return Ok(Data { ranks, ..Data::on_host(views, device) });
    };
    // The host renders only images to be shown; the pool of images is in the device's memory.
    let options = OnTheFlyOptions { memory: 0, ..options };
    let views = Arc::new(OnTheFly::new(DeviceObjects { loader: renderer }, &ids, options));
    check(config, &*views)?;
    let memory = PoolMemory { pool: memory, objects: object_bytes(config) };
    let pool = RenderPool::new(Arc::clone(&views), cuda.context(), config.method.image_size, memory)?;
    // Every pair wants two views of an object, on one of the ranks.
    let pairs = training_plan(config, &*views)?.pairs as u64;
    let wanted = 2 * pairs * config.epochs / ranks.ranks() as u64;
    let wants_all = config.refresh < 0.5 && wanted >= settings.views as u64;
    let objects = if wants_all { views.split(Split::Train) } else { 0..0 };
    Ok(Data {
        views,
        device: device.clone(),
        rendered: Some(DeviceImages::Rendered(Box::new(pool.fill(objects)))),
        ranks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(settings: &[&str]) -> String {
        let mut layers = Config::settings("equicaps", "demo").unwrap();
        settings.iter().for_each(|assignment| layers.set(assignment).unwrap());
        open(&Config::resolve(layers).unwrap(), &Device::cpu()).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn wrong_data_are_named() {
        assert!(message(&["data=no/such/folder"]).starts_with("there is no dataset at no/such/folder"));
        assert!(message(&["data=procedural:5"]).contains("expected CLASSESxOBJECTS"));
        let empty = tempfile::tempdir().unwrap();
        let text = message(&[&format!("data={}", empty.path().display())]);
        assert!(text.contains("holds no dataset"), "{text}");
        assert!(
            message(&["data=procedural:2x5", "transform=rotation+base", "procedural.latents=3diebench"])
                .contains("needs views with translations")
        );
        let mut supervised = Config::settings("supervised", "demo").unwrap();
        for assignment in ["data=procedural:2x5", "network.task=translation", "procedural.latents=3diebench"]
        {
            supervised.set(assignment).unwrap();
        }
        let text = open(&Config::resolve(supervised).unwrap(), &Device::cpu()).err().unwrap().to_string();
        assert!(text.starts_with("network.task translation needs views with translations"), "{text}");
        assert_eq!(
            message(&["data=procedural:1x2", "pairs_per_object=1"]),
            "a step needs two training pairs, but of 2 objects of 1 class, 50 views each, rendered on the \
             fly at 32x32, 1 are for training"
        );
        assert_eq!(message(&["data="]), "no data are named; give --data");
    }

    #[test]
    fn a_folder_of_meshes_is_rendered_on_the_fly() {
        let root = tempfile::tempdir().unwrap();
        for (class, object) in [("a", "x"), ("a", "y"), ("b", "z")] {
            let folder = root.path().join(class);
            std::fs::create_dir_all(&folder).unwrap();
            let mesh = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n";
            std::fs::write(folder.join(format!("{object}.obj")), mesh).unwrap();
        }
        let mut layers = Config::settings("equicaps", "demo").unwrap();
        layers.set(&format!("data={}", root.path().display())).unwrap();
        layers.set("refresh=0.5").unwrap();
        let data = open(&Config::resolve(layers).unwrap(), &Device::cpu()).unwrap();
        assert_eq!((data.views.objects().len(), data.views.classes().len()), (3, 2));
        let mut pixels = vec![0; 3 * 32 * 32];
        data.views.image(0, 123, 32, &mut pixels).unwrap();
        assert!(pixels.iter().any(|&byte| byte != pixels[0]));
    }
}
