//! What a batch shows does not depend on what the pool holds or on what was rendered when; checked where there is a GPU.

use std::collections::HashMap;
use std::sync::Arc;

use gpu::Context;
use render::Quality;
use render::cuda::Renderer;
use scene::LatentRanges;

use super::shots::Shots;
use super::{CudaRenderer, DeviceObjects, PairImages, PoolMemory, RenderPool};
use crate::loader::Item;
use crate::on_the_fly::{OnTheFly, OnTheFlyOptions};
use crate::order::Cut;
use crate::source::{CpuRenderer, ObjectSet};
use crate::training_plan::{Curriculum, TrainingPlan};
use crate::views::Views;
use crate::work::ViewSource;

const SIDE: usize = 32;
const VIEWS: usize = 5;

fn views() -> Arc<OnTheFly<DeviceObjects>> {
    let set = ObjectSet::procedural("6x4".parse().unwrap(), 1);
    let ids = set.ids();
    Arc::new(views_of(set, &ids))
}

fn views_of(set: ObjectSet, ids: &[(String, String)]) -> OnTheFly<DeviceObjects> {
    let options = OnTheFlyOptions {
        views: VIEWS,
        held_out_views: 0,
        side: SIDE,
        seed: 1,
        ranges: LatentRanges::BENCH_T,
        memory: 0,
        prepared: 100,
        ready: true,
    };
    OnTheFly::new(DeviceObjects { loader: CpuRenderer::new(set, Quality::Fast) }, ids, options)
}

/// Every image as a renderer of its own makes it.
struct Expected {
    renderer: Renderer,
    views: Arc<OnTheFly<DeviceObjects>>,
    known: HashMap<Item, Vec<u8>>,
}

impl Expected {
    fn new(context: &Context) -> Self {
        let renderer = Renderer::new(context, Quality::Fast).unwrap();
        Self { renderer, views: views(), known: HashMap::new() }
    }

    fn image(&mut self, item: Item) -> &[u8] {
        self.known.entry(item).or_insert_with(|| {
            let shot = self.views.prepared(item.0).unwrap().shot(self.views.latents(item.0, item.1));
            self.renderer.render_to_host(&[shot], SIDE as u32).unwrap()
        })
    }
}

#[test]
fn every_batch_shows_what_was_planned_whatever_fits_into_memory() {
    let Some(context) = context() else { return };
    let image = Renderer::image_bytes(SIDE as u32);
    let mut expected = Expected::new(&context);
    for (refresh, places, objects, fills) in [
        (0.0, 200, None, true),
        (0.3, 200, None, true),
        (0.3, 17, Some(3 << 20), false),
        (1.0, 0, None, false),
    ] {
        let plan = TrainingPlan {
            seed: 3,
            objects: 15,
            views: VIEWS,
            stride: VIEWS,
            pairs: 1,
            batch: 6,
            cut: Cut::Published,
            epochs: 12,
            refresh,
            curriculum: Curriculum::NONE,
        };
        let memory = PoolMemory { pool: places * image, objects };
        let mut pool = RenderPool::new(views(), &context, SIDE, memory).unwrap();
        if fills {
            pool = pool.fill(0..15);
        }
        let mut coming = plan.steps_from(0, 0, Box::new(|_, _, _| 0.0)).fuse();
        let mut announced = 0;
        for (step, mut items) in plan.steps_from(0, 0, Box::new(|_, _, _| 0.0)).enumerate() {
            while announced <= step + 8
                && let Some(items) = coming.next()
            {
                pool.announce(&items).unwrap();
                announced += 1;
            }
            // Now and then another view stands in, and somebody looks at others in between.
            if step % 5 == 2 {
                items[1] = (items[1].0, items[1].1 + 1);
            }
            if step % 7 == 3 {
                check(&mut expected, &[(20, 1), (21, 0)], pool.images(&[(20, 1), (21, 0)]).unwrap());
            }
            check(&mut expected, &items, pool.announced_images(&items).unwrap());
        }
        if places == 200 && refresh == 0.0 {
            // The pool, two held-out views, and the stand-ins.
            assert!(pool.rendered() <= 15 * 5 + 2 + 15, "{pool:?}");
        }
    }
}

fn check(expected: &mut Expected, items: &[Item], batch: PairImages) {
    let image_bytes = Renderer::image_bytes(SIDE as u32);
    for (half, items) in batch.into_buffers().iter().zip(items.chunks(items.len() / 2)) {
        let mut bytes = vec![0; items.len() * image_bytes];
        // SAFETY: the buffer is alive.
        unsafe { half.context().read(half.view(), &mut bytes) }.unwrap();
        for (item, image) in items.iter().zip(bytes.chunks(image_bytes)) {
            assert!(image == expected.image(*item), "{item:?}");
        }
    }
}

#[test]
fn the_host_gets_the_same_images_whoever_else_asks() {
    let Some(context) = context() else { return };
    let mut expected = Expected::new(&context);
    let renderer = Renderer::new(&context.beside().unwrap(), Quality::Fast).unwrap();
    let set = ObjectSet::procedural("6x4".parse().unwrap(), 1);
    let source = CudaRenderer::new(CpuRenderer::new(set, Quality::Fast), renderer).unwrap();
    let views = views();
    let rendered: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let render = |object: usize| {
            let (source, views) = (&source, &views);
            // Sides in turn, so that not all go together.
            let side = if object % 4 == 3 { 2 * SIDE } else { SIDE };
            let latents: Vec<_> = (0..VIEWS).map(|view| views.latents(object, view)).collect();
            scope.spawn(move || {
                let prepared = source.prepare(&views.objects()[object]).unwrap();
                source.render(&prepared, &latents, side).unwrap()
            })
        };
        let threads: Vec<_> = (0..24).map(render).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (object, images) in rendered.iter().enumerate().filter(|(object, _)| object % 4 != 3) {
        let expected: Vec<u8> = (0..VIEWS).flat_map(|view| expected.image((object, view)).to_vec()).collect();
        assert!(*images == expected, "{object}");
    }
    assert!(rendered[3].len() == VIEWS * Renderer::image_bytes(2 * SIDE as u32));
}

/// A device, where there is one.
fn context() -> Option<Context> {
    Context::new(0).map_err(|error| eprintln!("skipped: {error}")).ok()
}

#[test]
fn a_request_visits_every_object_once_forwards_or_backwards() {
    let views = views();
    let items = [(3, 1), (1, 0), (3, 0), (2, 7), (1, 0)];
    for (is_backward, expected) in [(false, [3, 0, 4, 2, 1]), (true, [0, 3, 1, 2, 4])] {
        let Shots { shots, numbers } = Shots::of(&views, &items, is_backward, is_backward);
        assert_eq!(numbers, expected.map(Some));
        for (item, number) in items.iter().zip(numbers.into_iter().flatten()) {
            assert_eq!(shots[number].latents, views.latents(item.0, item.1));
        }
    }
}

#[test]
fn an_object_that_cannot_be_loaded_has_no_number() {
    let set = ObjectSet::procedural("1x3".parse().unwrap(), 1);
    let mut ids = set.ids();
    ids[1].1 = "not a number".to_owned();
    let views = views_of(set, &ids);
    let bad = views.objects().iter().position(|object| object.name == "not a number").unwrap();
    let Shots { shots, numbers } = Shots::of(&views, &[(0, 0), (1, 0), (2, 0)], false, false);
    assert_eq!(shots.len(), 2);
    assert!((0..3).all(|object| numbers[object].is_none() == (object == bad)));
}
