//! `equicaps check warps`: views of photographs made on a GPU against those of the CPU, for every group of warps.

use std::fmt;

use anyhow::bail;
use dataset::{Picture, Warp, Warps, jpeg};
use engine::Device;
use pose::{Group, Space};
use random::{Random, Stream};
use rayon::prelude::*;
use serde::Serialize;
use train::config::PrecisionName;

use crate::outcome::Outcome;

/// Lowest acceptable PSNR in dB: values are rounded once.
const BOUND_DB: f64 = 50.0;
/// Largest acceptable difference of a value.
const BOUND_VALUE: u8 = 2;

/// Arguments of `equicaps check warps`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 within the bounds, 1 outside.\n\nExample:\n  equicaps check warps --device cuda:0"
)]
pub struct Arguments {
    /// The GPU: cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: String,
    /// Views of each group
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    views: u16,
    /// Side of the views in pixels
    #[arg(long, value_name = "PX", default_value_t = 128, value_parser = clap::value_parser!(u16).range(8..=1024))]
    size: u16,
}

/// Runs the check.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let Device::Cuda(cuda) = crate::device::open(&arguments.device, PrecisionName::F32)? else {
        bail!("check warps compares a GPU with the CPU: give --device cuda:N");
    };
    let side = usize::from(arguments.size);
    // Of other sizes than the views, with edges of all contrasts.
    let pictures: Vec<Picture> = [50, 301, 640].map(|side| Picture::new(&noise(side), side)).into();
    let mut rows = Vec::new();
    for group in Group::ALL.into_iter().filter(|group| group.space == Space::Image) {
        let warps = Warps::of(group);
        let all: Vec<Warp> =
            (0..u64::from(arguments.views)).map(|view| warps.draw(7, "check", view)).collect();
        for picture in &pictures {
            let found = dataset::cuda::warp_on_device(cuda.context(), picture, &all, side)?;
            let again = dataset::cuda::warp_on_device(cuda.context(), picture, &all, side)?;
            let mut wanted = vec![0; found.len()];
            wanted
                .par_chunks_exact_mut(3 * side * side)
                .zip(&all)
                .for_each(|(pixels, warp)| picture.view(warp, side, pixels));
            let difference = found.iter().zip(&wanted).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
            rows.push(Row {
                group: group.name,
                picture: picture.side(),
                psnr_db: render::psnr(&found, &wanted).min(100.0),
                largest_difference: difference,
                same_bits: found == again,
            });
        }
    }
    let within =
        |row: &Row| row.psnr_db >= BOUND_DB && row.largest_difference <= BOUND_VALUE && row.same_bits;
    let within_bounds = rows.iter().all(within);
    let compared = Compared { rows, views: arguments.views, size: arguments.size, within_bounds };
    Ok(Outcome::new(&compared)?
        .failed_if(!within_bounds, "images differ between the two devices by more than the bounds"))
}

/// Noise in squares of a few pixels.
fn noise(side: usize) -> jpeg::Image {
    let mut random = Random::new(11, Stream::new("check-warps"), side as u64);
    let coarse: Vec<[u8; 3]> =
        (0..64 * 64).map(|_| std::array::from_fn(|_| random.next_u32() as u8)).collect();
    let at = |index: usize| coarse[(index / side * 64 / side) * 64 + index % side * 64 / side];
    jpeg::Image { width: side, height: side, pixels: (0..side * side).flat_map(at).collect() }
}

/// One group and picture.
#[derive(Serialize)]
struct Row {
    group: &'static str,
    picture: usize,
    psnr_db: f64,
    largest_difference: u8,
    same_bits: bool,
}

/// Both devices side by side.
#[derive(Serialize)]
struct Compared {
    rows: Vec<Row>,
    views: u16,
    size: u16,
    within_bounds: bool,
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { group, picture, psnr_db, largest_difference, same_bits } in &self.rows {
            let bits = if *same_bits { "the same bits" } else { "DIFFERENT bits" };
            writeln!(
                formatter,
                "{group:17} photograph of {picture:3} pixels: {psnr_db:5.1} dB, values differ by at most \
                 {largest_difference}, made twice: {bits}"
            )?;
        }
        let Self { views, size, .. } = self;
        write!(
            formatter,
            "{views} views each at {size}x{size}; at least {BOUND_DB} dB and at most {BOUND_VALUE} needed"
        )
    }
}
