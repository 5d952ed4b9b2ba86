//! `equicaps render views`: images for given latents, for comparing renderers and for reproducing a view.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::bail;
use dataset::jpeg::{self, ChannelOrder};
use rayon::prelude::*;
use render::Quality;
use render::cuda::{Object, Renderer, Shot};
use scene::ViewRecord;
use serde::Serialize;

use crate::commands::meshes;
use crate::interrupt;
use crate::outcome::{Outcome, count};
use crate::terminal::{Progress, Terminal, shown};

/// Arguments of `equicaps render views`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps render views --views renders/views.json --root renders --out again

FILE is a JSON array of records: image, mesh (or null: the empty scene), rotation_xyz,
floor_hue, spot_theta, spot_phi, spot_hue, and where wanted translation_xyz, scale_xyz, shear
(xy, xz, yz), camera_distance, camera_elevation. Meshes are found below --root; an
image is written to OUT/image, as PNG (as JPEG where its name ends in .jpg).")]
pub struct Arguments {
    /// The views, as JSON
    #[arg(long, value_name = "FILE")]
    views: PathBuf,
    /// Folder that the mesh paths start from
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Folder for the images, created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Rendering quality: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t = Quality::Standard)]
    quality: Quality,
    /// Width and height of an image in pixels
    #[arg(long, default_value_t = 256, value_name = "PX", value_parser = clap::value_parser!(u16).range(1..=8192))]
    size: u16,
    /// Where to render: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Images rendered at the same time [default: --threads]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let records = scene::read_views(&arguments.views)?;
    refuse_repeated_images(&records)?;
    let began = Instant::now();
    let mut by_mesh: BTreeMap<Option<&Path>, Vec<&ViewRecord>> = BTreeMap::new();
    for record in &records {
        by_mesh.entry(record.mesh.as_deref()).or_default().push(record);
    }
    let renderer = crate::device::renderer(&arguments.device, arguments.quality)?.map(Mutex::new);
    let progress = terminal.progress(records.len() as u64, "images");
    let jobs = arguments.jobs.map_or_else(rayon::current_num_threads, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
    let groups: Vec<(Option<&Path>, Vec<&ViewRecord>)> = by_mesh.into_iter().collect();
    let failures: Vec<String> = pool.install(|| {
        groups
            .par_iter()
            .flat_map_iter(|(mesh, records)| {
                render_group(arguments, renderer.as_ref(), *mesh, records, &progress, terminal)
            })
            .collect()
    });
    progress.finish();
    for failure in failures.iter() {
        terminal.warn(failure);
    }
    if interrupt::flag().load(Ordering::Relaxed) {
        return Err(crate::Interrupted.into());
    }
    let seconds = began.elapsed().as_secs_f64();
    let images = records.len() - failures.len();
    let failure = match failures.len() {
        0 => None,
        failed => Some(format!("{failed} of {} could not be rendered", count(records.len(), "view"))),
    };
    let images_per_s = images as f64 / seconds.max(1e-9);
    let rendered = Rendered { out: shown(&arguments.out), images, failed: failures, seconds, images_per_s };
    let outcome = Outcome::new(&rendered)?;
    Ok(match failure {
        Some(failure) => outcome.failed(failure),
        None => outcome,
    })
}

/// What rendering came to.
#[derive(Serialize)]
struct Rendered {
    out: String,
    images: usize,
    failed: Vec<String>,
    seconds: f64,
    images_per_s: f64,
}

impl fmt::Display for Rendered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { out, images, seconds, images_per_s, .. } = self;
        let images = count(images, "image");
        write!(formatter, "{images} in {out} ({seconds:.1} s, {images_per_s:.1} images/s)")
    }
}

fn refuse_repeated_images(records: &[ViewRecord]) -> anyhow::Result<()> {
    let mut seen: HashMap<&Path, usize> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        if let Some(first) = seen.insert(&record.image, index) {
            bail!("records {first} and {index} both name the image {}", record.image.display());
        }
    }
    Ok(())
}

/// Renders the views of one mesh; returns a sentence for each that failed.
fn render_group(
    arguments: &Arguments,
    renderer: Option<&Mutex<Renderer>>,
    mesh: Option<&Path>,
    records: &[&ViewRecord],
    progress: &Progress,
    terminal: &Terminal,
) -> Vec<String> {
    let stopped = || interrupt::flag().load(Ordering::Relaxed);
    if stopped() {
        return Vec::new();
    }
    let prepared = match mesh.map(|mesh| meshes::prepare(&arguments.root, mesh, terminal)).transpose() {
        Ok(prepared) => prepared,
        Err(error) => {
            let failed = |record: &&ViewRecord| format!("{}: {error:#}", record.image.display());
            return records.iter().map(failed).collect();
        }
    };
    let size = u32::from(arguments.size);
    let report = |record: &ViewRecord, written: anyhow::Result<()>| {
        progress.advance(1);
        written.err().map(|error| format!("{}: {error:#}", record.image.display()))
    };
    let Some(renderer) = renderer else {
        return records
            .par_iter()
            .filter(|_| !stopped())
            .filter_map(|record| {
                let image = render::render(prepared.as_ref(), &record.latents(), size, arguments.quality);
                report(record, write(arguments, record, &image))
            })
            .collect();
    };
    let object = prepared.as_ref().map(|prepared| Arc::new(Object::new(prepared)));
    let shots: Vec<Shot> =
        records.iter().map(|record| Shot { object: object.clone(), latents: record.latents() }).collect();
    let images = renderer.lock().unwrap_or_else(PoisonError::into_inner).render_to_host(&shots, size);
    match images {
        Ok(images) => records
            .par_iter()
            .zip(images.par_chunks(Renderer::image_bytes(size)))
            .filter(|_| !stopped())
            .filter_map(|(record, pixels)| {
                let image = render::Image { width: size, height: size, pixels: pixels.to_vec() };
                report(record, write(arguments, record, &image))
            })
            .collect(),
        Err(error) => records.iter().map(|r| format!("{}: {error}", r.image.display())).collect(),
    }
}

/// PNG, unless the name asks for JPEG.
fn write(arguments: &Arguments, record: &ViewRecord, image: &render::Image) -> anyhow::Result<()> {
    let path = arguments.out.join(&record.image);
    let extension = record.image.extension().map(|extension| extension.to_ascii_lowercase());
    let bytes = if extension.is_some_and(|extension| extension == "jpg" || extension == "jpeg") {
        jpeg::encode(&image.pixels, arguments.size, ChannelOrder::Rgb).map_err(anyhow::Error::msg)?
    } else {
        report::Bitmap::new(image.width, image.height, image.pixels.clone())?.to_png()?
    };
    if let Some(folder) = path.parent() {
        dataset::durable::create_folder(folder)?;
    }
    dataset::durable::write(&path, &bytes)?;
    Ok(())
}
