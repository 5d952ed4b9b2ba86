//! What a batch shows does not depend on what the pool holds or on what was rendered when; checked where there is a GPU.

use std::collections::HashMap;
use std::sync::Arc;

use dataset::{ObjectSet, OnTheFly, OnTheFlyOptions, Views};
use engine::Device;
use engine::cuda::CudaDevice;
use render::Quality;
use render::cuda::{Renderer, Shot};
use scene::LatentRanges;

use super::{DeviceObjects, DeviceViews, Memory, cuda};
use crate::batches::Item;
use dataset::TrainingPlan;

const SIDE: usize = 32;
const VIEWS: usize = 5;

fn views() -> Arc<OnTheFly<DeviceObjects>> {
    let set = ObjectSet::procedural("6x4".parse().unwrap(), 1);
    let ids = set.ids();
    let options = OnTheFlyOptions {
        views: VIEWS,
        side: SIDE,
        seed: 1,
        ranges: LatentRanges::BENCH_T,
        memory: 0,
        prepared: 100,
        ready: true,
    };
    Arc::new(OnTheFly::new(DeviceObjects { set, quality: Quality::Fast }, &ids, options))
}

/// Every picture as a renderer of its own makes it.
struct Expected {
    renderer: Renderer,
    views: Arc<OnTheFly<DeviceObjects>>,
    known: HashMap<Item, Vec<u8>>,
}

impl Expected {
    fn new(device: &Arc<CudaDevice>) -> Self {
        let renderer = Renderer::new(device.context(), Quality::Fast).unwrap();
        Self { renderer, views: views(), known: HashMap::new() }
    }

    fn picture(&mut self, item: Item) -> &[u8] {
        self.known.entry(item).or_insert_with(|| {
            let object = Some(Arc::clone(&self.views.prepared(item.0).unwrap().object));
            let shot = Shot { object, latents: self.views.latents(item.0, item.1) };
            self.renderer.render_to_host(&[shot], SIDE as u32).unwrap()
        })
    }
}

#[test]
fn every_batch_shows_what_was_planned_whatever_fits_into_memory() {
    let Ok(device) = Device::from_name("cuda:0", None) else {
        eprintln!("skipped: no CUDA device");
        return;
    };
    let device = cuda(&device).unwrap();
    let picture = Renderer::picture_bytes(SIDE as u32);
    let mut expected = Expected::new(device);
    for (refresh, places, objects, fills) in [
        (0.0, 200, None, true),
        (0.3, 200, None, true),
        (0.3, 17, Some(3 << 20), false),
        (1.0, 0, None, false),
    ] {
        let plan = TrainingPlan { seed: 3, objects: 15, views: VIEWS, batch: 6, epochs: 12, refresh };
        let memory = Memory { pool: places * picture, objects };
        let mut views = DeviceViews::new(views(), device, SIDE, memory).unwrap();
        if fills {
            views = views.fill(0..15);
        }
        let mut coming = plan.steps_from(0, 0).fuse();
        let mut announced = 0;
        for (step, mut items) in plan.steps_from(0, 0).enumerate() {
            while announced <= step + 8
                && let Some(items) = coming.next()
            {
                views.announce(&items).unwrap();
                announced += 1;
            }
            // Now and then another view stands in, and somebody looks at others in between.
            if step % 5 == 2 {
                items[1] = (items[1].0, items[1].1 + 1);
            }
            if step % 7 == 3 {
                check(&mut expected, &[(20, 1), (21, 0)], &views.pictures(&[(20, 1), (21, 0)]).unwrap());
            }
            check(&mut expected, &items, &views.announced_pictures(&items).unwrap());
        }
        if places == 200 && refresh == 0.0 {
            // The pool, two held-out views, and the stand-ins.
            assert!(views.rendered() <= 15 * 5 + 2 + 15, "{views:?}");
        }
    }
}

fn check(expected: &mut Expected, items: &[Item], batch: &[engine::Tensor; 2]) {
    let bytes: Vec<u8> = batch.iter().flat_map(|half| half.to_vec::<u8>().unwrap()).collect();
    for (item, picture) in items.iter().zip(bytes.chunks(Renderer::picture_bytes(SIDE as u32))) {
        assert!(picture == expected.picture(*item), "{item:?}");
    }
}
