//! Views that are rendered on the GPU that trains on them, and never leave its memory.
//!
//! The pool of views lies in device memory. A batch takes what the pool has, renders what it has not, and puts that into
//! the pool. Which view an image shows is decided before, by the plan; so what is in the pool, and whether anything fits
//! into it, never changes a number.

use std::sync::Arc;

use dataset::work::{Failure, ViewSource};
use dataset::{Object, ObjectSet, OnTheFly, Views};
use engine::cuda::{CudaDevice, Pictures, Place};
use engine::{Device, Tensor};
use render::cuda::{Renderer, Shot};
use render::{PreparedMesh, Quality};
use scene::Latents;

use crate::batches::Item;
use crate::error::{Error, Result};

/// Objects for a GPU; on the host they can be looked at, too.
#[derive(Debug)]
pub struct DeviceObjects {
    /// The objects.
    pub set: ObjectSet,
    /// How well they are rendered.
    pub quality: Quality,
}

/// An object in both forms.
#[derive(Debug)]
pub struct DeviceObject {
    mesh: PreparedMesh,
    object: Arc<render::cuda::Object>,
}

impl ViewSource for DeviceObjects {
    type Prepared = DeviceObject;

    fn prepare(&self, object: &Object) -> std::result::Result<DeviceObject, String> {
        let mesh = PreparedMesh::new(&self.set.load(object, |_| ())?);
        let object = Arc::new(render::cuda::Object::new(&mesh));
        Ok(DeviceObject { mesh, object })
    }

    fn render(
        &self,
        prepared: &DeviceObject,
        latents: &[Latents],
        side: usize,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let picture =
            |latents| render::render(Some(&prepared.mesh), latents, side as u32, self.quality).pixels;
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
    rendered: u64,
}

impl std::fmt::Debug for DeviceViews {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DeviceViews {{ {} places, {} rendered }}", self.held.len(), self.rendered)
    }
}

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
            rendered: 0,
        })
    }

    /// Views rendered so far.
    pub fn rendered(&self) -> u64 {
        self.rendered
    }

    /// The pictures of `items`, first views and then second ones: (pairs, side, side, 3) each, on their way when this
    /// returns.
    pub fn pictures(&mut self, items: &[Item]) -> Result<[Tensor; 2]> {
        let pairs = items.len() / 2;
        let room = || Pictures::new(&self.device, pairs, self.side);
        let batch = [room()?, room()?];
        let place_in_batch = |index: usize| batch[index / pairs].place(index % pairs);
        let mut copies: Vec<(Place, Place)> = Vec::with_capacity(items.len());
        let (mut shots, mut missing) = (Vec::new(), Vec::new());
        for (index, &(object, view)) in items.iter().enumerate() {
            let place = object * self.views.views() + view % self.views.views();
            if self.held.get(place) == Some(&(view + 1)) {
                copies.push((self.pool.place(place)?, place_in_batch(index)?));
            } else {
                let prepared = self.views.prepare(object)?;
                let latents = self.views.latents(object, view);
                shots.push(Shot { object: Some(Arc::clone(&prepared.object)), latents });
                missing.push((index, place, view));
            }
        }
        let mut fresh = Pictures::new(&self.device, missing.len(), self.side)?;
        if !missing.is_empty() {
            let target = fresh.view()?;
            self.renderer.render(&shots, self.side as u32, target).map_err(engine::Error::from)?;
            self.rendered += missing.len() as u64;
        }
        for (made, (index, place, view)) in missing.iter().enumerate() {
            copies.push((fresh.place(made)?, place_in_batch(*index)?));
            if let Some(held) = self.held.get_mut(*place) {
                copies.push((fresh.place(made)?, self.pool.place(*place)?));
                *held = view + 1;
            }
        }
        // SAFETY: all stores are alive, and what a batch reads from the pool it does not write there.
        unsafe { self.pool.copy(&self.device, &copies)? };
        Ok(batch.map(Pictures::into_tensor))
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
