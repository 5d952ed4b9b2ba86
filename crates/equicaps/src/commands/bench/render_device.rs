//! `equicaps bench render --device cuda:N`: views per second on a GPU, left in its memory, and all the way to JPEG bytes on
//! all cores; which kernels take the time; and how it grows with the number of triangles.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;
use dataset::jpeg::{self, ChannelOrder};
use gpu::{ProfileEntry, Readback};
use rayon::prelude::*;
use render::cuda::{Object, Renderer, Shot};
use scene::{LatentRanges, Mesh};
use serde::Serialize;

use super::growth;
use super::render::{Arguments, SEED, VIEWS_PER_OBJECT};
use crate::commands::frame::text_table;
use crate::outcome::Outcome;

/// What a kernel is for, by the name of its stretch: kernels that trace rays light what they find in the same breath.
fn is_tracing(name: &str) -> bool {
    name.starts_with("shade") || ["camera rays", "floor irradiance", "floor shadow"].contains(&name)
}

/// Runs the benchmark on a device.
pub fn run(arguments: &Arguments, meshes: &[Mesh]) -> anyhow::Result<Outcome> {
    let mut renderer = crate::device::renderer(&arguments.device, arguments.quality)?
        .with_context(|| format!("{} is no CUDA device", arguments.device))?;
    let device = renderer.context().properties().name.clone();
    let objects: Vec<Arc<Object>> = meshes.par_iter().map(prepare).collect();
    let shots = shots(&objects, arguments.batch);
    let seconds = Duration::from_secs_f64(arguments.seconds);
    let (images_per_s, rays_per_image) = measure(&mut renderer, &shots, arguments.size, seconds)?;
    let stages = profile(&mut renderer, &shots, arguments.size)?;
    let total: f64 = stages.iter().map(|stage| stage.milliseconds).sum();
    let tracing: f64 = stages.iter().filter(|s| is_tracing(&s.name)).map(|s| s.milliseconds).sum();
    let encoded = encode(&mut renderer, &shots, arguments.size, seconds)?;
    let mut growth = Vec::new();
    for triangles in growth::TRIANGLES.into_iter().filter(|_| arguments.growth) {
        let mesh = growth::bumpy_sphere(triangles);
        let shots = self::shots(&[prepare(&mesh)], arguments.batch);
        let (images_per_s, rays_per_image) = measure(&mut renderer, &shots, arguments.size, seconds / 8)?;
        growth.push(Growth { triangles: mesh.triangles.len(), images_per_s, rays_per_image });
    }
    Outcome::new(&Rates {
        quality: arguments.quality.to_string(),
        device,
        size: arguments.size,
        batch: shots.len(),
        images_per_s,
        rays_per_s: images_per_s * rays_per_image,
        rays_per_image,
        objects: objects.len(),
        images_per_s_jpeg: encoded.images_per_s,
        share_tracing: tracing / total,
        share_rest: 1.0 - tracing / total,
        stages,
        growth,
        waiting: encoded.waiting,
    })
}

/// How fast views were rendered.
#[derive(Serialize)]
struct Rates {
    quality: String,
    device: String,
    size: u32,
    batch: usize,
    images_per_s: f64,
    rays_per_s: f64,
    rays_per_image: f64,
    objects: usize,
    images_per_s_jpeg: f64,
    share_tracing: f64,
    share_rest: f64,
    stages: Vec<ProfileEntry>,
    growth: Vec<Growth>,
    #[serde(skip)]
    waiting: f64,
}

/// The rate by the triangles of the object.
#[derive(Serialize)]
struct Growth {
    triangles: usize,
    images_per_s: f64,
    rays_per_image: f64,
}

impl fmt::Display for Rates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:.0} images/s, {:.2} billion rays/s on {} ({} views at a time)\n\
             {:.0} images/s to JPEG bytes on {} threads",
            self.images_per_s,
            self.rays_per_s / 1e9,
            self.device,
            self.batch,
            self.images_per_s_jpeg,
            rayon::current_num_threads(),
        )?;
        writeln!(
            formatter,
            "device time: tracing with shading at hits {:.1} %, the rest {:.1} %; waiting for the encoder {:.1} % of the time to JPEG",
            100.0 * self.share_tracing,
            100.0 * self.share_rest,
            100.0 * self.waiting,
        )?;
        let total: f64 = self.stages.iter().map(|stage| stage.milliseconds).sum();
        let stages = self.stages.iter().map(|stage| {
            let share = format!("{:.1} %", 100.0 * stage.milliseconds / total);
            vec![
                stage.name.to_string(),
                share,
                format!("{:.2}", 1e3 * stage.milliseconds / self.batch as f64),
            ]
        });
        let mut text = text_table(&["stage", "share", "us per image"], stages);
        if !self.growth.is_empty() {
            let rows = self.growth.iter();
            let rows = rows.map(|row| vec![row.triangles.to_string(), format!("{:.0}", row.images_per_s)]);
            text.push_str(&text_table(&["triangles", "images/s"], rows));
        }
        formatter.write_str(text.trim_end())
    }
}

fn prepare(mesh: &Mesh) -> Arc<Object> {
    Arc::new(Object::of(mesh))
}

/// `count` views of `objects`, fifty of each in a row as a dataset has them; fewer where that leaves objects out.
fn shots(objects: &[Arc<Object>], count: usize) -> Vec<Shot> {
    let per_object = (count / objects.len().max(1)).clamp(1, VIEWS_PER_OBJECT as usize);
    (0..count)
        .map(|i| {
            let object = i / per_object % objects.len();
            let latents = LatentRanges::BENCH_T.sample(SEED, &format!("bench/{object}"), i as u64);
            Shot { object: Some(objects[object].clone()), latents }
        })
        .collect()
}

/// Images a second that stay on the device, and rays an image.
fn measure(renderer: &mut Renderer, shots: &[Shot], size: u32, time: Duration) -> anyhow::Result<(f64, f64)> {
    let context = renderer.context().clone();
    let target = context.allocate(shots.len() * Renderer::image_bytes(size))?;
    // Once for compiling, copying objects and taking memory.
    renderer.render(shots, size, target.view())?;
    let rays = renderer.rays()?;
    let (start, mut batches) = (Instant::now(), 0);
    while batches == 0 || start.elapsed() < time {
        // Two batches in flight, so that the device never waits for the host.
        renderer.render(shots, size, target.view())?;
        renderer.render(shots, size, target.view())?;
        context.synchronize()?;
        batches += 2;
    }
    let images = (batches * shots.len()) as f64;
    let seconds = start.elapsed().as_secs_f64();
    Ok((images / seconds, (renderer.rays()? - rays) as f64 / images))
}

fn profile(renderer: &mut Renderer, shots: &[Shot], size: u32) -> anyhow::Result<Vec<ProfileEntry>> {
    let context = renderer.context().clone();
    let target = context.allocate(shots.len() * Renderer::image_bytes(size))?;
    context.start_profile();
    renderer.render(shots, size, target.view())?;
    Ok(context.finish_profile()?)
}

struct Encoded {
    images_per_s: f64,
    /// Share of the time that issuing work waited for the encoder to take a batch.
    waiting: f64,
}

/// Images a second to JPEG bytes: a batch is rendered while the one before it is encoded.
fn encode(renderer: &mut Renderer, shots: &[Shot], size: u32, time: Duration) -> anyhow::Result<Encoded> {
    let side = u16::try_from(size).context("the side is too long for a JPEG")?;
    let context = renderer.context().clone();
    let bytes = Renderer::image_bytes(size);
    let (filled, to_encode) = mpsc::sync_channel::<Readback>(1);
    let encoder = std::thread::spawn(move || -> Result<usize, String> {
        let mut images = 0;
        for batch in to_encode {
            let pixels = batch.bytes(0).map_err(|error| error.to_string())?;
            let sizes: Vec<usize> = pixels
                .par_chunks(bytes)
                .map(|pixels| jpeg::encode(pixels, side, ChannelOrder::Rgb).map(|jpeg| jpeg.len()))
                .collect::<Result<_, _>>()?;
            images += sizes.len();
        }
        Ok(images)
    });
    let (start, mut waited) = (Instant::now(), Duration::ZERO);
    while start.elapsed() < time {
        let target = context.allocate(shots.len() * bytes)?;
        renderer.render(shots, size, target.view())?;
        // SAFETY: the buffer goes back to the pool of the stream on which it is read.
        let images = unsafe { context.begin_read(&[target.view()]) }?;
        let before = Instant::now();
        filled.send(images).map_err(|_| anyhow::anyhow!("the encoder stopped"))?;
        waited += before.elapsed();
    }
    drop(filled);
    let images =
        encoder.join().map_err(|_| anyhow::anyhow!("the encoder panicked"))?.map_err(anyhow::Error::msg)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Encoded { images_per_s: images as f64 / seconds, waiting: waited.as_secs_f64() / seconds })
}
