//! The images on which an export is checked: views of eight built-in objects, always the same.

use dataset::{CpuRenderer, ObjectSet, OnTheFly, OnTheFlyOptions, Views};
use render::Quality;
use scene::LatentRanges;

use crate::error::{Error, Result};

/// So many images.
pub const COUNT: usize = 8;

/// `[COUNT, side, side, 3]` bytes, RGB.
pub fn rendered(side: usize) -> Result<Vec<u8>> {
    let size = format!("{COUNT}x1").parse().map_err(Error::Request)?;
    let set = ObjectSet::procedural(size, 0);
    let ids = set.ids();
    let options = OnTheFlyOptions {
        held_out_views: 0,
        views: 2,
        side,
        seed: 0,
        ranges: LatentRanges::BENCH_T,
        memory: 0,
        prepared: 1,
        ready: false,
    };
    let views = OnTheFly::new(CpuRenderer::new(set, Quality::Fast), &ids, options);
    let mut pixels = vec![0; COUNT * side * side * 3];
    for (object, image) in pixels.chunks_exact_mut(side * side * 3).enumerate() {
        views.image(object, 0, side, image)?;
    }
    Ok(pixels)
}

/// The same as networks of other programs take them: `[COUNT, 3, side, side]`, still bytes.
pub(crate) fn planes(pixels: &[u8], side: usize) -> Vec<u8> {
    let area = side * side;
    let images = pixels.chunks_exact(3 * area);
    images.flat_map(|image| (0..3).flat_map(move |c| (0..area).map(move |at| image[3 * at + c]))).collect()
}
