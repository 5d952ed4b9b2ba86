//! Random views on a GPU against the same views on the CPU: the same image, up to rounding; and twice on the GPU: the
//! same bits.

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use rayon::prelude::*;
use render::PreparedMesh;
use render::cuda::{Object, Renderer, Shot};
use serde::Serialize;

use super::{Arguments, special};
use crate::UsageError;
use crate::commands::meshes;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Lowest acceptable PSNR of a view in dB: a ray may fall on the other side of an edge.
const BOUND_DB: f64 = 45.0;
/// Lowest acceptable means of views without special materials, and of those with them, some dB below those of right formulas:
/// a wrong one shows in most views that have to do with it (tests/render_mutants_cuda.py).
const PLAIN_BOUND_DB: f64 = 91.0;
const SPECIAL_BOUND_DB: f64 = 89.0;
/// Seed of objects and latents.
const SEED: u64 = 77;

pub(super) fn run(arguments: &Arguments, count: u64, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let mut renderer = crate::device::renderer(&arguments.device, arguments.quality)?
        .ok_or_else(|| UsageError("--random compares a GPU with the CPU: give --device cuda:N".to_owned()))?;
    let files = match &arguments.meshes {
        Some(root) => meshes::load_all(root, terminal)?,
        None => Vec::new(),
    };
    let mut ranges = arguments.preset.ranges();
    if let Some(file) = &arguments.latents {
        train::latents_file::apply(file, &mut ranges).map_err(|error| UsageError(error.to_string()))?;
    }
    let classes = procedural::classes().len() as u64;
    let prepared: Vec<(Option<PreparedMesh>, scene::Latents)> = (0..count)
        .into_par_iter()
        .map(|view| {
            let latents = ranges.sample(SEED, "check", view);
            let mesh = match view {
                0 => None,
                view if view % 2 == 1 && !files.is_empty() => {
                    Some(PreparedMesh::new(&files[(view / 2) as usize % files.len()]))
                }
                view => {
                    let label = (view * 7 % classes) as usize;
                    let mut mesh = procedural::build(SEED, label, view / classes);
                    if is_special(view) {
                        special::dress(&mut mesh, SEED, view);
                    }
                    Some(PreparedMesh::new(&mesh))
                }
            };
            (mesh, latents)
        })
        .collect();
    let shots: Vec<Shot> = prepared
        .iter()
        .map(|(mesh, latents)| Shot {
            object: mesh.as_ref().map(|mesh| Arc::new(Object::new(mesh))),
            latents: *latents,
        })
        .collect();
    let ours = renderer.render_to_host(&shots, arguments.size)?;
    let again = renderer.render_to_host(&shots, arguments.size)?;
    let bytes = Renderer::image_bytes(arguments.size);
    let psnrs: Vec<f64> = prepared
        .par_iter()
        .zip(ours.par_chunks(bytes))
        .map(|((mesh, latents), ours)| {
            let cpu = render::render(mesh.as_ref(), latents, arguments.size, arguments.quality);
            render::psnr(ours, &cpu.pixels).min(100.0)
        })
        .collect();
    let is_special = |view: u64| is_special(view) && (view.is_multiple_of(2) || files.is_empty());
    let (plain, special) = (mean_of(&psnrs, |view| !is_special(view)), mean_of(&psnrs, is_special));
    let (worst_view, worst) =
        psnrs.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).context("no views")?;
    let is_repeatable = ours == again;
    let means_are_high = plain.is_none_or(|mean| mean >= PLAIN_BOUND_DB)
        && special.is_none_or(|mean| mean >= SPECIAL_BOUND_DB);
    let within = worst >= BOUND_DB && means_are_high && is_repeatable;
    let compared = Compared {
        quality: arguments.quality.to_string(),
        views: count,
        mean_db: psnrs.iter().sum::<f64>() / psnrs.len() as f64,
        plain_mean_db: plain,
        plain_bound_db: PLAIN_BOUND_DB,
        special_mean_db: special,
        special_bound_db: SPECIAL_BOUND_DB,
        worst_db: worst,
        worst_view,
        bound_db: BOUND_DB,
        same_bits: is_repeatable,
        within_bounds: within,
        psnr_db: psnrs,
        device: renderer.context().properties().name.clone(),
    };
    Ok(Outcome::new(&compared)?
        .failed_if(!within, "images differ between the two devices by more than the bounds"))
}

/// Every second pair of built-in objects shows materials that they do not have of themselves.
fn is_special(view: u64) -> bool {
    view / 2 % 2 == 1
}

/// The mean over some of the views; nothing where there are none.
fn mean_of(psnrs: &[f64], which: impl Fn(u64) -> bool) -> Option<f64> {
    let chosen: Vec<f64> =
        psnrs.iter().zip(0..).filter(|&(_, view)| which(view)).map(|(&db, _)| db).collect();
    (!chosen.is_empty()).then(|| chosen.iter().sum::<f64>() / chosen.len() as f64)
}

/// Both devices side by side.
#[derive(Serialize)]
struct Compared {
    quality: String,
    views: u64,
    mean_db: f64,
    plain_mean_db: Option<f64>,
    plain_bound_db: f64,
    special_mean_db: Option<f64>,
    special_bound_db: f64,
    worst_db: f64,
    worst_view: usize,
    bound_db: f64,
    same_bits: bool,
    within_bounds: bool,
    /// Of every view.
    psnr_db: Vec<f64>,
    #[serde(skip)]
    device: String,
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quality, views, worst_db, worst_view, bound_db, device, .. } = self;
        write!(formatter, "{views} views, {quality} quality, {device}: ")?;
        if let Some(mean) = self.plain_mean_db {
            write!(formatter, "mean {mean:.1} dB (at least {}), ", self.plain_bound_db)?;
        }
        if let Some(mean) = self.special_mean_db {
            write!(formatter, "with special materials {mean:.1} dB (at least {}), ", self.special_bound_db)?;
        }
        let bits = if self.same_bits { "the same bits" } else { "DIFFERENT bits" };
        write!(
            formatter,
            "worst {worst_db:.1} dB (at least {bound_db}; view {worst_view}), rendered twice: {bits}"
        )
    }
}
