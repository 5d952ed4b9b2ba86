//! Views as `equicaps render` would make them, before it does: for plans, which ask how many there are.

use std::sync::Arc;

use dataset::{CpuRenderer, ObjectSet, OnTheFly, OnTheFlyOptions, ProceduralSize, Views, held_out_views};
use render::Quality;
use scene::LatentRanges;

use super::{Arguments, DatasetArguments, Split};

/// A dataset in numbers.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Objects, a fifth of them held out.
    pub objects: usize,
    /// Views of each.
    pub views: usize,
    /// Views of each that are held out, instead of objects.
    pub held_out_views: usize,
    /// Side in pixels.
    pub side: usize,
    /// The ranges of their latents.
    pub ranges: LatentRanges,
}

impl Planned {
    /// 3DIEBench-T, but for a few objects.
    pub const PUBLISHED: Self =
        Self { objects: 52_472, views: 50, held_out_views: 0, side: 256, ranges: LatentRanges::BENCH_T };

    /// As many views, of other objects.
    pub fn views(&self) -> Arc<dyn Views> {
        let objects = u32::try_from(self.objects).unwrap_or(u32::MAX);
        let set = ObjectSet::procedural(ProceduralSize { classes: 1, objects }, 0);
        let ids = set.ids();
        let options = OnTheFlyOptions {
            views: self.views - self.held_out_views,
            held_out_views: self.held_out_views,
            side: self.side,
            seed: 0,
            ranges: self.ranges,
            memory: 0,
            prepared: 1,
            ready: false,
        };
        Arc::new(OnTheFly::new(CpuRenderer::new(set, Quality::Fast), &ids, options))
    }
}

/// What `equicaps render` would make of `arguments`.
pub fn planned(arguments: &Arguments) -> anyhow::Result<Arc<dyn Views>> {
    let DatasetArguments { meshes, objects: list, procedural, up, limit, .. } = &arguments.dataset;
    let objects = match (meshes, procedural) {
        (Some(root), _) => ObjectSet::meshes(root, list.as_deref(), up.map(Into::into))?.ids().len(),
        (None, Some(size)) => size.classes as usize * size.objects as usize,
        (None, None) => 0,
    };
    let views = arguments.dataset.views as usize;
    let held_out_views = match arguments.dataset.split {
        Split::Objects => 0,
        Split::Views => held_out_views(views),
    };
    let planned = Planned {
        objects: limit.map_or(objects, |limit| objects.min(limit as usize)),
        views,
        held_out_views,
        side: usize::from(arguments.dataset.size),
        ranges: arguments.dataset.preset.ranges(),
    };
    Ok(planned.views())
}
