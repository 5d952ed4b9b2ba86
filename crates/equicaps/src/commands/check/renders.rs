//! `equicaps check renders`: renders the views of a list and compares them with the images it names; or renders random
//! views on a GPU and compares them with those of the CPU.

mod random;
mod special;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use rayon::prelude::*;
use render::cuda::{Object, Shot};
use render::{PreparedMesh, Quality};
use scene::ViewRecord;
use serde::Serialize;

use crate::UsageError;
use crate::commands::meshes;
use crate::commands::render::Preset;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps check renders`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 within the bounds of the preset, 1 outside, 2 if the list, a mesh or\nan \
    image cannot be used.\n\nExamples:\n  \
    equicaps check renders --views renders/views.json --root renders\n  \
    equicaps check renders --random 200 --device cuda:0 --meshes objects\n  \
    equicaps check renders --random 200 --device cuda:0 --preset 3diebench-a"
)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["views", "random"]))]
pub struct Arguments {
    /// List of views (JSON), each with the image to compare with
    #[arg(long, value_name = "FILE", requires = "root")]
    views: Option<PathBuf>,
    /// Folder that the paths in the list are relative to
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Compare the device with the CPU on N random views of built-in objects (and of --meshes) instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    random: Option<u64>,
    /// Folder of meshes that half of the random views show
    #[arg(long, value_name = "DIR", requires = "random")]
    meshes: Option<PathBuf>,
    /// Latents of the random views; 3diebench-s and -a scale and shear the objects
    #[arg(long, value_name = "PRESET", value_enum, default_value_t = Preset::BenchT)]
    preset: Preset,
    /// Ranges of latents over those of the preset, as of `render --latents`
    #[arg(long, value_name = "FILE", requires = "random")]
    latents: Option<PathBuf>,
    /// Side of the random views in pixels
    #[arg(long, value_name = "PX", default_value_t = 256, value_parser = clap::value_parser!(u32).range(8..=8192))]
    size: u32,
    /// Where to render: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Quality preset: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t)]
    quality: Quality,
    /// Write, for the worst views, the render, the reference and their eightfold difference side by side
    #[arg(long, value_name = "DIR")]
    sheets: Option<PathBuf>,
    /// How many of the worst views --sheets writes
    #[arg(long, value_name = "N", default_value_t = 5, requires = "sheets")]
    sheet_count: usize,
}

/// Lowest acceptable PSNR in dB: 1 dB below what the README says of the 20 objects and the empty scenes.
struct Bounds {
    objects_mean: f64,
    objects_worst: f64,
    empty_worst: f64,
}

fn bounds(quality: Quality) -> Bounds {
    let (objects_mean, objects_worst) = match quality {
        Quality::Reference => (49.8, 48.9),
        Quality::Standard => (48.8, 47.3),
        Quality::Fast => (47.3, 44.4),
    };
    Bounds { objects_mean, objects_worst, empty_worst: 50.6 }
}

/// Lowest acceptable mean and worst PSNR in dB of a group of real objects that the list names; `None` for others, which
/// count like objects without a group.
fn group_bounds(quality: Quality, group: &str) -> Option<(f64, f64)> {
    match (group, quality) {
        ("plain", Quality::Reference) => Some((49.0, 45.0)),
        ("plain", Quality::Standard) => Some((48.0, 43.0)),
        ("plain", Quality::Fast) => Some((46.0, 40.0)),
        ("special", Quality::Reference) => Some((46.0, 41.0)),
        ("special", Quality::Standard) => Some((44.0, 39.0)),
        ("special", Quality::Fast) => Some((42.0, 37.0)),
        _ => None,
    }
}

/// What a view counts for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Object,
    Empty,
    /// Long exposures that repeat other records: shown, not counted.
    Extra,
}

/// A view and how near it comes to its reference.
#[derive(Serialize)]
struct Row {
    image: String,
    /// The mesh, or nothing for the empty scene.
    object: Option<String>,
    group: Option<String>,
    psnr_db: Option<f64>,
    counted: bool,
    #[serde(skip)]
    kind: Kind,
    #[serde(skip)]
    psnr: f64,
}

/// The views of one object, or of one group of objects.
#[derive(Serialize)]
struct Several {
    name: String,
    group: Option<String>,
    views: usize,
    mean_db: Option<f64>,
    worst_db: Option<f64>,
    worst_image: String,
}

impl Several {
    /// Sorts rows by what `name` calls them, the worst first.
    fn table(rows: &[Row], name: impl Fn(&Row) -> Option<String>) -> Vec<Self> {
        let mut named: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            if let Some(name) = name(row) {
                named.entry(name).or_default().push(row);
            }
        }
        let mut table: Vec<(f64, Self)> = named
            .into_iter()
            .filter_map(|(name, rows)| {
                let worst = rows.iter().min_by(|a, b| a.psnr.total_cmp(&b.psnr))?;
                let mean = rows.iter().map(|row| row.psnr).sum::<f64>() / rows.len() as f64;
                let several = Self {
                    name,
                    group: worst.group.clone(),
                    views: rows.len(),
                    mean_db: finite(mean),
                    worst_db: finite(worst.psnr),
                    worst_image: worst.image.clone(),
                };
                Some((worst.psnr, several))
            })
            .collect();
        table.sort_by(|a, b| a.0.total_cmp(&b.0));
        table.into_iter().map(|(_, several)| several).collect()
    }
}

/// All views beside the bounds of a preset.
#[derive(Serialize)]
struct Compared {
    quality: String,
    images: Vec<Row>,
    /// One for each mesh, the worst first.
    by_object: Vec<Several>,
    /// One for each group that the list names, the worst first.
    by_group: Vec<Several>,
    objects: Objects,
    empty: Empty,
    within_bounds: bool,
}

/// Views of objects.
#[derive(Serialize)]
struct Objects {
    count: usize,
    mean_db: Option<f64>,
    worst_db: Option<f64>,
    bound_mean_db: f64,
    bound_worst_db: f64,
}

/// Views of the empty scene.
#[derive(Serialize)]
struct Empty {
    count: usize,
    worst_db: Option<f64>,
    bound_worst_db: f64,
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.by_object.iter().chain(&self.by_group).map(|several| several.name.len());
        let width = names.max().unwrap_or(0).max(13);
        let decibels =
            |value: Option<f64>| value.map_or("  equal".to_owned(), |value| format!("{value:7.2}"));
        for (title, table) in [("object", &self.by_object), ("group", &self.by_group)] {
            if table.is_empty() {
                continue;
            }
            writeln!(formatter, "{title:width$}  views  mean dB  worst dB  worst image")?;
            for several in table {
                let Several { name, views, mean_db, worst_db, worst_image, .. } = several;
                let (mean, worst) = (decibels(*mean_db), decibels(*worst_db));
                write!(formatter, "{name:width$}  {views:5}  {mean}   {worst}  {worst_image}")?;
                match self.quality.parse().ok().and_then(|quality| group_bounds(quality, name)) {
                    Some((mean, worst)) if title == "group" => {
                        writeln!(formatter, "  at least {mean:.1} / {worst:.1}")?;
                    }
                    _ => writeln!(formatter)?,
                }
            }
            writeln!(formatter)?;
        }
        let Self { objects, empty, .. } = self;
        for (what, found, bound) in [
            ("objects mean", objects.mean_db, objects.bound_mean_db),
            ("objects worst", objects.worst_db, objects.bound_worst_db),
            ("empty worst", empty.worst_db, empty.bound_worst_db),
        ] {
            if let Some(found) = found {
                writeln!(formatter, "{what:width$}  {found:6.2} dB  at least {bound:.1}")?;
            }
        }
        let place = if self.within_bounds { "within" } else { "OUTSIDE" };
        write!(formatter, "{place} the bounds of {}", self.quality)
    }
}

/// Runs `equicaps check renders`.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let (views, root) = match (&arguments.views, &arguments.root, arguments.random) {
        (_, _, Some(count)) => return random::run(arguments, count, terminal),
        (Some(views), Some(root), None) => (views, root),
        _ => return Err(UsageError("give --views FILE and --root DIR, or --random N".to_owned()).into()),
    };
    let rows =
        compare(arguments, views, root, terminal).map_err(|error| UsageError(crate::sentence(&error)))?;
    let bounds = bounds(arguments.quality);
    let has_bounds = |row: &Row| {
        row.group.as_deref().is_some_and(|group| group_bounds(arguments.quality, group).is_some())
    };
    let rows_of = |kind: Kind| rows.iter().filter(move |row| row.kind == kind && !has_bounds(row));
    let of = |kind: Kind| rows_of(kind).map(|row| row.psnr);
    let by_group = Several::table(&rows, |row| row.group.clone().filter(|_| row.counted));
    let groups_within = by_group.iter().all(|group| match group_bounds(arguments.quality, &group.name) {
        Some((mean, worst)) => {
            group.mean_db.unwrap_or(f64::INFINITY) >= mean && group.worst_db.unwrap_or(f64::INFINITY) >= worst
        }
        None => true,
    });
    let count = of(Kind::Object).count();
    let mean = of(Kind::Object).sum::<f64>() / count as f64;
    let worst = of(Kind::Object).fold(f64::INFINITY, f64::min);
    let empty_worst = of(Kind::Empty).fold(f64::INFINITY, f64::min);
    let within = (count == 0 || mean >= bounds.objects_mean && worst >= bounds.objects_worst)
        && empty_worst >= bounds.empty_worst
        && groups_within;

    let object = |row: &Row| {
        let name = row.object.clone().unwrap_or_else(|| "(empty)".to_owned());
        Some(if row.counted { name } else { format!("{name} (not counted)") })
    };
    let compared = Compared {
        by_object: Several::table(&rows, object),
        by_group,
        quality: arguments.quality.to_string(),
        objects: Objects {
            count,
            mean_db: finite(mean),
            worst_db: finite(worst),
            bound_mean_db: bounds.objects_mean,
            bound_worst_db: bounds.objects_worst,
        },
        empty: Empty {
            count: of(Kind::Empty).count(),
            worst_db: finite(empty_worst),
            bound_worst_db: bounds.empty_worst,
        },
        images: rows,
        within_bounds: within,
    };
    Ok(Outcome::new(&compared)?
        .failed_if(!within, "images differ from the references by more than the bounds"))
}

fn compare(arguments: &Arguments, list: &Path, root: &Path, terminal: &Terminal) -> anyhow::Result<Vec<Row>> {
    let views = scene::read_views(list)?;
    anyhow::ensure!(!views.is_empty(), "{} lists no views", list.display());
    let mut prepared: BTreeMap<&Path, PreparedMesh> = BTreeMap::new();
    for mesh in views.iter().filter_map(|view| view.mesh.as_deref()) {
        if !prepared.contains_key(mesh) {
            prepared.insert(mesh, meshes::prepare(root, mesh, terminal)?);
        }
    }
    if let Some(folder) = &arguments.sheets {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let renderer = crate::device::renderer(&arguments.device, arguments.quality)?.map(Mutex::new);
    let objects: BTreeMap<&Path, Arc<Object>> = match &renderer {
        Some(_) => prepared.iter().map(|(path, mesh)| (*path, Arc::new(Object::new(mesh)))).collect(),
        None => BTreeMap::new(),
    };
    let progress = terminal.progress(views.len() as u64, "views");
    let rows: anyhow::Result<Vec<(Row, Vec<u8>)>> = views
        .par_iter()
        .map(|view| {
            let reference = read_reference(&root.join(&view.image))?;
            let size = reference.width();
            let pixels = match &renderer {
                Some(renderer) => {
                    let object = view.mesh.as_deref().map(|mesh| objects[mesh].clone());
                    let mut renderer = renderer.lock().unwrap_or_else(PoisonError::into_inner);
                    renderer.render_to_host(&[Shot { object, latents: view.latents() }], size)?
                }
                None => {
                    let mesh = view.mesh.as_deref().map(|mesh| &prepared[mesh]);
                    render::render(mesh, &view.latents(), size, arguments.quality).pixels
                }
            };
            progress.advance(1);
            let row = compare_view(view, &pixels, &reference);
            // What a sheet shows is kept until the worst views are known.
            Ok((row, if arguments.sheets.is_some() { pixels } else { Vec::new() }))
        })
        .collect();
    progress.finish();
    let rows = rows?;
    if let Some(folder) = &arguments.sheets {
        let mut worst: Vec<&(Row, Vec<u8>)> = rows.iter().collect();
        worst.sort_by(|a, b| a.0.psnr.total_cmp(&b.0.psnr));
        for (row, pixels) in worst.into_iter().take(arguments.sheet_count) {
            write_sheet(folder, root, row, pixels)?;
        }
    }
    Ok(rows.into_iter().map(|(row, _)| row).collect())
}

/// The render, the reference and their eightfold difference side by side.
fn write_sheet(folder: &Path, root: &Path, row: &Row, pixels: &[u8]) -> anyhow::Result<()> {
    let reference = read_reference(&root.join(&row.image))?;
    let size = reference.width();
    let sheet = image::RgbImage::from_fn(3 * size, size, |x, y| {
        let index = 3 * (y * size + x % size) as usize;
        let (ours, theirs) = (&pixels[index..][..3], &reference.as_raw()[index..][..3]);
        image::Rgb(std::array::from_fn(|channel| match x / size {
            0 => ours[channel],
            1 => theirs[channel],
            _ => (128 + 8 * (i32::from(ours[channel]) - i32::from(theirs[channel]))).clamp(0, 255) as u8,
        }))
    });
    let name = Path::new(&row.image).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let path = folder.join(format!("{name}.png"));
    sheet.save(&path).with_context(|| format!("cannot write {}", path.display()))
}

fn read_reference(path: &Path) -> anyhow::Result<image::RgbImage> {
    let reference = image::open(path).with_context(|| format!("cannot read {}", path.display()))?.to_rgb8();
    let (width, height) = reference.dimensions();
    anyhow::ensure!(
        width == height && width > 0,
        "{}: expected a square image, found {width} x {height}",
        path.display()
    );
    Ok(reference)
}

fn compare_view(view: &ViewRecord, pixels: &[u8], reference: &image::RgbImage) -> Row {
    let name = view.image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let kind = if name.starts_with("gt512_") {
        Kind::Extra
    } else if view.mesh.is_none() {
        Kind::Empty
    } else {
        Kind::Object
    };
    let psnr = render::psnr(pixels, reference.as_raw());
    Row {
        image: view.image.display().to_string(),
        object: view.mesh.as_ref().map(|mesh| mesh.display().to_string()),
        group: view.group.clone(),
        psnr_db: finite(psnr),
        counted: kind != Kind::Extra,
        kind,
        psnr,
    }
}
