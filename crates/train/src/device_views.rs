//! Views that are rendered on the GPU that trains on them, and never leave its memory.
//!
//! The pool of views lies in device memory. A batch takes what the pool has, renders what it has not, and puts that into
//! the pool; as many views at once are hardly slower than a few, it renders what the next batches will miss, too. Which
//! view an image shows is decided before, by the plan; so what is in the pool, and whether anything fits into it, never
//! changes a number.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use dataset::work::{Failure, ViewSource};
use dataset::{Object, ObjectSet, OnTheFly, Views};
use engine::cuda::{CudaDevice, Pictures, Place};
use engine::{Device, Tensor};
use rayon::prelude::*;
use render::cuda::{Renderer, Shot};
use render::{PreparedMesh, Quality};
use scene::Latents;

use crate::batches::Item;
use crate::error::{Error, Result};

/// Objects for a GPU; pictures on the host are for people to look at.
#[derive(Debug)]
pub struct DeviceObjects {
    /// The objects.
    pub set: ObjectSet,
    /// How well they are rendered.
    pub quality: Quality,
}

/// An object as the GPU wants it.
#[derive(Debug)]
pub struct DeviceObject {
    id: Object,
    object: Arc<render::cuda::Object>,
}

impl ViewSource for DeviceObjects {
    type Prepared = DeviceObject;

    fn prepare(&self, object: &Object) -> std::result::Result<DeviceObject, String> {
        let mesh = PreparedMesh::new(&self.set.load(object, |_| ())?);
        Ok(DeviceObject { id: object.clone(), object: Arc::new(render::cuda::Object::new(&mesh)) })
    }

    fn render(
        &self,
        prepared: &DeviceObject,
        latents: &[Latents],
        side: usize,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let mesh = self.set.load(&prepared.id, |_| ()).map_err(Failure::Object)?;
        let mesh = PreparedMesh::new(&mesh);
        let picture = |latents| render::render(Some(&mesh), latents, side as u32, self.quality).pixels;
        Ok(latents.iter().flat_map(picture).collect())
    }
}

/// The pool and the renderer of a device.
pub struct DeviceViews {
    views: Arc<OnTheFly<DeviceObjects>>,
    device: Arc<CudaDevice>,
    renderer: Renderer,
    side: usize,
    pool: Pictures,
    /// The view in each place of the pool, plus one; 0: none.
    held: Vec<usize>,
    /// What the next batches will want.
    announced: VecDeque<Item>,
    /// The objects whose whole pool is to be rendered before the first batch.
    to_fill: Range<usize>,
    rendered: u64,
}

/// A view that the pool has not.
struct Missing {
    item: Item,
    /// Its place in the batch, where it is needed now.
    index: Option<usize>,
}

impl std::fmt::Debug for DeviceViews {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DeviceViews {{ {} places, {} rendered }}", self.held.len(), self.rendered)
    }
}

/// Batches that are announced before they come.
pub const LOOK_AHEAD: u64 = 32;

/// Views rendered at once, about.
const AT_ONCE: usize = 1024;

/// The share of the memory that is free which the pool may take at most.
const MOST_OF_FREE: f64 = 0.4;

impl DeviceViews {
    /// A pool of at most `memory` bytes for views of `side` x `side` pixels.
    pub fn new(
        views: Arc<OnTheFly<DeviceObjects>>,
        device: &Arc<CudaDevice>,
        side: usize,
        memory: usize,
    ) -> Result<Self> {
        let context = device.context();
        let free = context.free_bytes().map_err(engine::Error::from)?;
        let memory = memory.min((MOST_OF_FREE * free as f64) as usize);
        let places =
            (views.objects().len() * views.views()).min(memory / Renderer::picture_bytes(side as u32));
        let pool = Pictures::new(device, places, side)?;
        let renderer = Renderer::new(context, views.source().quality).map_err(engine::Error::from)?;
        Ok(Self {
            views,
            device: Arc::clone(device),
            renderer,
            side,
            pool,
            held: vec![0; places],
            announced: VecDeque::new(),
            to_fill: 0..0,
            rendered: 0,
        })
    }

    /// Renders all views of `objects` before the first batch, as far as they fit: for runs that will want all of them.
    pub fn fill(mut self, objects: Range<usize>) -> Self {
        self.to_fill = objects;
        self
    }

    /// Views rendered so far.
    pub fn rendered(&self) -> u64 {
        self.rendered
    }

    /// Says what a later batch will want.
    pub fn announce(&mut self, items: &[Item]) {
        self.announced.extend(items);
        // What is older has been and gone.
        let old = self.announced.len().saturating_sub(LOOK_AHEAD as usize * items.len());
        self.announced.drain(..old);
    }

    /// The pictures of `items`, first views and then second ones: (pairs, side, side, 3) each, on their way when this
    /// returns.
    pub fn pictures(&mut self, items: &[Item]) -> Result<[Tensor; 2]> {
        self.fill_pool()?;
        let pairs = items.len() / 2;
        let room = || Pictures::new(&self.device, pairs, self.side);
        let batch = [room()?, room()?];
        let place_in_batch = |index: usize| batch[index / pairs].place(index % pairs);
        let mut copies: Vec<(Place, Place)> = Vec::with_capacity(items.len());
        let mut missing = Vec::new();
        for (index, &item) in items.iter().enumerate() {
            match self.held_at(item) {
                Some(place) => copies.push((self.pool.place(place)?, place_in_batch(index)?)),
                None => missing.push(Missing { item, index: Some(index) }),
            }
        }
        if !missing.is_empty() {
            self.add_announced(items, &mut missing);
        }
        let (missing, fresh) = self.render(missing)?;
        for (made, Missing { index, .. }) in missing.iter().enumerate() {
            if let Some(index) = index {
                copies.push((fresh.place(made)?, place_in_batch(*index)?));
            }
        }
        self.keep(&missing, &fresh, &mut copies)?;
        // SAFETY: all stores are alive, and what a batch reads from the pool it does not write there.
        unsafe { self.pool.copy(&self.device, &copies)? };
        Ok(batch.map(Pictures::into_tensor))
    }

    fn place_of(&self, (object, view): Item) -> usize {
        object * self.views.views() + view % self.views.views()
    }

    /// Where the pool has `item`, if it has.
    fn held_at(&self, item: Item) -> Option<usize> {
        let place = self.place_of(item);
        (self.held.get(place) == Some(&(item.1 + 1))).then_some(place)
    }

    /// Adds what the next batches will miss, as long as it is not too much, and takes no place that `batch` reads.
    fn add_announced(&mut self, batch: &[Item], missing: &mut Vec<Missing>) {
        let mut taken: HashSet<usize> = batch.iter().map(|&item| self.place_of(item)).collect();
        while missing.len() < AT_ONCE
            && let Some(item) = self.announced.pop_front()
        {
            let place = self.place_of(item);
            let is_new = place < self.held.len() && self.held_at(item).is_none();
            if is_new && taken.insert(place) {
                missing.push(Missing { item, index: None });
            }
        }
    }

    /// Renders views into memory of their own. What is not needed now and cannot be made is left out.
    fn render(&mut self, wanted: Vec<Missing>) -> Result<(Vec<Missing>, Pictures)> {
        let prepare = |missing: Missing| -> Result<Option<(Missing, Shot)>> {
            let (object, view) = missing.item;
            match self.views.prepare(object) {
                Ok(prepared) => {
                    let latents = self.views.latents(object, view);
                    Ok(Some((missing, Shot { object: Some(Arc::clone(&prepared.object)), latents })))
                }
                Err(_) if missing.index.is_none() => Ok(None),
                Err(error) => Err(error.into()),
            }
        };
        let made: Vec<Option<(Missing, Shot)>> =
            wanted.into_par_iter().map(prepare).collect::<Result<_>>()?;
        let (missing, shots): (Vec<Missing>, Vec<Shot>) = made.into_iter().flatten().unzip();
        let mut fresh = Pictures::new(&self.device, missing.len(), self.side)?;
        if !shots.is_empty() {
            self.shoot(&shots, &mut fresh)?;
        }
        Ok((missing, fresh))
    }

    fn shoot(&mut self, shots: &[Shot], fresh: &mut Pictures) -> Result<()> {
        let target = fresh.view()?;
        self.renderer.render(shots, self.side as u32, target).map_err(engine::Error::from)?;
        self.rendered += shots.len() as u64;
        Ok(())
    }

    /// Lets rendered views take their places in the pool, by further copies.
    fn keep(
        &mut self,
        missing: &[Missing],
        fresh: &Pictures,
        copies: &mut Vec<(Place, Place)>,
    ) -> Result<()> {
        for (made, Missing { item, .. }) in missing.iter().enumerate() {
            let place = self.place_of(*item);
            if let Some(held) = self.held.get_mut(place) {
                *held = item.1 + 1;
                copies.push((fresh.place(made)?, self.pool.place(place)?));
            }
        }
        Ok(())
    }

    /// Renders the pool, some objects after the other; none of them is needed after that.
    fn fill_pool(&mut self) -> Result<()> {
        let views = self.views.views();
        let objects: Vec<usize> = std::mem::take(&mut self.to_fill).collect();
        for part in objects.chunks((AT_ONCE / views.max(1)).max(16)) {
            // What cannot be loaded is said when it is needed.
            let made: Vec<_> =
                part.par_iter().map(|&object| (object, self.views.prepare_once(object).ok())).collect();
            let made = made.into_iter().filter_map(|(object, made)| Some((object, made?.object)));
            let (mut missing, mut shots) = (Vec::new(), Vec::new());
            for (object, made) in made {
                for item in (0..views).map(|view| (object, view)) {
                    if self.place_of(item) < self.held.len() {
                        missing.push(Missing { item, index: None });
                        let latents = self.views.latents(object, item.1);
                        shots.push(Shot { object: Some(Arc::clone(&made)), latents });
                    }
                }
            }
            if missing.is_empty() {
                break;
            }
            let mut fresh = Pictures::new(&self.device, missing.len(), self.side)?;
            self.shoot(&shots, &mut fresh)?;
            let mut copies = Vec::with_capacity(missing.len());
            self.keep(&missing, &fresh, &mut copies)?;
            // SAFETY: both stores are alive, and only one is written.
            unsafe { self.pool.copy(&self.device, &copies)? };
        }
        if !objects.is_empty() {
            self.renderer.clear_cache().map_err(engine::Error::from)?;
        }
        Ok(())
    }
}

/// The GPU behind `device`.
pub fn cuda(device: &Device) -> Result<&Arc<CudaDevice>> {
    match device {
        Device::Cuda(cuda) => Ok(cuda),
        Device::Cpu(_) => {
            Err(Error::Request("views are rendered on a device only if it is a GPU".to_owned()))
        }
    }
}
