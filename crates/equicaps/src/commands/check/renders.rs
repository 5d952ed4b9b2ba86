//! `equicaps check renders`: renders the views of a list and compares them with the pictures it names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use rayon::prelude::*;
use render::{PreparedMesh, Quality};
use scene::{LoadOptions, ViewRecord};
use serde_json::json;

use crate::UsageError;
use crate::terminal::Terminal;

/// Arguments of `equicaps check renders`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 within the bounds of the preset, 1 outside, 2 if the list, a mesh or a \
    picture cannot be used.\n\nExample: equicaps check renders --views renders/views.json --root renders"
)]
pub struct Arguments {
    /// List of views (JSON), each with the picture to compare with
    #[arg(long, value_name = "FILE")]
    views: PathBuf,
    /// Folder that the paths in the list are relative to
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Quality preset: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t)]
    quality: Quality,
    /// Also write, for every view, render, reference and eightfold difference side by side
    #[arg(long, value_name = "DIR")]
    sheets: Option<PathBuf>,
}

/// Lowest acceptable PSNR in dB.
struct Bounds {
    objects_mean: f64,
    objects_worst: f64,
    empty_worst: f64,
}

fn bounds(quality: Quality) -> Bounds {
    let (objects_mean, objects_worst) = match quality {
        Quality::Reference => (42.0, 38.0),
        Quality::Standard => (36.0, 32.0),
        Quality::Fast => (33.0, 29.0),
    };
    Bounds { objects_mean, objects_worst, empty_worst: 48.0 }
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
    let rows = compare(arguments, terminal).map_err(|error| UsageError(format!("{error:#}")))?;
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
        writeln!(text, "{:width$}  {mean:6.2} dB  at least {:.0}", "objects mean", bounds.objects_mean)?;
        writeln!(text, "{:width$}  {worst:6.2} dB  at least {:.0}", "objects worst", bounds.objects_worst)?;
    }
    if empty_worst.is_finite() {
        writeln!(text, "{:width$}  {empty_worst:6.2} dB  at least {:.0}", "empty worst", bounds.empty_worst)?;
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

fn compare(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Vec<Row>> {
    let views = scene::read_views(&arguments.views)?;
    anyhow::ensure!(!views.is_empty(), "{} lists no views", arguments.views.display());
    let mut meshes: BTreeMap<&Path, PreparedMesh> = BTreeMap::new();
    for mesh in views.iter().filter_map(|view| view.mesh.as_deref()) {
        if !meshes.contains_key(mesh) {
            let loaded = scene::load_mesh(&arguments.root.join(mesh), &LoadOptions::under(&arguments.root))?;
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
    let progress = terminal.progress(views.len() as u64, "views");
    let rows = views
        .par_iter()
        .map(|view| {
            let row = compare_view(arguments, view, view.mesh.as_deref().map(|mesh| &meshes[mesh]));
            progress.advance(1);
            row
        })
        .collect();
    progress.finish();
    rows
}

fn compare_view(
    arguments: &Arguments,
    view: &ViewRecord,
    mesh: Option<&PreparedMesh>,
) -> anyhow::Result<Row> {
    let path = arguments.root.join(&view.image);
    let reference = image::open(&path).with_context(|| format!("cannot read {}", path.display()))?.to_rgb8();
    let size = reference.width();
    anyhow::ensure!(
        size == reference.height() && size > 0,
        "{}: expected a square picture, found {} x {}",
        path.display(),
        size,
        reference.height()
    );
    let picture = render::render(mesh, &view.latents(), size, arguments.quality);
    let name = view.image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(folder) = &arguments.sheets {
        let sheet = image::RgbImage::from_fn(3 * size, size, |x, y| {
            let index = 3 * (y * size + x % size) as usize;
            let (ours, theirs) = (&picture.pixels[index..][..3], &reference.as_raw()[index..][..3]);
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
    let psnr = render::psnr(&picture.pixels, reference.as_raw());
    Ok(Row { image: view.image.display().to_string(), kind, psnr })
}
