//! Images of a GPU on the host, for any number of threads that load objects and encode images meanwhile.

use gpu::Context;
use render::cuda::{Renderer, Shot};
use scene::Latents;

use super::objects::{DeviceObject, DeviceObjects};
use super::pool::renderer_beside;
use super::thread::RenderThread;
use crate::error::{Error, Result};
use crate::object::Object;
use crate::source::CpuRenderer;
use crate::work::{Failure, ViewSource};

/// Views of an object that a job asks for at once.
const REQUEST: usize = 64;

/// Renders the objects of a set on a GPU.
pub struct CudaRenderer {
    objects: DeviceObjects,
    thread: RenderThread,
}

impl CudaRenderer {
    /// Renders what `loader` loads, as well as it would, on the device of `renderer`.
    pub fn new(loader: CpuRenderer, renderer: Renderer) -> Result<Self> {
        Ok(Self { objects: DeviceObjects { loader }, thread: RenderThread::start(renderer)? })
    }

    /// The same beside the work of `context`, with `objects` bytes of objects there at most, or a third of what is free.
    pub fn beside(loader: CpuRenderer, context: &Context, objects: Option<usize>) -> Result<Self> {
        let renderer = renderer_beside(context, loader.quality, objects)?;
        Self::new(loader, renderer)
    }

    /// What loads the objects.
    pub fn loader(&self) -> &CpuRenderer {
        &self.objects.loader
    }

    /// What a dataset's card calls the device: images of the same kind of device have the same bits.
    pub fn kind(context: &Context) -> String {
        let properties = context.properties();
        format!("cuda {} {}", properties.architecture, properties.name)
    }
}

impl ViewSource for CudaRenderer {
    type Prepared = DeviceObject;

    fn prepare(&self, object: &Object) -> std::result::Result<DeviceObject, String> {
        self.objects.prepare(object)
    }

    fn render(
        &self,
        prepared: &DeviceObject,
        latents: &[Latents],
        side: usize,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let shots: Vec<Shot> = latents.iter().map(|latents| prepared.shot(*latents)).collect();
        self.thread.to_host(shots, side).map_err(|error| match error {
            Error::Gpu(error @ gpu::Error::OutOfMemory { .. }) => Failure::Object(error.to_string()),
            Error::Gpu(error) => Failure::Device(error.to_string()),
            error => Failure::Device(error.to_string()),
        })
    }

    fn objects(&self) -> Option<&CpuRenderer> {
        Some(self.loader())
    }

    fn batch(&self) -> usize {
        REQUEST
    }
}
