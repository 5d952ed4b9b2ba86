//! `equicaps check renders`: renders the views of a list and compares them with the pictures it names; or renders random
//! views on a GPU and compares them with those of the CPU.

mod random;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use rayon::prelude::*;
use render::cuda::{Object, Shot};
use render::{PreparedMesh, Quality};
use scene::{LoadOptions, ViewRecord};
use serde_json::json;

use crate::UsageError;
use crate::terminal::Terminal;

/// Arguments of `equicaps check renders`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 within the bounds of the preset, 1 outside, 2 if the list, a mesh or\na \
    picture cannot be used.\n\nExamples:\n  \
    equicaps check renders --views renders/views.json --root renders\n  \
    equicaps check renders --random 200 --device cuda:0 --meshes objects"
)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["views", "random"]))]
pub struct Arguments {
    /// List of views (JSON), each with the picture to compare with
    #[arg(long, value_name = "FILE", requires = "root")]
    views: Option<PathBuf>,
    /// Folder that the paths in the list are relative to
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Instead: compare the device with the CPU on N random views of built-in objects (and of --meshes)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    random: Option<u64>,
    /// Folder of meshes that half of the random views show
    #[arg(long, value_name = "DIR", requires = "random")]
    meshes: Option<PathBuf>,
    /// Side of the random views in pixels
    #[arg(long, value_name = "PX", default_value_t = 256, value_parser = clap::value_parser!(u32).range(8..=8192))]
    size: u32,
    /// Where to render: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Quality preset: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t)]
    quality: Quality,
    /// Also write, for every view, render, reference and eightfold difference side by side
    #[arg(long, value_name = "DIR")]
    sheets: Option<PathBuf>,
}

/// Lowest acceptable PSNR in dB: 1 dB below what the README says of the 20 objects and the empty scenes.
struct Bounds {
    objects_mean: f64,
    objects_worst: f64,
    empty_worst: f64,
}

fn bounds(quality: Quality) -> Bounds {
    let (objects_mean, objects_worst) = match quality {
        Quality::Reference => (48.3, 43.3),
        Quality::Standard => (47.5, 42.9),
        Quality::Fast => (46.6, 43.0),
    };
    Bounds { objects_mean, objects_worst, empty_worst: 50.6 }
}

/// What a view counts for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Object,
    Empty,
    /// Long exposures that repeat other records: shown, not counted.
    Extra,
}

struct Row {
    image: String,
    kind: Kind,
    psnr: f64,
}

/// Runs `equicaps check renders`.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let (views, root) = match (&arguments.views, &arguments.root, arguments.random) {
        (_, _, Some(count)) => return random::run(arguments, count, terminal),
        (Some(views), Some(root), None) => (views, root),
        _ => return Err(UsageError("give --views FILE and --root DIR, or --random N".to_owned()).into()),
    };
    let rows =
        compare(arguments, views, root, terminal).map_err(|error| UsageError(crate::sentence(&error)))?;
    let bounds = bounds(arguments.quality);
    let of = |kind: Kind| rows.iter().filter(move |row| row.kind == kind).map(|row| row.psnr);
    let count = of(Kind::Object).count();
    let mean = of(Kind::Object).sum::<f64>() / count as f64;
    let worst = of(Kind::Object).fold(f64::INFINITY, f64::min);
    let empty_worst = of(Kind::Empty).fold(f64::INFINITY, f64::min);
    let within = (count == 0 || mean >= bounds.objects_mean && worst >= bounds.objects_worst)
        && empty_worst >= bounds.empty_worst;

    let width = rows.iter().map(|row| row.image.len()).max().unwrap_or(0).max(13);
    let mut text = String::new();
    for row in &rows {
        let note = if row.kind == Kind::Extra { "  (not counted)" } else { "" };
        writeln!(text, "{:width$}  {:6.2} dB{note}", row.image, row.psnr)?;
    }
    writeln!(text)?;
    if count > 0 {
        writeln!(text, "{:width$}  {mean:6.2} dB  at least {:.1}", "objects mean", bounds.objects_mean)?;
        writeln!(text, "{:width$}  {worst:6.2} dB  at least {:.1}", "objects worst", bounds.objects_worst)?;
    }
    if empty_worst.is_finite() {
        writeln!(text, "{:width$}  {empty_worst:6.2} dB  at least {:.1}", "empty worst", bounds.empty_worst)?;
    }
    write!(text, "{} the bounds of {}", if within { "within" } else { "OUTSIDE" }, arguments.quality)?;
    let finite = |value: f64| value.is_finite().then_some(value);
    let report = json!({
        "quality": arguments.quality.to_string(),
        "images": rows.iter().map(|row| json!({
            "image": row.image, "psnr_db": finite(row.psnr), "counted": row.kind != Kind::Extra,
        })).collect::<Vec<_>>(),
        "objects": { "count": count, "mean_db": finite(mean), "worst_db": finite(worst),
                     "bound_mean_db": bounds.objects_mean, "bound_worst_db": bounds.objects_worst },
        "empty": { "count": of(Kind::Empty).count(), "worst_db": finite(empty_worst),
                   "bound_worst_db": bounds.empty_worst },
        "within_bounds": within,
    });
    terminal.result(text, &report);
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn compare(arguments: &Arguments, list: &Path, root: &Path, terminal: &Terminal) -> anyhow::Result<Vec<Row>> {
    let views = scene::read_views(list)?;
    anyhow::ensure!(!views.is_empty(), "{} lists no views", list.display());
    let mut meshes: BTreeMap<&Path, PreparedMesh> = BTreeMap::new();
    for mesh in views.iter().filter_map(|view| view.mesh.as_deref()) {
        if !meshes.contains_key(mesh) {
            let loaded = scene::load_mesh(&root.join(mesh), &LoadOptions::under(root))?;
            loaded.warnings.iter().for_each(|warning| terminal.warn(warning));
            let mut loaded = loaded.mesh;
            scene::normalise(&mut loaded)
                .with_context(|| format!("{}: nothing to render", mesh.display()))?;
            meshes.insert(mesh, PreparedMesh::new(&loaded));
        }
    }
    if let Some(folder) = &arguments.sheets {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let renderer = crate::device::renderer(&arguments.device, arguments.quality)?.map(Mutex::new);
    let objects: BTreeMap<&Path, Arc<Object>> = match &renderer {
        Some(_) => meshes.iter().map(|(path, mesh)| (*path, Arc::new(Object::new(mesh)))).collect(),
        None => BTreeMap::new(),
    };
    let progress = terminal.progress(views.len() as u64, "views");
    let rows = views
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
                    let mesh = view.mesh.as_deref().map(|mesh| &meshes[mesh]);
                    render::render(mesh, &view.latents(), size, arguments.quality).pixels
                }
            };
            progress.advance(1);
            compare_view(arguments, view, &pixels, &reference)
        })
        .collect();
    progress.finish();
    rows
}

fn read_reference(path: &Path) -> anyhow::Result<image::RgbImage> {
    let reference = image::open(path).with_context(|| format!("cannot read {}", path.display()))?.to_rgb8();
    let (width, height) = reference.dimensions();
    anyhow::ensure!(
        width == height && width > 0,
        "{}: expected a square picture, found {width} x {height}",
        path.display()
    );
    Ok(reference)
}

fn compare_view(
    arguments: &Arguments,
    view: &ViewRecord,
    pixels: &[u8],
    reference: &image::RgbImage,
) -> anyhow::Result<Row> {
    let size = reference.width();
    let name = view.image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(folder) = &arguments.sheets {
        let sheet = image::RgbImage::from_fn(3 * size, size, |x, y| {
            let index = 3 * (y * size + x % size) as usize;
            let (ours, theirs) = (&pixels[index..][..3], &reference.as_raw()[index..][..3]);
            image::Rgb(std::array::from_fn(|channel| match x / size {
                0 => ours[channel],
                1 => theirs[channel],
                _ => (128 + 8 * (i32::from(ours[channel]) - i32::from(theirs[channel]))).clamp(0, 255) as u8,
            }))
        });
        let path = folder.join(format!("{name}.png"));
        sheet.save(&path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let kind = if name.starts_with("gt512_") {
        Kind::Extra
    } else if view.mesh.is_none() {
        Kind::Empty
    } else {
        Kind::Object
    };
    let psnr = render::psnr(pixels, reference.as_raw());
    Ok(Row { image: view.image.display().to_string(), kind, psnr })
}
