//! Views as `equicaps render` would make them, before it does: for plans, which ask how many there are.

use std::sync::Arc;

use dataset::card::Card;
use dataset::plan::Plan;
use dataset::{
    CpuRenderer, ObjectSet, OnTheFly, OnTheFlyOptions, ProceduralSize, SplitBy, Views, held_out_views,
};
use render::Quality;
use scene::LatentRanges;
use train::config::SplitName;

use super::Arguments;

/// Views of each object in the published datasets, and their side in pixels.
const PUBLISHED: (usize, usize) = (50, 256);

/// What `equicaps render` would make of `arguments`, for somebody who holds out what `split` says.
pub fn planned(arguments: &Arguments, split: SplitName) -> anyhow::Result<Arc<dyn Views>> {
    let arguments = &arguments.dataset;
    let ranges = arguments.ranges()?;
    let (set, origin) = arguments.objects()?;
    let plan = Plan::new(arguments.settings(ranges, origin, "cpu".to_owned()), &set.ids());
    let split = match plan.settings.split {
        SplitBy::Objects => split.or(SplitBy::Objects),
        // None of its objects can be held out.
        SplitBy::Views => SplitBy::Views,
    };
    let ids: Vec<_> = plan.objects.into_iter().map(|object| (object.synset, object.name)).collect();
    let options = Numbers {
        views: plan.settings.views,
        side: plan.settings.size,
        seed: plan.settings.seed,
        split,
        ranges,
    };
    Ok(options.of(set, &ids))
}

/// In what the dataset with `card` differs from what `arguments` ask for, whatever devices and version made it.
pub fn difference(arguments: &Arguments, card: &Card) -> anyhow::Result<Option<String>> {
    let arguments = &arguments.dataset;
    let (set, origin) = arguments.objects()?;
    let asked = arguments.settings(arguments.ranges()?, origin, card.settings.device.clone());
    let mut asked = Plan::new(asked, &set.ids()).settings;
    asked.version.clone_from(&card.settings.version);
    let is_same = asked.continuing(&card.settings, false).is_some();
    Ok(if is_same { None } else { card.settings.difference(&asked) })
}

/// Views like those of the published 3DIEBench-T, of so many objects.
pub fn like_published(objects: usize, split: SplitName) -> Arc<dyn Views> {
    let objects = u32::try_from(objects).unwrap_or(u32::MAX);
    let set = ObjectSet::procedural(ProceduralSize { classes: 1, objects }, 0);
    let (views, side) = PUBLISHED;
    let numbers =
        Numbers { views, side, seed: 0, split: split.or(SplitBy::Objects), ranges: LatentRanges::BENCH_T };
    let ids = set.ids();
    numbers.of(set, &ids)
}

/// A dataset in numbers.
struct Numbers {
    views: usize,
    side: usize,
    seed: u64,
    split: SplitBy,
    ranges: LatentRanges,
}

impl Numbers {
    /// Its views of the objects `ids` of `set`; none is rendered before somebody asks for it.
    fn of(&self, set: ObjectSet, ids: &[(String, String)]) -> Arc<dyn Views> {
        let held_out_views = match self.split {
            SplitBy::Objects => 0,
            SplitBy::Views => held_out_views(self.views),
        };
        let options = OnTheFlyOptions {
            views: self.views - held_out_views,
            held_out_views,
            side: self.side,
            seed: self.seed,
            ranges: self.ranges,
            memory: 0,
            prepared: 1,
            ready: false,
        };
        Arc::new(OnTheFly::new(CpuRenderer::new(set, Quality::Fast), ids, options))
    }
}
